"""All cells of an experiment: resumed, in parallel, each task in a process of its own."""

from __future__ import annotations

import multiprocessing
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing.connection import wait
from typing import Any

from ...peers import PEERS
from .machine import circumstances, n_cores
from .plan import Experiment, Task
from .results import Store
from .scaled_items import prepared

__all__ = ["Event", "run"]

# all that tasks run is imported when the run begins: what is edited meanwhile does not reach them
PRELOADED = ["cghash.lab.experiments.cells", "cghash.hasher", *(f"cghash.peers.{name.lower()}" for name in PEERS)]


@dataclass(frozen=True)
class Event:
    """What has just happened, and how far the run is."""

    task: Task
    seconds: float
    error: str | None
    done: int
    total: int
    seconds_left: float


@dataclass
class _Running:
    process: Any
    task: Task
    bits: list[int]
    began: float = field(default_factory=time.monotonic)


def run(
    experiment: Experiment,
    store: Store,
    *,
    data: str | os.PathLike[str] | None = None,
    n_jobs: int | None = None,
    limit: float | None = None,
    fresh: bool = False,
    told: Callable[[Event], None] = lambda event: None,
) -> list[Event]:
    """Run what is missing of an experiment; a task that fails, dies or takes too long is recorded, and the rest go on.

    Parameters
    ----------
    experiment : what to run
    store : where results are, and go to
    data : folder of data sets, as for `datasets.load`
    n_jobs : processes at a time; default: as many as cores
    limit : seconds after which a task is given up, optional
    fresh : whether to measure again what is there
    told : called after each task

    Returns
    -------
    failed : the events of the tasks that failed
    """
    folder = None if data is None else str(data)
    if not all(spec.digest for spec in experiment.datasets):
        experiment = prepared(experiment, folder)
    wanted = [
        (task, experiment.bits_of(task) if fresh else store.missing(experiment, task)) for task in experiment.tasks()
    ]
    waiting = [(task, bits) for task, bits in wanted if bits]
    jobs = min(n_jobs or n_cores(), max(1, len(waiting)))
    pace = _Pace(len(wanted), len(wanted) - len(waiting), jobs)
    events = []
    under_way: list[_Running] = []
    for running, error in _finished(experiment, store, waiting, under_way, jobs, folder, limit):
        event = pace.event(running, error, [task for task, _ in waiting], under_way)
        events.append(event)
        told(event)
    return [event for event in events if event.error]


def _finished(
    experiment: Experiment,
    store: Store,
    waiting: list[tuple[Task, list[int]]],
    under_way: list[_Running],
    jobs: int,
    data: str | None,
    limit: float | None,
) -> Iterator[tuple[_Running, str | None]]:
    """Start tasks as processes come free, and give each when it has ended; both lists are kept up to date."""
    context = _context()
    threads = max(1, n_cores() // jobs)
    waiting.reverse()
    try:
        while waiting or under_way:
            while waiting and len(under_way) < jobs:
                task, bits = waiting.pop()
                about = {"seed": task.split, **circumstances()}
                arguments = experiment, task, bits, str(store.folder), data, threads, about
                process = context.Process(target=_work, args=arguments)
                with _imports_from_elsewhere():
                    process.start()
                under_way.append(_Running(process, task, bits))
            wait([running.process.sentinel for running in under_way], timeout=1.0)
            for running in list(under_way):
                over = limit is not None and time.monotonic() - running.began > limit
                if over:
                    running.process.kill()
                if over or not running.process.is_alive():
                    running.process.join()
                    under_way.remove(running)
                    yield running, _ended(experiment, store, running, f"took more than {limit:g} s" if over else None)
    finally:
        for running in under_way:
            running.process.kill()
            running.process.join()


def _context() -> Any:
    """New processes from a server that has everything imported and no threads; a fork of this one might have some."""
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(PRELOADED)
    return context


@contextmanager
def _imports_from_elsewhere() -> Iterator[None]:
    """Processes that begin inside import nothing from the current folder, which may be a stranger's."""
    before = os.environ.get("PYTHONSAFEPATH")
    os.environ["PYTHONSAFEPATH"] = "1"
    try:
        yield
    finally:
        os.environ.pop("PYTHONSAFEPATH")
        if before is not None:
            os.environ["PYTHONSAFEPATH"] = before


def _work(
    experiment: Experiment,
    task: Task,
    bits: list[int],
    store: str,
    data: str | None,
    threads: int,
    about: dict[str, Any],
) -> None:
    """In the process of the task: measure, and keep each cell as it comes."""
    from .cells import failure, limited_threads, run_task

    threading.Thread(target=_end_with_parent, daemon=True).start()
    kept = Store(store)
    left = list(bits)

    def keep(n_bits: int, result: dict[str, Any]) -> None:
        kept.write(experiment, task, n_bits, {**result, **about})
        left.remove(n_bits)

    try:
        with limited_threads(threads):
            run_task(experiment, task, bits, keep, data, threads)
    except Exception as error:
        for n_bits in list(left):
            keep(n_bits, failure(error))


def _end_with_parent() -> None:
    """A run that is killed leaves no task behind."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)


def _ended(experiment: Experiment, store: Store, running: _Running, error: str | None) -> str | None:
    """Why a task did not give all its cells; a process that died is recorded for it."""
    if error is None and running.process.exitcode != 0:
        error = f"its process died (exit code {running.process.exitcode}; -9 is what too little memory looks like)"
    missing = [n_bits for n_bits in store.missing(experiment, running.task) if n_bits in running.bits]
    if error is not None:
        for n_bits in missing:
            store.write(experiment, running.task, n_bits, {"status": "failed", "error": error, **circumstances()})
        return error
    return store.error_of(running.task, missing[0]) if missing else None


class _Pace:
    """How far the run is, and how long it still takes: what a method took on a data set, it takes again."""

    def __init__(self, total: int, done: int, jobs: int) -> None:
        self.total, self.done, self.jobs = total, done, jobs
        self.seconds: dict[tuple[str, str], list[float]] = {}

    def event(self, running: _Running, error: str | None, waiting: list[Task], under_way: list[_Running]) -> Event:
        now = time.monotonic()
        seconds = now - running.began
        self.done += 1
        self.seconds.setdefault(self._key(running.task), []).append(seconds)
        left = sum(self._expected(task) for task in waiting)
        left += sum(max(0.0, self._expected(other.task) - (now - other.began)) for other in under_way)
        return Event(running.task, seconds, error, self.done, self.total, left / self.jobs)

    def _expected(self, task: Task) -> float:
        known = self.seconds.get(self._key(task))
        if known is None:  # the same method elsewhere, or anything
            known = [s for (method, _), all_of in self.seconds.items() if method == task.method.name for s in all_of]
            known = known or [s for all_of in self.seconds.values() for s in all_of]
        return sum(known) / len(known)

    @staticmethod
    def _key(task: Task) -> tuple[str, str]:
        return task.method.name, task.dataset.name
