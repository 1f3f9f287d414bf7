"""Progress of downloads and of features: a bar on a terminal, lines in a log, or a function of the caller."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["Tell", "telling"]

Tell = Callable[[str, int, int | None], None]  # what is done, how much of it, of how much

_SHARE = 10  # lines of a log, for one piece of work


@contextmanager
def telling(progress: bool | Tell) -> Iterator[Tell]:
    """A function that is told of progress: the caller's, one that shows it on standard error, or one that is silent.

    >>> with telling(False) as tell:
    ...     tell("mnist", 1, 2)
    """
    if callable(progress):
        yield progress
    elif not progress:
        yield lambda words, done, total: None
    elif sys.stderr.isatty():
        with _bars() as tell:
            yield tell
    else:
        yield _Lines()


class _Lines:
    """A line for each tenth of a piece of work."""

    def __init__(self) -> None:
        self.seen: dict[str, int] = {}

    def __call__(self, words: str, done: int, total: int | None) -> None:
        tenth = _SHARE * done // total if total else 0
        if self.seen.get(words) != tenth:
            self.seen[words] = tenth
            of = f"{100 * done / total:.0f} %" if total else "begun"
            print(f"cghash: {words}: {of}", file=sys.stderr, flush=True)


@contextmanager
def _bars() -> Iterator[Tell]:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    columns = TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn()
    tasks: dict[str, Any] = {}
    with Progress(*columns, console=Console(stderr=True)) as bars:

        def tell(words: str, done: int, total: int | None) -> None:
            if words not in tasks:
                tasks[words] = bars.add_task(words, total=total)
            bars.update(tasks[words], completed=done, total=total)

        yield tell
