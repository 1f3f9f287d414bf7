"""Types of arrays, named by what they hold."""

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
