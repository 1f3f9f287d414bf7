"""The criteria one by one, of distances at hand; `retrieval` computes all of them from one ranking."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._arrays import Array, Floats, Ints
from .._kernels import n_threads
from .checks import check_count, check_distances, check_gains, check_neighbors, check_relevant
from .labels import Labels
from .ranking import Ranked, RowDistances, best_gain, discounted_gain, rank, row_blocks
from .recall import recall_of
from .retrieval import cut_grid, mean_curve
from .vote import MOST_VOTES, right_probability

__all__ = ["average_precision", "knn_error", "ndcg", "precision_at", "precision_recall", "recall_at"]


def average_precision(distances: ArrayLike, relevant: ArrayLike) -> Floats:
    """Compute the expected average precision of each query.

    Parameters
    ----------
    distances : (q, n) array
    relevant : (q, n) array of bool

    Returns
    -------
    values : (q,) float64, nan for a query without relevant items

    Examples
    --------
    >>> average_precision([[1, 2, 3], [1, 1, 2]], [[1, 0, 1], [1, 0, 0]]).round(4).tolist()
    [0.8333, 0.75]
    """
    D = check_distances(distances)
    hit = check_relevant(relevant, D.shape)
    values = np.empty(len(D))
    for rows, ranked in _ranked(D, hit):
        values[rows] = ranked.average_precision
    return values


def precision_at(distances: ArrayLike, relevant: ArrayLike, k: int = 50) -> Floats:
    """Compute the expected share of relevant items among the k nearest of each query.

    Parameters
    ----------
    distances : (q, n) array
    relevant : (q, n) array of bool
    k : how many items count, 1 to n

    Returns
    -------
    values : (q,) float64

    Examples
    --------
    >>> precision_at([[1, 2, 2, 3]], [[1, 1, 0, 0]], k=2).tolist()
    [0.75]
    """
    D = check_distances(distances)
    hit = check_relevant(relevant, D.shape)
    check_count(k, "k", D.shape[1])
    return _within(D, hit, np.array([k]))[:, 0] / k


def recall_at(distances: ArrayLike, true_neighbors: ArrayLike, k: int) -> Floats:
    """Compute the expected share of its true neighbours that are among the k nearest of each query.

    Parameters
    ----------
    true_neighbors : (q, t) array of item numbers, none twice in a row
    distances, k : as for `precision_at`

    Returns
    -------
    values : (q,) float64

    Examples
    --------
    >>> recall_at([[1, 2, 2, 3]], [[0, 1, 3]], k=2).tolist()
    [0.5]
    """
    D = check_distances(distances)
    neighbors = check_neighbors(true_neighbors, D.shape)
    check_count(k, "k", D.shape[1])
    return recall_of(RowDistances.of(D), neighbors, np.array([k]), None)[:, 0]


def ndcg(distances: ArrayLike, gains: ArrayLike, k: int) -> Floats:
    """Compute the expected normalised discounted cumulative gain of the k nearest of each query.

    The item at position i, from 0, counts gain / log2(i + 2); the sum is divided by that of the best order.

    Parameters
    ----------
    distances : (q, n) array
    gains : (q, n) array, 0 or more
    k : how many items count, 1 to n

    Returns
    -------
    values : (q,) float64, nan for a query all of whose gains are 0

    Examples
    --------
    >>> ndcg([[1, 2, 3], [1, 1, 1]], [[2, 1, 0], [0, 1, 0]], k=1).round(4).tolist()
    [1.0, 0.3333]
    """
    D = check_distances(distances)
    G = check_gains(gains, D.shape)
    check_count(k, "k", D.shape[1])
    values, counts = np.empty(len(D)), np.ones(D.shape[1], dtype=np.int64)
    for rows, ranked in _ranked(D, G > 0, n_head=k):
        with np.errstate(invalid="ignore"):
            values[rows] = discounted_gain(ranked.head, G[rows], k) / best_gain(counts, G[rows], k)
    return values


def precision_recall(distances: ArrayLike, relevant: ArrayLike, n_points: int = 100) -> tuple[Ints, Floats, Floats]:
    """Compute the expected precision and recall of the r nearest, averaged over the queries, on a grid of r.

    Queries without relevant items are left out. The grid runs from 1 to n in nearly equal ratios.

    Parameters
    ----------
    distances : (q, n) array
    relevant : (q, n) array of bool
    n_points : most values of r in the grid

    Returns
    -------
    retrieved, precision, recall : (p,) arrays: r, and the two means at r

    Examples
    --------
    >>> retrieved, precision, recall = precision_recall([[1, 2, 2]], [[1, 1, 0]])
    >>> retrieved.tolist(), precision.round(4).tolist(), recall.tolist()
    ([1, 2, 3], [1.0, 0.75, 0.6667], [0.5, 0.75, 1.0])
    """
    D = check_distances(distances)
    hit = check_relevant(relevant, D.shape)
    cuts = cut_grid(D.shape[1], n_points)
    precision, recall = mean_curve(_within(D, hit, cuts), cuts, hit.sum(axis=1))
    return cuts, precision, recall


def knn_error(distances: ArrayLike, database_labels: ArrayLike, query_labels: ArrayLike, k: int = 3) -> Floats:
    """Compute the probability that the majority of the k nearest is not for the label of each query.

    Of labels with equally many votes, that of the nearest item wins. An item with several labels votes once, for the
    set of them, and a query is classified rightly when it shares a label with the set that wins.

    Parameters
    ----------
    distances : (q, n) array
    database_labels : (n,) array, or (n, c) indicators of several labels
    query_labels : (q,) array, or (q, c)
    k : how many items vote, 1 to n and at most 500

    Returns
    -------
    values : (q,) float64

    Examples
    --------
    >>> knn_error([[1, 2, 2, 2]], ["a", "a", "b", "b"], ["a"], k=3).round(4).tolist()
    [0.3333]
    """
    D = check_distances(distances)
    labels = Labels.of(query_labels, database_labels, (len(D), int(D.shape[1])))
    check_count(k, "k", min(D.shape[1], MOST_VOTES))
    values, source = np.empty(len(D)), RowDistances.of(D)
    for rows in row_blocks(source, labels.n_kinds):
        gains = labels.gains(rows)
        ranked = rank(source, rows, labels.kinds, gains > 0, n_head=k, n_threads=n_threads(None))
        values[rows] = 1.0 - right_probability(ranked.head, gains, k)
    return values


def _within(D: Array, relevant: Array, cuts: Ints) -> Floats:
    """Expected number of relevant items up to each cut: (q, p)."""
    found = np.empty((len(D), len(cuts)))
    for rows, ranked in _ranked(D, relevant, cuts):
        found[rows] = ranked.within
    return found


def _ranked(D: Array, relevant: Array, cuts: Any = (), n_head: int = 0) -> Iterator[tuple[slice, Ranked]]:
    """Rank the items of each row, each of them of a kind of its own, a block of rows at a time."""
    source, kinds = RowDistances.of(D), np.arange(D.shape[1])
    for rows in row_blocks(source, D.shape[1]):
        yield rows, rank(source, rows, kinds, relevant[rows], cuts, n_head, n_threads(None))
