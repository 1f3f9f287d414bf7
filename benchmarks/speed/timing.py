"""Times of several ways to do one thing, taken in turns, so that all meet the machine in the same state."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np

Work = Callable[[], object]

_SETTLE = 0.02  # seconds before each run: OpenMP's threads spin for milliseconds when their work is done


def settle() -> None:
    """Let other threads come to rest, awake: after a sleep, a new thread may take milliseconds to begin elsewhere."""
    end = time.perf_counter() + _SETTLE
    while time.perf_counter() < end:
        pass


def seconds_of(work: Work) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def in_turns(works: dict[str, Work], cap: float, most: int = 60, least: int = 3) -> dict[str, float]:
    """Median seconds of each over rounds, after a warm-up; each takes part until its own seconds reach `cap`.

    `least` rounds count in any case, but only one of a work whose warm-up alone took longer than the cap.
    """
    due = {name: 1 if seconds_of(work) > cap else least for name, work in works.items()}
    taken: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(most):
        for name, work in works.items():
            if len(taken[name]) < due[name] or sum(taken[name]) < cap:
                settle()
                taken[name].append(seconds_of(work))
    return {name: statistics.median(times) for name, times in taken.items()}


def reader(codes: np.ndarray, n_threads: int) -> Work:
    """Reads the codes' bytes once: the largest 8-byte word, the quickest of NumPy's ways to read."""
    words = codes.reshape(-1)[: codes.size // 8 * 8].view(np.uint64)
    if n_threads == 1:
        return words.max
    pool = ThreadPoolExecutor(n_threads)
    parts = np.array_split(words, n_threads)
    return lambda: list(pool.map(np.max, parts))
