"""Checks of what is handed to an index."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._arrays import Array, Ints
from .._tensors import is_tensor
from ..codes import check_padding
from ..exceptions import InvalidInputError

MOST_BITS = 4096
LARGEST_ID = 2**63 - 2  # so that there is one more

_BYTE = np.dtype(np.uint8)


def check_codes(codes: Any, n_bits: int, name: str = "codes") -> NDArray[np.uint8]:
    """Packed codes (n, ⌈n_bits/8⌉) uint8, whose bits past n_bits are 0."""
    array = codes if type(codes) is np.ndarray else np.asarray(codes)
    n_bytes = -(-n_bits // 8)
    if array.dtype != _BYTE or array.ndim != 2 or array.shape[1] != n_bytes:
        raise InvalidInputError(
            f"{name} must be packed uint8 of shape (n, {n_bytes}) for {n_bits} bits, "
            f"got shape {array.shape}, dtype {array.dtype}{looks_like(array, n_bits)}"
        )
    if n_bits % 8:
        check_padding(array, n_bits, name)
    return array if array.flags.c_contiguous else np.ascontiguousarray(array)


def looks_like(array: Array, n_bits: int) -> str:
    """What an array that is not packed codes may be, and what to do then, as the end of a message."""
    if array.ndim != 2 or array.dtype.kind not in "buif":
        return ""
    if array.shape[1] == n_bits:
        return " (bits? cghash.codes.pack packs them)"
    if array.shape[1] != -(-n_bits // 8):
        return " (items? a model's encode gives their codes)" if array.dtype.kind == "f" else ""
    bytes_ = array.size and np.all((array >= 0) & (array < 256) & (array == np.floor(array)))
    return " (astype(numpy.uint8) makes codes of them)" if bytes_ else ""


def check_queries(codes: Any, n_bits: int) -> tuple[NDArray[np.uint8], bool]:
    """Packed codes (q, ⌈n_bits/8⌉) of queries, of one code (⌈n_bits/8⌉,) too; and whether it was one."""
    # the common case is looked for first: a search takes microseconds
    if type(codes) is np.ndarray and codes.dtype == _BYTE and codes.ndim == 2 and 8 * codes.shape[1] == n_bits:
        return codes if codes.flags.c_contiguous else np.ascontiguousarray(codes), False
    array = codes if type(codes) is np.ndarray else np.asarray(codes.cpu() if is_tensor(codes) else codes)
    single = array.ndim == 1
    return check_codes(array[None] if single else array, n_bits), single


def check_ids(ids: Any, name: str = "ids") -> Ints:
    """Ids (n,) int64, 0 or more."""
    array = np.asarray(ids)
    if array.ndim == 0:
        array = array[None]
    if array.size == 0:
        return np.zeros(0, dtype=np.int64)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        hint = "; keep names in a list of your own, and take row numbers" if array.dtype.kind in "UOST" else ""
        raise InvalidInputError(
            f"{name} must be a 1-D array of int64, got shape {array.shape}, dtype {array.dtype}{hint}"
        )
    if array.max() > LARGEST_ID:
        raise InvalidInputError(f"{name} must be at most {LARGEST_ID}, got {array.max()}")
    if array.min() < 0:
        raise InvalidInputError(f"{name} must be 0 or more, got {array.min()}")
    return np.ascontiguousarray(array, dtype=np.int64)


def check_not_mask(which: Array, n_codes: int) -> None:
    """Refuse as ids what must be a mask of numbers: an entry for each code, 0 and 1 alone, and these repeated."""
    if which.dtype.kind in "iuf" and which.shape == (n_codes,) and n_codes > 2 and np.isin(which, (0, 1)).all():
        raise InvalidInputError(
            f"filter must be ids, or a boolean mask, got {n_codes} numbers of 0 and 1: a mask? pass astype(bool)"
        )


def check_different(ids: Ints, name: str = "ids") -> None:
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
