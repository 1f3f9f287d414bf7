"""Where the changes of an index go, and when it takes none."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from ..exceptions import InDoubtError, InvalidInputError
from .log import Change, Log

if TYPE_CHECKING:
    from .weighted_hamming import WeightedHammingIndex


@dataclass(frozen=True)
class Seen:
    """What an index was read from: a file, by its uuid, and its log up to some byte."""

    path: str  # without links
    uuid: str
    log_end: int | None  # None where the log was not looked at


class Keeping:
    """Makes changes of an index: in memory, and before that in its log, if it has one."""

    def __init__(self, seen: Seen | None = None, log: Log | None = None, *, read_only: bool = False) -> None:
        self.log = log
        self.seen = seen
        self._read_only = read_only
        self._doubt = ""  # why memory may hold half a change

    def check_whole(self) -> None:
        """Refuse to go on with something half-changed."""
        if self._doubt:
            raise InDoubtError(f"the index takes no more changes: {self._doubt}. Load it again, or build it anew")

    def check(self) -> None:
        """Refuse changes that would be lost, or be made to something half-changed."""
        self.check_whole()
        if self._read_only and self.seen:
            raise InvalidInputError(
                f"{self.seen.path} was loaded to be read only, and changes would be lost: load it with writable=True "
                "to keep them in a log beside it, or with writable='memory' for changes that need not last"
            )
        if self.log is not None:
            self.log.check_open()

    def make(self, work: Callable[[], None], *change: Any) -> None:
        """Log a change, whose fields these are, and make it. After an error neither is done; `work` undoes its own."""
        self.check()
        self._doubt = "a change was interrupted half-way"
        try:
            if self.log is None:
                work()
            else:
                self.log.keep(Change(*change), work)
        except Exception:
            self._doubt = ""
            raise
        self._doubt = ""

    @property
    def seen_now(self) -> Seen | None:
        """What holds the same as this index: what it was read from, with what it logged since."""
        if self.seen is None or self.log is None or self.log.closed or not self.log.base:
            return self.seen
        return Seen(self.seen.path, self.log.base, 0 if self.log.empty else self.log.end)

    def close(self) -> None:
        """Let others write."""
        if self.log is not None and not self.log.closed:
            self.seen = self.seen_now
            self.log.close()

    def forked(self, was_written: bool) -> None:
        """In a process that was just forked; another thread may have been at work before."""
        if was_written:
            self._doubt = "another thread was changing it when this process was forked"


_OPEN: WeakSet[WeightedHammingIndex] = WeakSet()  # what a forked process must not take over as it is


def follow(index: WeightedHammingIndex) -> None:
    """Tell an index when this process was forked."""
    _OPEN.add(index)


def _forked() -> None:
    for index in list(_OPEN):
        index._blocks.forked()
        index._keeping.forked(index._lock.reset())


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)
