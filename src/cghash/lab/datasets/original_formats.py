"""The originals' own formats: MNIST's idx, USPS and ISOLET as text, CIFAR-10's binary batches.

A file that is truncated, of another kind, or claims more than it holds is a FormatError.
"""

from __future__ import annotations

import gzip
import io
import math
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import numpy as np

from ..._arrays import Array, Bytes, Floats, Ints, Singles
from ...exceptions import FormatError

__all__ = ["decompress", "read_cifar", "read_idx", "read_isolet", "read_usps"]


USPS_PIXELS, ISOLET_FEATURES = 256, 617
CIFAR_RECORD = 1 + 3 * 32 * 32  # a label, and red, green and blue
_MOST = 1 << 30  # bytes, unpacked
_GZIP = b"\x1f\x8b"
_IDX = struct.Struct(">HBB")  # zeros, type, dimensions
_UNSIGNED_BYTE = 8
_COMPRESS = b"\x1f\x9d"  # Unix compress
_CLEAR, _SHORTEST, _LONGEST = 256, 9, 16  # codes and lengths of codes there


def read_idx(path: Path, n_dimensions: int) -> Bytes:
    """Read an idx file of unsigned bytes, gzipped or not (https://yann.lecun.com/exdb/mnist).

    Parameters
    ----------
    path : 0, 0, 8, the number of dimensions, the dimensions as 32-bit big-endian numbers, and the bytes
    n_dimensions : that it must have: 3 for images, 1 for labels
    """
    with _opened(path) as file:
        header = _taken(file, _IDX.size, path)
        if _IDX.unpack(header) != (0, _UNSIGNED_BYTE, n_dimensions):
            raise FormatError(f"{path} must be an idx file of {n_dimensions}-D bytes, begins with {header!r}")
        shape = struct.unpack(f">{n_dimensions}I", _taken(file, 4 * n_dimensions, path))
        size = math.prod(shape)
        if size > _MOST:
            raise FormatError(f"{path} must hold at most {_MOST} bytes, claims shape {shape}")
        content = _taken(file, size, path)
        if _read(file, 1, path):
            raise FormatError(f"{path} must hold {size} bytes for shape {shape}, and holds more")
    return np.frombuffer(content, np.uint8).reshape(shape)


def read_usps(path: Path) -> tuple[Singles, Ints]:
    """Read zip.train or zip.test of *The Elements of Statistical Learning*, gzipped or not.

    Each line is a digit and 256 grey levels of -1 to 1, row by row. Returns X (n, 256) and y (n,).
    """
    table = _numbers(path, None, 1 + USPS_PIXELS)
    y, X = table[:, 0], table[:, 1:]
    if np.abs(X).max() > 1:
        raise FormatError(f"{path} must hold grey levels of -1 to 1, got {X.flat[np.abs(X).argmax()]:g}")
    return X.astype(np.float32), _labels(y, 0, 9, path)


def read_isolet(path: Path) -> tuple[Singles, Ints]:
    """Read isolet1+2+3+4.data or isolet5.data, compressed (.Z) or not.

    Each line is 617 features and the letter as a number of 1 to 26. Returns X (n, 617) and y (n,), from 0.
    """
    table = _numbers(path, ",", ISOLET_FEATURES + 1)
    return table[:, :-1].astype(np.float32), _labels(table[:, -1], 1, 26, path) - 1


def read_cifar(path: Path) -> tuple[Bytes, Ints]:
    """Read a batch of CIFAR-10's binary version.

    Each record is a label and 1024 red, 1024 green and 1024 blue levels, row by row. Returns images (n, 32, 32, 3) and
    y (n,).
    """
    with _opened(path) as file:
        content = _read(file, _MOST, path)
    if not content or len(content) % CIFAR_RECORD:
        raise FormatError(f"{path} must hold records of {CIFAR_RECORD} bytes, holds {len(content)} bytes")
    records = np.frombuffer(content, np.uint8).reshape(-1, CIFAR_RECORD)
    images = records[:, 1:].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)
    return images, _labels(records[:, 0], 0, 9, path)


