"""Partitions of arrays: in memory, in .npy files that are mapped, and in blocks of Dask arrays."""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._arrays import Array
from ..exceptions import FormatError, InvalidInputError
from ..storage import digest
from ..stores.base import require
from .partitions import Partition, Piece, item_dtype


@dataclass(frozen=True)
class MappedRows:
    """Rows of an array in a file, which a worker maps anew."""

    path: str
    dtype: str
    shape: tuple[int, ...]
    offset: int  # bytes before the array
    rows: tuple[int, int]
    state: tuple[int, int]  # the file's size and time of change when it was listed

    def read(self) -> Array:
        if _state(self.path) != self.state:
            raise FormatError(f"{self.path} has changed since the data set was listed: list it again")
        return np.memmap(self.path, self.dtype, "r", self.offset, self.shape)[slice(*self.rows)]


@dataclass(frozen=True, kw_only=True, eq=False)
class ArrayPartition(Partition):
    """Rows of arrays; those in memory travel with it."""

    X: Array | MappedRows
    y: Array | None
    ids: Array | None

    def _pieces(self, rows: int) -> Iterator[Piece]:
        X = self.X.read() if isinstance(self.X, MappedRows) else self.X
        yield from _cut(X, self.y, self.ids, rows)


@dataclass(frozen=True, kw_only=True, eq=False)
class DaskPartition(Partition):
    """A block of Dask arrays: the tasks that make it, which are run where it is read."""

    X: Any  # Delayed
    y: Any
    ids: Any

    def _pieces(self, rows: int) -> Iterator[Piece]:
        import dask

        X, y, ids = dask.compute(self.X, self.y, self.ids, scheduler="synchronous")  # in this thread
        if len(X) != self.n_rows:
            raise InvalidInputError(f"{self.name} must hold {self.n_rows} rows, got {len(X)}")
        yield from _cut(np.asarray(X), y, ids, rows)


def array_partitions(X: Any, y: Any, ids: Any, rows: int) -> tuple[ArrayPartition, ...]:
    """Some rows each of arrays (n, d), (n,) and (n,)."""
    items = X if isinstance(X, np.ndarray) else np.asarray(X)
    beside = [None if values is None else np.asarray(values) for values in (y, ids)]
    _check_shapes(items, *beside)
    dtype = item_dtype(items.dtype, "X")
    parts = []
    for first in range(0, len(items), rows):
        last = min(first + rows, len(items))
        held = _rows(items, first, last)
        y_rows, id_rows = (None if values is None else values[first:last] for values in beside)
        known = [digest([values]) for values in (held, y_rows, id_rows) if isinstance(values, np.ndarray)]
        state = held.state if isinstance(held, MappedRows) else ()
        parts.append(
            ArrayPartition(
                name=f"X, rows {first} to {last - 1}",
                first=first,
                n_rows=last - first,
                n_features=items.shape[1],
                dtype=dtype,
                has_labels=y is not None,
                fingerprint=repr((first, last, y is None, ids is None, known, state)),
                X=held,
                y=y_rows,
                ids=id_rows,
            )
        )
    return tuple(parts)


def dask_partitions(X: Any, y: Any, ids: Any) -> tuple[DaskPartition, ...]:
    """A partition for each block of rows of Dask arrays (n, d), (n,) and (n,)."""
    require("dask.array", "dask")
    _check_shapes(X, y, ids)
    if np.isnan(X.shape[0]):
        raise InvalidInputError("X must have blocks of known sizes: call X.compute_chunk_sizes() first")
    X = X.rechunk({1: -1})
    y, ids = (None if values is None else values.rechunk({0: X.chunks[0]}) for values in (y, ids))
    dtype = item_dtype(X.dtype, "X")
    named = (("X", X), ("y", y), ("ids", ids))
    blocks = [[None] * X.numblocks[0] if values is None else _blocks_of(values, name) for name, values in named]
    firsts = np.cumsum([0, *X.chunks[0]]).tolist()
    return tuple(
        DaskPartition(
            name=f"block {i} of X",
            first=first,
            n_rows=int(n_rows),
            n_features=X.shape[1],
            dtype=dtype,
            has_labels=y is not None,
            fingerprint=repr([None if block is None else str(block.key) for block in found]),
            X=found[0],
            y=found[1],
            ids=found[2],
        )
        for i, (first, n_rows, *found) in enumerate(zip(firsts[:-1], X.chunks[0], *blocks, strict=True))
    )


def _blocks_of(array: Any, name: str) -> list[Any]:
    """The blocks of an array, each with the tasks of its own only, so that it stays small on its way."""
    from dask.delayed import Delayed
    from dask.optimization import cull
    from distributed import Future

    if any(isinstance(task, Future) for task in dict(array.__dask_graph__()).values()):
        raise InvalidInputError(f"{name} must not be persisted, as blocks are made where they are read")
    graph = dict(array.__dask_optimize__(array.__dask_graph__(), array.__dask_keys__()))
    keys = [(array.name, i, *[0] * (array.ndim - 1)) for i in range(array.numblocks[0])]
    return [Delayed(key, cull(graph, [key])[0]) for key in keys]


def _cut(X: Array, y: Array | None, ids: Array | None, rows: int) -> Iterator[Piece]:
    for first in range(0, len(X), rows):
        here = slice(first, first + rows)
        yield Piece(X[here], None if y is None else y[here], None if ids is None else ids[here], first)


def _rows(X: Array, first: int, last: int) -> Array | MappedRows:
    """Rows of a mapped file by their place in it; of anything else, the rows."""
    if not isinstance(X, np.memmap) or not isinstance(X.base, mmap.mmap) or not X.flags.c_contiguous:
        return np.asarray(X[first:last])
    path = os.path.abspath(X.filename or "")
    return MappedRows(path, X.dtype.str, X.shape, X.offset, (first, last), _state(path))


def _state(path: str) -> tuple[int, int]:
    about = os.stat(path)
    return about.st_size, about.st_mtime_ns


def _check_shapes(X: Any, y: Any, ids: Any) -> None:
    if X.ndim != 2 or X.shape[1] == 0 or X.shape[0] == 0:
        raise InvalidInputError(f"X must have shape (n, d) with at least one item and feature, got shape {X.shape}")
    for name, values in (("y", y), ("ids", ids)):
        if values is not None and (values.ndim != 1 or values.shape[0] != X.shape[0]):
            raise InvalidInputError(f"{name} must have shape ({X.shape[0]},), one an item, got shape {values.shape}")
