"""Many readers or one writer."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Condition


class ReadWriteLock:
    """Readers share; a writer waits for them, and new readers wait for a waiting writer."""

    def __init__(self) -> None:
        self._changed = Condition()
        self._readers = 0
        self._writing = False
        self._waiting = 0

    @contextmanager
    def reading(self) -> Iterator[None]:
        with self._changed:
            while self._writing or self._waiting:
                self._changed.wait()
            self._readers += 1
        try:
            yield
        finally:
            with self._changed:
                self._readers -= 1
                if not self._readers:
                    self._changed.notify_all()

    @contextmanager
    def writing(self) -> Iterator[None]:
        with self._changed:
            self._waiting += 1
            try:
                while self._writing or self._readers:
                    self._changed.wait()
                self._writing = True
            finally:
                self._waiting -= 1
        try:
            yield
        finally:
            with self._changed:
                self._writing = False
                self._changed.notify_all()
