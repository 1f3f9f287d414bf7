"""Signed pairs with their Laplacian, projections, passes: NumPy twins of native/signed_graph.hpp and kernels/."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..._arrays import Array, Bytes, Floats, Int32s, Singles

_MOSTLY_LIVE = 0.8  # from this share on all items are kept, as natively

_ROWS = 8192  # that are turned into doubles at a time


class SignedGraph:
    """Slot k joins items first[k] and second[k]; the slots stay, their weights change from column to column."""

    def __init__(self, first: Int32s, second: Int32s, n_items: int) -> None:
        if first.size != second.size:
            raise ValueError("first and second must have the same length")
        for rows in (first, second):
            if rows.size and (rows.min() < 0 or rows.max() >= n_items):
                raise ValueError("first and second must be row numbers from 0 to n_items - 1")
        self._first, self._second, self._n_items = first, second, n_items
        self._weights = np.zeros(first.size)
        self.items = np.zeros(0, dtype=np.int64)

    def set_weights(self, weights: Floats, n_threads: int) -> None:
        if weights.size != self._first.size:
            raise ValueError("weights must have one entry for each slot")
        self._weights = weights
        live = np.flatnonzero(weights)
        mentioned = np.zeros(self._n_items, dtype=bool)
        mentioned[self._first[live]] = mentioned[self._second[live]] = True
        if mentioned.any() and mentioned.sum() >= _MOSTLY_LIVE * self._n_items:
            mentioned[:] = True
        self.items = np.flatnonzero(mentioned)
        row = np.cumsum(mentioned) - 1
        a, b, s = row[self._first[live]], row[self._second[live]], weights[live]
        n = len(self.items)
        self._matrix = sp.csr_matrix((np.append(s, s), (np.append(a, b), np.append(b, a))), shape=(n, n))
        self._degree = np.bincount(np.append(a, b), np.append(s, s), n)

    def laplacian(self, t: Singles, n_threads: int) -> Singles:
        """Σ_j s_ij (t_i − t_j) of each live item."""
        if t.size != len(self.items):
            raise ValueError("t must have one entry for each live item")
        return np.asarray(self._degree * t - self._matrix @ t.astype(np.float64), dtype=np.float32)

    def near_weight(self, n_threads: int) -> Singles:
        """What the near pairs, those of negative weight, of each live item weigh."""
        live = np.flatnonzero(self._weights)
        row = np.searchsorted(self.items, np.append(self._first[live], self._second[live]))
        return np.bincount(row, np.tile(np.maximum(-self._weights[live], 0.0), 2), len(self.items)).astype(np.float32)

    def gain(self, bits: NDArray[np.uint8], n_threads: int) -> float:
        """Σ s·[bits differ]."""
        if bits.size != self._n_items:
            raise ValueError("bits must have one entry for each item")
        return float(self._weights @ ((bits[self._first] ^ bits[self._second]) & 1))


def project(X: Array, coef: Floats, n_threads: int) -> Floats:
    """X·coefᵀ (n, l) in doubles."""
    if X.shape[1] != coef.shape[1]:
        raise ValueError("X and coef must have the same number of columns")
    return np.asarray(X.astype(np.float64, copy=False) @ coef.T)


def dot(Z: Singles | Bytes, V: Singles, n_threads: int) -> Singles:
    """Z·v (m, n) for each of some vectors V (m, d)."""
    if Z.shape[1] != V.shape[1]:
        raise ValueError("V must have one column for each column of Z")
    out = np.empty((len(V), len(Z)), dtype=np.float32)
    for first in range(0, len(Z), _ROWS):  # by doubles, as BLAS rounds the floats of a row by how many rows there are
        rows = Z[first : first + _ROWS].astype(np.float64)
        for v, product in zip(V.astype(np.float64), out, strict=True):
            product[first : first + _ROWS] = rows @ v
    return out


def tdot(Z: Singles | Bytes, R: Singles, n_threads: int) -> Floats:
    """Zᵀ·r (m, d) for each of some targets R (m, n), in doubles: the sums are as long as there are items."""
    if Z.shape[0] != R.shape[1]:
        raise ValueError("R must have one column for each row of Z")
    total = np.zeros((len(R), Z.shape[1]))
    for first in range(0, len(Z), _ROWS):
        rows = Z[first : first + _ROWS].astype(np.float64)
        for r, sums in zip(R, total, strict=True):
            sums += r[first : first + _ROWS].astype(np.float64) @ rows
    return total
