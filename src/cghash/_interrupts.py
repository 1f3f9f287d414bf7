"""Signals that wait until a short piece of work is whole."""

from __future__ import annotations

import signal
import threading

# those of `signal` look for an enum each time, and take ten times as long
from _signal import getsignal  # type: ignore[import-not-found]
from _signal import signal as handle
from types import FrameType
from typing import Any, Self

# those that programs stop themselves or others by, or count their time by
_NAMES = ("INT", "BREAK", "TERM", "HUP", "QUIT", "ALRM", "VTALRM", "PROF", "XCPU", "USR1", "USR2")
_SIGNALS = [getattr(signal, f"SIG{name}") for name in _NAMES if hasattr(signal, f"SIG{name}")]


class held_off:  # noqa: N801 – a context manager
    """`with held_off():` has Ctrl-C, and other signals with a handler in Python, handled when the block has ended.

    Python runs handlers in the main thread alone; elsewhere there is nothing to do.

    >>> try:
    ...     with held_off():
    ...         signal.raise_signal(signal.SIGINT)
    ...         print("whole")
    ... except KeyboardInterrupt:
    ...     print("interrupted")
    whole
    interrupted
    """

    def __init__(self) -> None:
        self._handlers: dict[int, Any] = {}
        self._came: dict[int, FrameType | None] = {}
        self._holds = False

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            try:
                for number in _SIGNALS:
                    handler = getsignal(number)
                    if callable(handler):
                        self._handlers[number] = handler
                        handle(number, self._note)
            except BaseException:
                self.__exit__()
                raise
            self._holds = True
        return self

    def __exit__(self, *error: Any) -> None:
        self._holds = False  # what is still ours hands on
        try:
            for number, handler in self._handlers.items():
                handle(number, handler)
        finally:
            self._hand_on()

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self._holds:
            self._came[number] = frame
        else:
            self._handlers[number](number, frame)

    def _hand_on(self) -> None:
        if self._came:
            number, frame = self._came.popitem()
            try:
                self._handlers[number](number, frame)
            finally:
                self._hand_on()
