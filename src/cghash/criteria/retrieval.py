"""All criteria of a set of queries, from one ranking of the database for each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from .._arrays import Array, Floats, Ints
from .._kernels import n_threads
from .._validation import check_jobs
from .checks import check_codes, check_count, check_rows
from .euclidean import euclidean_distances
from .labels import Labels
from .ranking import Distances, RowDistances, best_gain, discounted_gain, rank, row_blocks
from .vote import MOST_VOTES, right_probability

__all__ = [
    "Retrieval",
    "cut_grid",
    "evaluate",
    "evaluate_vectors",
    "mean_over_queries",
    "retrieve_by_codes",
    "retrieve_by_distances",
    "retrieve_by_vectors",
]


@dataclass(frozen=True)
class Retrieval:
    """How well the items that are relevant to some queries were found: means over the queries.

    Attributes
    ----------
    map : mean average precision, of the queries that have relevant items
    top : share of relevant items among the `top` nearest
    knn_error : probability that the k nearest elect labels of which the query has none
    ndcg : normalised discounted cumulative gain of the `top` nearest, of the queries that have relevant items; an
        item's gain is the number of labels that it shares with the query
    retrieved : (p,) how many items are retrieved at each point of the precision-recall curve
    precision, recall : (p,) means at these points, of the queries that have relevant items

    Examples
    --------
    >>> found = retrieve_by_codes([[0, 0]], [[0, 0], [0, 1], [1, 1]], [2, 1], ["a"], ["a", "b", "a"], top=2, k=1)
    >>> found.top, found.retrieved.tolist(), found.recall.tolist()
    (0.5, [1, 2, 3], [0.5, 0.5, 1.0])
    """

    map: float
    top: float
    knn_error: float
    ndcg: float
    retrieved: Ints
    precision: Floats
    recall: Floats


def retrieve_by_codes(
    query_bits: ArrayLike,
    database_bits: ArrayLike,
    weights: ArrayLike,
    query_labels: ArrayLike,
    database_labels: ArrayLike,
    top: int = 50,
    k: int = 3,
    n_points: int = 60,
    n_jobs: int | None = None,
) -> Retrieval:
    """Rank a database by weighted Hamming distance and compute all criteria.

    Parameters
    ----------
    query_bits, database_bits : (q, l) and (n, l) arrays of 0 and 1
    weights : (l,) array, 0 or more
    query_labels, database_labels : one label an item, (q,) and (n,), or indicators of several, (q, c) and
        (n, c): an item is relevant when it shares a label with the query
    top : how many items count for `top` and `ndcg`, 1 to n
    k : how many items vote for `knn_error`, 1 to n and at most 500. An item with several labels votes once, for the set
        of them; the query is classified rightly when it shares a label with the set that is elected
    n_points : most points of the precision-recall curve
    n_jobs : number of threads; None and -1 are all cores. The values do not depend on it

    Returns
    -------
    criteria : Retrieval

    Examples
    --------
    >>> found = retrieve_by_codes([[0, 0]], [[0, 0], [0, 1], [1, 1]], [2, 1], ["a"], ["a", "b", "a"], top=2, k=1)
    >>> round(found.map, 4), found.top, found.knn_error, found.recall.tolist()
    (0.8333, 0.5, 0.0, [0.5, 0.5, 1.0])
    """
    distances = check_codes(query_bits, database_bits, weights)
    labels = Labels.of(query_labels, database_labels, distances.shape)
    return _retrieve(distances, labels, top, k, n_points, n_jobs)


def retrieve_by_vectors(
    queries: ArrayLike,
    database: ArrayLike,
    query_labels: ArrayLike,
    database_labels: ArrayLike,
    top: int = 50,
    k: int = 3,
    n_points: int = 60,
    n_jobs: int | None = None,
) -> Retrieval:
    """Rank a database by Euclidean distance and compute all criteria.

    Squared distances are rounded to about 1e-12 of the squared lengths, so that equal vectors tie.

    Parameters
    ----------
    queries, database : (q, d) and (n, d) arrays
    query_labels, database_labels, top, k, n_points, n_jobs : as for `retrieve_by_codes`

    Returns
    -------
    criteria : Retrieval

    Examples
    --------
    >>> retrieve_by_vectors([[0.0]], [[1.0], [2.0], [3.0]], ["a"], ["a", "b", "a"], top=2, k=1).top
    0.5
    """
    distances = euclidean_distances(queries, database)
    labels = Labels.of(query_labels, database_labels, distances.shape)
    return _retrieve(distances, labels, top, k, n_points, n_jobs)


def retrieve_by_distances(
    distances: Callable[[slice], Array],
    query_labels: ArrayLike,
    database_labels: ArrayLike,
    top: int = 50,
    k: int = 3,
    n_points: int = 60,
    n_jobs: int | None = None,
) -> Retrieval:
    """Rank a database by any distances and compute all criteria.

    Parameters
    ----------
    distances : gives the distances of a block of queries, a slice of them, from all items: (rows, n) numbers
    query_labels, database_labels, top, k, n_points, n_jobs : as for `retrieve_by_codes`

    Returns
    -------
    criteria : Retrieval

    Examples
    --------
    >>> D = np.array([[1.0, 2.0, 3.0]])
    >>> retrieve_by_distances(lambda rows: D[rows], ["a"], ["a", "b", "a"], top=2, k=1).top
    0.5
    """
    shape = len(np.asarray(query_labels)), len(np.asarray(database_labels))
    labels = Labels.of(query_labels, database_labels, shape)
    return _retrieve(check_rows(RowDistances(distances, shape)), labels, top, k, n_points, n_jobs)


def evaluate(
    query_bits: ArrayLike,
    database_bits: ArrayLike,
    weights: ArrayLike,
    query_labels: ArrayLike,
    database_labels: ArrayLike,
    top: int = 50,
    k: int = 3,
    n_jobs: int | None = None,
) -> dict[str, float]:
    """Rank a database by weighted Hamming distance and compute the paper's three criteria.

    Parameters
    ----------
    query_bits, database_bits, weights, query_labels, database_labels, top, k, n_jobs : as for `retrieve_by_codes`

    Returns
    -------
    means : "map", "top" and "knn_error", as in the `Retrieval` that it gives

    Examples
    --------
    >>> evaluate([[0, 0]], [[0, 0], [0, 1], [1, 1]], [2, 1], ["a"], ["a", "b", "a"], top=2, k=1)
    {'map': 0.8333333333333333, 'top': 0.5, 'knn_error': 0.0}
    """
    return _paper_criteria(
        retrieve_by_codes(query_bits, database_bits, weights, query_labels, database_labels, top, k, n_jobs=n_jobs)
    )


def evaluate_vectors(
    queries: ArrayLike,
    database: ArrayLike,
    query_labels: ArrayLike,
    database_labels: ArrayLike,
    top: int = 50,
    k: int = 3,
    n_jobs: int | None = None,
) -> dict[str, float]:
    """Rank a database by Euclidean distance and compute the same criteria as `evaluate`.

    Squared distances are rounded to about 1e-12 of the squared lengths, so that equal vectors tie.

    Parameters
    ----------
    queries, database : (q, d) and (n, d) arrays
    query_labels, database_labels, top, k, n_jobs : as for `evaluate`

    Returns
    -------
    means : as for `evaluate`

    Examples
    --------
    >>> evaluate_vectors([[0.0]], [[1.0], [2.0], [3.0]], ["a"], ["a", "b", "a"], top=2, k=1)
    {'map': 0.8333333333333333, 'top': 0.5, 'knn_error': 0.0}
    """
    return _paper_criteria(retrieve_by_vectors(queries, database, query_labels, database_labels, top, k, n_jobs=n_jobs))


def _paper_criteria(found: Retrieval) -> dict[str, float]:
    return {"map": found.map, "top": found.top, "knn_error": found.knn_error}


def mean_over_queries(values: ArrayLike) -> float:
    """Average a criterion over the queries that it is defined for; nan if there are none.

    Examples
    --------
    >>> mean_over_queries([0.5, float("nan"), 1.0])
    0.75
    """
    given = np.asarray(values, dtype=np.float64)
    defined = given[~np.isnan(given)]
    return float(defined.mean()) if defined.size else float("nan")


def cut_grid(n_items: int, n_points: int) -> Ints:
    """At most so many whole numbers from 1 to n, in nearly equal ratios.

    Examples
    --------
    >>> cut_grid(1000, 4).tolist()
    [1, 10, 100, 1000]
    """
    check_count(n_points, "n_points", 1_000_000, least=2)
    return np.unique(np.rint(np.geomspace(1, n_items, n_points)).astype(np.int64))


def _retrieve(distances: Distances, labels: Labels, top: int, k: int, n_points: int, n_jobs: int | None) -> Retrieval:
    q, n = distances.shape
    check_count(top, "top", n)
    check_count(k, "k", min(n, MOST_VOTES))
    check_jobs(n_jobs)
    grid = cut_grid(n, n_points)
    cuts = np.append(grid, [top, n])
    order = np.argsort(cuts, kind="stable")
    single, within = np.empty((q, 3)), np.empty((q, len(cuts)))  # average precision, error, gain
    for rows in row_blocks(distances, labels.n_kinds):
        gains = labels.gains(rows)
        ranked = rank(distances, rows, labels.kinds, gains > 0, cuts[order], max(top, k), n_threads(n_jobs))
        within[rows, order] = ranked.within
        single[rows, 0] = ranked.average_precision
        single[rows, 1] = 1.0 - right_probability(ranked.head, gains, k)
        with np.errstate(invalid="ignore"):  # 0/0 without relevant items
            single[rows, 2] = discounted_gain(ranked.head, gains, top) / best_gain(labels.counts, gains, top)
    precisions, errors, gain = (mean_over_queries(column) for column in single.T)
    curve = mean_curve(within[:, : len(grid)], grid, within[:, -1])
    return Retrieval(precisions, mean_over_queries(within[:, -2] / top), errors, gain, grid, *curve)


def mean_curve(found: Floats, cuts: Ints, total: Floats) -> tuple[Floats, Floats]:
    """Mean precision and recall at the cuts, (p,) each, of the queries that have relevant items.

    Parameters
    ----------
    found : (q, p) relevant items up to each cut
    cuts : (p,)
    total : (q,) relevant items

    Examples
    --------
    >>> mean_curve(np.array([[1.0, 2.0], [0.0, 0.0]]), np.array([1, 4]), np.array([2.0, 0.0]))
    (array([1. , 0.5]), array([0.5, 1. ]))
    """
    some = total > 0
    if not some.any():
        return np.full(len(cuts), np.nan), np.full(len(cuts), np.nan)
    precision: Floats = (found[some] / cuts).mean(axis=0)
    recall: Floats = (found[some] / total[some, None]).mean(axis=0)
    return precision, recall
