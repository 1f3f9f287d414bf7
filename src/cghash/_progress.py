"""Progress of a fit: a bar on a terminal, lines in a log."""

from __future__ import annotations

import sys
from typing import Any

from .learning.column_generation import State


class FitProgress:
    """Shows the columns of a fit as they come; silent when not verbose."""

    def __init__(self, n_bits: int, verbose: bool | int) -> None:
        self.n_bits, self.verbose = n_bits, int(verbose)
        self._bar: Any = None

    def __enter__(self) -> FitProgress:
        if self.verbose and sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

            words = (
                TextColumn("{task.description}"),
                BarColumn(),
                MofNCompleteColumn(),
                TimeRemainingColumn(),
            )
            self._bar = Progress(*words, TextColumn("{task.fields[state]}"), console=Console(stderr=True))
            self._task = self._bar.add_task("bits", total=self.n_bits, state="")
            self._bar.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def __call__(self, state: State) -> None:
        if not self.verbose:
            return
        last, n = state.records[-1], len(state.records)
        words = f"objective {last.objective:.4g}, {100 * last.satisfied:.1f} % satisfied"
        if self._bar is not None:
            self._bar.update(self._task, completed=n, state=words)
        elif self.verbose > 1 or n in (1, self.n_bits) or n % max(1, self.n_bits // 10) == 0:
            print(f"cghash: bit {n}/{self.n_bits}: {words}", file=sys.stderr, flush=True)
