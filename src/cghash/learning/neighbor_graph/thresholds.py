"""Scores that the nearest of each item lie below, from the items around it alone."""

from __future__ import annotations

import numpy as np

from ... import _kernels
from ..._arrays import Floats, Ints, Singles
from .bounds import SINGLE, slack_of
from .relevance import Labels, SharedLabel
from .workers import Workers

NEIGHBORHOOD = 1024  # items that are compared with each other


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
