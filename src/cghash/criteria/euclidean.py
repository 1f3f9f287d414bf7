"""Euclidean distances: those of equal vectors are equal, whatever rounding does."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from .._arrays import Floats, Ints
from .._kernels import n_threads
from .._validation import check_jobs
from ..exceptions import InvalidInputError
from .checks import check_count
from .ranking import RowDistances, rank, row_blocks

__all__ = ["euclidean_distances", "euclidean_neighbors"]


_QUANTUM = -40  # squared distances are multiples of 2^-40 of the squared length of the vectors
_LARGEST = 490  # numbers are scaled to at most 2^490: sums of squares stay finite, those of far smaller ones above 0


def euclidean_neighbors(queries: ArrayLike, database: ArrayLike, k: int = 10, n_jobs: int | None = None) -> Ints:
    """Find the k nearest items of each query by Euclidean distance; of equally near ones, those of the lowest number.

    Squared distances are rounded to about 1e-12 of the squared lengths, so that equal vectors tie.

    Parameters
    ----------
    queries, database : (q, d) and (n, d) arrays
    k : how many items, 1 to n
    n_jobs : number of threads; None and -1 are all cores

    Returns
    -------
    neighbors : (q, k) item numbers, the nearest first

    Examples
    --------
    >>> euclidean_neighbors([[0.0]], [[3.0], [1.0], [-1.0], [2.0]], k=3).tolist()
    [[1, 2, 3]]
    """
    distances = euclidean_distances(queries, database)
    check_jobs(n_jobs)
    q, n = distances.shape
    check_count(k, "k", n)
    neighbors = np.empty((q, k), dtype=np.int64)
    for rows in row_blocks(distances, n):
        none = np.zeros((rows.stop - rows.start, n), dtype=np.uint8)
        head = rank(distances, rows, np.arange(n), none, n_head=k, n_threads=n_threads(n_jobs)).head
        first = np.searchsorted(head.row, np.arange(len(none)))  # (q,)
        neighbors[rows] = head.kind[first[:, None] + np.arange(k)]
    return neighbors


def euclidean_distances(queries: ArrayLike, database: ArrayLike) -> RowDistances:
    """Squared distances, in multiples of a quantum of each query's own.

    Examples
    --------
    >>> D = euclidean_distances([[0.0]], [[1.0], [2.0], [-1.0]]).block(slice(0, 1))
    >>> bool(D[0, 0] == D[0, 2]), float(D[0, 1] / D[0, 0])
    (True, 4.0)
    """
    Q, X = _check_vectors(queries, "queries"), _check_vectors(database, "database")
    if Q.shape[1] != X.shape[1]:
        raise InvalidInputError(f"database must have as many columns as queries, {Q.shape[1]}, got {X.shape[1]}")
    if len(X) == 0:
        raise InvalidInputError("database must have 1 row or more, got 0")
    _, exponent = np.frexp(max(np.abs(Q).max(initial=0.0), np.abs(X).max(initial=0.0)))
    Q, X = np.ldexp(Q, _LARGEST - exponent), np.ldexp(X, _LARGEST - exponent)  # exact
    centre = np.median(X, axis=0)  # near 0 less cancels; far outliers do not move it
    Q, X = Q - centre, X - centre
    q_squares, x_squares = np.einsum("ij,ij->i", Q, Q), np.einsum("ij,ij->i", X, X)
    typical = np.median(x_squares[x_squares > 0]) if x_squares.any() else 0.0
    _, exponents = np.frexp(q_squares + typical)
    quanta = np.ldexp(1.0, exponents + _QUANTUM)  # (q,)

    def block(rows: slice) -> Floats:
        D = (-2.0 * Q[rows]) @ X.T
        D += x_squares
        D += q_squares[rows, None]
        with np.errstate(over="ignore"):  # of an item very far away beside the others: last, wherever it is
            D /= quanta[rows, None]
        return np.asarray(np.rint(D, out=D))

    return RowDistances(block, (len(Q), len(X)))


def _check_vectors(vectors: ArrayLike, name: str) -> Floats:
    X = np.asarray(vectors)
    if X.ndim != 2 or X.dtype.kind not in "buif":
        raise InvalidInputError(f"{name} must be a 2-D array of numbers, got shape {X.shape}, dtype {X.dtype}")
    X = X.astype(np.float64, copy=False)
    if not np.isfinite(X).all():
        raise InvalidInputError(f"{name} must be finite, got nan or inf")
    return X
