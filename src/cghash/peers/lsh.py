"""LSH: random hyperplanes.

Andoni, Indyk: Near-optimal hashing algorithms for approximate nearest neighbor in high dimensions. FOCS 2006. The
hash function of the angle is that of Charikar: Similarity estimation techniques from rounding algorithms. STOC 2002:
h(x) = [r·(x − μ) > 0], r drawn from the standard normal distribution, so that two items differ in a bit with
probability θ/π, θ their angle seen from the mean μ.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np

from .projections import HyperplanePeer


@dataclass(eq=False, repr=False)
class LSH(HyperplanePeer):
    """Locality-sensitive hashing: one random hyperplane a bit, through the mean of the items.

    Parameters
    ----------
    n_bits : int, default=64
    center : bool, default=True
        Whether the hyperplanes go through the mean of the items, or through the origin.
    random_state : int, RandomState or None, default=None

    Attributes
    ----------
    directions_ : (n_bits, d) normals of the hyperplanes
    mean_ : (d,) the point that they go through

    Examples
    --------
    >>> LSH(16, random_state=0).fit([[0.0, 1.0], [1.0, 0.0]]).encode([[5.0, 9.0]]).shape
    (1, 2)
    """

    prefixes = True

    n_bits: int = 64
    _: KW_ONLY
    center: bool = True
    random_state: Any = None

    def _learn(self, X: Any, labels: Any, rng: np.random.Generator) -> int:
        self.directions_ = rng.standard_normal((self.n_bits, X.shape[1]))
        self.mean_ = X.mean(axis=0, dtype=np.float64) if self.center else np.zeros(X.shape[1])
        return self.n_bits
