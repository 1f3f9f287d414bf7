"""What a triplet set is, and how one comes from the user, from labels or from neighbours.

A triplet (anchor, near, far) says that its anchor is nearer to `near` than to `far`. A set is kept as *product blocks*:
block b compares anchors[b] with each of its near items against each of its far items, so n·K² triplets take 2·n·K
numbers (design §3.1). A user's own triplet is a block of one near and one far item.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .._arrays import Floats, Ints
from .._validation import check_rows, check_triplet_weights
from ..exceptions import NothingToLearnError

WORDS = "anchor, near, far"


@dataclass(frozen=True)
class TripletSet:
    """Triplets as product blocks; each triplet of block b weighs weights[b], and all weights sum to 1."""

    anchors: Ints  # (B,)
    near: Ints  # (P⁺,) near items, block after block
    near_ptr: Ints  # (B + 1,)
    far: Ints  # (P⁻,)
    far_ptr: Ints  # (B + 1,)
    weights: Floats  # (B,)
    n_items: int

    @property
    def n_triplets(self) -> int:
        return int(np.sum(np.diff(self.near_ptr) * np.diff(self.far_ptr)))

    @property
    def n_slots(self) -> int:
        """Pair slots: each block's near pairs, then its far pairs."""
        return len(self.near) + len(self.far)

    def slots(self) -> tuple[Ints, Ints]:
        """The two items (n_slots,), (n_slots,) of each pair slot: an anchor, and a near or far item."""
        n_near, n_far = np.diff(self.near_ptr), np.diff(self.far_ptr)
        block = np.repeat(np.arange(len(self.anchors)), n_near + n_far)
        start = self.near_ptr[:-1] + self.far_ptr[:-1]
        is_near = np.arange(self.n_slots) - start[block] < n_near[block]
        items = np.empty(self.n_slots, dtype=np.int64)
        items[is_near], items[~is_near] = self.near, self.far
        return self.anchors[block], items

    def triplet_slots(self) -> tuple[Ints, Ints, Floats]:
        """Near slot, far slot and weight of every triplet, written out (n_triplets,)."""
        n_near, n_far = np.diff(self.near_ptr), np.diff(self.far_ptr)
        size = n_near * n_far
        block = np.repeat(np.arange(len(size)), size)
        within = np.arange(int(size.sum())) - np.repeat(np.cumsum(size) - size, size)
        start = self.near_ptr[:-1][block] + self.far_ptr[:-1][block]
        near = start + within // n_far[block]
        far = start + n_near[block] + within % n_far[block]
        return near, far, self.weights[block]

    def to_rows(self) -> Ints:
        """Every triplet written out, (n_triplets, 3)."""
        anchors, items = self.slots()
        near, far, _ = self.triplet_slots()
        return np.stack([anchors[near], items[near], items[far]], axis=1)


def from_rows(triplets: Any, n_items: int, weights: Any = None) -> TripletSet:
    """The user's own comparisons: (t, 3) row numbers, with optional non-negative weights (t,).

    >>> from_rows([[0, 1, 2], [1, 0, 2]], n_items=3).n_triplets
    2
    """
    rows = check_rows(triplets, 3, n_items, "triplets", WORDS)
    each = np.ones(len(rows)) if weights is None else check_triplet_weights(weights, len(rows))
    each = each / each.max()  # so that the sum cannot overflow
    anchors, near, far = (np.ascontiguousarray(column) for column in rows.T)
    one_each = np.arange(len(rows) + 1, dtype=np.int64)
    return TripletSet(anchors, near, one_each, far, one_each, each / each.sum(), n_items)


def from_lists(near: Ints, far: Ints, n_items: int) -> TripletSet:
    """Product blocks from lists of near (B, K⁺) and far (B, K⁻) items, −1 where a list is shorter.

    >>> from_lists(np.array([[1], [0]]), np.array([[2, -1], [2, -1]]), n_items=3).to_rows().tolist()
    [[0, 1, 2], [1, 0, 2]]
    """
    useful = np.any(near >= 0, axis=1) & np.any(far >= 0, axis=1)
    near, far, anchors = near[useful], far[useful], np.flatnonzero(useful)
    if not len(anchors):
        raise NothingToLearnError("no item has both a near and a far item to compare it with")
    near_ptr, far_ptr = (np.concatenate([[0], np.cumsum(np.sum(x >= 0, axis=1))]) for x in (near, far))
    n_triplets = int(np.sum(np.diff(near_ptr) * np.diff(far_ptr)))
    weights = np.full(len(anchors), 1.0 / n_triplets)
    return TripletSet(anchors, near[near >= 0], near_ptr, far[far >= 0], far_ptr, weights, n_items)


def join(sets: list[TripletSet]) -> TripletSet:
    """All triplets of several sets over the same items, each set with an equal share of the weight."""
    if len(sets) == 1:
        return sets[0]

    def stacked(name: str) -> Any:
        return np.concatenate([getattr(s, name) for s in sets])

    def pointers(name: str) -> Ints:
        return np.concatenate([[0], np.cumsum(np.concatenate([np.diff(getattr(s, name)) for s in sets]))])

    return TripletSet(
        stacked("anchors"),
        stacked("near"),
        pointers("near_ptr"),
        stacked("far"),
        pointers("far_ptr"),
        stacked("weights") / len(sets),
        sets[0].n_items,
    )
