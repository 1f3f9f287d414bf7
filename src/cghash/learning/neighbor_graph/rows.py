"""Nearest items of single rows from their float64 scores: what blocks cannot tell, and sparse items."""

from __future__ import annotations

import numpy as np

from ..._arrays import Floats, Ints
from .bounds import DOUBLE, settle, slack_of
from .items import Items, first_copies, is_exact
from .relevance import Labels, SharedLabel

SCORES = 1 << 23  # float64 scores held at a time


def by_rows(items: Items, relevant: Labels | SharedLabel, rows: Ints, near: Ints, far: Ints) -> None:
    """Fill near and far of some rows by float64 products."""
    if rows.size == 0:
        return
    norms, first_copy = np.sqrt(items.squares), first_copies(items)
    step = max(1, SCORES // items.n)
    for first in range(0, rows.size, step):
        some = rows[first : first + step]
        scores = items.squares / 2 - items.products(some)  # (r, n)
        for row, score, is_near in zip(some, scores, relevant.rows(some), strict=True):
            for lists, kind in ((near, is_near), (far, ~is_near)):
                kind[row] = False
                chosen = _row(items, int(row), np.flatnonzero(kind), score, norms, lists.shape[1], first_copy)
                lists[row] = -1
                lists[row, : chosen.size] = chosen


def _row(items: Items, row: int, ids: Ints, score: Floats, norms: Floats, k: int, first_copy: Ints) -> Ints:
    """The k nearest to `row` among `ids`, from its float64 scores (n,)."""
    if k == 0 or ids.size == 0:
        return ids[:0]
    exact = is_exact(items, 53)
    scores = score[ids]
    error = np.zeros(ids.size) if exact else slack_of(items.d, DOUBLE)(norms[row], norms[ids])
    if ids.size > k:
        in_play = scores - error <= np.partition(scores + error, k - 1)[k - 1]
        ids, scores, error = ids[in_play], scores[in_play], error[in_play]
    order = np.lexsort((ids, scores))
    if exact:
        return np.asarray(ids[order][:k])
    listed = ids[order][None], scores[order][None], error[order][None]  # (1, m) each
    settled, _ = settle(items, np.array([row]), *listed, np.array([np.inf]), k, first_copy)
    return np.asarray(settled[0])
