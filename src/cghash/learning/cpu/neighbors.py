"""The exact neighbour graph: for each item its nearest relevant items, and its nearest irrelevant ones.

Distances are those of a float64 brute force: Σ(x - y)² as NumPy sums it, ties to the lower id. Almost all of
the work is done in float32 nevertheless:

1. Items are centred, scaled by a power of two and rounded to float32. Blocks of products x·y on and above the
   diagonal serve both directions; item j's score for item i is |y|²/2 - x·y, half its squared distance less a
   constant of i.
   Of many items with many features only the products over their leading axes are computed, which bound the
   whole ones from above; the few pairs whose score may still enter a list are multiplied over more axes, and what
   is left is multiplied out (`LeadingAxes`). That list begins with a bound from the items around (`thresholds`).
2. Each item keeps some more candidates than asked for. A bound on all rounding errors tells which runs of its
   list may be out of order: these, and only these, are sorted by their float64 distances.
3. Where such a run may reach past the candidates kept, all scores of that item are computed again in float64,
   and the candidates that their bound leaves open are sorted as in 2.

Whole numbers of moderate size (pixels, counts, one-hot features) give exact products: their bound is zero.

neighbor_blocks.py multiplies blocks of items; `by_rows` takes single rows: sparse items, and what blocks cannot tell.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from ..._arrays import Floats, Ints
from ...exceptions import InvalidInputError
from .neighbor_blocks import by_blocks
from .neighbor_bounds import DOUBLE, settle, slack_of
from .neighbor_items import (
    DenseItems,
    Items,
    Labels,
    SharedLabel,
    SparseItems,
    first_copies,
    is_exact,
    relevance_between,
)

SCORES = 1 << 23  # float64 scores held at a time


def nearest(X: Any, relevance: ArrayLike | Any | None, n_near: int, n_far: int, n_threads: int) -> tuple[Ints, Ints]:
    """The nearest relevant and the nearest irrelevant items of each item, by (Euclidean distance, id).

    Parameters
    ----------
    X : (n, d) array or sparse matrix
    relevance : (n,) integer labels (relevant: the same label), (n, L) 0/1 indicator matrix, dense or sparse
        (relevant: a label in common), or None: all items are relevant to each other, and `n_far` must be 0
    n_near, n_far : how many of each
    n_threads : threads, each with blocks of its own; BLAS has one thread meanwhile. Sparse items, and the few that
        float32 cannot decide, go through float64 products by as many threads as BLAS takes

    Returns
    -------
    near (n, n_near), far (n, n_far) : row numbers, -1 where there are fewer

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[0.0], [1.0], [3.0], [4.0]])
    >>> near, far = nearest(X, [0, 1, 0, 1], n_near=1, n_far=2, n_threads=1)
    >>> near.ravel().tolist(), far.tolist()
    ([2, 3, 0, 1], [[1, 3], [0, 2], [3, 1], [2, 0]])
    """
    items = SparseItems(X) if sparse.issparse(X) else DenseItems(X)
    relevant = relevance_between(relevance, items.n)
    _check_counts(relevance, n_near, n_far)
    near = np.full((items.n, n_near), -1, dtype=np.int64)
    far = np.full((items.n, n_far), -1, dtype=np.int64)
    if items.n > 1 and n_near + n_far > 0:
        if isinstance(items, DenseItems):
            undecided = by_blocks(items, relevant, near, far, n_threads)
        else:
            undecided = np.arange(items.n)
        by_rows(items, relevant, undecided, near, far)
    return near, far


def _check_counts(relevance: Any, n_near: int, n_far: int) -> None:
    for name, count in (("n_near", n_near), ("n_far", n_far)):
        if count < 0:
            raise InvalidInputError(f"{name} must not be negative, got {count}")
    if relevance is None and n_far > 0:
        raise InvalidInputError(f"n_far must be 0 without relevance: no item is irrelevant; got {n_far}")


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
