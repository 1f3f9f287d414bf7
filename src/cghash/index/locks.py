"""Many readers or one writer."""

from __future__ import annotations

from threading import Condition, Lock
from typing import Any


class ReadWriteLock:
    """`with lock.reading:` shares, `with lock.writing:` excludes; new readers wait behind a writer that waits.

    A reader comes in first and looks then whether a writer has closed the gate; a writer closes it first and looks then
    whether readers are inside. So under the GIL one of them sees the other, and while nobody writes, a reader takes no
    lock: a search takes microseconds.
    """

    def __init__(self) -> None:
        self._inside: list[None] = []  # an entry for each reader
        self._is_closed = False  # a writer is here, or waits for readers to leave
        self._gate = Lock()  # a writer holds it; a reader that found it closed waits for it
        self._has_left = Condition()
        self.reading = _Reading(self)
        self.writing = _Writing(self)


class _Reading:
    __slots__ = ("_lock",)

    def __init__(self, lock: ReadWriteLock) -> None:
        self._lock = lock

    def __enter__(self) -> None:
        lock = self._lock
        lock._inside.append(None)
        if lock._is_closed:
            self.__exit__()
            with lock._gate:
                lock._inside.append(None)

    def __exit__(self, *error: Any) -> None:
        lock = self._lock
        try:
            lock._inside.pop()
        finally:  # Ctrl-C too must not leave a writer waiting
            if lock._is_closed:
                with lock._has_left:
                    lock._has_left.notify_all()


class _Writing:
    __slots__ = ("_lock",)

    def __init__(self, lock: ReadWriteLock) -> None:
        self._lock = lock

    def __enter__(self) -> None:
        lock = self._lock
        lock._gate.acquire()
        try:
            lock._is_closed = True
            with lock._has_left:
                while lock._inside:
                    lock._has_left.wait()
        except BaseException:  # Ctrl-C while waiting
            self.__exit__()
            raise

    def __exit__(self, *error: Any) -> None:
        self._lock._is_closed = False
        self._lock._gate.release()
