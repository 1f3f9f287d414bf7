"""Which id stands at which position of an index, and which positions were removed."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._arrays import Array, Bools, Bytes, Ints
from ..exceptions import InvalidInputError
from .checks import LARGEST_ID, check_different


class IdTable:
    """Ids by position. As long as they are the row numbers 0, 1, … they cost nothing.

    A removed position stays, marked; `keep` drops such. Positions are found by binary search where ids ascend, and
    by sorted runs (`_Runs`) elsewhere, made at the first look-up.
    """

    def __init__(
        self,
        n: int = 0,
        ids: Ints | None = None,
        removed: Bytes | None = None,
        *,
        ascending: bool | None = None,
        next_id: int | None = None,
    ) -> None:
        """Take ids (n,) and marks (⌈n/8⌉,); what is known of the ids need not be read off them."""
        self.n = n  # positions, removed ones included
        self._ids = ids  # (n or more,), None for row numbers
        self._removed = removed  # a bit for each position, or more, little-endian; None while nothing was
        self.n_removed = 0 if removed is None else int(np.bitwise_count(removed).sum())
        self.ascending = ids_ascend(ids, n) if ascending is None else ascending
        self._runs: _Runs | None = None
        self._allowed: Bytes | None = None
        self.next_id = _after(ids, n) if next_id is None else next_id

    def __len__(self) -> int:
        return self.n - self.n_removed

    @property
    def explicit(self) -> Ints | None:
        """(n,) ids, None when they are row numbers."""
        return None if self._ids is None else self._ids[: self.n]

    @property
    def removed(self) -> Bytes | None:
        """(⌈n/8⌉,) a bit for each position, little-endian; None when nothing is removed."""
        return None if self._removed is None or not self.n_removed else self._removed[: -(-self.n // 8)]

    @property
    def allowed(self) -> Bytes | None:
        """(⌈n/8⌉,) a bit for each position that is not removed, 0 past the last; None when nothing is removed."""
        removed = self.removed if self.n_removed else None
        if removed is None:
            return None
        if self._allowed is None:
            bits = ~removed
            bits[-1] &= 255 >> (-self.n % 8)
            self._allowed = bits
        return self._allowed

    @property
    def mask(self) -> Bools:
        """(n,) which positions are not removed."""
        bits = self.allowed
        if bits is None:
            return np.ones(self.n, dtype=bool)
        return np.unpackbits(bits, count=self.n, bitorder="little").view(bool)

    @property
    def nbytes(self) -> int:
        """Memory of ids, marks and what finds positions."""
        arrays = [array for array in (self._ids, self._removed) if array is not None]
        return sum(array.nbytes for array in arrays) + (self._runs.nbytes if self._runs else 0)

    def at(self, positions: Ints) -> Ints:
        """Ids of positions."""
        return positions if self._ids is None else self._ids[positions]

    def present(self) -> Ints:
        """All ids, by position."""
        ids = self.at(np.arange(self.n))
        return ids if self.removed is None else ids[self.mask]

    def find(self, ids: Ints) -> Ints:
        """Positions of ids, -1 where an id is not here."""
        positions = self._last_positions(ids)
        if self.n_removed:
            assert self._removed is not None
            marks = self._removed[positions >> 3] >> (positions & 7) & 1
            positions[(positions >= 0) & (marks == 1)] = -1
        return positions

    def positions(self, ids: Ints, name: str = "ids") -> Ints:
        """Positions of ids, all of which must be here."""
        positions = self.find(ids)
        if np.any(positions < 0):
            raise InvalidInputError(f"{name} must be in the index, got {ids[np.argmax(positions < 0)]}, which is not")
        return positions

    def _last_positions(self, ids: Ints) -> Ints:
        """Where an id was put last, removed since or not."""
        if self._ids is None:
            return np.where((ids >= 0) & (ids < self.n), ids, -1)
        if self.ascending:
            return _found(self._ids[: self.n], ids, None)
        if self._runs is None:
            runs = _Runs()
            runs.add(self._ids[: self.n], 0)
            self._runs = runs  # whole: others may be looking
        return self._runs.find(ids)

    def new_ids(self, count: int, ids: Ints | None) -> Ints | None:
        """Check the ids of `count` new codes; None when row numbers go on."""
        if not count:
            return None
        if ids is None:
            if self.next_id + count - 1 > LARGEST_ID:
                raise InvalidInputError(f"ids must be given: those after {self.next_id - 1} would pass {LARGEST_ID}")
            return None if self._ids is None else np.arange(self.next_id, self.next_id + count)
        check_different(ids)
        here = self.find(ids) >= 0
        if here.any():
            raise InvalidInputError(
                f"ids must be new to the index, got {ids[np.argmax(here)]}, which is in it; `update` replaces a code"
            )
        if self._ids is None and count and ids[0] == self.n and np.all(np.diff(ids) == 1):
            return None
        return ids

    def state(self) -> tuple[Any, ...]:
        """What `restore` goes back to."""
        return self.n, self.next_id, self.ascending, self._ids, self._removed, self.n_removed

    def restore(self, state: tuple[Any, ...]) -> None:
        """Undo what was appended since `state`."""
        self.n, self.next_id, self.ascending, self._ids, self._removed, self.n_removed = state
        self._runs = self._allowed = None

    def append(self, count: int, ids: Ints | None) -> None:
        """Add positions with ids that `new_ids` returned."""
        if not count:
            return
        end = self.n + count
        if ids is not None:
            self._append_ids(ids, end)
        if self._removed is not None:
            self._removed = _grown(self._removed, -(-self.n // 8), -(-end // 8))
        self.n, self._allowed = end, None
        last = end - 1 if ids is None else int(ids.max(initial=-1))
        self.next_id = max(self.next_id, last + 1)

    def _append_ids(self, ids: Ints, end: int) -> None:
        held = np.arange(self.n) if self._ids is None else self._ids
        last = held[self.n - 1] if self.n else np.iinfo(np.int64).min
        follows = not ids.size or bool(ids[0] > last and np.all(ids[1:] > ids[:-1]))
        self._ids = _grown(held, self.n, end)
        self._ids[self.n : end] = ids
        if self._runs is not None:
            self._runs.add(ids, self.n)
        self.ascending = self.ascending and follows

    def remove(self, positions: Ints) -> None:
        bytes_, bits = positions >> 3, np.left_shift(1, positions & 7).astype(np.uint8)
        if self._removed is None:
            self._removed = np.zeros(-(-self.n // 8), dtype=np.uint8)
        np.bitwise_or.at(self._removed, bytes_, bits)
        self.n_removed += len(positions)
        self._allowed = None

    def kept(self) -> tuple[Ints, IdTable]:
        """Positions that are not removed, and the table of these alone."""
        positions = np.flatnonzero(self.mask)
        ids = self.at(positions)
        plain = self._ids is None and len(positions) == self.n
        table = IdTable(len(positions), None if plain else ids)
        table.next_id = self.next_id
        return positions, table


def ids_ascend(ids: Ints | None, n: int) -> bool:
    """Whether each of the first n ids is larger than the one before."""
    return ids is None or bool(np.all(ids[1:n] > ids[: max(n - 1, 0)]))


def _after(ids: Ints | None, n: int) -> int:
    return n if ids is None else int(ids[:n].max(initial=-1)) + 1


class _Runs:
    """Sorted runs of (id, position), the younger ones in front; merged so that each is half as long as the next."""

    def __init__(self) -> None:
        self.runs: list[tuple[Ints, Ints]] = []

    @property
    def nbytes(self) -> int:
        return sum(ids.nbytes + positions.nbytes for ids, positions in self.runs)

    def add(self, ids: Ints, first: int) -> None:
        run = _sorted_run(ids, np.arange(first, first + len(ids)))
        while self.runs and 2 * len(run[0]) >= len(self.runs[0][0]):
            run = _merged(run, self.runs.pop(0))
        self.runs.insert(0, run)

    def find(self, ids: Ints) -> Ints:
        positions = np.full(len(ids), -1)
        for held, where in self.runs:
            missing = positions < 0
            positions[missing] = _found(held, ids[missing], where)
        return positions


def _merged(young: tuple[Ints, Ints], old: tuple[Ints, Ints]) -> tuple[Ints, Ints]:
    return _sorted_run(*(np.concatenate(pair) for pair in zip(young, old, strict=True)))


def _sorted_run(ids: Ints, positions: Ints) -> tuple[Ints, Ints]:
    order = np.lexsort((-positions, ids))  # of equal ids the youngest first: it is the one that is found
    return ids[order], positions[order]


def _found(ascending: Ints, ids: Ints, where: Ints | None) -> Ints:
    """Positions of ids among ascending ones, -1 for none."""
    if not len(ascending):
        return np.full(len(ids), -1)
    place = np.minimum(np.searchsorted(ascending, ids), len(ascending) - 1)
    return np.where(ascending[place] == ids, place if where is None else where[place], -1)


def _grown(array: Array, n: int, end: int) -> Array:
    """An array with room for `end`, and a sixteenth more, that starts with the first n."""
    if len(array) >= end and array.flags.writeable:
        return array
    room = np.zeros(max(end, n + n // 16), dtype=array.dtype)
    room[:n] = array[:n]
    return room
