"""PQ: product quantisation, by FAISS.

Jégou, Douze, Schmid: Product quantization for nearest neighbor search. TPAMI 2011. The features are split into M groups
of equal length, each with its own k-means; a code holds the number of the nearest centroid in each
group. A query is compared without being encoded: d(x, c)² = Σ_m ‖x_m − c_m‖², from a table for each group (the
asymmetric distance).
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np

from .._arrays import Codes, Floats, Ints, Singles
from ..codes import unpack
from .quantizer import LARGEST, Quantizer, checked, require_faiss

MOST = 8  # bits of a group, as customary


@dataclass(eq=False, repr=False)
class PQ(Quantizer):
    """Product quantisation: ⌈n_bits / 8⌉ groups of features with up to 256 centroids each.

    The groups have equal numbers of bits, at most 8: where `n_bits` is no multiple of 8 some may be left over, as with
    fewer than 256 training items.

    Parameters
    ----------
    n_bits : int, default=64
    random_state : int, RandomState or None, default=None
        Of the k-means.

    Attributes
    ----------
    centroids_ : (M, 2^bits, features of a group) float32; short groups are filled up with zeros

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(300, 6)).astype(np.float32)
    >>> model = PQ(16, random_state=0).fit(X)
    >>> model.distances(X[:2], model.encode(X)).shape
    (2, 300)
    """

    fewer_because = "the groups of features have equal numbers of bits, and no more centroids than there are items"

    n_bits: int = 64
    _: KW_ONLY
    random_state: Any = None

    def _check(self) -> None:
        require_faiss()  # it brings a BLAS, which `fit` holds to one thread only if it is loaded before

    def _learn(self, X: Any, labels: Any, rng: np.random.Generator) -> int:
        n, d = X.shape
        faiss = require_faiss()
        M = min(-(-self.n_bits // MOST), d)
        bits = min(self.n_bits // M, MOST, int(np.log2(n)))
        quantizer = faiss.ProductQuantizer(M * -(-d // M), M, bits)
        quantizer.cp.seed = int(rng.integers(2**31 - 1))
        quantizer.cp.min_points_per_centroid = 1  # few items are no reason for a warning
        quantizer.train(spread(checked(X), M))
        self.centroids_ = faiss.vector_to_array(quantizer.centroids).reshape(M, 2**bits, -1)
        return int(M * bits)

    def _codes(self, X: Any) -> Codes:
        return np.asarray(self._quantizer().compute_codes(spread(X, len(self.centroids_))))

    def _estimates(self, X: Any, codes: Codes) -> Floats:
        quantizer = self._quantizer()
        M, q = len(self.centroids_), len(X)
        tables = np.empty((q, M, quantizer.ksub), dtype=np.float32)
        faiss, rows = require_faiss(), spread(X, M)
        quantizer.compute_distance_tables(q, faiss.swig_ptr(rows), faiss.swig_ptr(tables))
        numbers = unpack(codes, M * quantizer.nbits).reshape(len(codes), M, -1) @ (1 << np.arange(quantizer.nbits))
        total = np.zeros((q, len(codes)))
        for m in range(M):
            total += tables[:, m, numbers[:, m]]
        return total

    def _quantizer(self) -> Any:
        """FAISS's object, with the learned centroids."""
        M, ksub, dsub = self.centroids_.shape
        whole = M > 0 and ksub in 2 ** np.arange(1, MOST + 1) and dsub == -(-self.n_features_in_ // M)
        if not whole or self.centroids_.dtype != np.float32 or not (np.abs(self.centroids_) <= LARGEST).all():
            raise ValueError(f"centroids_ must be (M, 2^bits, features of a group), got {self.centroids_.shape}")
        faiss = require_faiss()
        quantizer = faiss.ProductQuantizer(M * dsub, M, int(ksub).bit_length() - 1)
        faiss.copy_array_to_vector(np.ascontiguousarray(self.centroids_).ravel(), quantizer.centroids)
        return quantizer


def spread(X: Any, M: int) -> Singles:
    """Items (n, d) in M groups of equal length (n, M · ⌈d / M⌉), where the last groups may end in a 0.

    Examples
    --------
    >>> spread(np.array([[1.0, 2.0, 3.0, 4.0, 5.0]]), 3).tolist()
    [[1.0, 2.0, 3.0, 4.0, 5.0, 0.0]]
    """
    n, d = X.shape
    length = -(-d // M)
    out = np.zeros((n, M, length), dtype=np.float32)
    for m, group in enumerate(_groups(d, M)):
        out[:, m, : len(group)] = X[:, group]
    return out.reshape(n, M * length)


def _groups(d: int, M: int) -> list[Ints]:
    return np.array_split(np.arange(d), M)
