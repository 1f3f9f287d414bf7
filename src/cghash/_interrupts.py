"""Signals that wait until a short piece of work is whole."""

from __future__ import annotations

import os
import signal
import threading

# those of `signal` look for an enum each time, and take ten times as long
from _signal import getsignal  # type: ignore[import-not-found]
from _signal import signal as handle
from collections.abc import Callable
from types import FrameType
from typing import Any, Self

# those that programs stop themselves or others by, or count their time by
_NAMES = ("INT", "BREAK", "TERM", "HUP", "QUIT", "ALRM", "VTALRM", "PROF", "XCPU", "USR1", "USR2")
_SIGNALS = [getattr(signal, f"SIG{name}") for name in _NAMES if hasattr(signal, f"SIG{name}")]


class held_off:  # noqa: N801 – a context manager
    """`with held_off():` has Ctrl-C, and other signals with a handler in Python, handled when the block has ended.

    Python runs handlers in the main thread alone; elsewhere there is nothing to do.

    Parameters
    ----------
    only_while : signals are held off while this is so, and handled at once before: until a lock is taken, for instance,
        which then is given back inside the block, as handlers may ask for it

    >>> before = signal.signal(signal.SIGINT, signal.default_int_handler)
    >>> try:
    ...     with held_off():
    ...         signal.raise_signal(signal.SIGINT)
    ...         print("whole")
    ... except KeyboardInterrupt:
    ...     print("interrupted")
    whole
    interrupted
    >>> _ = signal.signal(signal.SIGINT, before)
    """

    def __init__(self, only_while: Callable[[], bool] = lambda: True) -> None:
        self._only_while = only_while
        self._handlers: dict[int, Any] = {}
        self._came: dict[int, FrameType | None] = {}
        self._holds = False

    def __enter__(self) -> Self:
        if threading.current_thread() is not threading.main_thread():
            return self
        try:
            _HOLDING.append(self)
            for number in _SIGNALS:
                handler = getsignal(number)
                if callable(handler):
                    self._handlers[number] = handler
                    handle(number, self._note)
        except ValueError:  # not what Python itself calls the main thread: a program that embeds it has another
            self._handlers.clear()
        except BaseException:
            self.__exit__()
            raise
        self._holds = True
        return self

    def __exit__(self, *error: Any) -> None:
        self._holds = False  # what is still ours hands on
        try:
            self._restore([*self._handlers.items()])
        finally:
            if self in _HOLDING:
                _HOLDING.remove(self)
            self._hand_on()

    def forked(self) -> None:
        """In a process that another thread forked, in which the work that is to be whole does not go on."""
        self._came.clear()
        self.__exit__()

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self._holds and self._only_while():
            self._came[number] = frame
        else:
            self._handlers[number](number, frame)

    def _restore(self, handlers: list[tuple[int, Any]]) -> None:
        """Restore all handlers, but not where another handler was installed meanwhile; whatever one of them raises."""
        if handlers:
            number, handler = handlers.pop()
            try:
                if getsignal(number) == self._note:
                    handle(number, handler)
            finally:
                self._restore(handlers)

    def _hand_on(self) -> None:
        if self._came:
            number, frame = self._came.popitem()
            try:
                self._handlers[number](number, frame)
            finally:
                self._hand_on()


_HOLDING: list[held_off] = []


def _forked() -> None:
    for held in list(_HOLDING):
        held.forked()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)
