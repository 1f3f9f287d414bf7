"""How good a ranking is: the criteria of the paper, and of its peers.

Every criterion is *tie-aware*: its expected value over all orders of the items of equal distance, in closed
form and not by sampling. Items tie when their distances are equal as numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..codes import check_bits, check_weights, weighted_hamming
from ..exceptions import InvalidInputError
from .labels import Labels
from .ranking import Floats, Hits, Ints, Ranking
from .vote import MOST_VOTES, win_probability

__all__ = [
    "average_precision",
    "evaluate",
    "evaluate_vectors",
    "knn_error",
    "mean_over_queries",
    "ndcg",
    "precision_at",
    "precision_recall",
    "recall_at",
]

Flags = NDArray[np.uint8]  # 0 and 1

_RANKED = 1 << 20  # distances ranked at a time: 8 MB, and a few times that beside
_COMPUTED = 1 << 23  # distances computed at a time: 64 MB
_QUANTUM = -40  # Euclidean: squared distances are multiples of 2^-40 of the squared length of the vectors


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
    D = _check_distances(distances)
    hit = _check_relevant(relevant, D)
    return _per_query(D, lambda ranking, rows: Hits.of(ranking, hit[rows]).average_precision())


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
    D = _check_distances(distances)
    hit = _check_relevant(relevant, D)
    _check_count(k, "k", D.shape[1])
    return _per_query(D, lambda ranking, rows: _share_in_top(Hits.of(ranking, hit[rows]), k))


def recall_at(distances: ArrayLike, true_neighbors: ArrayLike, k: int) -> Floats:
    """Compute the expected share of its true neighbours that are among the k nearest of each query.

    Parameters
    ----------
    distances : (q, n) array
    true_neighbors : (q, t) array of item numbers, none twice in a row
    k : how many items count, 1 to n

    Returns
    -------
    values : (q,) float64

    Examples
    --------
    >>> recall_at([[1, 2, 2, 3]], [[0, 1, 3]], k=2).tolist()
    [0.5]
    """
    D = _check_distances(distances)
    neighbors = _check_neighbors(true_neighbors, D)
    _check_count(k, "k", D.shape[1])

    def recall(ranking: Ranking, rows: slice) -> Floats:
        relevant = np.zeros(ranking.order.shape, dtype=np.uint8)
        np.put_along_axis(relevant, neighbors[rows], 1, axis=1)
        return Hits.of(ranking, relevant).within(np.array([k]))[:, 0] / int(neighbors.shape[1])

    return _per_query(D, recall)


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
    D = _check_distances(distances)
    G = _check_gains(gains, D)
    _check_count(k, "k", D.shape[1])
    discounts = 1.0 / np.log2(np.arange(2, k + 2))  # (k,)
    upto = np.append(0.0, np.cumsum(discounts))  # (k + 1,)

    def normalised(ranking: Ranking, rows: slice) -> Floats:
        start, end = ranking.starts, ranking.starts + ranking.sizes
        weight = upto[np.minimum(end, k)] - upto[np.minimum(start, k)]  # (g,)
        mean_gain = ranking.group_sums(G[rows], np.float64) / ranking.sizes
        best = np.sort(G[rows], axis=1)[:, ::-1][:, :k] @ discounts  # (q,)
        with np.errstate(invalid="ignore"):
            return ranking.row_sums(mean_gain * weight) / best

    return _per_query(D, normalised)


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
    D = _check_distances(distances)
    hit = _check_relevant(relevant, D)
    if n_points < 2:
        raise InvalidInputError(f"n_points must be 2 or more, got {n_points}")
    cuts = np.unique(np.rint(np.geomspace(1, D.shape[1], n_points)).astype(np.int64))
    sums, counted = np.zeros((2, len(cuts))), 0
    for rows in _row_blocks(D.shape, _RANKED):
        hits = Hits.of(Ranking.of(D[rows]), hit[rows])
        some = hits.total > 0
        found = hits.within(cuts)[some]  # (q, p)
        sums += (found / cuts).sum(axis=0), (found / hits.total[some, None]).sum(axis=0)
        counted += int(some.sum())
    precision, recall = sums / counted if counted else np.full_like(sums, np.nan)
    return cuts, precision, recall


def knn_error(distances: ArrayLike, database_labels: ArrayLike, query_labels: ArrayLike, k: int = 3) -> Floats:
    """Compute the probability that the majority of the k nearest is not for the label of each query.

    Of labels with equally many votes, that of the nearest item wins.

    Parameters
    ----------
    distances : (q, n) array
    database_labels : (n,) array
    query_labels : (q,) array
    k : how many items vote, 1 to n and at most 500

    Returns
    -------
    values : (q,) float64

    Examples
    --------
    >>> knn_error([[1, 2, 2, 2]], ["a", "a", "b", "b"], ["a"], k=3).round(4).tolist()
    [0.3333]
    """
    D = _check_distances(distances)
    labels = Labels.of(query_labels, database_labels, D.shape)
    if labels.multiple:
        raise InvalidInputError("query_labels and database_labels must be 1-D, one label an item, got 2-D")
    _check_count(k, "k", min(D.shape[1], MOST_VOTES))
    return _per_query(D, lambda ranking, rows: 1.0 - win_probability(ranking, labels.database, labels.queries[rows], k))


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


def evaluate(
    query_bits: ArrayLike,
    database_bits: ArrayLike,
    weights: ArrayLike,
    query_labels: ArrayLike,
    database_labels: ArrayLike,
    top: int = 50,
    k: int = 3,
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

    Returns
    -------
    means : "map", mean average precision; "top", share of relevant items among the `top` nearest;
        "knn_error", nan when items have several labels. Queries without relevant items are left out of "map".

    Examples
    --------
    >>> evaluate([[0, 0]], [[0, 0], [0, 1], [1, 1]], [2, 1], ["a"], ["a", "b", "a"], top=2, k=1)
    {'map': 0.8333333333333333, 'top': 0.5, 'knn_error': 0.0}
    """
    q_bits, x_bits = check_bits(query_bits, "query_bits"), check_bits(database_bits, "database_bits")
    if q_bits.shape[1] != x_bits.shape[1]:
        raise InvalidInputError(
            f"database_bits must have as many bits as query_bits, {q_bits.shape[1]}, got {x_bits.shape[1]}"
        )
    w = check_weights(weights, q_bits.shape[1])
    labels = Labels.of(query_labels, database_labels, (len(q_bits), len(x_bits)))
    return _evaluate(lambda rows: weighted_hamming(q_bits[rows], x_bits, w), labels, top, k)


