"""What the criteria accept, and what they say about anything else."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._arrays import Array, Bytes, Floats, Ints
from ..codes import check_bits, check_weights
from ..exceptions import InvalidInputError
from .ranking import CodeDistances, RowDistances

__all__ = ["check_codes", "check_count", "check_distances", "check_gains", "check_neighbors", "check_relevant"]


def check_count(count: Any, name: str, most: int, least: int = 1) -> int:
    """Return a whole number that lies in a range, or say that it does not.

    Examples
    --------
    >>> check_count(3, "k", 5)
    3
    """
    if not isinstance(count, (int, np.integer)) or not least <= count <= most:
        raise InvalidInputError(f"{name} must be a whole number from {least} to {most}, got {count!r}")
    return int(count)


def check_distances(distances: ArrayLike) -> Array:
    D = np.asarray(distances)
    if D.ndim != 2 or D.shape[1] == 0 or D.dtype.kind not in "buif":
        raise InvalidInputError(
            f"distances must be a 2-D array of numbers with 1 column or more, got shape {D.shape}, dtype {D.dtype}"
        )
    if D.dtype.kind == "f" and np.isnan(D).any():
        raise InvalidInputError("distances must be numbers, got nan")
    return D


def check_rows(distances: RowDistances) -> RowDistances:
    """The same distances, each block of them checked when it is computed."""

    def block(rows: slice) -> Array:
        D = check_distances(distances.block(rows))
        expected = rows.stop - rows.start, distances.shape[1]
        if D.shape != expected:
            raise InvalidInputError(f"distances must give {expected} numbers for {rows}, got shape {D.shape}")
        return D

    return RowDistances(block, distances.shape)


def check_codes(query_bits: ArrayLike, database_bits: ArrayLike, weights: ArrayLike) -> CodeDistances:
    """Bits of queries and database and the weights of both, as distances."""
    q_bits, x_bits = check_bits(query_bits, "query_bits"), check_bits(database_bits, "database_bits")
    if q_bits.shape[1] != x_bits.shape[1]:
        raise InvalidInputError(
            f"database_bits must have as many bits as query_bits, {q_bits.shape[1]}, got {x_bits.shape[1]}"
        )
    return CodeDistances.of(q_bits, x_bits, check_weights(weights, q_bits.shape[1]))


def check_relevant(relevant: ArrayLike, shape: tuple[int, ...]) -> Bytes:
    return check_bits(_check_shape(relevant, "relevant", shape), "relevant")


def check_gains(gains: ArrayLike, shape: tuple[int, ...]) -> Floats:
    values = _check_shape(gains, "gains", shape).astype(np.float64)
    wrong = values[~((values >= 0) & (values < np.inf))]
    if wrong.size:
        raise InvalidInputError(f"gains must be finite and 0 or more, got {wrong[0]}")
    return values


def check_neighbors(true_neighbors: ArrayLike, shape: tuple[int, ...]) -> Ints:
    items = np.asarray(true_neighbors)
    if items.ndim != 2 or len(items) != shape[0] or items.shape[1] == 0 or items.dtype.kind not in "ui":
        raise InvalidInputError(
            f"true_neighbors must be item numbers, {shape[0]} rows of 1 or more, "
            f"got shape {items.shape}, dtype {items.dtype}"
        )
    if np.any((items < 0) | (items >= shape[1])):
        raise InvalidInputError(f"true_neighbors must lie in 0 to {shape[1] - 1}, got {items.min()} to {items.max()}")
    if np.any(np.diff(np.sort(items, axis=1), axis=1) == 0):
        raise InvalidInputError("true_neighbors must not name an item twice in a row, got a row that does")
    return items.astype(np.int64, copy=False)


def _check_shape(values: ArrayLike, name: str, shape: tuple[int, ...]) -> Array:
    array = np.asarray(values)
    if array.shape != shape:
        raise InvalidInputError(f"{name} must have the shape of distances, {shape}, got {array.shape}")
    return array
