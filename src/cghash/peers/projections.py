"""Projections that several peers share: principal components, leading directions, cuts at medians, bits by sign."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import eigh

from .._arrays import Floats
from ..exceptions import NothingToLearnError
from .base import Peer

_ROUNDING = 1e-9  # of the range of a projection: values nearer to each other count as equal


class HyperplanePeer(Peer):
    """A peer whose bits are signs of projections, seen from the mean of the items."""

    mean_: Floats  # (d,)
    directions_: Floats  # (n_bits_, d)

    def _margins(self, X: Any) -> Floats:
        return project(X, self.mean_, self.directions_)

    def _shares(self, margins: Floats) -> Floats:
        return margins / lengths(self.directions_)[: self.n_bits_]


def lengths(directions: Floats) -> Floats:
    """Length (k,) of each of directions (k, d), in which a projection on it is a distance; 1 for zeros."""
    found = np.linalg.norm(directions, axis=1)
    return np.where(found > 0, found, 1.0)


def project(X: Any, mean: Floats, directions: Floats) -> Floats:
    """Coordinates (n, k) of items along directions (k, d), seen from `mean` (d,)."""
    return np.asarray((X - mean) @ directions.T)


def principal_components(X: Any, m: int) -> tuple[Floats, Floats, Floats]:
    """The mean (d,), at most m leading principal components (k, d), and the variances along them (k,).

    Examples
    --------
    >>> mean, components, variances = principal_components([[-2.0, 1.0], [0.0, 1.0], [2.0, 1.0]], 2)
    >>> mean.tolist(), components.tolist(), variances.round(9).tolist()
    ([0.0, 1.0], [[1.0, 0.0]], [2.666666667])
    """
    items = np.asarray(X, dtype=np.float64)
    mean = items.mean(axis=0)
    components, squares = leading_directions(items - mean, m)
    return mean, components, squares / len(items)


def leading_directions(A: Floats, m: int) -> tuple[Floats, Floats]:
    """At most m leading right singular vectors (k, d) of A (n, d), and their squared singular values (k,).

    All directions are computed and the first ones kept, so that fewer of them are a prefix of more. A direction's sign
    is free: its largest entry is positive.
    """
    size = float(np.abs(A).max())
    if size == 0:
        raise NothingToLearnError("X must hold items that differ from each other, got items that are all the same")
    A = A / size  # squares neither overflow nor vanish
    wide = A.shape[1] > A.shape[0]
    squares, vectors = eigh(A @ A.T if wide else A.T @ A, driver="evd", check_finite=False)
    rank = int(np.sum(squares > squares[-1] * max(A.shape) * np.finfo(np.float64).eps))
    kept = slice(None, -1 - min(m, rank), -1)
    squares, directions = squares[kept], vectors[:, kept].T
    if wide:
        directions = directions @ A / np.sqrt(squares)[:, None]
    return signed(directions), squares * size**2


def signed(directions: Floats) -> Floats:
    """The directions (k, d), each turned so that its largest entry is positive."""
    largest = np.abs(directions).argmax(axis=1)
    turn = np.sign(directions[np.arange(len(directions)), largest])
    return np.asarray(np.ascontiguousarray(directions * turn[:, None]))


def median_cuts(values: Floats) -> Floats:
    """Thresholds (k,) that part each column of values (n, k) at its median, and never at a value itself.

    A cut lies midway between two neighbouring different values: a value that lay on the cut would get its bit from
    rounding.

    Examples
    --------
    >>> median_cuts(np.array([[1.0, 5.0], [2.0, 5.0], [4.0, 5.0], [9.0, 6.0]])).tolist()
    [3.0, 5.5]
    """
    ordered = np.sort(values, axis=0)
    return np.array([_cut(column) for column in ordered.T])


def _cut(ordered: Floats) -> float:
    """One cut of sorted values (n,): above the lower median where larger values are there, else below it."""
    n, rounding = len(ordered), _ROUNDING * (ordered[-1] - ordered[0])
    median = ordered[(n - 1) // 2]
    above = int(np.searchsorted(ordered, median + rounding, side="right"))
    below = int(np.searchsorted(ordered, median - rounding, side="left"))
    cut = above if above < n else max(below, 1)
    return float(ordered[cut - 1] / 2 + ordered[cut] / 2)
