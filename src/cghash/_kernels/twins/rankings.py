"""Rankings by distance, and what the criteria count in them: NumPy twin of native/rankings.hpp.

A ranking is a sequence of **tie groups**, of items at one distance, which have no order. Positions count from 0; a
group that starts at position t holds m items, of which c are relevant, after r relevant ones in the groups before it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..._arrays import Array, Bytes, Floats, Int32s, Ints

Keys = NDArray[np.uint64]
Ranked = tuple[Floats, Floats, Ints, Int32s, Int32s, Ints]

_BLOCK = 1 << 20  # keys ranked at a time: 8 MB, and a few times that beside


def rank_keys(keys: Keys, kinds: Int32s, relevant: Bytes, cuts: Ints, n_head: int, n_threads: int) -> Ranked:
    """Rank the items of each query by their keys, equal keys in no order.

    Parameters
    ----------
    keys : (q, n)
    kinds : (n,) items of one kind are alike to every query
    relevant : (q, number of kinds) 0 and 1
    cuts : (p,) ascending, 1 to n
    n_head : 0 to n
    n_threads : the twin has one

    Returns
    -------
    average_precision : (q,) expected over all orders of equal keys; nan without relevant items
    within : (q, p) expected number of relevant items among the first `cut`
    first, group, kind, count : the first n_head items and those that tie with the last of them, counted by tie group
        and kind, in that order: entries first[i] to first[i + 1] are those of query i, whose groups count from 0
    """
    _check(kinds, relevant, cuts, n_head)
    if keys.shape != (len(relevant), len(kinds)):
        raise ValueError("keys must have a row for each query and a column for each item")
    return _rank(lambda rows: keys[rows], kinds, relevant, cuts, n_head)


def rank_codes(
    queries: Bytes,
    items: Bytes,
    weights: Ints,
    kinds: Int32s,
    relevant: Bytes,
    cuts: Ints,
    n_head: int,
    n_threads: int,
) -> Ranked:
    """Rank by weighted Hamming distance: packed codes (q, b) and (n, b), a weight for each of the 8·b bits."""
    _check(kinds, relevant, cuts, n_head)
    bits = [np.unpackbits(codes, axis=1, bitorder="little") for codes in (queries, items)]
    if [codes.shape for codes in bits] != [(len(relevant), len(weights)), (len(kinds), len(weights))]:
        raise ValueError("codes must have a row for each query and item, of a byte for 8 weights")
    if np.any(weights < 0) or sum(weights.tolist()) >= 1 << 53:
        raise ValueError("weights must be 0 or more, and their sum below 2^53")
    whole, set_bits = weights.astype(np.float64), bits[1].T.astype(np.float64)  # every sum is exact in float64

    def keys(rows: slice) -> Keys:
        signed = whole * (1.0 - 2.0 * bits[0][rows])  # [b ≠ b'] = b + b'·(1 − 2b)
        return (signed @ set_bits + (bits[0][rows] @ whole)[:, None]).astype(np.uint64)

    return _rank(keys, kinds, relevant, cuts, n_head)


def _check(kinds: Int32s, relevant: Bytes, cuts: Ints, n_head: int) -> None:
    n = len(kinds)
    if n < 1:
        raise ValueError("there must be 1 to 2^31 - 1 items")
    if kinds.min() < 0 or kinds.max() >= relevant.shape[1]:
        raise ValueError("kinds must lie between 0 and the columns of relevant")
    if np.any(relevant > 1):
        raise ValueError("relevant must be 0 and 1")
    if len(cuts) and (np.any(np.diff(cuts) < 0) or cuts[0] < 1 or cuts[-1] > n):
        raise ValueError("cuts must ascend and lie between 1 and the number of items")
    if not 0 <= n_head <= n:
        raise ValueError("n_head must lie between 0 and the number of items")


def _rank(keys: Callable[[slice], Keys], kinds: Int32s, relevant: Bytes, cuts: Ints, n_head: int) -> Ranked:
    """The keys of a block of queries at a time."""
    q, n = len(relevant), len(kinds)
    precision, within, heads = np.empty(q), np.empty((q, len(cuts))), []
    step = max(1, _BLOCK // n)
    for begin in range(0, q, step):
        rows = slice(begin, min(begin + step, q))
        ranking = Ranking.of(keys(rows))
        hits = Hits.of(ranking, relevant[rows][:, kinds])
        precision[rows], within[rows] = hits.average_precision(), hits.within(cuts)
        heads.append(_head(ranking, kinds, n_head, relevant.shape[1]))
    sizes = [np.zeros(1, np.int64), *(size for size, *_ in heads)]
    entries = zip(*(parts for _, *parts in heads), strict=True) if heads else ([np.zeros(0, np.int64)],) * 3
    group, kind, count = (np.concatenate(parts) for parts in entries)
    return precision, within, np.cumsum(np.concatenate(sizes)), group.astype(np.int32), kind.astype(np.int32), count


def _head(ranking: Ranking, kinds: Int32s, n_head: int, n_kinds: int) -> tuple[Ints, Ints, Ints, Ints]:
    """How many entries each query has, and their groups, kinds and counts."""
    n_groups = ranking.groups_at([n_head - 1])[:, 0] + 1 if n_head else ranking.groups_at([0])[:, 0]
    first = ranking.groups_at([0])[:, 0]
    places = [np.arange(ranking.bounds[a], ranking.bounds[b]) for a, b in zip(first, n_groups, strict=True)]
    place = np.concatenate([np.zeros(0, np.int64), *places])
    group = np.searchsorted(ranking.bounds, place, side="right") - 1
    key, count = np.unique(group * n_kinds + kinds[ranking.order.ravel()[place]], return_counts=True)
    group, kind = key // n_kinds, key % n_kinds
    row = ranking.rows[group]
    return np.bincount(row, minlength=ranking.n_queries), group - first[row], kind, count


@dataclass(frozen=True)
class Ranking:
    """The order of the items for each query, cut into tie groups, which are numbered over all rows.

    Examples
    --------
    >>> ranking = Ranking.of(np.array([[3.0, 1.0, 3.0], [0.0, 0.0, 0.0]]))
    >>> ranking.rows.tolist(), ranking.starts.tolist(), ranking.sizes.tolist()
    ([0, 0, 1], [0, 1, 0], [1, 2, 3])
    """

    order: Ints  # (q, n) item at each position
    bounds: Ints  # (g + 1,) first place of each group in the flattened rows, then q·n

    @classmethod
    def of(cls, distances: Array) -> Ranking:
        order = np.argsort(distances, axis=1)  # (q, n)
        ranked = np.take_along_axis(distances, order, axis=1)
        first = np.ones(distances.shape, dtype=np.bool_)
        np.not_equal(ranked[:, 1:], ranked[:, :-1], out=first[:, 1:])
        return cls(order, np.append(np.flatnonzero(first), distances.size))

    @property
    def n_queries(self) -> int:
        return len(self.order)

    @property
    def n_items(self) -> int:
        return int(self.order.shape[1])

    @cached_property
    def rows(self) -> Ints:
        return self.bounds[:-1] // self.n_items  # (g,)

    @cached_property
    def starts(self) -> Ints:
        return self.bounds[:-1] - self.rows * self.n_items  # (g,) t

    @cached_property
    def sizes(self) -> Ints:
        return np.diff(self.bounds)  # (g,) m

    def group_sums(self, values: Array, dtype: type[np.generic]) -> Array:
        """Sum the (q, n) values of the items over each group: (g,)."""
        ranked = np.take_along_axis(values, self.order, axis=1).ravel()
        return np.add.reduceat(ranked, self.bounds[:-1], dtype=dtype)

    def row_sums(self, values: Floats, groups: Ints | None = None) -> Floats:
        """Sum the values of all groups, or of some, over each row: (q,)."""
        rows = self.rows if groups is None else self.rows[groups]
        return np.bincount(rows, weights=values, minlength=self.n_queries).astype(np.float64, copy=False)

    def groups_at(self, positions: ArrayLike) -> Ints:
        """Number of the group that holds each of the positions, in each row: (q, p)."""
        places = np.arange(self.n_queries)[:, None] * self.n_items + np.asarray(positions, dtype=np.int64)
        return np.searchsorted(self.bounds, places, side="right") - 1


@dataclass(frozen=True)
class Hits:
    """The relevant items of a ranking, counted by tie group.

    Examples
    --------
    >>> ranking = Ranking.of(np.array([[1, 2, 2]]))
    >>> hits = Hits.of(ranking, np.array([[1, 1, 0]], dtype=np.uint8))
    >>> hits.within(np.array([1, 2, 3])).tolist()
    [[1.0, 1.5, 2.0]]
    """

    ranking: Ranking
    here: Ints  # (g,) c
    before: Ints  # (g,) r
    total: Ints  # (q,) relevant in the row

    @classmethod
    def of(cls, ranking: Ranking, relevant: NDArray[np.uint8]) -> Hits:
        here: Ints = ranking.group_sums(relevant, np.int64)
        upto = np.append(0, np.cumsum(here))  # (g + 1,) over all rows
        row_start = upto[ranking.groups_at([0])[:, 0]]  # (q,)
        total = np.diff(row_start, append=upto[-1])
        return cls(ranking, here, upto[:-1] - row_start[ranking.rows], total)

    def average_precision(self) -> Floats:
        """Expected mean over the relevant items of the precision where each stands: (q,), 0/0 = nan.

        A group's relevant item at position i has before it r relevant items of other groups and, in
        expectation, (i − t)(c − 1)/(m − 1) of its own (McSherry and Najork, 2008). It stands at i with
        probability 1/m, and with S = Σ_i 1/(i + 1) the sums close: Σ_i (i − t)/(i + 1) = m − (t + 1)·S.
        """
        some = np.flatnonzero(self.here)  # the other groups add nothing
        c, r = self.here[some], self.before[some]
        t, m = self.ranking.starts[some], self.ranking.sizes[some]
        S = _inverse_sums(t, m, self.ranking.n_items)
        own = (c - 1) / np.maximum(m - 1, 1) * (m - (t + 1) * S)
        sums = self.ranking.row_sums(c / m * ((r + 1) * S + own), some)
        with np.errstate(invalid="ignore"):
            return sums / self.total

    def within(self, cuts: Ints) -> Floats:
        """Expected number of relevant items among the first `cuts` ≥ 1 of each row: (q, p)."""
        group = self.ranking.groups_at(cuts - 1)  # (q, p) the groups that the cuts go through
        share = (cuts - self.ranking.starts[group]) / self.ranking.sizes[group]
        return self.before[group] + share * self.here[group]


def _inverse_sums(start: Ints, size: Ints, n_items: int) -> Floats:
    """1/(t + 1) + … + 1/(t + m) of each group: (g,)."""
    harmonic = np.append(0.0, np.cumsum(1.0 / np.arange(1, n_items + 1)))
    sums = harmonic[start + size] - harmonic[start]
    return np.where(size == 1, 1.0 / (start + 1), sums)  # where nothing ties, nothing cancels
