"""Many readers or one writer."""

from __future__ import annotations

from threading import Condition, Lock
from typing import Any


class ReadWriteLock:
    """`with lock.reading:` shares, `with lock.writing:` excludes; new readers wait behind a writer that waits."""

    def __init__(self) -> None:
        self._state = Lock()  # of the numbers below; held for moments only
        self._changed = Condition(self._state)
        self._readers = 0
        self._writers = 0  # that wait or write
        self._is_writing = False
        self.reading = _Reading(self)
        self.writing = _Writing(self)


class _Reading:
    def __init__(self, lock: ReadWriteLock) -> None:
        self._lock = lock

    def __enter__(self) -> None:
        lock = self._lock
        with lock._state:
            while lock._writers:
                lock._changed.wait()
            lock._readers += 1

    def __exit__(self, *error: Any) -> None:
        lock = self._lock
        with lock._state:
            lock._readers -= 1
            if lock._writers and not lock._readers:
                lock._changed.notify_all()


class _Writing:
    def __init__(self, lock: ReadWriteLock) -> None:
        self._lock = lock

    def __enter__(self) -> None:
        lock = self._lock
        with lock._state:
            lock._writers += 1
            try:
                while lock._readers or lock._is_writing:
                    lock._changed.wait()
            except BaseException:  # Ctrl-C while waiting
                lock._writers -= 1
                lock._changed.notify_all()
                raise
            lock._is_writing = True

    def __exit__(self, *error: Any) -> None:
        lock = self._lock
        with lock._state:
            lock._writers -= 1
            lock._is_writing = False
            lock._changed.notify_all()
