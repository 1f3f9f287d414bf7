"""VectorRows: vectors as rows of bytes, in memory or in a file, each with a checksum behind its values."""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._arrays import Bytes, Ints, Singles
from .._unfinished import naming
from ..exceptions import FormatError, InvalidInputError

KINDS: dict[str, Any] = {"float32": np.dtype("<f4"), "float16": np.dtype("<f2"), "int8": np.dtype("i1")}
_CRC = 4  # bytes behind the values of a row
_LARGEST = 127  # of int8
_AT_ONCE = 1 << 24  # bytes that are checked together


class RowFormat:
    """How a vector becomes a row of bytes, and back.

    Parameters
    ----------
    kind : {"float32", "float16", "int8"}
    dim : numbers of a vector
    scales : (dim,) what 1 stands for in each feature of int8 rows
    mark : of what the rows belong to; rows of others fail their checksums
    """

    def __init__(self, kind: str, dim: int, scales: Singles | None, mark: str) -> None:
        self.kind, self.dim, self.scales, self.mark = kind, dim, scales, mark
        self.dtype = KINDS[kind]
        self.n_values = dim * self.dtype.itemsize  # bytes
        self.size = self.n_values + _CRC
        self._seed = zlib.crc32(mark.encode())

    @classmethod
    def fitted(cls, kind: str, X: Singles, mark: str) -> RowFormat:
        """For vectors like these (n, d): the largest of each feature becomes 127 in int8."""
        scales = np.abs(X).max(axis=0, initial=0.0) / _LARGEST if kind == "int8" else None
        return cls(kind, X.shape[1], None if scales is None else scales.astype(np.float32), mark)

    def encoded(self, X: Singles) -> Bytes:
        """Rows (n, size) of vectors (n, dim)."""
        rows = np.empty((len(X), self.size), dtype=np.uint8)
        values = np.ascontiguousarray(self._values(X))
        rows[:, : self.n_values] = values.view(np.uint8).reshape(len(X), -1)
        sums = np.fromiter((zlib.crc32(row.data, self._seed) for row in rows[:, : self.n_values]), "<u4", len(X))
        rows[:, self.n_values :] = sums.view(np.uint8).reshape(-1, _CRC)
        return rows

    def _values(self, X: Singles) -> NDArray[Any]:
        if self.scales is None:
            with np.errstate(over="ignore"):
                values = X.astype(self.dtype)
            if not np.all(np.isfinite(values)):
                raise InvalidInputError(
                    f"X must lie within the range of {self.kind} (65504), got {np.abs(X).max()}; keep them as float32"
                )
            return values
        steps = np.divide(X, self.scales, out=np.zeros_like(X), where=self.scales > 0)
        return np.asarray(np.rint(np.clip(steps, -_LARGEST, _LARGEST)).astype(np.int8))

    def decoded(self, rows: Bytes) -> Singles:
        """The vectors (n, dim) that rows hold."""
        values: Singles = np.ascontiguousarray(rows[:, : self.n_values]).view(self.dtype).astype(np.float32)
        return values if self.scales is None else values * self.scales

    def damaged(self, rows: Bytes) -> Ints:
        """Numbers of the rows that do not match their checksums."""
        told = np.ascontiguousarray(rows[:, self.n_values :]).view("<u4")[:, 0].tolist()
        found = [zlib.crc32(row.data, self._seed) for row in rows[:, : self.n_values]]
        return np.flatnonzero([a != b for a, b in zip(told, found, strict=True)])


class MemoryRows:
    """Rows in memory."""

    def __init__(self, format: RowFormat, rows: Bytes | None = None) -> None:  # noqa: A002
        self.format = format
        self._held = np.empty((0, format.size), dtype=np.uint8) if rows is None else rows
        self.n = len(self._held)

    @property
    def rows(self) -> Bytes:
        """(n, size)"""
        return self._held[: self.n]

    @property
    def memory(self) -> int:
        """Bytes that are not in a file."""
        return int(self._held.nbytes)

    def append(self, rows: Bytes) -> None:
        end = self.n + len(rows)
        if end > len(self._held):
            room = np.empty((max(end, self.n + self.n // 8), self.format.size), dtype=np.uint8)
            room[: self.n] = self.rows
            self._held = room
        self._held[self.n : end] = rows
        self.n = end

    def truncate(self, n: int) -> None:
        self.n = n

    def close(self) -> None:
        """Nothing to let go of."""


class FileRows:
    """Rows in a file, mapped; rows that are appended are on the disk when `append` returns."""

    memory = 0

    def __init__(self, format: RowFormat, path: Path, n: int, writable: bool) -> None:  # noqa: A002
        self.format, self.path = format, path
        self._file = open(path, "r+b" if writable else "rb", buffering=0)  # noqa: SIM115
        held = os.fstat(self._file.fileno()).st_size
        if held < n * format.size:
            self._file.close()
            raise FormatError(
                f"{path} is cut short: it must hold {n} vectors of {format.size} bytes, {n * format.size} bytes, "
                f"got {held}"
            )
        self.n = n
        if writable and held > n * format.size:  # of a change that was never acknowledged
            os.ftruncate(self._file.fileno(), n * format.size)
        self._map()

    def _map(self) -> None:
        shape = (self.n, self.format.size)
        self.rows: Bytes = (
            np.memmap(self.path, dtype=np.uint8, mode="r", shape=shape) if self.n else np.empty(shape, np.uint8)
        )

    def append(self, rows: Bytes) -> None:
        at, left = self.n * self.format.size, np.ascontiguousarray(rows).reshape(-1).data
        with naming(self.path):
            self._file.seek(at)
            while left:
                left = left[self._file.write(left) :]
            os.fsync(self._file.fileno())
        self.n += len(rows)
        self._map()

    def truncate(self, n: int) -> None:
        self.n = n
        self._map()
        with naming(self.path):
            os.ftruncate(self._file.fileno(), n * self.format.size)

    def close(self) -> None:
        self._file.close()


Rows = MemoryRows | FileRows


def pieces(rows: Bytes) -> Iterator[tuple[int, Bytes]]:
    """Rows some at a time, with the number of the first."""
    step = max(1, _AT_ONCE // max(1, rows.shape[1]))
    for first in range(0, len(rows), step):
        yield first, rows[first : first + step]


def check_rows(rows: Bytes, format: RowFormat, name: str) -> None:  # noqa: A002
    """FormatError where a row does not match its checksum."""
    for first, some in pieces(rows):
        wrong = format.damaged(some)
        if wrong.size:
            raise FormatError(
                f"{name} is damaged: vector {first + int(wrong[0])} does not match its checksum, or is of another index"
            )
