"""Dense ranks: what a decision stump sees of a feature is only the order of its values."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from ... import _kernels
from ..._arrays import Array, Ints
from ...exceptions import InvalidInputError

_CHUNK = 1 << 20  # values that a thread ranks at a time
_FEW = 4096  # distinct values, up to which looking each entry up is faster than sorting entries


class FeatureRanks:
    """Ranks of every item in every feature, ready to be swept, and the thresholds between them.

    Distinct values of a feature are found again from X when a threshold is asked for: they are as many as the
    entries of X where features are continuous.

    Attributes
    ----------
    X : (n, d), never changed
    n_distinct : (d,) how many values each feature takes
    kernel : `StumpRanks`, whose `sweep` finds the best threshold of each feature
    """

    def __init__(self, X: Array, n_distinct: Ints, kernel: Any) -> None:
        self.X = X
        self.n_distinct = n_distinct
        self.kernel = kernel

    def values(self, feature: int) -> Array:
        """The distinct values of a feature, rising."""
        return np.unique(self.X[:, feature])

    def threshold(self, feature: int, rank: int) -> float:
        """A number t, midway to the next value, with [x > t] exactly for the items above `rank`.

        Example
        -------
        >>> import numpy as np
        >>> dense_ranks(np.array([[1.0], [4.0], [2.0]])).threshold(0, rank=1)
        3.0
        """
        values = self.values(feature)
        if not 0 <= rank < len(values) - 1:
            raise InvalidInputError(f"rank must lie between 0 and {len(values) - 2}, got {rank}")
        return midpoint(values[rank], values[rank + 1])


def dense_ranks(X: Array, n_threads: int = 1) -> FeatureRanks:
    """Number the distinct values of each feature from 0 upwards, and give each item its number.

    Parameters
    ----------
    X : (n, d) of float32 or float64, without NaN
    n_threads : how many threads rank features

    Example
    -------
    >>> import numpy as np
    >>> ranks = dense_ranks(np.array([[1.0, 7.0], [4.0, 7.0], [2.0, 7.0], [1.0, 7.0]]))
    >>> ranks.n_distinct
    array([3, 1])
    """
    if X.ndim != 2 or X.dtype not in (np.float32, np.float64):
        raise InvalidInputError(f"X must be a matrix of float32 or float64, got {X.ndim} axes of {X.dtype}")
    n, d = X.shape
    kernel = _kernels.StumpRanks(n)
    n_distinct = np.zeros(d, dtype=np.int64)
    for first, (ranks, counts) in _ranked_chunks(X, n_threads):
        kernel.append(ranks, counts)
        n_distinct[first : first + len(counts)] = counts
    return FeatureRanks(X, n_distinct, kernel)


def midpoint(low: Any, high: Any) -> float:
    """A number t of low's and high's own precision with low <= t < high, near their middle.

    Example
    -------
    >>> import numpy as np
    >>> midpoint(np.float32(1.0), np.float32(2.0))
    1.5
    >>> midpoint(1.0, np.nextafter(1.0, 2.0))
    1.0
    """
    kind = np.result_type(low, high).type
    with np.errstate(all="ignore"):
        middle = kind(low) / 2 + kind(high) / 2  # halves cannot overflow; NaN between infinities
    return float(middle) if low <= middle < high else float(low)


def _ranked_chunks(X: Array, n_threads: int) -> Iterator[tuple[int, tuple[Array, Ints]]]:
    n, d = X.shape
    step = max(16, _CHUNK // max(n, 1))
    firsts = range(0, d, step)
    with ThreadPoolExecutor(max(n_threads, 1)) as pool:
        yield from zip(firsts, pool.map(lambda f: _rank(X[:, f : f + step]), firsts), strict=True)


def _rank(X: Array) -> tuple[Array, Ints]:
    """Ranks (c, n), in the narrowest type that holds n - 1, and how many are distinct (c,)."""
    n, c = X.shape
    columns = np.ascontiguousarray(X.T)  # (c, n)
    if np.isnan(columns).any():
        raise InvalidInputError("X must not contain NaN")
    ranks = np.empty((c, n), dtype=np.min_scalar_type(max(n - 1, 0)))
    n_distinct = np.empty(c, dtype=np.int64)
    for f, column in enumerate(columns):
        values = np.unique(column)
        ranks[f] = np.searchsorted(values, column) if len(values) <= _FEW else _rank_by_sorting(column)
        n_distinct[f] = len(values)
    return ranks, n_distinct


def _rank_by_sorting(column: Array) -> Ints:
    order = np.argsort(column)
    rising = column[order]
    ranks = np.zeros(len(column), dtype=np.int64)
    ranks[order[1:]] = np.cumsum(rising[1:] != rising[:-1])
    return ranks
