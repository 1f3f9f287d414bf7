"""The nearest of a shortlist by the vectors themselves: NumPy twin of native/rank_rows.hpp."""

from __future__ import annotations

import numpy as np

from ..._arrays import Bytes, Floats, Ints, Singles, rows_in_blocks

_METRICS = ("euclidean", "inner", "cosine")
_TYPES = ("float32", "float16", "int8")


@np.errstate(invalid="ignore")  # of NaN and ∞
def rank_rows(
    rows: Bytes,
    dtype: str,
    scale: Singles | None,
    queries: Singles,
    candidates: Ints,
    k: int,
    metric: str,
    n_threads: int,
) -> tuple[Floats, Ints]:
    """The k nearest of each query's candidates, in the order (distance, position): distances and positions (q, k).

    Parameters
    ----------
    rows : (n, stride) array of bytes
        Each row begins with the d values of a vector, aligned or not; bytes behind them are passed over.
    dtype : {"float32", "float16", "int8"}
        Of the values.
    scale : (d,) array or None
        What the values of an int8 vector are multiplied by, feature by feature. None for floats.
    queries : (q, d) array
    candidates : (q, c) array
        Positions in rows, -1 for none. A position that is given twice comes twice.
    metric : {"euclidean", "inner", "cosine"}
        The distance is Euclid's, minus the inner product, or one minus the cosine, which is zero of a zero vector.

    Distances end in ∞ and positions in -1 where there are fewer than k; NaN comes after all other distances. Distances
    are float64, as sums are: floats and scaled bytes are exact there, so near vectors stay apart and equal ones tie.
    Sums have one order, in which both kernels give the same bits.
    """
    _check(rows, dtype, scale, queries, candidates, k, metric)
    distances = np.full((len(queries), k), np.inf)
    positions = np.full((len(queries), k), -1, dtype=np.int64)
    for query, given, nearest, found in zip(queries.astype(np.float64), candidates, distances, positions, strict=True):
        there = given[given >= 0]
        d = np.empty(there.size)
        for block in rows_in_blocks(there.size):
            d[block] = _distances(query, _vectors(rows[there[block]], dtype, scale, query.size), metric)
        d[np.isnan(d)] = np.nan  # of one sign
        order = np.lexsort((there, d))[:k]  # which puts NaN last
        nearest[: order.size], found[: order.size] = d[order], there[order]
    return distances, positions


def _check(
    rows: Bytes, dtype: str, scale: Singles | None, queries: Singles, candidates: Ints, k: int, metric: str
) -> None:
    for name, value, names in (("dtype", dtype, _TYPES), ("metric", metric, _METRICS)):
        if value not in names:
            raise ValueError(f"{name} must be {names[0]!r}, {names[1]!r} or {names[2]!r}, got {value!r}")
    if len(candidates) != len(queries):
        raise ValueError("candidates must have a row for each query")
    dim = queries.shape[1]
    if dim < 1:
        raise ValueError("queries must have at least one column")
    if k < 1:
        raise ValueError("k must be at least 1")
    if dim > rows.shape[1] // np.dtype(dtype).itemsize:
        raise ValueError("rows must hold as many values as queries have columns")
    if (0 if scale is None else scale.size) != (dim if dtype == "int8" else 0):
        raise ValueError("scale must have one entry for each column of int8, and none for floats")
    wrong = candidates[(candidates < -1) | (candidates >= len(rows))]
    if wrong.size:
        raise ValueError(
            f"candidates must be row numbers from 0 to n - 1, or -1 for none; got {wrong[0]} for n = {len(rows)}"
        )


def _vectors(rows: Bytes, dtype: str, scale: Singles | None, dim: int) -> Floats:
    """The vectors of some rows (c, d): exact, as a scale times a byte fits into a double."""
    values = np.ascontiguousarray(rows[:, : dim * np.dtype(dtype).itemsize]).view(dtype).astype(np.float64)
    return values if scale is None else values * scale.astype(np.float64)


def _distances(query: Floats, vectors: Floats, metric: str) -> Floats:
    if metric == "euclidean":
        return np.sqrt(_sums((query - vectors) ** 2))
    products = _sums(query * vectors)
    if metric == "inner":
        return 0.0 - products
    squares = _sums(vectors * vectors) * _sums(query * query)
    zero = squares == 0.0
    cosines = np.clip(products / np.sqrt(np.where(zero, 1.0, squares)), -1.0, 1.0)
    return np.where(zero, 1.0, 1.0 - cosines)


def _sums(terms: Floats) -> Floats:
    """Sums over the last axis, added up in the order of the native kernel."""
    dim = terms.shape[-1]
    whole = dim // 8 * 8
    padded = np.zeros((*terms.shape[:-1], (whole // 32 + 1) * 32))
    padded[..., :whole] = terms[..., :whole]
    padded[..., padded.shape[-1] - (dim - whole) :] = terms[..., whole:]
    sums = np.zeros((*terms.shape[:-1], 32))
    for first in range(0, padded.shape[-1], 32):
        sums += padded[..., first : first + 32]
    return _paired(_paired(np.moveaxis(sums.reshape(*sums.shape[:-1], 4, 8), -2, -1)))


def _paired(sums: Floats) -> Floats:
    """Sums over the last axis, neighbours first."""
    while sums.shape[-1] > 1:
        sums = sums[..., ::2] + sums[..., 1::2]
    return sums[..., 0]
