"""The positions that a search may find."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from .._arrays import Bytes, Ints
from ..exceptions import InvalidInputError
from .checks import check_ids, check_not_mask
from .ids import IdTable

Selection = tuple[int, Bytes | None, Ints | None]
"""How many positions, and which: all, those with a bit, or, where they are few, listed. Made for every search."""

_FEW = 64  # fewer than one position in so many: looked at one by one


def select(wanted: ArrayLike | None, ids: IdTable) -> Selection:
    """The positions that a filter, ids or a mask over them, lets through, of those that are not removed."""
    if wanted is None:
        return ids.n - ids.n_removed, ids.allowed, None
    which = np.asarray(wanted)
    if which.dtype != np.bool_:
        check_not_mask(which, len(ids))
        return _select_positions(ids.positions(check_ids(which, "filter"), "filter"), ids.n)
    if which.shape != (len(ids),):
        raise InvalidInputError(
            f"filter must be ids, or a boolean mask of shape ({len(ids)},), one entry for each of `ids`, "
            f"got shape {which.shape}"
        )
    keep = ids.mask
    keep[keep] = which
    return int(keep.sum()), np.packbits(keep, bitorder="little"), None


def _select_positions(positions: Ints, n: int) -> Selection:
    """These alone; one may stand twice."""
    if _FEW * len(positions) < n:
        positions = np.unique(positions)
        return len(positions), None, positions
    marks = np.zeros(n, dtype=bool)  # many are sorted faster so
    marks[positions] = True
    return int(marks.sum()), np.packbits(marks, bitorder="little"), None
