"""Progress of work in parts: a bar on a terminal, lines in a log."""

from __future__ import annotations

import sys
from typing import Any


class PartsProgress:
    """Shows how many parts are done; silent when not verbose.

    >>> with PartsProgress(2, "encoding", verbose=False) as progress:
    ...     progress.done(1)
    """

    def __init__(self, total: int, what: str, verbose: bool) -> None:
        self.total, self.what, self.verbose = total, what, verbose
        self.n_done = 0
        self._bar: Any = None

    def __enter__(self) -> PartsProgress:
        if self.verbose and sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

            columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
            self._bar = Progress(*columns, console=Console(stderr=True))
            self._task = self._bar.add_task(self.what, total=self.total)
            self._bar.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def done(self, n_parts: int) -> None:
        """Count further parts as done."""
        before, self.n_done = self.n_done, self.n_done + n_parts
        if self._bar is not None:
            self._bar.update(self._task, completed=self.n_done)
        elif self.verbose and (10 * before // self.total < 10 * self.n_done // self.total):  # a line a tenth
            print(f"cghash: {self.what}: {self.n_done}/{self.total}", file=sys.stderr, flush=True)
