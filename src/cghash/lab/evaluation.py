"""The three criteria of the paper, by name."""

from __future__ import annotations

from numpy.typing import ArrayLike

from .retrieval import Retrieval, retrieve_by_codes, retrieve_by_vectors

__all__ = ["evaluate", "evaluate_vectors"]


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
    query_bits, database_bits : (q, l) and (n, l) arrays of 0 and 1
    weights : (l,) array, 0 or more
    query_labels, database_labels : one label an item, (q,) and (n,), or indicators of several, (q, c) and
        (n, c): an item is relevant when it shares a label with the query
    top : how many items count for "top", 1 to n
    k : how many items vote for "knn_error", 1 to n and at most 500
    n_jobs : number of threads; None and -1 are all cores

    Returns
    -------
    means : "map", "top" and "knn_error", as in the `Retrieval` that `retrieve_by_codes` gives

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
