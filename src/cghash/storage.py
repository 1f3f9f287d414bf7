"""Model files and checkpoints: safetensors with JSON metadata; versioned, checked, never unpickled.

The metadata key `cghash` holds one JSON object: `format`, `version` and what the writer adds; the key `checksum` holds
SHA-256 over that text and over the tensors' names, types, shapes and bytes. Files are written beside their place and
renamed.
"""

from __future__ import annotations

import errno
import hashlib
import json
import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from ._arrays import Array
from ._unfinished import naming, unfinished
from .exceptions import FormatError

Arrays = dict[str, Array]

KEY, CHECKSUM = "cghash", "checksum"

_MEASURED = ("result", "records")  # where a number may be nan
_NUMBERS = (*_MEASURED, "parameters")  # where it may be infinite
_INFINITY = "Infinity"
_DEEPEST = 32  # lists and objects within each other in a description

_BEGINNINGS = {  # how files begin that are taken for others, and what they are
    b"\x89CGHIX": "an index file, which WeightedHammingIndex.load and 'cghash search' read",
    b"\x93NUMPY": "an array of NumPy (.npy)",
    b"PK\x03\x04": "a zip archive (.npz, .xlsx)",
    b"PAR1": "a Parquet file",
    b"SQLite format 3": "an SQLite database",
    b"\x80": "a pickle, which is never read",
}


