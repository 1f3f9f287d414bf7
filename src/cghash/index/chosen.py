"""The positions that a search may find."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]

_FEW = 64  # fewer than one position in so many: looked at one by one


@dataclass(slots=True)  # not frozen: made for every search
class Chosen:
    """Positions that a search may find: all, those with a bit, or, where they are few, listed."""

    count: int
    bits: NDArray[np.uint8] | None = None
    positions: Ints | None = None

    def __len__(self) -> int:
        return self.count

    @classmethod
    def of_positions(cls, positions: Ints, n: int) -> Chosen:
        if _FEW * len(positions) < n:
            return cls(len(positions), positions=positions)
        marks = np.zeros(n, dtype=bool)
        marks[positions] = True
        return cls(len(positions), np.packbits(marks, bitorder="little"))
