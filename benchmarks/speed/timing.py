"""Times of several ways to do one thing, taken in turns, so that all meet the machine in the same state."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np

Work = Callable[[], object]


def seconds_of(work: Work) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def in_turns(works: dict[str, Work], cap: float, most: int = 15, least: int = 3) -> dict[str, float]:
    """Median seconds of each, after a warm-up, over rounds; each takes part until its own seconds reach `cap`."""
    for work in works.values():
        work()
    taken: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(most):
        for name, work in works.items():
            if len(taken[name]) < least or sum(taken[name]) < cap:
                taken[name].append(seconds_of(work))
    return {name: statistics.median(times) for name, times in taken.items()}


def reading(codes: np.ndarray, n_threads: int, cap: float) -> float:
    """Median seconds to read the codes' bytes once: the largest 8-byte word, as NumPy finds it."""
    words = codes.reshape(-1)[: codes.size // 8 * 8].view(np.uint64)
    parts = np.array_split(words, n_threads)
    with ThreadPoolExecutor(n_threads) as pool:
        return in_turns({"read": lambda: list(pool.map(np.max, parts))}, cap, most=50, least=10)["read"]
