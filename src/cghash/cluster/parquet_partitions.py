"""Partitions of Parquet and Arrow files: what is where is known, and no vector is read before a worker does so."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .._arrays import Array
from ..exceptions import CGHashError, FormatError, InvalidInputError
from ..reading.binary_files import parquet_file, words_of
from ..stores.base import require
from .partitions import Partition, Piece

Place = Callable[[int], str]  # of a row of a batch, for messages

_BUFFER = 1 << 20  # bytes read ahead of a column: a row group is decoded page by page
_ENDING = 8  # bytes: the footer's length, and b"PAR1"
_ARROW = b"ARROW1"
ENDINGS = (".parquet", ".arrow", ".feather")


@dataclass(frozen=True)
class Columns:
    """Which columns hold vectors, ids and labels."""

    vector: str | tuple[str, ...]  # a column of lists, or one of numbers for each feature
    ids: str | None = None
    labels: str | None = None

    @property
    def features(self) -> tuple[str, ...]:
        return (self.vector,) if isinstance(self.vector, str) else self.vector

    @property
    def wanted(self) -> list[str]:
        """Every column that is read."""
        return list(dict.fromkeys([*self.features, *(name for name in (self.ids, self.labels) if name is not None)]))


@dataclass(frozen=True)
class Stamp:
    """What tells one state of a file from another."""

    size: int
    mtime_ns: int
    footer: str  # SHA-256

    @classmethod
    def of(cls, path: str) -> Stamp:
        with open(path, "rb") as file:
            about = os.fstat(file.fileno())
            ending = 4 + len(_ARROW) if file.read(len(_ARROW)) == _ARROW else _ENDING
            file.seek(max(0, about.st_size - ending))
            length = min(int.from_bytes(file.read(4), "little"), about.st_size)
            file.seek(max(0, about.st_size - ending - length))
            footer = hashlib.sha256(file.read(length + ending)).hexdigest()
        return cls(about.st_size, about.st_mtime_ns, footer)


@dataclass(frozen=True, kw_only=True)
class ParquetPartition(Partition):
    """Row groups of a Parquet file."""

    path: str
    groups: tuple[int, ...]
    row: int  # of the file, where they begin
    columns: Columns
    stamp: Stamp

    def _pieces(self, rows: int) -> Iterator[Piece]:
        with open_parquet(self.path, self.name) as file:
            if Stamp.of(self.path) != self.stamp:
                raise FormatError(f"{self.name} has changed since the data set was listed: list it again")
            row = self.row
            for group in self.groups:  # one after another, so that only one is in memory
                for batch in file.iter_batches(rows, [group], self.columns.wanted, use_threads=False):
                    yield self._piece(batch, row)
                    row += batch.num_rows

    def _piece(self, batch: Any, first: int) -> Piece:
        def place(row: int) -> str:
            return f"{self.name}, row {first + row}"

        columns = self.columns
        width = self.n_features if isinstance(columns.vector, str) else 1
        features = [_matrix(batch.column(name), width, name, place) for name in columns.features]
        y, ids = (
            None if name is None else _values(batch.column(name), name, place) for name in (columns.labels, columns.ids)
        )
        return Piece(features[0] if len(features) == 1 else np.hstack(features), y, ids, first)


@contextmanager
def open_parquet(path: str | Path, name: str) -> Iterator[Any]:
    """A Parquet or Arrow file; FormatError for anything else."""
    parquet = require("pyarrow.parquet", "dask")
    try:
        arrow = _is_arrow(path)
        with ArrowFile(path) if arrow else parquet_file(parquet, path, buffer_size=_BUFFER, pre_buffer=False) as file:
            yield file
    except CGHashError:
        raise
    except Exception as error:  # decoders of foreign bytes raise anything
        if isinstance(error, OSError) and error.errno is not None:  # the system's: no such file, no permission
            raise
        raise FormatError(f"{name} is not a Parquet or Arrow file, or it is damaged: {error}") from error


def _matrix(column: Any, n_features: int, name: str, place: Place) -> Array:
    """(n, d) of a column of lists, (n, 1) of a column of numbers."""
    kinds = require("pyarrow", "dask").types
    _check_filled(column, name, place)
    if not is_list(column.type):
        return _values(column, name, place)[:, None]
    if not kinds.is_fixed_size_list(column.type):
        lengths = column.value_lengths().to_numpy(zero_copy_only=False)
        wrong = lengths != n_features
        if wrong.any():
            row = int(np.argmax(wrong))
            raise InvalidInputError(
                f"{place(row)}: column {name!r} must hold lists of one length, {n_features} here, got {lengths[row]}"
            )
    flat = column.flatten()
    return _values(flat, name, lambda i: place(i // max(1, n_features))).reshape(len(column), -1)


def _values(column: Any, name: str, place: Place) -> Array:
    """Numbers or words (n,), none of them missing."""
    _check_filled(column, name, place)
    dictionary = require("pyarrow", "dask").types.is_dictionary(column.type)
    values: Array = words_of(column) if dictionary else column.to_numpy(zero_copy_only=False)
    return values


def _check_filled(column: Any, name: str, place: Place) -> None:
    if column.null_count:
        row = int(np.argmax(column.is_null().to_numpy(zero_copy_only=False)))
        raise InvalidInputError(f"{place(row)}: column {name!r} must not hold nulls")


def is_list(kind: Any) -> bool:
    """Whether a type of Arrow is that of vectors."""
    kinds = require("pyarrow", "dask").types
    return bool(kinds.is_list(kind) or kinds.is_large_list(kind) or kinds.is_fixed_size_list(kind))


def _is_arrow(path: Any) -> bool:
    """Whether a file begins as those of Arrow do."""
    with open(path, "rb") as file:
        return file.read(len(_ARROW)) == _ARROW


class ArrowFile:
    """A file of Arrow's own format (IPC, or Feather), with the face of a Parquet file: record batches are its groups.

    It is mapped: a batch is read where it is used.
    """

    def __init__(self, path: Any) -> None:
        pa = require("pyarrow", "dask")
        self._source = pa.memory_map(str(path))
        self._file = require("pyarrow.ipc", "dask").open_file(self._source)
        self.schema_arrow = self._file.schema

    def __enter__(self) -> ArrowFile:
        return self

    def __exit__(self, *error: object) -> None:
        self._source.close()

    def sizes(self, vector: str | tuple[str, ...], name: str) -> list[tuple[int, int]]:
        """(rows, features) of each batch."""
        wanted = [vector] if isinstance(vector, str) else list(vector)
        return [self._size(self._batch(i, wanted), vector, f"{name}, batch {i}") for i in range(self._n_batches)]

    def iter_batches(self, rows: int, groups: list[int], columns: list[str], use_threads: bool) -> Iterator[Any]:
        for group in groups:
            batch = self._batch(group, columns)
            for first in range(0, batch.num_rows, rows):
                yield batch.slice(first, rows)

    @property
    def _n_batches(self) -> int:
        return int(self._file.num_record_batches)

    def _batch(self, number: int, columns: list[str]) -> Any:
        """Some columns of a batch, whose lists lie within its numbers, whatever the file says."""
        batch = self._file.get_batch(number).select(columns)
        batch.validate(full=True)
        return batch

    @staticmethod
    def _size(batch: Any, vector: str | tuple[str, ...], name: str) -> tuple[int, int]:
        if not isinstance(vector, str):
            return batch.num_rows, len(vector)
        column = batch.column(vector)
        if not hasattr(column, "flatten") or not hasattr(column.type, "value_type"):
            return batch.num_rows, 1  # one number a row
        n_values = len(column.flatten())
        if batch.num_rows and n_values % batch.num_rows:
            raise InvalidInputError(
                f"{name}: column {vector!r} must hold lists of one length, "
                f"got {n_values} numbers in {batch.num_rows} rows"
            )
        return batch.num_rows, n_values // max(1, batch.num_rows)
