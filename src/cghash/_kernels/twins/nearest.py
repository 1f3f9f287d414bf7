"""Least scores of each item, from blocks of products: NumPy twin of native/nearest.hpp."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..._arrays import Bools, Int32s, Ints, Singles


class NearestLists:
    """For each item, the items of least score among the relevant ones and among the others.

    Item j's score for item i is half[j] - dots[i, j]; equal labels are relevant to each other. Lists are
    sorted by (score, id), and end in (∞, -1) where there are fewer items than places.
    """

    def __init__(self, half: Singles, labels: Int32s, n_near: int, n_far: int) -> None:
        for name, size in (("n_near", n_near), ("n_far", n_far)):
            if not 0 <= size <= half.size:
                raise ValueError(f"{name} must lie between 0 and the number of items")
        if labels.size != half.size:
            raise ValueError("labels must be as long as half")
        self._half, self._labels = half.copy(), labels.copy()
        shapes = (half.size, n_near), (half.size, n_far)
        self._near, self._far = [
            (np.full(shape, np.inf, dtype=np.float32), np.full(shape, -1, dtype=np.int32)) for shape in shapes
        ]

    def begin(self, near: Singles, far: Singles) -> None:
        """Scores that `places` others of each item lie below: lists begin with them, before the first block."""
        if near.size != self._half.size or far.size != self._half.size:
            raise ValueError("near and far must be as long as half")
        self._near[0][:], self._far[0][:] = near[:, None], far[:, None]

    def near(self) -> tuple[Singles, Int32s]:
        return self._near[0].copy(), self._near[1].copy()

    def far(self) -> tuple[Singles, Int32s]:
        return self._far[0].copy(), self._far[1].copy()

    def update(self, dots: Singles, row: int, column: int, relevant: NDArray[np.uint8] | None) -> None:
        """Offer the products of items row.. with items column.. to the lists of both.

        A block on the diagonal serves its rows; any other must lie right of it. Blocks come in any order, and from
        several threads where they share no items.
        """
        self._check(dots, row, column, relevant)
        rows, columns = np.arange(row, row + dots.shape[0]), np.arange(column, column + dots.shape[1])
        same = self._labels[rows][:, None] == self._labels[columns] if relevant is None else relevant != 0
        self._offer(rows, columns, self._half[columns] - dots, same)
        if row != column:
            self._offer(columns, rows, self._half[rows] - dots.T, same.T)

    def update_leading(
        self,
        dots: Singles,
        row: int,
        column: int,
        relevant: NDArray[np.uint8] | None,
        items: Singles,
        low: Singles,
        extra: Singles,
        rest: Singles,
        more: Singles,
    ) -> int:
        """Offer products of which `dots` are upper bounds; how many had to be multiplied out, in both directions.

        A score low[j] - dots[i, j] that is not below item i's threshold, raised by extra[i], lies above for sure.
        For others the tighter dots[i, j] - rest[i]·rest[j] + more[i]·more[j] is asked, an upper bound too, and what
        is left is finished with the products of items (n, d).
        """
        if len(items) != self._half.size or len(more) != self._half.size:
            raise ValueError("items and more must have a row for each item")
        if any(vector.size != self._half.size for vector in (low, extra, rest)):
            raise ValueError("low, extra and rest must be as long as half")
        self._check(dots, row, column, relevant)
        rows, columns = np.arange(row, row + dots.shape[0]), np.arange(column, column + dots.shape[1])
        same = self._labels[rows][:, None] == self._labels[columns] if relevant is None else relevant != 0
        whole = items[rows] @ items[columns].T
        dots = np.minimum(dots, dots - np.outer(rest[rows], rest[columns]) + more[rows] @ more[columns].T)
        below = low[columns] - dots < self._raised(rows, extra, same)
        self._offer(rows, columns, np.where(below, self._half[columns] - whole, np.float32(np.inf)), same)
        if row == column:
            return int(below.sum())
        across = low[rows] - dots.T < self._raised(columns, extra, same.T)
        self._offer(columns, rows, np.where(across, self._half[rows] - whole.T, np.float32(np.inf)), same.T)
        return int(below.sum() + across.sum())

    def _raised(self, items: Ints, extra: Singles, near: Bools) -> Singles:
        """The thresholds (items, others), raised."""
        last = [
            lists[items, -1] if lists.shape[1] else np.full(items.size, -np.inf, dtype=np.float32)
            for lists in (self._near[0], self._far[0])
        ]
        last = [np.nextafter(t, np.float32(np.inf)) for t in last]  # an equal one may have a lower id
        size = [np.where(np.isinf(t), np.float32(0.0), np.abs(t)) for t in last]
        raised = [t + s * np.float32(2.0**-21) + extra[items] for t, s in zip(last, size, strict=True)]
        return np.where(near, raised[0][:, None], raised[1][:, None])

    def _check(self, dots: Singles, row: int, column: int, relevant: NDArray[np.uint8] | None) -> None:
        n, (n_rows, n_columns) = self._half.size, dots.shape
        if n_rows > n or n_columns > n:
            raise ValueError("dots must have at most as many rows and columns as there are items")
        if not 0 <= row <= n - n_rows:
            raise ValueError("row must leave room for the rows of dots")
        if not 0 <= column <= n - n_columns:
            raise ValueError("column must leave room for the columns of dots")
        if not (row == column and n_rows == n_columns) and row + n_rows > column:
            raise ValueError("a block must stand on the diagonal or right of it")
        if relevant is not None and relevant.shape != dots.shape:
            raise ValueError("relevant must have the shape of dots")

    def _offer(self, items: Ints, others: Ints, scores: Singles, near: Bools) -> None:
        apart = items[:, None] != others
        _merge(*self._near, items, others, np.where(near & apart, scores, np.float32(np.inf)))
        _merge(*self._far, items, others, np.where(~near & apart, scores, np.float32(np.inf)))


def _merge(scores: Singles, ids: Int32s, items: Ints, others: Ints, offered: Singles) -> None:
    """Put into the lists of `items` those of `others` whose offered score (items, others) is low enough."""
    size = scores.shape[1]
    if size == 0:
        return
    last, last_id = scores[items, -1][:, None], ids[items, -1][:, None]
    below = (offered < last) | ((offered == last) & (others < last_id))
    if size < others.size:
        below &= offered <= np.partition(offered, size - 1, axis=1)[:, size - 1 : size]
    hit, which = np.nonzero(below)
    touched, place = np.unique(hit, return_inverse=True)
    lists = items[touched]
    owner = np.concatenate([np.repeat(np.arange(lists.size), size), place])
    all_scores = np.concatenate([scores[lists].ravel(), offered[hit, which]])
    all_ids = np.concatenate([ids[lists].ravel(), others[which].astype(np.int32)])
    order = np.lexsort((all_ids, all_scores, owner))
    starts = np.searchsorted(owner[order], np.arange(lists.size))
    chosen = order[starts[:, None] + np.arange(size)]  # (lists, size)
    scores[lists], ids[lists] = all_scores[chosen], all_ids[chosen]
