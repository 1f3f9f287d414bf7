"""A child process that says lines, and does not outlive the moment."""

from __future__ import annotations

import json
import os
import select
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any


class Process:
    """A forked child and the lines that it says."""

    def __init__(self, work: Callable[[int], None]) -> None:
        ours, theirs = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(ours)
            os.setsid()
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # what it says of errors is no news
            try:
                work(theirs)
            finally:
                os._exit(0)
        os.close(theirs)
        self.lines: list[dict[str, Any]] = []
        self._pipe, self._rest = ours, b""
        self.ended = False

    def read_until(self, last: float, word: str | None = None) -> bool:
        """Read lines until one has a word, the child ends, or a time; whether the word came."""
        while not self.ended and (left := last - time.monotonic()) > 0:
            if not select.select([self._pipe], [], [], left)[0]:
                return False
            piece = os.read(self._pipe, 1 << 16)
            self.ended = not piece
            *whole, self._rest = (self._rest + piece).split(b"\n")
            new = [json.loads(line) for line in whole]
            self.lines += new
            if word is not None and any(word in line for line in new):
                return True
        return False

    def said(self, word: str) -> Any:
        """What the first line with a word says, None where none came."""
        return next((line[word] for line in self.lines if word in line), None)

    def finish(self) -> None:
        """End the child and what it started."""
        with suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        while not self.ended:  # what was said before the end
            self.read_until(time.monotonic() + 1.0)
            if not select.select([self._pipe], [], [], 0)[0]:
                break
        os.close(self._pipe)


def wait_until(moment: float) -> None:
    while (left := moment - time.monotonic()) > 0:
        time.sleep(max(0.0, left - 0.0005) if left > 0.001 else 0)
