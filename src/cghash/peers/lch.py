"""LCH: Laplacian co-hashing of items and terms.

Zhang, Wang, Cai, Lu: Laplacian co-hashing of terms and documents. ECIR 2010. Items and features are the two sides of a
graph whose edges weigh x_ij ≥ 0. With the degrees D₁ (of items) and D₂ (of features), the eigenvectors of its Laplacian
L f = λ D f come from the singular vectors of D₁^(−1/2) X D₂^(−1/2): D₁^(−1/2) u on items and
D₂^(−1/2) v on features, with λ = 1 − σ. The constant eigenvector is left out, and coordinates are cut at their medians.
A new item is folded in as u D₁^(−1/2) = x D₂^(−1/2) v / (deg(x) σ), which on training items is their own coordinate.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .._arrays import Floats
from ..exceptions import NothingToLearnError
from .base import Peer
from .projections import leading_directions, median_cuts


@dataclass(eq=False, repr=False)
class LCH(Peer):
    """Laplacian co-hashing: the smoothest functions on the graph of items and features, cut at their medians.

    An edge's weight must not be negative. A feature that is negative in the training items is shifted up by its least
    value there; what lies below it in a new item counts as 0. Features that are never negative, as counts, stay.

    Parameters
    ----------
    n_bits : int, default=64
        At most the rank of the graph less 1 come out.

    Attributes
    ----------
    directions_ : (n_bits_, d) D₂^(−1/2) v, the coordinates of the features
    thresholds_ : (n_bits_,) medians of the coordinates of the training items, times σ
    least_ : (d,) what is subtracted from the features, 0 or less

    Examples
    --------
    >>> X = [[3.0, 1.0, 0.0], [2.0, 1.0, 0.0], [0.0, 1.0, 2.0], [0.0, 1.0, 3.0]]
    >>> codes = LCH(1).fit_transform(X).ravel()
    >>> bool(codes[0] == codes[1] != codes[2] == codes[3])
    True
    """

    prefixes = True

    n_bits: int = 64

    def _learn(self, X: Any, labels: Any, rng: np.random.Generator) -> int:
        self.least_ = np.minimum(X.min(axis=0), 0).astype(np.float64)
        edges = self._edges(X)
        by_item, by_feature = edges.sum(axis=1), edges.sum(axis=0)
        if by_item.sum() == 0:
            raise NothingToLearnError("X must hold an edge of the graph, got zeros alone")
        half = _inverse_root(by_feature)  # D₂^(−1/2)
        edges *= _inverse_root(by_item)[:, None]
        edges *= half
        edges -= np.sqrt(by_item[:, None] * by_feature) / by_item.sum()  # the constant eigenvector, whose σ is 1
        v, _ = leading_directions(edges, self.n_bits)
        self.directions_ = v * half
        self.thresholds_ = median_cuts(self._coordinates(X))
        return len(v)

    def _margins(self, X: Any) -> Floats:
        return np.asarray(self._coordinates(X) - self.thresholds_)

    def _edges(self, X: Any) -> Floats:
        return np.asarray(np.maximum(X - self.least_, 0.0))

    def _coordinates(self, X: Any) -> Floats:
        edges = self._edges(X)
        degree = edges.sum(axis=1, keepdims=True)
        return np.asarray(edges @ self.directions_.T / np.where(degree > 0, degree, 1.0))


def _inverse_root(degrees: Floats) -> Floats:
    """d^(−1/2), and 0 for what has no edge."""
    return np.where(degrees > 0, 1.0 / np.sqrt(np.where(degrees > 0, degrees, 1.0)), 0.0)