def evaluate_vectors(
    queries: ArrayLike,
    database: ArrayLike,
    query_labels: ArrayLike,
    database_labels: ArrayLike,
    top: int = 50,
    k: int = 3,
) -> dict[str, float]:
    """Rank a database by Euclidean distance and compute the same criteria as `evaluate`.

    Squared distances are rounded to about 1e-12 of the squared lengths, so that equal vectors tie.

    Parameters
    ----------
    queries, database : (q, d) and (n, d) arrays
    query_labels, database_labels, top, k : as for `evaluate`

    Returns
    -------
    means : as for `evaluate`

    Examples
    --------
    >>> evaluate_vectors([[0.0]], [[1.0], [2.0], [3.0]], ["a"], ["a", "b", "a"], top=2, k=1)
    {'map': 0.8333333333333333, 'top': 0.5, 'knn_error': 0.0}
    """
    Q, X = _check_vectors(queries, "queries"), _check_vectors(database, "database")
    if Q.shape[1] != X.shape[1]:
        raise InvalidInputError(f"database must have as many columns as queries, {Q.shape[1]}, got {X.shape[1]}")
    labels = Labels.of(query_labels, database_labels, (len(Q), len(X)))
    return _evaluate(_squared_distances(Q, X), labels, top, k)


def _evaluate(distances: Callable[[slice], NDArray[Any]], labels: Labels, top: int, k: int) -> dict[str, float]:
    """Compute the three criteria, the distances a block of queries at a time."""
    shape = len(labels.queries), len(labels.database)
    _check_count(top, "top", shape[1])
    _check_count(k, "k", min(shape[1], MOST_VOTES))
    values = np.empty((shape[0], 3))
    for block in _row_blocks(shape, _COMPUTED):
        values[block] = _per_query(distances(block), _paper_criteria(labels.at(block), top, k), 3)
    names = "map", "top", "knn_error"
    return {name: mean_over_queries(column) for name, column in zip(names, values.T, strict=True)}