@contextmanager
def written_atomically(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a file beside its place; at the end flush it and its folder's new entry to the disk.

    An error leaves the old file or none; a kill leaves also what it wrote, which the next writer of this file removes.
    Links are followed; pipes and devices are written directly.
    """
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():
        with naming(target), open(target, "wb") as direct:
            yield direct
        return
    if not target.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, "No such folder", os.fspath(target.parent))
    with unfinished(target, lambda beside: open(beside, "xb").close()) as beside:
        with open(beside, "r+b") as file:  # not "wb", where NumPy does not tell why it could not write
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, target)
        flush_folder(target.parent)


def flush_folder(folder: str | os.PathLike[str]) -> None:
    """Flush to the disk which files a folder holds, where the system can."""
    if hasattr(os, "O_DIRECTORY"):
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(handle)
        except OSError as error:
            if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # some file systems refuse it for folders
                raise
        finally:
            os.close(handle)


def write_atomically(path: str | os.PathLike[str], content: bytes) -> None:
    """Write a file beside its place, flush it to the disk and rename it: a kill leaves the old file or the new."""
    with written_atomically(path) as file:
        file.write(content)


def described(path: str | os.PathLike[str]) -> str:
    """What a file is by its first bytes, in words that follow "it is"; nothing where they do not tell.

    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile() as file:
    ...     described(file.name)
    'empty'
    """
    with open(path, "rb") as file:
        head = file.read(256)  # metadata come first in safetensors
    if not head:
        return "empty"
    if head[8:9] == b"{" and head[2:8] == bytes(6):  # the length of a header, and a header
        return (
            "a model or a checkpoint, which cghash.load and 'cghash info' read" if f'"{KEY}"'.encode() in head else ""
        )
    if all(byte >= 32 or byte in b"\t\n\r" for byte in head):
        return "text"
    return next((words for begin, words in _BEGINNINGS.items() if head.startswith(begin)), "")


def kind_of(path: str | os.PathLike[str]) -> str:
    """Which kind of cghash file this is; FormatError when it is none."""
    from safetensors import safe_open

    with _foreign(path), safe_open(os.fspath(path), framework="numpy") as file:
        metadata = file.metadata() or {}
    return str(_parsed(path, metadata)["format"])


def save(
    path: str | os.PathLike[str], kind: str, version: int, arrays: Mapping[str, Any], about: dict[str, Any]
) -> None:
    """Write arrays with a JSON description."""
    from safetensors.numpy import save as to_bytes

    plain = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    header = json.dumps(strict({"format": kind, "version": version, **about}, _said), allow_nan=False)
    write_atomically(path, to_bytes(plain, metadata={KEY: header, CHECKSUM: checksum(header, plain)}))


def load(path: str | os.PathLike[str], kind: str, version: int) -> tuple[Arrays, dict[str, Any]]:
    """Read what `save` wrote; FormatError for anything else."""
    from safetensors import safe_open

    with _foreign(path), safe_open(os.fspath(path), framework="numpy") as file:
        metadata = file.metadata() or {}
        header = _header(path, metadata, kind, version)
        arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    if metadata.get(CHECKSUM) != checksum(metadata[KEY], arrays):
        raise FormatError(f"{path} is damaged: its checksum does not match its content")
    numbers = {name: _lenient(header[name], name in _MEASURED) for name in _NUMBERS if name in header}
    return arrays, header | numbers


def json_object(text: str | bytes) -> dict[str, Any]:
    """The JSON object of a text; ValueError for anything else, and for one that is nested too deeply.

    >>> json_object('{"format": "cghash-model"}')
    {'format': 'cghash-model'}
    """
    try:
        value = json.loads(text)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
    if not isinstance(value, dict):
        raise ValueError("it must be a JSON object")
    _check_plain(value, _DEEPEST)
    return value


def _check_plain(value: Any, deepest: int) -> None:
    """Refuse what is nested too deeply, and words that no text can hold."""
    if isinstance(value, str):
        value.encode()  # an error for half a character
    elif isinstance(value, dict | list):
        if not deepest:
            raise ValueError("it is nested too deeply")
        for part in (*value, *value.values()) if isinstance(value, dict) else value:
            _check_plain(part, deepest - 1)


def strict(value: Any, said: Callable[[float], str | None]) -> Any:
    """A copy in which each number that JSON lacks, nan or infinite, is replaced by `said(number)`."""
    if isinstance(value, dict):
        return {name: strict(v, said) for name, v in value.items()}
    if isinstance(value, list | tuple):
        return [strict(v, said) for v in value]
    return said(value) if isinstance(value, float) and not math.isfinite(value) else value


def _said(value: float) -> str | None:
    """Null for nan, and a word for an infinity."""
    return None if math.isnan(value) else _INFINITY if value > 0 else f"-{_INFINITY}"


def _lenient(value: Any, measured: bool) -> Any:
    """The inverse of `strict` with `_said`; null is nan among what was measured, and None elsewhere."""
    if isinstance(value, dict):
        return {name: _lenient(v, measured) for name, v in value.items()}
    if isinstance(value, list):
        return [_lenient(v, measured) for v in value]
    if value in (_INFINITY, f"-{_INFINITY}"):
        return float(value)
    return math.nan if measured and value is None else value


@contextmanager
def _foreign(path: Any) -> Iterator[None]:
    """Errors of a file that cannot be read as safetensors."""
    from safetensors import SafetensorError

    if os.path.isdir(path):
        raise FormatError(f"{path} is a folder, not a cghash file")
    try:
        yield
    except (FileNotFoundError, PermissionError, FormatError):
        raise
    except (SafetensorError, ValueError, TypeError, AttributeError, OSError) as error:  # NumPy has not all its types
        raise FormatError(_why_foreign(path, error)) from error


def _why_foreign(path: Any, error: Exception) -> str:
    if os.path.isfile(path) and (found := described(path)):
        if not found.startswith("a model"):
            return f"{path} is not a cghash file: it is {found}"
        if "invalid header length" in str(error) or "incomplete" in str(error).lower():
            size = os.path.getsize(path)
            return f"{path} is damaged: it is cut short, at {size} bytes; copy or write it again"
    return f"{path} is not a cghash file, or it is damaged: {error}"


def _parsed(path: Any, metadata: Mapping[str, str]) -> dict[str, Any]:
    try:
        header = json_object(metadata[KEY])
        _ = header["format"], header["version"]
    except (KeyError, ValueError) as error:
        raise FormatError(f"{path} is a safetensors file, but not one of cghash: {error}") from error
    return header


def _header(path: Any, metadata: Mapping[str, str], kind: str, version: int) -> dict[str, Any]:
    header = _parsed(path, metadata)
    found, number = header["format"], header["version"]
    if found != kind:
        hint = "; a fit with that checkpoint goes on from it, and saves a model" if found == "cghash-checkpoint" else ""
        raise FormatError(f"{path} must be a {kind} file, got a {found!r} file{hint}")
    if not isinstance(number, int) or not 1 <= number <= version:
        newer = "; a newer cghash wrote it: pip install --upgrade cghash" if _is_above(number, version) else ""
        raise FormatError(f"{path} has format version {number!r}; this cghash reads versions 1 to {version}{newer}")
    return header


def _is_above(number: Any, version: int) -> bool:
    return isinstance(number, int) and number > version


def checksum(header: str, arrays: Mapping[str, Array]) -> str:
    """SHA-256 over a file's description and its arrays, by name."""
    named = ((_bytes_of(name), arrays[name]) for name in sorted(arrays))
    return digest([_bytes_of(header), *(part for pair in named for part in pair)])


def _bytes_of(text: str) -> NDArray[np.uint8]:
    return np.frombuffer(text.encode(), np.uint8)


def digest(arrays: Iterable[Array]) -> str:
    """SHA-256 over arrays: their types, shapes and bytes."""
    total = hashlib.sha256()
    for array in arrays:
        total.update(f"{array.dtype.str}{array.shape}".encode())
        rows = np.atleast_1d(array)
        step = max(1, (1 << 24) // max(1, rows[:1].nbytes))
        for first in range(0, len(rows), step):
            total.update(np.ascontiguousarray(rows[first : first + step]).data)
    return total.hexdigest()
