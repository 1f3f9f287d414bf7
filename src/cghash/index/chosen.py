"""The positions that a search may find."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..exceptions import InvalidInputError
from .checks import check_ids, check_not_mask
from .ids import IdTable

Ints = NDArray[np.int64]

_FEW = 64  # fewer than one position in so many: looked at one by one


@dataclass(slots=True)  # not frozen: made for every search
class Chosen:
    """Positions that a search may find: all, those with a bit, or, where they are few, listed."""

    count: int
    bits: NDArray[np.uint8] | None = None
    positions: Ints | None = None

    @classmethod
    def by(cls, wanted: ArrayLike | None, ids: IdTable) -> Chosen:
        """The positions that a filter, ids or a mask over them, lets through, of those that are not removed."""
        if wanted is None:
            return cls(len(ids), ids.allowed)
        which = np.asarray(wanted)
        if which.dtype != np.bool_:
            check_not_mask(which, len(ids))
            return cls.of_positions(ids.positions(check_ids(which, "filter"), "filter"), ids.n)
        if which.shape != (len(ids),):
            raise InvalidInputError(
                f"filter must be ids, or a boolean mask of shape ({len(ids)},), one entry for each of `ids`, "
                f"got shape {which.shape}"
            )
        keep = ids.mask
        keep[keep] = which
        return cls(int(keep.sum()), np.packbits(keep, bitorder="little"))

    @classmethod
    def of_positions(cls, positions: Ints, n: int) -> Chosen:
        """These alone; one may stand twice."""
        if _FEW * len(positions) < n:
            positions = np.unique(positions)
            return cls(len(positions), positions=positions)
        marks = np.zeros(n, dtype=bool)  # many are sorted faster so
        marks[positions] = True
        return cls(int(marks.sum()), np.packbits(marks, bitorder="little"))
