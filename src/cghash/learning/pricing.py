"""The pricing problem: find the hash function with the largest gain Σ_i p_i u_i a_i(h) (eq. 13).

Summed over the triplets of each pair, the gain is Σ_pairs s·[h differs on the pair], with s positive on far pairs and
negative on near ones; that is ¼·hᵀLh for h in {-1, 1}, with L the Laplacian of the signed pair weights (design §3.2).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

Floats = NDArray[np.float64]


class SignedPairs:
    """Signed pair weights over items, restricted to the live pairs and to the items that they mention."""

    def __init__(self, first: NDArray[Any], second: NDArray[Any], weights: Floats, n_items: int) -> None:
        live = np.flatnonzero(weights)
        self.n_items = n_items
        self.first, self.second, self.weights = first[live], second[live], weights[live]
        mentioned = np.zeros(n_items, dtype=bool)
        mentioned[self.first] = mentioned[self.second] = True
        self.items = np.flatnonzero(mentioned)  # (n_live,)
        self.scale = float(np.abs(self.weights).sum())  # no gain is larger
        number = np.cumsum(mentioned) - 1  # item → row among the live
        a, b, s = number[self.first], number[self.second], self.weights.astype(np.float32)
        n = len(self.items)
        self._slots = a.astype(np.int32), b.astype(np.int32)
        half = sp.csr_matrix((s, self._slots), shape=(n, n))
        self._half, self._other = half, half.T.tocsr()
        self._degree = np.bincount(a, self.weights, n) + np.bincount(b, self.weights, n)

    def live_slots(self) -> tuple[NDArray[np.int32], NDArray[np.int32], Floats]:
        """The two rows among the live items, and the weight, of each live slot."""
        return *self._slots, self.weights

    def gain(self, bits: NDArray[np.bool_]) -> float:
        """The true gain of a hash function, from its bit of every item (n_items,)."""
        return float(self.weights @ (bits[self.first] != bits[self.second]))

    def gains(self, bits: NDArray[np.bool_]) -> Floats:
        """The true gains (m,) of several functions, from their bits (n_items, m)."""
        return np.array([self.gain(column) for column in bits.T])

    def laplacian(self, t: NDArray[Any]) -> NDArray[Any]:
        """L·t for values t (n_live,) or (n_live, m) of the live items."""
        neighbors = self._half @ t + self._other @ t
        degree = self._degree.astype(t.dtype)
        return np.asarray((degree if t.ndim == 1 else degree[:, None]) * t - neighbors)

    def absolute_degree(self) -> Floats:
        """Σ|s| over each live item's pairs (n_live,)."""
        halves = (np.asarray(abs(half).sum(axis=1), dtype=np.float64).ravel() for half in (self._half, self._other))
        return np.add(*halves)
