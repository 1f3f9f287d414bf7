"""LSI: latent semantic indexing, as codes.

Deerwester, Dumais, Furnas, Landauer, Harshman: Indexing by latent semantic analysis. JASIS 1990: the items by terms
matrix is cut to its leading singular triples, X ≈ U Σ Vᵀ, and a new item is folded in as x V Σ⁻¹.
The matrix is taken as it is, without centring. A bit is whether a coordinate lies above its median over the training
items, as where Zhang et al. compare with it: Self-taught hashing for fast similarity search. SIGIR 2010.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .._arrays import Floats
from .base import Peer
from .projections import leading_directions, median_cuts


@dataclass(eq=False, repr=False)
class LSI(Peer):
    """Latent semantic indexing: one bit for each leading singular vector of the items as they are.

    Parameters
    ----------
    n_bits : int, default=64
        At most the rank of the items come out.

    Attributes
    ----------
    directions_ : (n_bits_, d) right singular vectors; the singular values do not move a bit and are left out
    thresholds_ : (n_bits_,) medians of the coordinates of the training items

    Examples
    --------
    >>> LSI(1).fit([[1.0, 0.0], [2.0, 0.0], [5.0, 0.0], [9.0, 0.0]]).transform([[3.0, 1.0], [4.0, 1.0]]).ravel()
    array([0, 1], dtype=uint8)
    """

    prefixes = True

    n_bits: int = 64

    def _learn(self, X: Any, labels: Any, rng: np.random.Generator) -> int:
        items = np.asarray(X, dtype=np.float64)
        self.directions_, _ = leading_directions(items, self.n_bits)
        self.thresholds_ = median_cuts(items @ self.directions_.T)
        return len(self.directions_)

    def _margins(self, X: Any) -> Floats:
        return np.asarray(X @ self.directions_.T - self.thresholds_)
