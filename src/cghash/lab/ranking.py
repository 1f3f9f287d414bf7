"""Rows of items in order of distance, where items of equal distance have no order.

A ranking is a sequence of **tie groups**. Positions count from 0; a group that starts at position t holds m
items, of which c are relevant, after r relevant ones in the groups before it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["Hits", "Ranking"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


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
    def of(cls, distances: NDArray[Any]) -> Ranking:
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

    def group_sums(self, values: NDArray[Any], dtype: type[np.generic]) -> NDArray[Any]:
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
