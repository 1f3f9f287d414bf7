"""The same function of many images, in threads."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from typing import TypeVar

from ..._validation import check_jobs

__all__ = ["Progress", "each"]

Item = TypeVar("Item")
Result = TypeVar("Result")
Progress = Callable[[int, int], None]  # is told how many are done, of how many

_AHEAD = 4  # results a thread may be ahead of who takes them: memory stays bounded


def each(
    function: Callable[[Item], Result],
    items: Sequence[Item],
    n_jobs: int | None = None,
    progress: Progress | None = None,
) -> Iterator[Result]:
    """function(item) of every item, in their order, whatever the number of threads.

    Parameters
    ----------
    function : of one item alone, so that the answer cannot depend on the threads
    items : in the order of the answers
    n_jobs : threads; None or 1 for none beside this one, -1 for as many as there are cores
    progress : is called with (done, all) after each

    Examples
    --------
    >>> list(each(abs, [-1, 2, -3], n_jobs=2))
    [1, 2, 3]
    """
    threads = _threads(n_jobs)
    results = map(function, items) if threads == 1 else _threaded(function, items, threads)
    for done, result in enumerate(results, 1):
        if progress is not None:
            progress(done, len(items))
        yield result


def _threads(n_jobs: int | None) -> int:
    jobs = check_jobs(n_jobs) or 1
    return jobs if jobs > 0 else max(1, (os.cpu_count() or 1) + 1 + jobs)


def _threaded(function: Callable[[Item], Result], items: Sequence[Item], threads: int) -> Iterator[Result]:
    waiting = iter(items)
    with ThreadPoolExecutor(threads) as pool:
        running: list[Future[Result]] = [pool.submit(function, item) for item in islice(waiting, _AHEAD * threads)]
        try:
            while running:
                result = running.pop(0).result()
                running.extend(pool.submit(function, item) for item in islice(waiting, 1))
                yield result
        finally:
            for future in running:
                future.cancel()
