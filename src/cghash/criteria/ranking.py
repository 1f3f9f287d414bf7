"""Rankings of a database for many queries, a block of queries at a time, from codes or from any distances.

Items have a **kind**: items of one kind are alike to every query. Equal distances have no order: they form a tie group.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from .._arrays import Array, Bytes, Floats, Ints
from .._kernels import rank_codes, rank_keys
from ..codes import pack, whole_weights

__all__ = [
    "CodeDistances",
    "Distances",
    "Head",
    "Ranked",
    "RowDistances",
    "best_gain",
    "discounted_gain",
    "rank",
    "row_blocks",
]


Task = tuple[Any, ...]  # kinds, relevant, cuts, items of the head, threads: as the kernels take them

_COMPUTED = 1 << 23  # distances computed at a time: 64 MB
_GAINS = 1 << 22  # gains of kinds at a time: 32 MB
_MOST_QUERIES = 4096  # at a time


@dataclass(frozen=True)
class Head:
    """The first items of each query and those that tie with the last of them, counted by tie group and kind.

    Examples
    --------
    >>> distances = RowDistances.of(np.array([[2.0, 1.0, 2.0]]))
    >>> head = rank(distances, slice(0, 1), np.arange(3), np.zeros((1, 3)), n_head=2).head
    >>> head.group.tolist(), head.kind.tolist(), head.sizes.tolist()
    ([0, 1, 1], [1, 0, 2], [1, 2])
    """

    row: Ints  # (e,) query of each entry, ascending
    group: Ints  # (e,) its tie group, from 0 in each row; ascending
    kind: Ints  # (e,)
    count: Ints  # (e,) items
    n_queries: int

    @cached_property
    def number(self) -> Ints:
        """(e,) tie groups numbered over all rows."""
        new = np.ones(len(self.row), dtype=np.int64)
        new[1:] = (self.row[1:] != self.row[:-1]) | (self.group[1:] != self.group[:-1])
        return np.cumsum(new) - 1

    @cached_property
    def sizes(self) -> Ints:
        """(g,) items of each group."""
        return np.bincount(self.number, weights=self.count).astype(np.int64)

    @cached_property
    def rows(self) -> Ints:
        """(g,) query of each group."""
        return self.row[np.flatnonzero(np.diff(self.number, prepend=-1))]

    @cached_property
    def starts(self) -> Ints:
        """(g,) position of each group's first item."""
        upto = np.cumsum(self.sizes) - self.sizes
        first = np.searchsorted(self.rows, self.rows)  # the first group of the same row
        return upto - upto[first]


@dataclass(frozen=True)
class Ranked:
    """What was counted of some queries."""

    average_precision: Floats  # (q,) expected, nan without relevant items
    within: Floats  # (q, p) expected number of relevant items among the first of each cut
    head: Head


class Distances(Protocol):
    """Distances of queries from a database, by which it can be ranked."""

    @property
    def shape(self) -> tuple[int, int]: ...

    @property
    def most_rows(self) -> int:
        """How many queries should be ranked at a time."""
        ...

    def counted(self, rows: slice, task: Task) -> tuple[Array, ...]:
        """What a kernel counts for some queries."""
        ...


@dataclass(frozen=True)
class CodeDistances:
    """Weighted Hamming distances.

    Examples
    --------
    >>> bits = np.array([[0, 0], [0, 1], [1, 1]], dtype=np.uint8)
    >>> distances = CodeDistances.of(bits[:1], bits, np.array([2.0, 1.0]))
    >>> rank(distances, slice(0, 1), np.arange(3), np.array([[1, 0, 1]])).average_precision.round(4).tolist()
    [0.8333]
    """

    queries: Bytes  # (q, b) packed
    items: Bytes  # (n, b) packed
    weights: Ints  # (8·b,) whole

    @classmethod
    def of(cls, query_bits: Bytes, database_bits: Bytes, weights: Floats) -> CodeDistances:
        queries, items = pack(query_bits), pack(database_bits)
        whole, _ = whole_weights(weights, len(weights))
        return cls(queries, items, np.pad(whole, (0, 8 * queries.shape[1] - len(whole))))

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.queries), len(self.items)

    @property
    def most_rows(self) -> int:
        return _MOST_QUERIES

    def counted(self, rows: slice, task: Task) -> tuple[Array, ...]:
        counted: tuple[Array, ...] = rank_codes(self.queries[rows], self.items, self.weights, *task)
        return counted


