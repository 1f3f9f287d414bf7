"""LDAHash: discriminant projections, and the thresholds that part pairs best.

Strecha, Bronstein, Bronstein, Fua: LDAHash: Improved matching with smaller descriptors. TPAMI 2012. With Σ_P and Σ_N
the covariances of differences of items that share a label and that share none, a projection P should make
α E[‖Px − Px'‖² | same] − E[‖Px − Px'‖² | different] small: either P has orthonormal rows, the eigenvectors of
αΣ_P − Σ_N with the smallest eigenvalues ("dif"), or the differences between different items are whitened
first, which leaves the eigenvectors Σ_P w = λ Σ_N w with the smallest λ ("lda"). Then each threshold is
the one with the largest sum of true positive and true negative rates over pairs.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.linalg import eigh

from .._arrays import Floats, Ints
from ..exceptions import NothingToLearnError
from .base import Peer, not_negative, one_of
from .labels import similar
from .projections import principal_components, project, signed

PROJECTIONS = ("lda", "dif")


@dataclass(eq=False, repr=False)
class LDAHash(Peer):
    """LDAHash: projections that draw items with a common label together, cut where pairs are told apart best.

    All pairs are counted, in closed form.

    Parameters
    ----------
    n_bits : int, default=64
        At most the rank of the centred items come out.
    projection : {"lda", "dif"}, default="lda"
    regularization : float, default=0.1
        Of "lda": added to the variances in both covariances, as a share of the mean variance of the items. Without it
        more features than items could be told apart without error, and to no use.
    alpha : float, default=2.0
        Of "dif": what items with a common label count.

    Attributes
    ----------
    directions_ : (n_bits_, d)
    thresholds_ : (n_bits_,)
    mean_ : (d,) the mean of the items

    Examples
    --------
    >>> X = [[0.0, 1.0], [0.1, 9.0], [1.0, 2.0], [1.1, 8.0]]
    >>> bits = LDAHash(1).fit(X, [0, 0, 1, 1]).transform(X).ravel()
    >>> bool(bits[0] == bits[1] != bits[2] == bits[3])
    True
    """

    supervision = "required"
    prefixes = True
    checks: ClassVar = {"projection": one_of(*PROJECTIONS), "regularization": not_negative, "alpha": not_negative}

    n_bits: int = 64
    _: KW_ONLY
    projection: str = "lda"
    regularization: float = 0.1
    alpha: float = 2.0

    def _learn(self, X: Any, labels: Any, rng: np.random.Generator) -> int:
        pairs = Pairs.of(labels)
        self.mean_, components, variances = principal_components(X, X.shape[1])
        Z = project(X, self.mean_, components)
        same, different = pairs.covariances(Z, variances)
        if self.projection == "lda":
            ridge = np.diag(np.full(len(components), self.regularization * variances.mean()))
            vectors = eigh(same + ridge, different + ridge)[1]
        else:
            vectors = eigh(self.alpha * same - different)[1]
        directions = signed(vectors.T[: self.n_bits] @ components)
        self.directions_ = directions / np.linalg.norm(directions, axis=1, keepdims=True)
        values = project(X, self.mean_, self.directions_)
        self.thresholds_ = np.array([pairs.best_cut(column) for column in values.T])
        return len(directions)

    def _margins(self, X: Any) -> Floats:
        return np.asarray(project(X, self.mean_, self.directions_) - self.thresholds_)


class Pairs(NamedTuple):
    """All pairs of items, counted by groups of items with the same set of labels."""

    group: Ints  # (n,) of each item
    sizes: Floats  # (u,) of each group
    related: Floats  # (u, u) 1 where items of two groups share a label
    n_same: float  # ordered pairs of different items that share a label
    n_different: float

    @classmethod
    def of(cls, labels: Any) -> Pairs:
        sets, group = np.unique(labels, axis=0, return_inverse=True)
        sizes = np.bincount(group).astype(np.float64)
        related = similar(sets, sets).astype(np.float64)
        n, n_same = float(sizes.sum()), float(sizes @ related @ sizes - sizes @ np.diag(related))
        if n_same == 0 or n_same == n * (n - 1):
            raise NothingToLearnError("y must hold items that share a label and items that share none")
        return cls(group.ravel(), sizes, related, n_same, n * (n - 1) - n_same)

    def covariances(self, Z: Floats, variances: Floats) -> tuple[Floats, Floats]:
        """E[(z − z')(z − z')ᵀ] over pairs that share a label, and over the rest: (k, k) each.

        Z (n, k) are centred, and uncorrelated with the given variances: Σ_ij over all pairs is then 2n² times these.
        """
        sums = np.zeros((len(self.sizes), Z.shape[1]))
        np.add.at(sums, self.group, Z)
        degrees = (self.related @ self.sizes)[self.group]
        same = 2 * ((Z * degrees[:, None]).T @ Z - sums.T @ self.related @ sums)
        different = np.diag(2 * len(Z) ** 2 * variances) - same
        return same / self.n_same, different / self.n_different

    def best_cut(self, values: Floats) -> float:
        """The threshold on values (n,) with the largest share of same pairs kept plus different pairs parted."""
        order = np.argsort(values, kind="stable")
        ordered = values[order]
        below = np.cumsum(np.eye(len(self.sizes))[self.group[order]], axis=0)[:-1]  # (n − 1, u)
        parted_same = 2 * np.sum(below @ self.related * (self.sizes - below), axis=1)
        parted = 2 * below.sum(axis=1) * (self.sizes - below).sum(axis=1)
        worth = (parted - parted_same) / self.n_different - parted_same / self.n_same
        gaps = np.diff(ordered) > 1e-9 * (ordered[-1] - ordered[0])  # others are equal but for rounding
        cut = int(np.argmax(np.where(gaps, worth, -np.inf)))
        return float(ordered[cut] / 2 + ordered[cut + 1] / 2)
