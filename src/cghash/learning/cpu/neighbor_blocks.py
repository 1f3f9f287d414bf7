"""Nearest items from float32 products of blocks of items with blocks of items: almost all of the work."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from typing import Any, Self, TypeVar

import numpy as np
from threadpoolctl import ThreadpoolController

from ... import _kernels
from ..._arrays import Bools, Floats, Ints, Singles
from .neighbor_bounds import SINGLE, LeadingAxes, least_unseen, settle, slack_of, thresholds
from .neighbor_items import DenseItems, Labels, SharedLabel, is_exact

BLOCK = 512  # items on a side of a block of products: it stays in a thread's cache
GROUP = 4  # blocks, up to a multiple of the threads, whose items stay in the cache that these share
SPARE = 6  # candidates kept beyond those asked for
FINISHED_MOST = 0.04  # of a round's products, in each direction: above it, whole products are cheaper,
WHOLE_ROUNDS = 16  # and so many rounds are multiplied whole

Part = TypeVar("Part")


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


class Workers:
    """Some threads, each of which multiplies for itself.

    BLAS has one thread meanwhile: its others would wait for their next product busily, where ours should run.
    """

    def __init__(self, n_threads: int) -> None:
        self.n_threads = max(1, n_threads)
        self._pool: ThreadPoolExecutor | None = None
        self._memory = threading.local()

    def __enter__(self) -> Self:
        one = partial(ThreadpoolController().limit, limits=1, user_api="blas")
        with ExitStack() as exits:
            exits.enter_context(one())
            if self.n_threads > 1:  # where BLAS counts threads for each of ours, each must be told
                self._pool = ThreadPoolExecutor(self.n_threads, "neighbors", initializer=one)
                exits.callback(self._pool.shutdown, cancel_futures=True)
            self._exits = exits.pop_all()
        return self

    def __exit__(self, *error: object) -> None:
        self._exits.close()

    def each(self, work: Callable[[Part], None], parts: Iterable[Part]) -> None:
        """Do the work for every part, in any order; all of it is done on return."""
        for _ in (map if self._pool is None else self._pool.map)(work, parts):
            pass

    def product(self, A: Singles, B: Singles) -> Singles:
        """A @ B.T (a, b), in memory of the calling thread: valid until its next call."""
        size, memory = len(A) * len(B), getattr(self._memory, "values", None)
        if memory is None or memory.size < size:
            memory = self._memory.values = np.empty(size, dtype=np.float32)
        out: Singles = memory[:size].reshape(len(A), len(B))
        return np.matmul(A, B.T, out=out)


def rounds(n: int, width: int) -> Iterator[list[tuple[int, int]]]:
    """Every pair i ≤ j < n once, in rounds: no two pairs of a round share a number.

    Numbers go in groups of `width`, one group with another at a time: what belongs to them stays in cache.

    >>> list(rounds(3, 2))
    [[(0, 0), (1, 1)], [(0, 1)], [(0, 2)], [(1, 2)], [(2, 2)]]
    """
    groups = [range(first, min(first + width, n)) for first in range(0, n, width)]
    for at, group in enumerate(groups):
        yield [(i, i) for i in group]
        yield from _within(group)
        for other in groups[at + 1 :]:
            for shift in range(width):
                pairs = [(i, (i + shift) % width) for i in range(width)]
                yield [(group[i], other[j]) for i, j in pairs if i < len(group) and j < len(other)]


def _within(group: range) -> Iterator[list[tuple[int, int]]]:
    """Every pair i < j of a group once, in rounds: one stands still, or rests, and the others turn about it."""
    turning = len(group) - 1 + len(group) % 2
    for turn in range(turning if len(group) > 1 else 0):
        pairs = [((turn + k) % turning, (turn - k) % turning) for k in range(1, turning // 2 + 1)]
        if len(group) % 2 == 0:
            pairs.append((turn, turning))
        yield [(group[min(pair)], group[max(pair)]) for pair in pairs]
