"""Model files and checkpoints: safetensors with JSON metadata; versioned, checked, never unpickled.

The metadata key `cghash` holds one JSON object: `format`, `version` and what the writer adds; the key `checksum` holds
SHA-256 over that text and over the tensors' names, types, shapes and bytes. Files are written beside their place and
renamed.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .exceptions import FormatError

Arrays = dict[str, NDArray[Any]]

KEY, CHECKSUM = "cghash", "checksum"


def write_atomically(path: str | os.PathLike[str], content: bytes) -> None:
    """Write a file beside its place, flush it to the disk and rename it: a kill leaves the old file or the new."""
    target = Path(path)
    handle, name = tempfile.mkstemp(dir=target.parent or ".", prefix=f".{target.name}.", suffix=".tmp")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, 0o666 & ~_umask())
        os.replace(name, target)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def save(
    path: str | os.PathLike[str], kind: str, version: int, arrays: Mapping[str, Any], about: dict[str, Any]
) -> None:
    """Write arrays with a JSON description."""
    from safetensors.numpy import save as to_bytes

    plain = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    header = json.dumps({"format": kind, "version": version, **about})
    write_atomically(path, to_bytes(plain, metadata={KEY: header, CHECKSUM: checksum(header, plain)}))


def load(path: str | os.PathLike[str], kind: str, version: int) -> tuple[Arrays, dict[str, Any]]:
    """Read what `save` wrote; FormatError for anything else."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(os.fspath(path), framework="numpy") as file:
            metadata = file.metadata() or {}
            header = _header(path, metadata, kind, version)
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (FileNotFoundError, PermissionError, FormatError):
        raise
    except (SafetensorError, ValueError, TypeError, OSError) as error:
        raise FormatError(f"{path} is not a cghash file, or it is damaged: {error}") from error
    if metadata.get(CHECKSUM) != checksum(metadata[KEY], arrays):
        raise FormatError(f"{path} is damaged: its checksum does not match its content")
    return arrays, header


def _header(path: Any, metadata: Mapping[str, str], kind: str, version: int) -> dict[str, Any]:
    try:
        header = json.loads(metadata[KEY])
        found, number = header["format"], header["version"]
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise FormatError(f"{path} is a safetensors file, but not one of cghash") from error
    if found != kind:
        raise FormatError(f"{path} must be a {kind} file, got a {found!r} file")
    if not isinstance(number, int) or not 1 <= number <= version:
        raise FormatError(f"{path} has format version {number!r}; this cghash reads versions 1 to {version}")
    return header  # type: ignore[no-any-return]


def checksum(header: str, arrays: Mapping[str, NDArray[Any]]) -> str:
    """SHA-256 over a file's description and its arrays, by name."""
    named = ((_bytes_of(name), arrays[name]) for name in sorted(arrays))
    return digest([_bytes_of(header), *(part for pair in named for part in pair)])


def _bytes_of(text: str) -> NDArray[np.uint8]:
    return np.frombuffer(text.encode(), np.uint8)


def digest(arrays: Iterable[NDArray[Any]]) -> str:
    """SHA-256 over arrays: their types, shapes and bytes."""
    total = hashlib.sha256()
    for array in arrays:
        total.update(f"{array.dtype.str}{array.shape}".encode())
        rows = np.atleast_1d(array)
        step = max(1, (1 << 24) // max(1, rows[:1].nbytes))
        for first in range(0, len(rows), step):
            total.update(np.ascontiguousarray(rows[first : first + step]).data)
    return total.hexdigest()


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
