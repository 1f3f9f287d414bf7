"""Many readers or one writer: twin of native/shared_lock.hpp."""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import Lock, get_ident
from typing import Any, TypeVar

Answer = TypeVar("Answer")

_LOOK_AGAIN = 0.0005  # seconds


class SharedLock:
    """Runs a function while others only read, or while nobody else is here; who waits keeps new readers out.

    A thread that is inside may read: a signal's handler may run anywhere, and must not wait for what it came out of.

    Python handles signals between calls, never within one that is not Python's own: so a reader is noted by `add`,
    and forgotten by `discard`, in a `finally` that an interrupt before or after them cannot keep from its work.
    """

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> bool:
        """As it was when it was made, in a process that was just forked; whether a writer was at work."""
        was_written = bool(getattr(self, "_writers", None))
        self._readers: set[tuple[int, object]] = set()  # the thread, and which of its calls
        self._writers: set[tuple[int, object]] = set()
        self._gate = Lock()  # held by a writer, and while a reader comes in
        return was_written

    def read(self, work: Callable[..., Answer], *arguments: Any) -> Answer:
        """What work gives, while no writer is at work."""
        if self.is_mine():
            return work(*arguments)
        me = (get_ident(), object())
        try:
            with self._gate:
                self._readers.add(me)
            return work(*arguments)
        finally:
            self._readers.discard(me)

    def write(self, work: Callable[..., Answer], *arguments: Any) -> Answer:
        """What work gives, while nobody else is at work."""
        if self.is_mine():
            raise RuntimeError("a change was asked for in the middle of another call of this thread")
        me = (get_ident(), object())
        with self._gate:
            while self._readers:
                time.sleep(_LOOK_AGAIN)
            try:
                self._writers.add(me)
                return work(*arguments)
            finally:
                self._writers.discard(me)

    def is_mine(self) -> bool:
        """Whether this thread is inside, and would wait for itself."""
        return any(thread == get_ident() for thread, _ in (*self._readers, *self._writers))