@dataclass(frozen=True)
class RowDistances:
    """Any distances, computed a block of rows at a time.

    Examples
    --------
    >>> distances = RowDistances.of(np.array([[1, 2, 2]]))
    >>> rank(distances, slice(0, 1), np.arange(3), np.array([[1, 1, 0]]), cuts=[1, 2, 3]).within.tolist()
    [[1.0, 1.5, 2.0]]
    """

    block: Callable[[slice], Array]  # the distances of some queries, (rows, n)
    shape: tuple[int, int]

    @classmethod
    def of(cls, distances: Array) -> RowDistances:
        return cls(lambda rows: distances[rows], (len(distances), int(distances.shape[1])))

    @property
    def most_rows(self) -> int:
        return max(1, _COMPUTED // self.shape[1])

    def counted(self, rows: slice, task: Task) -> tuple[Array, ...]:
        counted: tuple[Array, ...] = rank_keys(_ordered(self.block(rows)), *task)
        return counted


def rank(
    distances: Distances,
    rows: slice,
    kinds: Array,
    relevant: Array,
    cuts: Any = (),
    n_head: int = 0,
    n_threads: int = 1,
) -> Ranked:
    """Rank the database for some queries; kinds (n,), relevant (q, number of kinds)."""
    arrays = (kinds, np.int32), (relevant, np.uint8), (cuts, np.int64)
    task = *(np.ascontiguousarray(array, dtype=dtype) for array, dtype in arrays), int(n_head), n_threads
    precision, within, first, *entries = distances.counted(rows, task)
    row = np.repeat(np.arange(len(precision)), np.diff(first))
    group, kind, count = (part.astype(np.int64, copy=False) for part in entries)
    return Ranked(precision, within, Head(row, group, kind, count, len(precision)))


def row_blocks(distances: Distances, n_kinds: int) -> Iterator[slice]:
    """Cut the queries into blocks that may be ranked at a time."""
    step = max(1, min(distances.most_rows, _GAINS // n_kinds))
    n_queries = distances.shape[0]
    for first in range(0, n_queries, step):
        yield slice(first, min(first + step, n_queries))


def discounted_gain(head: Head, gains: Floats, k: int) -> Floats:
    """Expected discounted cumulative gain of the k nearest: (q,).

    Parameters
    ----------
    head : of at least k items
    gains : (q, number of kinds)
    """
    upto = _discounts(k)
    start = head.starts
    weight = upto[np.minimum(start + head.sizes, k)] - upto[np.minimum(start, k)]  # (g,)
    total = np.bincount(head.number, weights=head.count * gains[head.row, head.kind])  # (g,)
    sums = np.bincount(head.rows, weights=total / head.sizes * weight, minlength=head.n_queries)
    return sums.astype(np.float64, copy=False)


def best_gain(counts: Ints, gains: Floats, k: int) -> Floats:
    """Discounted cumulative gain of the k best items, of which there are `counts` of each kind: (q,)."""
    upto = _discounts(k)
    order = np.argsort(-gains, axis=1, kind="stable")  # (q, number of kinds)
    end = np.cumsum(counts[order], axis=1)
    weight = upto[np.minimum(end, k)] - upto[np.minimum(end - counts[order], k)]
    sums: Floats = (np.take_along_axis(gains, order, axis=1) * weight).sum(axis=1)
    return sums


def _discounts(k: int) -> Floats:
    """Sums of the first 0 … k discounts 1 / log2(i + 2): (k + 1,)."""
    return np.append(0.0, np.cumsum(1.0 / np.log2(np.arange(2, k + 2))))


def _ordered(distances: Array) -> NDArray[np.uint64]:
    """Whole numbers in the order of the distances, equal where these are equal."""
    sign = np.uint64(1 << 63)
    if distances.dtype.kind in "bu":
        return np.ascontiguousarray(distances, dtype=np.uint64)
    if distances.dtype.kind == "i":
        return np.ascontiguousarray(distances, dtype=np.int64).view(np.uint64) ^ sign
    bits = np.add(distances, 0.0, dtype=np.float64, order="C").view(np.int64)  # -0 becomes 0
    flip: NDArray[np.uint64] = (bits >> 63).view(np.uint64)
    flip |= sign  # all bits of negative numbers turn round, of others the sign alone
    flip ^= bits.view(np.uint64)
    return flip
