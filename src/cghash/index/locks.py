"""Many readers or one writer."""

from __future__ import annotations

from threading import Condition, Lock
from typing import Any


class ReadWriteLock:
    """`with lock.reading:` shares, `with lock.writing:` excludes; new readers wait behind a writer that waits."""

    def __init__(self) -> None:
        self._gate = Lock()  # a writer holds it, a reader passes through
        self._entered = 0  # readers so far; changed by who holds the gate
        self._state = Lock()  # of the two below
        self._left = 0  # readers so far
        self._is_awaited = False  # that all have left
        self._idle = Condition(self._state)
        self.reading = _Reading(self)
        self.writing = _Writing(self)


class _Reading:
    def __init__(self, lock: ReadWriteLock) -> None:
        self._lock = lock

    def __enter__(self) -> None:
        lock = self._lock
        with lock._gate:
            lock._entered += 1

    def __exit__(self, *error: Any) -> None:
        lock = self._lock
        with lock._state:
            lock._left += 1
            if lock._is_awaited and lock._left == lock._entered:
                lock._idle.notify()


class _Writing:
    def __init__(self, lock: ReadWriteLock) -> None:
        self._lock = lock

    def __enter__(self) -> None:
        lock = self._lock
        lock._gate.acquire()
        try:
            with lock._state:
                lock._is_awaited = True
                while lock._left < lock._entered:
                    lock._idle.wait()
                lock._is_awaited = False
        except BaseException:  # Ctrl-C while waiting
            lock._gate.release()
            raise

    def __exit__(self, *error: Any) -> None:
        self._lock._gate.release()
