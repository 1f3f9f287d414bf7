"""What rounding may have done to scores, and lists put into the order of the float64 distances."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..._arrays import Bools, Floats, Ints
from .items import Items, distances

Slack = Callable[[Floats, Floats], Floats]

SINGLE, DOUBLE = 2.0**-24, 2.0**-53  # unit roundoff


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
