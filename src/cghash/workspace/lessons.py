"""What answers teach: triplets for a fit, from what people said and from what lies near what they spoke of.

An answer (anchor, near, far) is taken to speak for its neighbourhood: an item near the anchor is, more likely than not,
also more like the items around `near` than like those around `far`. So an answer becomes product blocks over the K
nearest vectors of each of its three items. On the digits, 500 answers of which one in twenty is wrong give a mean
average precision of 0.91 this way, 0.81 taken alone (docs: what the page was measured to do).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..learning.triplets import TripletSet

__all__ = ["Lesson", "lesson_of"]

Ints = NDArray[np.int64]

MOST_ITEMS = 20000  # that a fit looks at; answers name far fewer
AROUND = 8  # neighbours that an answer also speaks for


@dataclass(frozen=True)
class Lesson:
    """Items of a workspace to learn from, and triplets among them; None where there are no answers."""

    rows: Ints  # (m,) row numbers in the workspace, ascending
    triplets: TripletSet | None  # over positions in `rows`


def lesson_of(vectors: Any, answers: Ints, *, around: int = AROUND, seed: int = 0, n_threads: int = 1) -> Lesson:
    """What to learn from answers (t, 3), each (anchor, near, far), about items with vectors (n, d).

    >>> vectors = np.arange(12.0)[:, None]
    >>> lesson_of(vectors, np.array([[0, 4, 9]]), around=1).triplets.n_triplets  # {0, 1} × {4, 3} × {9, 8}
    8
    """
    rows = _looked_at(len(vectors), answers, seed)
    if not len(answers):
        return Lesson(rows, None)
    X = np.asarray(vectors[rows], dtype=np.float32)
    told = np.searchsorted(rows, answers)
    named, places = np.unique(told, return_inverse=True)
    circles = _circles(X, named, min(around, len(X) - 1))  # (named, K + 1), each item first
    return Lesson(rows, _blocks(circles[places.reshape(told.shape)], len(X)))


def _looked_at(n: int, answers: Ints, seed: int) -> Ints:
    """All items, or those that answers name and others drawn to MOST_ITEMS."""
    if n <= MOST_ITEMS:
        return np.arange(n)
    drawn = np.random.default_rng(seed).choice(n, MOST_ITEMS, replace=False)
    return np.union1d(answers.ravel(), drawn).astype(np.int64)


def _circles(X: NDArray[np.float32], named: Ints, k: int) -> Ints:
    """The items named, each followed by its k nearest others: (len(named), k + 1)."""
    from sklearn.neighbors import NearestNeighbors

    if k < 1:
        return named[:, None]
    found = NearestNeighbors(n_neighbors=k + 1, algorithm="brute").fit(X).kneighbors(X[named], return_distance=False)
    own = found == named[:, None]
    own[:, -1] |= ~own.any(axis=1)  # of equal items the own one may be missing: the last makes room
    others = found[~own].reshape(len(named), k)
    return np.concatenate([named[:, None], others], axis=1).astype(np.int64)


def _blocks(circles: Ints, n_items: int) -> TripletSet:
    """Product blocks of answers given as circles (t, 3, K + 1); each answer has the same weight in all."""
    anchors: list[int] = []
    near: list[Ints] = []
    far: list[Ints] = []
    weights: list[float] = []
    for anchor_circle, near_circle, far_circle in circles:
        only_near, only_far = _parted(near_circle, far_circle)
        blocks = [(a, only_near[only_near != a], only_far[only_far != a]) for a in anchor_circle.tolist()]
        blocks = [block for block in blocks if len(block[1]) and len(block[2])]
        size = sum(len(near_items) * len(far_items) for _, near_items, far_items in blocks)
        for a, near_items, far_items in blocks:
            anchors.append(a)
            near.append(near_items)
            far.append(far_items)
            weights.append(1.0 / (size * len(circles)))
    near_ptr, far_ptr = (np.cumsum([0, *map(len, lists)]) for lists in (near, far))
    return TripletSet(
        np.array(anchors), np.concatenate(near), near_ptr, np.concatenate(far), far_ptr, np.array(weights), n_items
    )


def _parted(near: Ints, far: Ints) -> tuple[Ints, Ints]:
    """Two circles without what they share; the items that were spoken of stay where they are."""
    only_near = near[~np.isin(near, far) | (np.arange(len(near)) == 0)]
    only_far = far[~np.isin(far, near) | (np.arange(len(far)) == 0)]
    return only_near[only_near != far[0]], only_far[only_far != near[0]]