def _numbers(path: Path, delimiter: str | None, width: int) -> Floats:
    """A table of finite numbers from text: (n, width)."""
    with _opened(path) as file:
        content = _read(file, _MOST, path)
    if content[:2] == _COMPRESS:
        content = decompress(content, str(path))
    try:
        text = content.decode("ascii")
        if not text.strip():
            raise ValueError("it is empty")
        table = np.loadtxt(io.StringIO(text), delimiter=delimiter, ndmin=2, comments=None)
    except ValueError as error:
        raise FormatError(f"{path} must hold lines of {width} numbers: {error}") from error
    if table.shape[1] != width or not np.isfinite(table).all():
        raise FormatError(f"{path} must hold lines of {width} finite numbers, got {table.shape[1]} a line")
    return table


def _labels(values: Array, low: int, high: int, path: Path) -> Ints:
    whole = values.astype(np.int64)
    wrong = (whole != values) | (whole < low) | (whole > high)
    if wrong.any():
        raise FormatError(f"{path} must hold labels of {low} to {high}, got {values[wrong.argmax()]:g}")
    return whole


def _opened(path: Path) -> BinaryIO:
    """The file, unpacked where it is gzipped."""
    with open(path, "rb") as file:
        packed = file.read(2) == _GZIP
    return gzip.open(path) if packed else open(path, "rb")  # type: ignore[return-value]


def _taken(file: BinaryIO, n: int, path: Path) -> bytes:
    content = _read(file, n, path)
    if len(content) < n:
        raise FormatError(f"{path} is truncated: {n} more bytes were expected, got {len(content)}")
    return content


def _read(file: BinaryIO, n: int, path: Path) -> bytes:
    try:
        return file.read(n)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise FormatError(f"{path} is truncated or damaged: {error}") from error


def decompress(data: bytes, name: str, most: int = 1 << 28) -> bytes:
    """What a .Z file of Unix `compress` holds: ISOLET comes so, and neither Python nor what we depend on reads it.

    It is 0x1f 0x9d, a byte of flags (the longest code's bits in the low five, 0x80 for a code that clears the table),
    and codes of 9 bits and more, low bits first. Codes are written in groups of eight; a change of their length or a
    clear leaves the rest of the group unused.

    Parameters
    ----------
    data : the file's bytes
    name : for messages
    most : bytes that it may hold

    Examples
    --------
    >>> decompress(bytes([0x1F, 0x9D, 0x90, 0x61, 0xC4, 0x04, 0x04]), "abab.Z")  # codes a, b, 257 (ab)
    b'abab'
    """
    if len(data) < 3 or data[:2] != _COMPRESS or not _SHORTEST <= data[2] & 31 <= _LONGEST:
        raise FormatError(f"{name} must be a file of the Unix program compress, got {data[:3]!r}")
    pieces: list[bytes] = []
    length = 0
    for piece in _pieces(data, name):
        pieces.append(piece)
        length += len(piece)
        if length > most:
            raise FormatError(f"{name} must hold at most {most} bytes, and holds more")
    return b"".join(pieces)


def _pieces(data: bytes, name: str) -> Iterator[bytes]:
    longest, clears = data[2] & 31, data[2] & 0x80
    table = [bytes([i]) for i in range(256)] + [b""] * bool(clears)
    n_first, previous = len(table), b""
    run, position, width = 24, 24, _SHORTEST  # bits: where codes of this width began, the next one, its length
    while True:
        if len(table) >= 1 << width and width < longest:
            run = position = _group_end(run, position, width)
            width += 1
        if position + width > 8 * len(data):
            return
        around = int.from_bytes(data[position >> 3 : (position >> 3) + 4], "little")
        code = around >> (position & 7) & (1 << width) - 1
        position += width
        if clears and code == _CLEAR:
            run = position = _group_end(run, position, width)
            del table[n_first:]
            width, previous = _SHORTEST, b""
            continue
        if code > len(table) or (code == len(table) and not previous):
            raise FormatError(f"{name} is damaged: code {code} at bit {position} is not in the table")
        piece = table[code] if code < len(table) else previous + previous[:1]
        yield piece
        if previous and len(table) < 1 << longest:
            table.append(previous + piece[:1])
        previous = piece


def _group_end(run: int, position: int, width: int) -> int:
    group = 8 * width
    return run - (run - position) // group * group
