"""Checks of what is handed to an index."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..device.tensors import is_tensor
from ..exceptions import InvalidInputError

MOST_BITS = 1024
LARGEST_ID = 2**63 - 2  # so that there is one more


def check_codes(codes: Any, n_bits: int, name: str = "codes") -> NDArray[np.uint8]:
    """Packed codes (n, ⌈n_bits/8⌉) uint8, whose bits past n_bits are 0."""
    array = np.asarray(codes)
    n_bytes = -(-n_bits // 8)
    if array.dtype != np.uint8 or array.ndim != 2 or array.shape[1] != n_bytes:
        looks = " (bits? cghash.codes.pack packs them)" if array.ndim == 2 and array.shape[1] == n_bits else ""
        raise InvalidInputError(
            f"{name} must be packed uint8 of shape (n, {n_bytes}) for {n_bits} bits, "
            f"got shape {array.shape}, dtype {array.dtype}{looks}"
        )
    unused = 8 * n_bytes - n_bits
    if unused and array.size and int(array[:, -1].max()) >> (8 - unused):
        row = int(np.argmax(array[:, -1] >> (8 - unused) > 0))
        raise InvalidInputError(
            f"{name} must have 0 in the bits past n_bits={n_bits} (bit j is code[j // 8] >> (j % 8) & 1), "
            f"got {array[row].tolist()} in row {row}"
        )
    return np.ascontiguousarray(array)


def check_queries(codes: Any, n_bits: int) -> tuple[NDArray[np.uint8], bool]:
    """Packed codes (q, ⌈n_bits/8⌉) of queries, of one code (⌈n_bits/8⌉,) too; and whether it was one."""
    array = codes.cpu().numpy() if is_tensor(codes) else np.asarray(codes)
    single = array.ndim == 1
    return check_codes(array[None] if single else array, n_bits), single


def check_ids(ids: Any, name: str = "ids") -> NDArray[np.int64]:
    """Ids (n,) int64, 0 or more."""
    array = np.asarray(ids)
    if array.ndim == 0:
        array = array[None]
    if array.size == 0:
        return np.zeros(0, dtype=np.int64)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise InvalidInputError(f"{name} must be a 1-D array of int64, got shape {array.shape}, dtype {array.dtype}")
    if array.max() > LARGEST_ID:
        raise InvalidInputError(f"{name} must be at most {LARGEST_ID}, got {array.max()}")
    if array.min() < 0:
        raise InvalidInputError(f"{name} must be 0 or more, got {array.min()}")
    return np.ascontiguousarray(array, dtype=np.int64)


def check_different(ids: NDArray[np.int64], name: str = "ids") -> None:
    if np.all(ids[1:] > ids[:-1]):
        return
    ordered = np.sort(ids)
    twice = ordered[1:][ordered[1:] == ordered[:-1]]
    if twice.size:
        raise InvalidInputError(f"{name} must be different, got {twice[0]} twice")


def check_radius(radius: Any) -> float:
    """A number of at least 0, ∞ included."""
    number = isinstance(radius, int | float | np.integer | np.floating) and not isinstance(radius, bool)
    if not number or math.isnan(radius) or radius < 0:
        raise InvalidInputError(f"radius must be a number of at least 0, got {radius!r}")
    try:
        return float(radius)
    except OverflowError:
        return math.inf


def check_functions(functions: Any) -> str:
    """A SHA-256 in hexadecimal."""
    if not isinstance(functions, str) or not re.fullmatch("[0-9a-f]{64}", functions):
        raise InvalidInputError(f"functions must be a SHA-256, 64 hexadecimal digits, or None, got {functions!r}")
    return functions
