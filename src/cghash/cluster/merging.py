"""Answers of several shards as one: the order is (distance, id), as if all codes were in one index."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .._arrays import Floats, Ints

Nearest = tuple[Floats, Ints]  # distances and ids (q, k), padded with inf and -1
Within = tuple[Ints, Floats, Ints]  # offsets (q + 1,), distances, ids


def merged_nearest(found: Sequence[Nearest], k: int) -> Nearest:
    """The k nearest of those that shards found; distances are whole multiples of one power of two, so none is rounded.

    >>> inf = np.inf
    >>> one, two = ([[1.0, 3.0]], [[4, 0]]), ([[1.0, inf]], [[2, -1]])
    >>> merged_nearest([tuple(map(np.array, one)), tuple(map(np.array, two))], 3)
    (array([[1., 1., 3.]]), array([[2, 4, 0]]))
    """
    distances = np.concatenate([d for d, _ in found], axis=1)
    ids = np.concatenate([i for _, i in found], axis=1)
    order = np.lexsort((ids, distances), axis=1)[:, :k]
    distances, ids = np.take_along_axis(distances, order, 1), np.take_along_axis(ids, order, 1)
    missing = ((0, 0), (0, k - distances.shape[1]))
    return np.pad(distances, missing, constant_values=np.inf), np.pad(ids, missing, constant_values=-1)


def merged_within(found: Sequence[Within]) -> Within:
    """All that shards found within a distance.

    >>> one = np.array([0, 1, 2]), np.array([2.0, 0.0]), np.array([7, 8])
    >>> two = np.array([0, 1, 1]), np.array([2.0]), np.array([3])
    >>> merged_within([one, two])
    (array([0, 2, 3]), array([2., 2., 0.]), array([3, 7, 8]))
    """
    n_queries = len(found[0][0]) - 1
    rows = np.concatenate([np.repeat(np.arange(n_queries), np.diff(offsets)) for offsets, _, _ in found])
    distances, ids = (np.concatenate([one[i] for one in found]) for i in (1, 2))
    order = np.lexsort((ids, distances, rows))
    offsets = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=n_queries))])
    return offsets.astype(np.int64), distances[order], ids[order]
