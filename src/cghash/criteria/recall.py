"""How many true neighbours are among the nearest by code, or by any other distance."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike

from .._arrays import Array, Floats, Ints
from .._kernels import n_threads
from .._validation import check_jobs
from .checks import check_codes, check_count, check_neighbors, check_rows
from .ranking import Distances, RowDistances, rank, row_blocks

__all__ = ["recall_by_codes", "recall_by_distances", "recall_of"]


def recall_by_codes(
    true_neighbors: ArrayLike,
    query_bits: ArrayLike,
    database_bits: ArrayLike,
    weights: ArrayLike,
    retrieved: Sequence[int] = (1, 10, 100, 1000),
    n_jobs: int | None = None,
) -> Floats:
    """Compute the expected share of the true neighbours among the nearest by weighted Hamming distance.

    Parameters
    ----------
    true_neighbors : (q, t) array of item numbers, none twice in a row, as from `euclidean_neighbors`
    query_bits, database_bits : (q, l) and (n, l) arrays of 0 and 1
    weights : (l,) array, 0 or more
    retrieved : how many of the nearest are looked through, each 1 or more; above n it means n
    n_jobs : number of threads; None and -1 are all cores

    Returns
    -------
    recall : mean over the queries, for each of `retrieved`

    Examples
    --------
    >>> recall_by_codes([[0, 2]], [[0, 0]], [[0, 0], [0, 1], [1, 1]], [2, 1], retrieved=[1, 2, 3]).tolist()
    [0.5, 0.5, 1.0]
    """
    return _mean_recall(check_codes(query_bits, database_bits, weights), true_neighbors, retrieved, n_jobs)


def recall_by_distances(
    true_neighbors: ArrayLike,
    distances: Callable[[slice], Array],
    n_items: int,
    retrieved: Sequence[int] = (1, 10, 100, 1000),
    n_jobs: int | None = None,
) -> Floats:
    """Compute the expected share of the true neighbours among the nearest by any distances.

    Parameters
    ----------
    true_neighbors, retrieved, n_jobs : as for `recall_by_codes`
    distances : gives the distances of a block of queries, a slice of them, from all items: (rows, n_items) numbers

    Returns
    -------
    recall : mean over the queries, for each of `retrieved`

    Examples
    --------
    >>> D = np.array([[1.0, 2.0, 2.0, 3.0]])
    >>> recall_by_distances([[0, 1]], lambda rows: D[rows], 4, retrieved=[1, 2, 3]).tolist()
    [0.5, 0.75, 1.0]
    """
    rows = check_rows(
        RowDistances(distances, (len(np.asarray(true_neighbors)), check_count(n_items, "n_items", 2**31)))
    )
    return _mean_recall(rows, true_neighbors, retrieved, n_jobs)


def recall_of(distances: Distances, neighbors: Ints, cuts: Ints, n_jobs: int | None) -> Floats:
    """Expected share of each query's true neighbours up to each of the ascending cuts: (q, p)."""
    n = distances.shape[1]
    found = np.empty((len(neighbors), len(cuts)))
    for rows in row_blocks(distances, n):
        relevant = np.zeros((rows.stop - rows.start, n), dtype=np.uint8)
        np.put_along_axis(relevant, neighbors[rows], 1, axis=1)
        found[rows] = rank(distances, rows, np.arange(n), relevant, cuts, n_threads=n_threads(n_jobs)).within
    return found / int(neighbors.shape[1])


def _mean_recall(
    distances: Distances, true_neighbors: ArrayLike, retrieved: Sequence[int], n_jobs: int | None
) -> Floats:
    neighbors = check_neighbors(true_neighbors, distances.shape)
    check_jobs(n_jobs)
    counts = [check_count(r, "retrieved", 2**31) for r in retrieved]
    cuts, place = np.unique(np.minimum(counts, distances.shape[1]), return_inverse=True)
    if len(neighbors) == 0:
        return np.full(len(counts), np.nan)
    mean: Floats = recall_of(distances, neighbors, cuts, n_jobs).mean(axis=0)
    return mean[place]
