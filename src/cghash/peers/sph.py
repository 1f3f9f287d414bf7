"""SPH: spectral hashing.

Weiss, Torralba, Fergus: Spectral hashing. NIPS 2008. Items are taken to be uniform on a box along their principal
components. The eigenfunctions of the one-dimensional Laplacian on [a, b] are Φ_k(x) = sin(π/2 + kπ(x − a)/(b − a))
with eigenvalues 1 − exp(−ε²/2 |kπ/(b − a)|²), which grow with k/(b − a) whatever ε is. The bits are
the signs of the n_bits of them with the smallest eigenvalues over all components, without the constant ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .._arrays import Floats, Ints
from .base import Peer
from .projections import principal_components, project


@dataclass(eq=False, repr=False)
class SPH(Peer):
    """Spectral hashing: signs of waves along the principal components, the longest waves first.

    Parameters
    ----------
    n_bits : int, default=64

    Attributes
    ----------
    directions_ : (n_bits, d) the principal component of each bit
    starts_ : (n_bits,) a, the least value of the training items along it
    frequencies_ : (n_bits,) kπ/(b − a)
    mean_ : (d,) the mean of the items

    Examples
    --------
    >>> SPH(2).fit([[0.0], [0.4], [1.0]]).transform([[0.1], [0.3], [0.6], [0.9]]).tolist()  # halves, then quarters
    [[1, 1], [1, 0], [0, 0], [0, 1]]
    """

    prefixes = True

    n_bits: int = 64

    def _learn(self, X: Any, labels: Any, rng: np.random.Generator) -> int:
        self.mean_, components, _ = principal_components(X, X.shape[1])
        coordinates = project(X, self.mean_, components)
        starts, lengths = coordinates.min(axis=0), np.ptp(coordinates, axis=0)
        component, self.frequencies_ = smallest_eigenfunctions(lengths, self.n_bits)
        self.directions_, self.starts_ = components[component], starts[component]
        return self.n_bits

    def _margins(self, X: Any) -> Floats:
        phase = (project(X, self.mean_, self.directions_) - self.starts_) * self.frequencies_
        return np.asarray(np.sin(np.pi / 2 + phase))


def smallest_eigenfunctions(lengths: Floats, m: int) -> tuple[Ints, Floats]:
    """Component and frequency kπ/(b − a) of the m eigenfunctions of a box that vary least: (m,) each.

    Examples
    --------
    >>> component, frequency = smallest_eigenfunctions(np.array([4.0, 3.0, 0.5]), 4)
    >>> component.tolist(), (frequency / np.pi).round(4).tolist()
    ([0, 1, 0, 1], [0.25, 0.3333, 0.5, 0.6667])
    """
    most = np.minimum(m, np.ceil(m * lengths / lengths.max())).astype(np.int64)  # later ones vary more than m others
    component = np.repeat(np.arange(len(lengths)), most)
    k = 1 + np.arange(len(component)) - np.repeat(np.cumsum(most) - most, most)
    frequency = np.pi * k / lengths[component]
    first = np.lexsort((component, frequency))[:m]
    return component[first], frequency[first]
