"""Threads that multiply blocks of items, and look through the products, each in its own cache."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from typing import Self, TypeVar

import numpy as np
from threadpoolctl import ThreadpoolController

from ..._arrays import Singles

Part = TypeVar("Part")


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
