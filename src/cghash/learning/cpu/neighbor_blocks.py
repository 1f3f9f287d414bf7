"""Nearest items from float32 products of blocks of items with blocks of items: almost all of the work."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import _kernels
from ..._arrays import Bools, Floats, Ints, Singles
from .neighbor_bounds import SINGLE, LeadingAxes, least_unseen, settle, slack_of, thresholds
from .neighbor_items import DenseItems, Labels, SharedLabel, is_exact
from .workers import Workers, rounds

BLOCK = 512  # items on a side of a block of products: it stays in a thread's cache
GROUP = 4  # blocks, up to a multiple of the threads, whose items stay in the cache that these share
SPARE = 6  # candidates kept beyond those asked for
FINISHED_MOST = 0.04  # of a round's products, in each direction: above it, whole products are cheaper,
WHOLE_ROUNDS = 16  # and so many rounds are multiplied whole


def by_blocks(items: DenseItems, relevant: Labels | SharedLabel, near: Ints, far: Ints, n_threads: int) -> Ints:
    """Fill near and far by float32 products; the rows that these cannot tell."""
    X, squares = items.singles()  # (n, d) float32, (n,)
    places = [min(lists.shape[1] + SPARE, items.n) if lists.shape[1] else 0 for lists in (near, far)]
    found = _kernels.NearestLists((squares / 2).astype(np.float32), relevant.codes, *places)
    with Workers(n_threads) as workers:
        leading = LeadingAxes.of(X, squares, workers)
        if leading is not None:
            found.begin(*thresholds(X, squares, leading.axes, relevant, places, workers))
        _offer_all(X, leading, found, relevant, workers)
    del X, leading
    undecided = np.zeros(items.n, dtype=bool)
    for lists, (scores, ids) in ((near, found.near()), (far, found.far())):
        if lists.shape[1]:
            undecided |= _fill(items, lists, scores, ids, np.sqrt(squares))
    return np.flatnonzero(undecided)


def _offer_all(
    X: Singles, leading: LeadingAxes | None, found: Any, relevant: Labels | SharedLabel, workers: Workers
) -> None:
    """Offer every item to every other, block by block; blocks that are multiplied at the same time share no items."""
    blocks = [slice(first, min(first + BLOCK, len(X))) for first in range(0, len(X), BLOCK)]
    finished: list[float] = []  # of each block of a round, the share of products

    def by_whole(pair: tuple[int, int]) -> None:
        rows, columns = (blocks[i] for i in pair)
        found.update(workers.product(X[rows], X[columns]), rows.start, columns.start, relevant.block(rows, columns))

    def by_leading(pair: tuple[int, int]) -> None:
        assert leading is not None
        rows, columns = (blocks[i] for i in pair)
        dots = workers.product(leading.axes[rows], leading.axes[columns])
        where = rows.start, columns.start, relevant.block(rows, columns)
        n_offers = dots.size * (1 if rows == columns else 2)
        finished.append(found.update_leading(dots, *where, X, **leading.bounds) / n_offers)

    whole_rounds = 0  # to come, before leading axes are tried again
    for pairs in rounds(len(blocks), -(-GROUP // workers.n_threads) * workers.n_threads):
        if leading is None or whole_rounds:
            workers.each(by_whole, pairs)
            whole_rounds = max(0, whole_rounds - 1)
            continue
        finished.clear()
        workers.each(by_leading, pairs)
        if finished and sum(finished) > FINISHED_MOST * len(finished):
            whole_rounds = WHOLE_ROUNDS


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
