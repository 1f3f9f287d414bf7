"""PCAH: the signs of the principal components.

Wang, Kumar, Chang: Semi-supervised hashing for scalable image retrieval. CVPR 2010, the case without
labels: h_k(x) = [w_k·(x − μ) > 0], w_k the k-th eigenvector of the covariance Σ_i (x_i − μ)(x_i − μ)ᵀ.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .projections import HyperplanePeer, principal_components


@dataclass(eq=False, repr=False)
class PCAH(HyperplanePeer):
    """Sign of PCA: one bit for each of the leading principal components.

    Parameters
    ----------
    n_bits : int, default=64
        At most the rank of the centred items come out.

    Attributes
    ----------
    directions_ : (n_bits_, d) principal components
    mean_ : (d,) the mean of the items

    Examples
    --------
    >>> PCAH(1).fit([[-2.0, 0.0], [-1.0, 0.0], [3.0, 0.0]]).transform([[5.0, 9.0]])
    array([[1]], dtype=uint8)
    """

    prefixes = True

    n_bits: int = 64

    def _learn(self, X: Any, labels: Any, rng: np.random.Generator) -> int:
        self.mean_, self.directions_, _ = principal_components(X, self.n_bits)
        return len(self.directions_)
