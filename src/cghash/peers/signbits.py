"""SignBits: the sign of each coordinate, as embeddings are often stored in binary.

The simplest code of an embedding, without a learned projection: h_k(x) = [x_k > 0]. It is LSH whose hyperplanes are
the coordinate axes (Charikar: Similarity estimation techniques from rounding algorithms. STOC 2002).
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np

from .._arrays import Floats
from .base import Peer


@dataclass(eq=False, repr=False)
class SignBits(Peer):
    """The signs of the first `n_bits` coordinates.

    Parameters
    ----------
    n_bits : int, default=64
        At most the number of features come out.
    center : bool, default=False
        Whether a coordinate is compared with its mean over the items, or with 0.

    Attributes
    ----------
    thresholds_ : (n_bits_,) what each coordinate is compared with

    Examples
    --------
    >>> SignBits(2).fit([[1.0, 2.0, 3.0], [0.0, 1.0, 0.0]]).transform([[-1.0, 5.0, 2.0]])
    array([[0, 1]], dtype=uint8)
    """

    prefixes = True

    n_bits: int = 64
    _: KW_ONLY
    center: bool = False

    def _learn(self, X: Any, labels: Any, rng: np.random.Generator) -> int:
        m = min(self.n_bits, int(X.shape[1]))
        self.thresholds_ = X[:, :m].mean(axis=0, dtype=np.float64) if self.center else np.zeros(m)
        return m

    def _margins(self, X: Any) -> Floats:
        return np.asarray(X[:, : len(self.thresholds_)] - self.thresholds_)
