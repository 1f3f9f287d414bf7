"""Nearest items from float32 products of blocks of items with blocks of items: almost all of the work."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ... import _kernels
from .bounds import SINGLE, least_unseen, settle, slack_of
from .items import DenseItems, is_exact
from .leading_axes import LeadingAxes
from .relevance import Labels, SharedLabel

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Singles = NDArray[np.float32]
Bools = NDArray[np.bool_]

BLOCK = 2048  # items on a side of a block of products
SPARE = 6  # candidates kept beyond those asked for
FINISHED_MOST = 0.04  # of a block's products, in each direction: above it, whole products are cheaper


def by_blocks(items: DenseItems, relevant: Labels | SharedLabel, near: Ints, far: Ints, n_threads: int) -> Ints:
    """Fill near and far by float32 products; the rows that these cannot tell."""
    X, squares = items.singles()  # (n, d) float32, (n,)
    half = (squares / 2).astype(np.float32)
    places = [min(lists.shape[1] + SPARE, items.n) if lists.shape[1] else 0 for lists in (near, far)]
    found = _kernels.NearestLists(half, relevant.codes, *places)
    leading = LeadingAxes.of(X, squares)
    memory, few = np.empty(min(BLOCK, items.n) ** 2, dtype=np.float32), False
    for rows, columns in _blocks(items.n):
        if rows == columns:
            few = rows.start > 0  # the first row of blocks begins all lists
        where = rows.start, columns.start, relevant.block(rows, columns), n_threads
        if leading is None or not few:
            found.update(_products(X, rows, columns, memory), *where)
        else:
            dots = _products(leading.axes, rows, columns, memory)
            few = found.update_leading(dots, *where, X, leading.low, leading.extra) <= FINISHED_MOST * 2 * dots.size
    del X, leading
    undecided = np.zeros(items.n, dtype=bool)
    for lists, (scores, ids) in ((near, found.near()), (far, found.far())):
        if lists.shape[1]:
            undecided |= _fill(items, lists, scores, ids, np.sqrt(squares))
    return np.flatnonzero(undecided)


def _blocks(n: int) -> Iterator[tuple[slice, slice]]:
    """Rows and columns of the blocks on and above the diagonal, row after row."""
    slices = [slice(first, min(first + BLOCK, n)) for first in range(0, n, BLOCK)]
    for at, rows in enumerate(slices):
        yield from ((rows, columns) for columns in slices[at:])


def _products(X: Singles, rows: slice, columns: slice, memory: Singles) -> Singles:
    """X[rows] @ X[columns].T, in memory that is at hand."""
    shape = rows.stop - rows.start, columns.stop - columns.start
    return np.matmul(X[rows], X[columns].T, out=memory[: shape[0] * shape[1]].reshape(shape))


def _fill(items: DenseItems, lists: Ints, scores: Singles, ids: Any, norms: Floats) -> Bools:
    """Settle the candidates of every item into `lists`; which rows remain undecided."""
    undecided = np.zeros(items.n, dtype=bool)
    k, width = lists.shape[1], ids.shape[1]
    if is_exact(items, 24):
        lists[:, : min(k, width)] = ids[:, :k]
        return undecided
    slack, largest = slack_of(items.d, SINGLE), float(norms.max())
    for first in range(0, items.n, BLOCK):
        rows = np.arange(first, min(first + BLOCK, items.n))
        own, mine = norms[rows], ids[rows].astype(np.int64)
        computed = scores[rows].astype(np.float64)
        error = slack(own[:, None], norms[mine])
        unseen = least_unseen(own, computed[:, -1], largest, slack)
        settled, decided = settle(items, rows, mine, computed, error, unseen, k)
        lists[rows, : settled.shape[1]] = settled
        undecided[rows] = ~decided
    return undecided
