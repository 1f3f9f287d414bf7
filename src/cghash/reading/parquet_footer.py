"""What the footer of a Parquet file says of its columns, read without pyarrow.

pyarrow's own objects of a column's metadata end the process where a footer is damaged in certain ways. The footer is a
structure in Thrift's compact protocol; only what is needed of it is kept.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import IO, Any

from ..exceptions import FormatError

MAGIC = b"PAR1"
_ENDING = 8  # bytes: the footer's length, and the magic
_DEEPEST = 12  # structures within each other
_WIDTHS = {0: 1, 1: 4, 2: 8, 3: 12, 4: 4, 5: 8}  # bytes of a value of each type that has a fixed width
_FIXED = 7  # the type whose width is in the schema


@dataclass(frozen=True)
class Chunk:
    """A column of a row group."""

    column: str  # its name at the top of the schema
    n_values: int
    n_bytes: int  # that its values take, at least; nulls take none


@dataclass(frozen=True)
class Group:
    """A row group."""

    n_rows: int
    chunks: list[Chunk]


def read_groups(file: IO[bytes], name: str) -> list[Group]:
    """The row groups of a Parquet file; FormatError where the footer is none. The file is left where it was."""
    here = file.tell()
    try:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - _ENDING))
        ending = file.read(_ENDING)
        length = int.from_bytes(ending[:4], "little")
        if ending[4:] != MAGIC or length > size - _ENDING:
            raise ValueError("its end is missing or altered")
        file.seek(size - _ENDING - length)
        about = _Footer(file.read(length)).structure(_DEEPEST)
        leaves = [_width(element) for element in about[2] if 1 in element]
        return [_group(group, leaves) for group in about[4]]
    except (ValueError, IndexError, KeyError, TypeError, AttributeError) as error:
        raise FormatError(f"{name} must be a .parquet file: its footer is damaged ({error})") from error
    finally:
        file.seek(here)


def _width(element: dict[int, Any]) -> int:
    """Bytes of a value of a column; 1, the least, where they differ in length."""
    return _count(element[2]) if element[1] == _FIXED else _WIDTHS.get(element[1], 1)


def _group(group: dict[int, Any], widths: list[int]) -> Group:
    return Group(_count(group[3]), [_chunk(chunk[3], width) for chunk, width in zip(group[1], widths, strict=True)])


def _chunk(about: dict[int, Any], width: int) -> Chunk:
    n_values = _count(about[5])
    n_nulls = _count(about.get(12, {}).get(3, 0))
    plain = max(0, n_values - n_nulls) * width
    return Chunk(about[3][0].decode(), n_values, max(plain, _count(about[6])))


def _count(number: Any) -> int:
    if type(number) is not int or number < 0:
        raise ValueError(f"it counts {number!r:.40}")
    return number


class _Footer:
    """Values of Thrift's compact protocol: structures are dictionaries by the numbers of their fields."""

    def __init__(self, content: bytes) -> None:
        self.content, self.at = content, 0

    def structure(self, deepest: int) -> dict[int, Any]:
        if not deepest:
            raise ValueError("it is nested too deeply")
        fields: dict[int, Any] = {}
        number = 0
        while head := self._byte():
            number = number + (head >> 4) if head >> 4 else self._signed()
            kind = head & 15
            fields[number] = kind == 1 if kind in (1, 2) else self._value(kind, deepest)
        return fields

    def _value(self, kind: int, deepest: int) -> Any:
        if kind in (1, 2, 3):
            return self._byte()
        if kind in (4, 5, 6):
            return self._signed()
        if kind == 7:
            return self._bytes(8)
        if kind == 8:
            return self._bytes(self._unsigned())
        if kind in (9, 10):
            return self._list(deepest)
        if kind == 12:
            return self.structure(deepest - 1)
        raise ValueError(f"it has a value of type {kind}")

    def _list(self, deepest: int) -> list[Any]:
        head = self._byte()
        n = head >> 4 if head >> 4 < 15 else self._unsigned()
        if n > len(self.content) - self.at:  # each takes a byte or more
            raise ValueError(f"it has a list of {n}")
        if not deepest:
            raise ValueError("it is nested too deeply")
        return [self._value(head & 15, deepest - 1) for _ in range(n)]

    def _byte(self) -> int:
        self.at += 1
        return self.content[self.at - 1]

    def _bytes(self, n: int) -> bytes:
        found = self.content[self.at : self.at + n]
        if len(found) != n:
            raise ValueError("it ends too early")
        self.at += n
        return found

    def _unsigned(self) -> int:
        number = shift = 0
        while True:
            byte = self._byte()
            number |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return number
            if shift > 63:
                raise ValueError("it has a number of more than 64 bits")

    def _signed(self) -> int:
        number = self._unsigned()
        return number >> 1 ^ -(number & 1)
