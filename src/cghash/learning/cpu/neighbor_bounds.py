"""What bounds scores, so that few need be computed exactly: rounding errors, products over few axes, near items."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from ... import _kernels
from ..._arrays import Bools, Floats, Ints, Singles
from .neighbor_items import Items, Labels, SharedLabel, distances

if TYPE_CHECKING:
    from .neighbor_blocks import Workers

Slack = Callable[[Floats, Floats], Floats]

SINGLE, DOUBLE = 2.0**-24, 2.0**-53  # unit roundoff
LEADING_FROM = 12000, 192  # items and features from which leading axes can pay
LEADING_MOST = 1 / 3  # of the features that they may be
_LEADING, _MORE = 0.9, 0.98  # of the variance that the leading axes must hold, and these with the further ones
_ROWS = 2048  # items at a time
NEIGHBORHOOD = 1024  # items that are compared with each other


def slack_of(d: int, unit: float) -> Slack:
    """A bound on |score computed - half the distance that decides + |x|²/2|, from the two norms.

    With N = |x| + |y| and γ = d·unit / (1 - d·unit), in any order of summation: the product errs by γ|x||y|,
    |y|²/2 and the difference by unit·N²/2 each, rounding x and y by unit·N². The float64 sums (|y|², and the
    distance itself) err by γN²/2 each, γ here of float64. The small terms are doubled, which covers their own
    rounding, and what underflow could lose is added.
    """
    product = d * unit / (1 - d * unit) if d * unit < 0.5 else np.inf
    rest = 4 * unit + 2 * (d + 8) * DOUBLE
    underflow = (d + 1) * (2.0**-100 if unit == SINGLE else 2.0**-1000)

    def slack(own: Floats, other: Floats) -> Floats:
        return product * own * other + rest * (own + other) ** 2 + underflow

    return slack


def least_unseen(own: Floats, last: Floats, largest: float, slack: Slack) -> Floats:
    """A lower bound on the scores of items outside a full list, from its last score.

    Items of norm at most `reach` err by slack(own, reach); all others are at least reach - own away, so that
    one item far out does not weaken the bound for all.
    """
    apart = np.sqrt(np.maximum(2 * last + own**2, 0.0))  # distance of the last in the list
    reach = np.minimum(own + 2 * apart, largest)
    error = slack(own, reach)
    beyond = np.where(reach < largest, ((0.9 * (reach - own)) ** 2 - own**2) / 2 - error, np.inf)
    return np.minimum(last - error, beyond)


def settle(
    items: Items,
    rows: Ints,
    ids: Ints,
    scores: Floats,
    error: Floats,
    unseen: Floats,
    k: int,
    first_copy: Ints | None = None,
) -> tuple[Ints, Bools]:
    """Lists (r, m) sorted by score, into the k nearest; and whether each list was enough to tell."""
    missing = ids < 0
    upper = np.maximum.accumulate(np.where(missing, np.inf, scores + error), axis=1)
    lower = np.column_stack([np.where(missing, np.inf, scores - error), unseen])  # (r, m + 1)
    lower = np.minimum.accumulate(lower[:, ::-1], axis=1)[:, ::-1]
    ends = (upper < lower[:, 1:]) | missing  # all up to here come before all that follow
    starts = np.column_stack([np.ones(rows.size, dtype=bool), ends[:, :-1]])
    place = np.arange(ids.shape[1])
    first = np.maximum.accumulate(np.where(starts, place, 0), axis=1)  # where each one's run starts
    disputed = ~(starts & ends) & ~missing & (first < k)
    decided: Bools = np.asarray(ends[:, k - 1 :].any(axis=1)) | (ids.shape[1] < k)

    disputed &= decided[:, None]
    ids = ids.copy()
    which = np.flatnonzero(disputed.any(axis=1))
    distance = np.zeros((which.size, ids.shape[1]))
    row, column = np.nonzero(disputed[which])
    distance[row, column] = distances(items, rows[which[row]], ids[which[row], column], first_copy)
    order = np.lexsort((ids[which], distance, first[which]), axis=-1)
    ids[which] = np.take_along_axis(ids[which], order, axis=1)
    return ids[:, :k], decided


class LeadingAxes:
    """Few axes, and more of them, whose products bound the products of whole items from above.

    With V (d, p) orthonormal and r_x the length of what Vᵀx leaves of x, |x - y|² ≥ |Vᵀx - Vᵀy|² + (r_x - r_y)². So
    z_x = (Vᵀx, r_x) has the length of x, and x·y ≤ z_x·z_y. `axes` are z of the leading axes; their r is `rest`, and
    in its place `more` has the further axes, and what these leave. A last axis √c·|x| adds c|x||y|, which covers
    all rounding, for p axes together:

    - float64, and axes not quite orthonormal (by what float64 finds, and p·d·unit that it may miss), change |Vᵀx|² and
      so r_x² by at most ε|x|², hence r_x by √ε|x|;
    - rounding z to float32 and the former change z by η|x|, η = 2·unit + √ε, and a product by (2η + η²)|x||y|;
    - float32 products over the leading and over the further axes err by γ|x||y| together, γ = q·unit / (1 - q·unit)
      with q = p + 16 in any order of summation; of the 16, 12 are for rest·rest taken out and further axes put in.

    c is twice their sum. `low` is |y|²/2 and `extra` is added to a threshold such that their rounding, and that of
    the difference, are covered too: each by 4·unit times the squared length, where less than 3 is needed.
    """

    def __init__(self, X: Singles, squares: Floats, V: Floats, n_leading: int, workers: Workers) -> None:
        d, p = V.shape
        skew = float(np.linalg.norm(V.T @ V - np.eye(p)))
        epsilon = (4 * (1 + np.sqrt(p)) * (d + p) + 2 * p * d) * DOUBLE + 2 * skew
        eta = 2 * SINGLE + np.sqrt(epsilon)
        gamma = (p + 16) * SINGLE / (1 - (p + 16) * SINGLE)
        c = 2 * (2 * eta + eta**2 + gamma)
        self.axes = np.empty((len(X), n_leading + 2), dtype=np.float32)
        self.more = np.empty((len(X), p - n_leading + 1), dtype=np.float32)

        def project(first: int) -> None:
            rows = slice(first, first + _ROWS)
            along = X[rows].astype(np.float64) @ V
            self.axes[rows, :n_leading], self.more[rows, :-1] = along[:, :n_leading], along[:, n_leading:]
            for out, some in ((self.axes[rows, n_leading], along[:, :n_leading]), (self.more[rows, -1], along)):
                out[:] = np.sqrt(np.maximum(squares[rows] - np.einsum("ij,ij->i", some, some), 0.0))

        workers.each(project, range(0, len(X), _ROWS))
        self.rest = self.axes[:, n_leading].copy()  # (n,)
        self.axes[:, -1] = np.sqrt(c * squares) * (1 + 4 * SINGLE)
        self.low = (squares / 2 - 4 * SINGLE * squares).astype(np.float32)  # (n,)
        self.extra = (4 * SINGLE * squares + (d + 1) * 2.0**-100).astype(np.float32)  # (n,)

    @property
    def bounds(self) -> dict[str, Singles]:
        """What finishes products of `axes`, as the kernel takes it."""
        return {"low": self.low, "extra": self.extra, "rest": self.rest, "more": self.more}

    @classmethod
    def of(cls, X: Singles, squares: Floats, workers: Workers) -> LeadingAxes | None:
        """Principal axes of some items, or None where they would not pay."""
        (n, d), (n_least, d_least) = X.shape, LEADING_FROM
        if n < n_least or d < d_least or d > 4096:
            return None
        some = X[:: max(1, n // 4096)].astype(np.float64)
        variances, V = np.linalg.eigh(some.T @ some)
        held = np.cumsum(variances[::-1])
        n_leading, p = (32 * (int(np.searchsorted(held, share * held[-1])) // 32 + 1) for share in (_LEADING, _MORE))
        if n_leading > LEADING_MOST * d:
            return None
        p = min(max(p - 1, n_leading), d)  # what is left of an item makes the columns of `more` a multiple of 32
        return cls(X, squares, np.ascontiguousarray(V[:, ::-1][:, :p]), n_leading, workers)


def thresholds(
    X: Singles, squares: Floats, axes: Singles, relevant: Labels | SharedLabel, places: list[int], workers: Workers
) -> tuple[Singles, Singles]:
    """For each item, a score that at least `places` relevant items lie below, and one for the others; else ∞.

    Items are compared with those of their own neighbourhood. A score may come out twice `slack` higher where it is
    computed again, in another order of summation: the thresholds stand above that.
    """
    half, norms = (squares / 2).astype(np.float32), np.sqrt(squares)
    slack = slack_of(X.shape[1], SINGLE)
    found = np.full((2, len(X)), np.inf, dtype=np.float32)

    def compare(items: Ints) -> None:
        lists = _kernels.NearestLists(half[items], relevant.codes[items], *(min(k, items.size) for k in places))
        some = X[items]
        lists.update(workers.product(some, some), 0, 0, relevant.block(items, items))
        for kind, k, (scores, ids) in zip((0, 1), places, (lists.near(), lists.far()), strict=True):
            if 0 < k <= items.size:
                reach = norms[items][ids].max(axis=1)
                raised = scores[:, -1] + 2 * slack(norms[items], reach)  # ∞ where there are too few
                found[kind, items] = np.nextafter(raised.astype(np.float32), np.float32(np.inf))

    workers.each(compare, neighborhoods(axes, NEIGHBORHOOD))
    return found[0], found[1]


def neighborhoods(axes: Singles, most: int) -> list[Ints]:
    """Row numbers in groups of at most `most`, near to each other: halved along a principal axis, again and again."""
    waiting, groups = [np.arange(len(axes))], []
    while waiting:
        items = waiting.pop()
        if items.size <= most:
            groups.append(items)
            continue
        some = axes[items].astype(np.float64)
        some -= some.mean(axis=0)
        along = some @ np.linalg.eigh(some.T @ some)[1][:, -1]
        order = np.argsort(along, kind="stable")
        waiting += [items[order[items.size // 2 :]], items[order[: items.size // 2]]]
    return groups
