"""The pricing of decision stumps: NumPy twin of native/stumps.hpp, to the last bit."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..._arrays import Floats, Int32s, Ints

Ranks = NDArray[np.uint8] | NDArray[np.uint16] | NDArray[np.uint32]


class StumpRanks:
    """Dense ranks of items in features, and the sweep over all stumps h(x) = [rank of x in feature f > r].

    Example
    -------
    >>> import numpy as np
    >>> ranks = StumpRanks(3)
    >>> ranks.append(np.array([[0, 1, 2]], np.uint8), np.array([3]))
    >>> a, b, s = np.array([0, 1], np.int32), np.array([1, 2], np.int32), np.array([1.0, 5.0])
    >>> none = np.zeros(0, np.int64)
    >>> gain, rank, positive = ranks.sweep(a, b, s, none, none, 1)
    >>> float(gain[0]), int(rank[0]), float(positive[0])
    (5.0, 1, 6.0)
    """

    def __init__(self, n_items: int) -> None:
        if not 0 <= n_items < 2**31:
            raise ValueError("n_items must lie between 0 and 2^31 - 1")
        self.n_items = n_items
        self._ranks: list[Ranks] = []  # (n_items,) each
        self._n_distinct: list[int] = []

    @property
    def n_features(self) -> int:
        return len(self._ranks)

    @property
    def n_bytes(self) -> int:
        return sum(ranks.nbytes for ranks in self._ranks)

    def append(self, ranks: Ranks, n_distinct: Ints) -> None:
        """Add features: ranks (c, n_items), those of row f below n_distinct[f] (c,)."""
        if ranks.dtype not in (np.uint8, np.uint16, np.uint32) or n_distinct.dtype != np.int64:
            raise TypeError("ranks must be of uint8, uint16 or uint32, n_distinct of int64")
        if n_distinct.ndim != 1 or ranks.shape != (n_distinct.size, self.n_items):
            raise ValueError("ranks must have a row for each n_distinct, of n_items")
        if np.any((n_distinct < 0) | (n_distinct > max(self.n_items, 256))):  # ranks may leave gaps
            raise ValueError("n_distinct must lie between 0 and n_items, or 256 where items are fewer")
        if np.any(ranks >= n_distinct[:, None]):
            raise ValueError("ranks must lie below n_distinct")
        for row, n in zip(ranks, n_distinct.tolist(), strict=True):
            self._ranks.append(row.astype(np.min_scalar_type(max(n - 1, 0))))
            self._n_distinct.append(n)

    def sweep(
        self,
        a: Int32s,
        b: Int32s,
        s: Floats,
        taken_feature: Ints,
        taken_rank: Ints,
        n_threads: int,
    ) -> tuple[Floats, Ints, Floats]:
        """Best threshold of each feature for Σ s·[h(a) ≠ h(b)] over the slots.

        Parameters
        ----------
        a, b, s : (m,) item numbers of each slot, and its signed weight
        taken_feature, taken_rank : (k,) thresholds that may not be chosen

        Returns
        -------
        gain : (n_features,) the best, -inf where a feature has no free threshold
        rank : (n_features,) the lowest that reaches it, -1 where there is none
        positive : (n_features,) Σ max(gain, 0) over all thresholds, the taken ones too
        """
        ends = self._live_ends(a, b, s)
        taken = self._taken_ranks(taken_feature, taken_rank)
        gain, rank = np.full(self.n_features, -np.inf), np.full(self.n_features, -1)
        positive = np.zeros(self.n_features)
        for f in range(self.n_features):
            gains = self._gains(f, *ends)  # (n_distinct - 1,)
            if gains.size:
                positive[f] = np.cumsum(np.maximum(gains, 0.0))[-1]  # in order, unlike np.sum
                gains[taken.get(f, [])] = -np.inf
                best = int(np.argmax(gains))
                if gains[best] > -np.inf:
                    gain[f], rank[f] = gains[best], best
        return gain, rank, positive

    def gains(self, a: Int32s, b: Int32s, s: Floats, n_threads: int) -> Floats:
        """The gain of every threshold, feature after feature, n_distinct - 1 of each; slots as in `sweep`."""
        ends = self._live_ends(a, b, s)
        return np.concatenate([np.zeros(0), *(self._gains(f, *ends) for f in range(self.n_features))])

    def _live_ends(self, a: Int32s, b: Int32s, s: Floats) -> tuple[Int32s, Int32s, Floats]:
        """An item, the item at the other end, and the weight, of both ends of each slot that counts."""
        self._check_slots(a, b, s)
        live = (s != 0.0) & (a != b)
        ends = np.stack([a[live], b[live]], axis=1)  # (m', 2)
        return ends.ravel(), ends[:, ::-1].ravel(), np.repeat(s[live], 2)

    def _gains(self, f: int, here: Int32s, other: Int32s, weight: Floats) -> Floats:
        ranks, n_distinct = self._ranks[f], self._n_distinct[f]
        if n_distinct < 2:
            return np.zeros(0)
        up = (ranks[other] > ranks[here]).astype(np.int8) - (ranks[other] < ranks[here])  # -1, 0 or 1
        c = np.bincount(here, weights=weight * up, minlength=self.n_items)  # (n_items,)
        delta = np.bincount(ranks, weights=c, minlength=n_distinct)
        return np.add.accumulate(delta)[:-1]

    def _check_slots(self, a: Int32s, b: Int32s, s: Floats) -> None:
        if a.dtype != np.int32 or b.dtype != np.int32 or s.dtype != np.float64:
            raise TypeError("a and b must be of int32, s of float64")
        if not a.shape == b.shape == s.shape == (s.size,):
            raise ValueError("a, b and s must have one length")
        for items in (a, b):
            if items.size and (items.min() < 0 or items.max() >= self.n_items):
                raise ValueError("a and b must be item numbers from 0 to n_items - 1")
        with np.errstate(over="ignore"):
            if not np.isfinite(4.0 * np.abs(s).sum()):
                raise ValueError("s must be finite, and so must its sum")

    def _taken_ranks(self, feature: Ints, rank: Ints) -> dict[int, list[int]]:
        if feature.dtype != np.int64 or rank.dtype != np.int64:
            raise TypeError("taken_feature and taken_rank must be of int64")
        if not feature.shape == rank.shape == (rank.size,):
            raise ValueError("taken_feature and taken_rank must have one length")
        taken: dict[int, list[int]] = {}
        for f, r in zip(feature.tolist(), rank.tolist(), strict=True):
            if not 0 <= f < self.n_features:
                raise ValueError("taken_feature must be feature numbers from 0 to n_features - 1")
            if not 0 <= r < self._n_distinct[f] - 1:
                raise ValueError("taken_rank must lie between 0 and n_distinct - 2")
            taken.setdefault(f, []).append(r)
        return taken
