"""When an index builds the tables that its search prunes by."""

from __future__ import annotations

from typing import Any

from .._arrays import Ints
from .ids import IdTable

_LEAST = 4096  # codes; below, a scan takes microseconds
_BUILD_SECONDS = 5e-7  # a code, to build the tables: what scans must have cost before they are built unasked


class Pruning:
    """What scans have cost since the tables were built; `blocks` below are the codes, `ids` their table."""

    def __init__(self) -> None:
        self._scanned_seconds = 0.0
        self._refused = 0  # number of codes at which tables were found not to pay

    def may_pay(self, blocks: Any, n: int) -> bool:
        """Whether tables of n codes, or of more of them than now, are worth a thought."""
        return 4 * blocks.n_prepared <= 3 * n and n >= _LEAST and n >= 2 * self._refused

    def has_paid(self, seconds: float, n: int) -> bool:
        """Count a search's time towards building the tables of n codes; whether it has paid for them."""
        self._scanned_seconds += seconds
        return self.is_due(n)

    def is_due(self, n: int) -> bool:
        """Whether scans have cost as much as building the tables of n codes."""
        return self._scanned_seconds > _BUILD_SECONDS * n

    def build(self, blocks: Any, ids: IdTable, whole_weights: Ints, room: float, n_threads: int) -> None:
        """Build the tables where an estimate says that they pay; `room` are the bytes that they may take."""
        self._scanned_seconds, self._refused = 0.0, ids.n
        if ids.n < _LEAST or room <= 0:
            blocks.forget()
        elif blocks.prepare(whole_weights, ids.explicit, ids.allowed, room, False, n_threads):
            self._refused = 0
