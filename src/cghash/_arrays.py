"""Types of arrays, named by what they hold; rows in blocks."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Floats = NDArray[np.float64]
Singles = NDArray[np.float32]
Ints = NDArray[np.int64]
Int32s = NDArray[np.int32]
Bools = NDArray[np.bool_]
Bytes = NDArray[np.uint8]  # flags and pixels
Codes = NDArray[np.uint8]  # bits, eight in a byte

ROWS_AT_A_TIME = 8192


def rows_in_blocks(n: int, step: int = ROWS_AT_A_TIME) -> list[slice]:
    """The rows 0 … n − 1, some at a time, so that what is made of them stays small."""
    return [slice(first, min(first + step, n)) for first in range(0, n, step)]
