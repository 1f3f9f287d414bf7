"""How much memory the content of a file may take: small files that hold much are refused before they are read."""

from __future__ import annotations

import io
import math
from typing import IO

import numpy as np

from ..exceptions import FormatError

ALWAYS = 1 << 28  # bytes that a file may hold, however small it is
INFLATED = 100  # times its own size, beyond that

_PICKLED = "it holds Python objects, which are never unpickled; save numpy.array(rows, dtype=float), rows of one length"


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


def check_npy_header(file: IO[bytes], size: int) -> int:
    """The bytes of the array in an .npy stream of `size` bytes; ValueError for a header that is none, or names more.

    The stream is left where it began.
    """
    begin = file.tell()
    version = np.lib.format.read_magic(file)
    if version not in ((1, 0), (2, 0)):
        raise ValueError(f"it is of version {version}, and must be of version 1.0 or 2.0")
    one = version == (1, 0)
    read = np.lib.format.read_array_header_1_0 if one else np.lib.format.read_array_header_2_0
    try:
        shape, _, dtype = read(file)
    except MemoryError:  # so Python's parser says that a text is nested too deeply
        raise ValueError("its header is nested too deeply") from None
    if dtype.hasobject:
        raise ValueError(_PICKLED)
    needed = math.prod(shape) * max(dtype.itemsize, 1)  # entries of no bytes count too
    if any(length < 0 for length in shape) or (needed > size - (file.tell() - begin)):
        raise ValueError(f"its header names shape {shape}, {dtype}, and the file has {size} bytes")
    file.seek(begin)
    return int(needed)


def size_of(file: IO[bytes]) -> int:
    """The size of a file that can be read anywhere; it is left where it was."""
    here = file.tell()
    size = file.seek(0, io.SEEK_END)
    file.seek(here)
    return size
