"""ScannedBlocks: what blocks of codes share that are searched by scans alone, without tables to prune by."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..._arrays import Bytes, Codes, Floats, Ints


class ScannedBlocks:
    """The part of `CodeBlocks` that follows where nothing is built; `search` and `range_search` are the class's own.

    `weights` (8·n_bytes,) are those of the index. Where they are the queries' `own`, they may also be a row for each,
    (q·8·n_bytes,); nothing of them is kept.
    """

    n_prepared = 0  # codes, from the first on, that what `prepare` built covers

    def _among(self, positions: Ints, ids: Ints | None) -> tuple[Any, Ints | None, Bytes | None]:
        """Blocks that hold the codes at some positions, their ids, and which of them are meant."""
        raise NotImplementedError

    def search_among(
        self, queries: Codes, positions: Ints, k: int, weights: Ints, ids: Ints | None, n_threads: int,
        unit: float = 1.0, own: bool = False,
    ) -> tuple[Floats, Ints]:  # fmt: skip
        """As `search`, among some positions only, which differ."""
        blocks, names, allowed = self._among(positions, ids)
        asked = (weights, names, allowed, len(positions), n_threads, unit, own)
        found: tuple[Floats, Ints] = blocks.search(queries, k, *asked)
        return found

    def range_search_among(
        self, queries: Codes, positions: Ints, radii: Ints, weights: Ints, ids: Ints | None, n_threads: int,
        unit: float = 1.0, own: bool = False,
    ) -> tuple[Ints, Floats, Ints]:  # fmt: skip
        """As `range_search`, among some positions only, which differ."""
        blocks, names, allowed = self._among(positions, ids)
        asked = (weights, names, allowed, len(positions), n_threads, unit, own)
        found: tuple[Ints, Floats, Ints] = blocks.range_search(queries, radii, *asked)
        return found

    def prepare(
        self, weights: Ints, ids: Ints | None, allowed: Bytes | None, most_bytes: float, always: bool, n_threads: int,
        key_bits: Sequence[int] = (),
    ) -> bool:  # fmt: skip
        """Build what search prunes by, and say whether it pays: nothing here.

        `always` keeps and uses it even where it does not; `key_bits`, of each table's key, replace the choice.
        """
        return False

    def forget(self) -> None:
        """Drop what `prepare` built."""

    def verify(self, ids: Ints | None, allowed: Bytes | None) -> None:
        """ValueError where what `prepare` built does not fit the codes: never, as there is nothing."""

    def forked(self) -> None:
        """In a process that was just forked: no lock to let go of."""

    def reweight(self, weights: Ints) -> None:
        """Drop what `prepare` built where that lacks a bit that counts under these weights (8·n_bytes,)."""

    def prepared(self) -> dict[str, Any]:
        """What `prepare` built, as arrays by name; empty if there is nothing."""
        return {}

    def adopt(self, arrays: dict[str, Any], always: bool = False) -> None:
        """Take over what `prepared` gave, for the same codes; `always` as for `prepare`."""
