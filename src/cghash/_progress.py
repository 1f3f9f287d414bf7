"""Progress of work: a bar on a terminal, lines in a log, or a function of the caller that is told."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .learning.column_generation import State

__all__ = ["Progress", "Tell", "counting", "of_a_fit", "telling"]

Tell = Callable[[str, int, int | None], None]  # what is done, how much of it, of how much


class Progress:
    """Shows on standard error how far pieces of work are: a bar each on a terminal, a line for each tenth in a log.

    Parameters
    ----------
    shown : whether anything is shown
    percent : whether shares are shown in the place of counts
    lines : whether a log has lines

    >>> with Progress(shown=False) as progress:
    ...     progress("encoding", 1, 2)
    """

    def __init__(self, shown: bool = True, *, percent: bool = False, lines: bool = True) -> None:
        self.shown, self.percent, self.lines = shown, percent, lines
        self._bars: Any = None
        self._tasks: dict[str, Any] = {}
        self._tenths: dict[str, int] = {}

    def __enter__(self) -> Progress:
        if self.shown and sys.stderr.isatty():
            self._bars = _bars(self.percent)
            self._bars.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self._bars is not None:
            self._bars.stop()

    def __call__(self, what: str, done: int, total: int | None, words: str = "", line: str | None = None) -> None:
        """Show how much of a piece of work is done.

        Parameters
        ----------
        what : name of the piece
        done, total : how much of how much; None where nobody knows
        words : stand beside the bar
        line : what a log says now, nothing where it is empty; None: how far the work is, at each tenth
        """
        if not self.shown:
            return
        if self._bars is not None:
            if what not in self._tasks:
                self._tasks[what] = self._bars.add_task(what, total=total, words="")
            self._bars.update(self._tasks[what], completed=done, total=total, words=words)
        elif self.lines:
            line = self._tenth(what, done, total) if line is None else line
            if line:
                print(f"cghash: {line}", file=sys.stderr, flush=True)

    def note(self, words: str) -> None:
        """Say something above the bars; a log has its lines."""
        if self._bars is not None:
            self._bars.console.print(words, style="red", highlight=False, markup=False)

    def _tenth(self, what: str, done: int, total: int | None) -> str:
        tenth = 10 * done // total if total else 0
        if self._tenths.get(what) == tenth:
            return ""
        self._tenths[what] = tenth
        if not total:
            return f"{what}: begun"
        return f"{what}: {100 * done / total:.0f} %" if self.percent else f"{what}: {done}/{total}"


def _bars(percent: bool) -> Any:
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        TaskProgressColumn,
        TextColumn,
        TimeRemainingColumn,
    )
    from rich.progress import Progress as Bars

    what, words = (TextColumn(text, markup=False) for text in ("{task.description}", "{task.fields[words]}"))
    count = TaskProgressColumn() if percent else MofNCompleteColumn()
    return Bars(what, BarColumn(), count, TimeRemainingColumn(), words, console=Console(stderr=True))


@contextmanager
def telling(progress: bool | Tell) -> Iterator[Tell]:
    """A function that is told of progress: the caller's, one that shows it, or one that is silent.

    >>> with telling(False) as tell:
    ...     tell("mnist", 1, 2)
    """
    if callable(progress):
        yield progress
    else:
        with Progress(progress, percent=True) as shown:
            yield shown


@contextmanager
def counting(total: int, what: str, shown: bool) -> Iterator[Callable[[int], None]]:
    """A function that is told of further parts that are done; a log has a line for each tenth of them.

    >>> with counting(2, "encoding", False) as done:
    ...     done(1)
    """
    n_done = 0
    with Progress(shown) as progress:
        progress(what, 0, total, line="")

        def count(n: int) -> None:
            nonlocal n_done
            before, n_done = n_done, n_done + n
            passed = total > 0 and 10 * before // total < 10 * n_done // total
            progress(what, n_done, total, line=f"{what}: {n_done}/{total}" if passed else "")

        yield count


@contextmanager
def of_a_fit(n_bits: int, verbose: bool | int) -> Iterator[Callable[[State], None]]:
    """A function that is told of each column of a fit; a log has a line for each tenth, or all where verbose is 2."""
    with Progress(bool(verbose)) as progress:
        progress("bits", 0, n_bits, line="")

        def tell(state: State) -> None:
            last, n = state.records[-1], len(state.records)
            words = f"objective {last.objective:.4g}, {100 * last.satisfied:.1f} % satisfied"
            due = int(verbose) > 1 or n in (1, n_bits) or n % max(1, n_bits // 10) == 0
            progress("bits", n, n_bits, words, f"bit {n}/{n_bits}: {words}" if due else "")

        yield tell
