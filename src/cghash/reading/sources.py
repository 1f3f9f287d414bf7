"""Where bytes come from, a file or standard input; which format they are, and how much memory they may take."""

from __future__ import annotations

import io
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import IO, BinaryIO, TextIO

from ..exceptions import FormatError

SUFFIXES = {
    ".npy": "npy",
    ".npz": "npz",
    ".csv": "csv",
    ".tsv": "csv",
    ".txt": "csv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".parquet": "parquet",
}
ALWAYS = 1 << 28  # bytes that a file may hold in memory, however small it is
INFLATED = 100  # times its own size, beyond that
_MAGIC = {b"\x93NUMPY": "npy", b"PK\x03\x04": "npz", b"PAR1": "parquet"}


@dataclass(frozen=True)
class Source:
    """One file, or what standard input held."""

    name: str  # as messages call it
    kind: str  # one of the values of SUFFIXES
    path: Path | None = None
    data: bytes = b""  # where there is no path

    def binary(self) -> BinaryIO:
        return io.BytesIO(self.data) if self.path is None else open(self.path, "rb")

    def text(self) -> TextIO:
        return io.TextIOWrapper(self.binary(), encoding="utf-8-sig", newline="")

    def at(self, line: int) -> str:
        """A place in the source, for messages."""
        return f"{self.name}, line {line}"


def source_of(path: str | os.PathLike[str]) -> Source:
    """The source that a path means; `-` is standard input, whose first bytes tell the format, else it is csv.

    >>> source_of("items.csv").kind
    'csv'
    """
    if os.fspath(path) == "-":
        data = sys.stdin.buffer.read()
        return Source("standard input", _kind_of(data) or "csv", None, data)
    file = Path(path)
    if file.exists() and not file.is_file() and not file.is_dir():  # a pipe can be read once
        data = file.read_bytes()
        return Source(os.fspath(path), _kind_of(data) or "csv", None, data)
    kind = SUFFIXES.get(file.suffix.lower())
    if kind is None:
        with open(file, "rb") as opened:
            kind = _kind_of(opened.read(8))
    if kind is None:
        raise FormatError(f"{file} must end in one of {', '.join(SUFFIXES)}, got {file.suffix or 'no suffix'!r}")
    return Source(os.fspath(path), kind, file)


def _kind_of(data: bytes) -> str | None:
    return next((kind for magic, kind in _MAGIC.items() if data.startswith(magic)), None)


def check_inflated(n_bytes: int, size: int, name: str, what: str) -> None:
    """Refuse content of so many bytes in a file of `size` bytes, where that is too many.

    >>> check_inflated(10**12, 4000, "items.npz", "save it with numpy.savez")
    Traceback (most recent call last):
    cghash.exceptions.FormatError: items.npz must not hold much more than its size: it has 4000 bytes, and holds \
1000000000000; save it with numpy.savez
    """
    if n_bytes > max(ALWAYS, INFLATED * size):
        raise FormatError(
            f"{name} must not hold much more than its size: it has {size} bytes, and holds {n_bytes}; {what}"
        )


def size_of(file: IO[bytes]) -> int:
    """The size of a file that can be read anywhere; it is left where it was."""
    here = file.tell()
    size = file.seek(0, io.SEEK_END)
    file.seek(here)
    return size
