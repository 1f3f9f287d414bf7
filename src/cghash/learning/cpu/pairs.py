"""Signed weights of pairs: what the pricing problem, the largest gain Σ_i p_i u_i a_i(h) (eq. 11), knows of triplets.

Summed over the triplets of each pair, the gain is Σ_pairs s·[h differs on the pair], with s positive on far pairs and
negative on near ones; that is ¼·hᵀLh for h in {-1, 1}, with L the Laplacian of the signed pair weights (design §3.2).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ... import _kernels
from ..._arrays import Array, Bools, Floats, Int32s, Singles


class SignedPairs:
    """Signed pair weights over items; the pairs stay for a whole run, the weights change with each column.

    `items` are the live items, those that some pair of non-zero weight mentions (or all, when nearly all are live).
    """

    def __init__(self, first: Array, second: Array, n_items: int, n_threads: int = 1) -> None:
        self.n_items, self.n_threads = n_items, n_threads
        self.first = np.ascontiguousarray(first, dtype=np.int32)
        self.second = np.ascontiguousarray(second, dtype=np.int32)
        self._graph = _kernels.SignedGraph(self.first, self.second, n_items)
        self.set_weights(np.zeros(len(self.first)))

    def set_weights(self, weights: Floats) -> None:
        """The weights (n_slots,) of the next pricing problem."""
        self.weights = weights
        self._graph.set_weights(weights, self.n_threads)
        self.items = self._graph.items  # (n_live,)
        self.scale = float(np.abs(weights).sum())  # no gain is larger

    def set_slopes(self, slopes: Floats, duplet: float) -> None:
        """Weights from a master's slopes over the slots of triplets; the slots behind them, of duplets, get −duplet."""
        rest = len(self.first) - len(slopes)
        self.set_weights(np.concatenate([-slopes, np.full(rest, -duplet)]))

    @property
    def n_live(self) -> int:
        return len(self.items)

    def gain(self, bits: Bools) -> float:
        """The true gain of a hash function, from its bit of every item (n_items,)."""
        return float(self._graph.gain(np.ascontiguousarray(bits).view(np.uint8), self.n_threads))

    def laplacian(self, t: Array) -> Singles:
        """L·t for values t (n_live,) of the live items."""
        return self._graph.laplacian(np.ascontiguousarray(t, dtype=np.float32), self.n_threads)  # type: ignore[no-any-return]

    def near_weight(self) -> Singles:
        """What the near pairs, those of negative weight, of each live item weigh (n_live,)."""
        return self._graph.near_weight(self.n_threads)  # type: ignore[no-any-return]

    def live_slots(self) -> tuple[Int32s, Int32s, Floats]:
        """The two rows among the live items, and the weight, of each live slot."""
        live = np.flatnonzero(self.weights)
        rows = np.zeros(self.n_items, dtype=np.int32)
        rows[self.items] = np.arange(len(self.items), dtype=np.int32)
        return rows[self.first[live]], rows[self.second[live]], self.weights[live]


def signs(values: NDArray[np.floating]) -> Singles:
    """1 where a value is positive, else −1."""
    return np.where(values > 0, 1, -1).astype(np.float32)
