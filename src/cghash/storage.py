"""Model files and checkpoints: safetensors with JSON metadata; versioned, checked, never unpickled.

The metadata key `cghash` holds one JSON object: `format`, `version`, `checksum` (SHA-256 over the tensors' names,
types, shapes and bytes) and what the writer adds. Files are written beside their place and renamed.
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

KEY = "cghash"


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
    header = {"format": kind, "version": version, "checksum": checksum(plain), **about}
    write_atomically(path, to_bytes(plain, metadata={KEY: json.dumps(header)}))


def load(path: str | os.PathLike[str], kind: str, version: int) -> tuple[Arrays, dict[str, Any]]:
    """Read what `save` wrote; FormatError for anything else."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(os.fspath(path), framework="numpy") as file:
            metadata = file.metadata() or {}
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except FileNotFoundError:
        raise
    except (SafetensorError, ValueError, TypeError, OSError) as error:
        raise FormatError(f"{path} is not a cghash file, or it is damaged: {error}") from error
    header = _header(path, metadata, kind, version)
    if header["checksum"] != checksum(arrays):
        raise FormatError(f"{path} is damaged: its checksum does not match its content")
    return arrays, header


def _header(path: Any, metadata: Mapping[str, str], kind: str, version: int) -> dict[str, Any]:
    try:
        header = json.loads(metadata[KEY])
        found, number, _ = header["format"], header["version"], header["checksum"]
    except (KeyError, TypeError, ValueError) as error:
        raise FormatError(f"{path} is a safetensors file, but not one of cghash") from error
    if found != kind:
        raise FormatError(f"{path} must be a {kind} file, got a {found!r} file")
    if not isinstance(number, int) or not 1 <= number <= version:
        raise FormatError(f"{path} has format version {number!r}; this cghash reads versions 1 to {version}")
    return header  # type: ignore[no-any-return]


def checksum(arrays: Mapping[str, NDArray[Any]]) -> str:
    return digest(array for name in sorted(arrays) for array in (np.frombuffer(name.encode(), np.uint8), arrays[name]))


def digest(arrays: Iterable[NDArray[Any]]) -> str:
    """SHA-256 over arrays: their types, shapes and bytes."""
    total = hashlib.sha256()
    for array in arrays:
        total.update(f"{array.dtype.str}{array.shape}".encode())
        step = max(1, (1 << 24) // max(1, array[:1].nbytes)) if array.ndim else 1
        for first in range(0, len(array), step) if array.ndim else ():
            total.update(np.ascontiguousarray(array[first : first + step]).data)
    return total.hexdigest()


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