def _paper_criteria(labels: Labels, top: int, k: int) -> Callable[[Ranking, slice], Floats]:
    def compute(ranking: Ranking, rows: slice) -> Floats:
        some = labels.at(rows)
        hits = Hits.of(ranking, some.relevant())
        error = np.full(ranking.n_queries, np.nan)
        if not some.multiple:
            error = 1.0 - win_probability(ranking, some.database, some.queries, k)
        return np.column_stack([hits.average_precision(), _share_in_top(hits, top), error])

    return compute


def _share_in_top(hits: Hits, k: int) -> Floats:
    return hits.within(np.array([k]))[:, 0] / k


def _per_query(D: NDArray[Any], criterion: Callable[[Ranking, slice], Floats], n_columns: int | None = None) -> Floats:
    """Rank the rows of D block by block and apply the criterion: (q,), or (q, n_columns)."""
    values = np.empty(len(D) if n_columns is None else (len(D), n_columns))
    for rows in _row_blocks(D.shape, _RANKED):
        values[rows] = criterion(Ranking.of(D[rows]), rows)
    return values


def _row_blocks(shape: tuple[int, ...], n_numbers: int) -> Iterator[slice]:
    """Cut the rows of a matrix into blocks of about so many numbers."""
    step = max(1, n_numbers // shape[1])
    for first in range(0, shape[0], step):
        yield slice(first, min(first + step, shape[0]))


def _squared_distances(Q: Floats, X: Floats) -> Callable[[slice], Floats]:
    """Squared Euclidean distances of a block of queries, in multiples of a quantum of each query's own."""
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
        D /= quanta[rows, None]
        return np.rint(D, out=D)

    return block


def _check_distances(distances: ArrayLike) -> NDArray[Any]:
    D = np.asarray(distances)
    if D.ndim != 2 or D.shape[1] == 0 or D.dtype.kind not in "buif":
        raise InvalidInputError(
            f"distances must be a 2-D array of numbers with 1 column or more, got shape {D.shape}, dtype {D.dtype}"
        )
    if D.dtype.kind == "f" and np.isnan(D).any():
        raise InvalidInputError("distances must be numbers, got nan")
    return D


def _check_relevant(relevant: ArrayLike, D: NDArray[Any]) -> Flags:
    return check_bits(_check_shape(relevant, "relevant", D.shape), "relevant")


def _check_gains(gains: ArrayLike, D: NDArray[Any]) -> Floats:
    values = _check_shape(gains, "gains", D.shape).astype(np.float64)
    wrong = values[~((values >= 0) & (values < np.inf))]
    if wrong.size:
        raise InvalidInputError(f"gains must be finite and 0 or more, got {wrong[0]}")
    return values


def _check_shape(values: ArrayLike, name: str, shape: tuple[int, ...]) -> NDArray[Any]:
    array = np.asarray(values)
    if array.shape != shape:
        raise InvalidInputError(f"{name} must have the shape of distances, {shape}, got {array.shape}")
    return array


def _check_neighbors(true_neighbors: ArrayLike, D: NDArray[Any]) -> Ints:
    items = np.asarray(true_neighbors)
    if items.ndim != 2 or len(items) != len(D) or items.shape[1] == 0 or items.dtype.kind not in "ui":
        raise InvalidInputError(
            f"true_neighbors must be item numbers, {len(D)} rows of 1 or more, "
            f"got shape {items.shape}, dtype {items.dtype}"
        )
    if np.any((items < 0) | (items >= D.shape[1])):
        raise InvalidInputError(f"true_neighbors must lie in 0 to {D.shape[1] - 1}, got {items.min()} to {items.max()}")
    if np.any(np.diff(np.sort(items, axis=1), axis=1) == 0):
        raise InvalidInputError("true_neighbors must not name an item twice in a row, got a row that does")
    return items.astype(np.int64, copy=False)


def _check_vectors(vectors: ArrayLike, name: str) -> Floats:
    X = np.asarray(vectors)
    if X.ndim != 2 or X.dtype.kind not in "buif":
        raise InvalidInputError(f"{name} must be a 2-D array of numbers, got shape {X.shape}, dtype {X.dtype}")
    X = X.astype(np.float64, copy=False)
    if not np.isfinite(X).all():
        raise InvalidInputError(f"{name} must be finite, got nan or inf")
    return X


def _check_count(count: int, name: str, most: int) -> None:
    if not isinstance(count, (int, np.integer)) or not 1 <= count <= most:
        raise InvalidInputError(f"{name} must be a whole number from 1 to {most}, got {count!r}")
