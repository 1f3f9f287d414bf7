"""The process that runs one job: `python -m cghash.workspace.worker FOLDER JOB`.

It goes on without whoever started it, and a second worker of the same job goes on from where the first was stopped: the
answers are kept beside the checkpoint, so that it learns the same thing. A lock file tells whether a worker is alive.
"""

from __future__ import annotations

import errno
import os
import shutil
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np

from .._arrays import Ints
from ..exceptions import CGHashError, FormatError
from ..reading.binary_files import read_array
from ..reading.sources import source_of
from ..storage import written_atomically
from .fitting import learn
from .records import ACTIVE_STATES, LEARNED_FROM, Job, Records
from .workspace import Workspace

__all__ = ["is_working", "job_folder", "main", "work"]

_LOOK = 0.2  # seconds between two looks whether the job is to be cancelled
_PATIENCE = 2.0  # seconds that a worker waits for a lock which someone only looks at
_GENTLE = 10  # niceness: who searches comes first


def job_folder(workspace: Workspace, job: int, *names: str) -> Path:
    """Where a job keeps its checkpoint, its answers and its lock; or one of these."""
    return workspace.inside("checkpoints", f"job-{job}", *names)


def is_working(workspace: Workspace, job: int) -> bool:
    """Whether some process works at a job now."""
    with _locked(workspace, job) as mine:
        return not mine


def work(workspace: Workspace, number: int) -> str:
    """Do a job, or go on with it; the state in which it ended."""
    folder = job_folder(workspace, number)
    with _locked(workspace, number, _PATIENCE) as mine:
        if not mine:
            return "running"  # someone else's
        _clear(workspace, folder)
        records = workspace.records
        if not records.change_job(number, when=("queued", "running"), state="running"):
            return _end(records, folder, number, "cancelled", "cancelled before it began")
        try:
            with _interrupted_when_cancelled(workspace, number):
                _learn(workspace, records.job(number))
        except KeyboardInterrupt:
            if records.job(number).state == "cancelling":
                return _end(records, folder, number, "cancelled", "cancelled")
            return "running"  # told to stop: the next worker goes on
        except MemoryError:
            return _end(records, folder, number, "failed", "out of memory")
        except (CGHashError, ValueError, OSError) as error:
            return _end(records, folder, number, "failed", str(error))
        shutil.rmtree(folder, ignore_errors=True)
        return "done"


def _clear(workspace: Workspace, folder: Path) -> None:
    """Remove what the jobs before left, where a kill or an error of the disk came at their end; one runs at a time."""
    for left in workspace.inside("checkpoints").glob("job-*"):
        if left.name != folder.name and not left.is_symlink():
            shutil.rmtree(left, ignore_errors=True)


def _learn(workspace: Workspace, job: Job) -> None:
    """Learn the job's version; one that a worker had finished when it was killed is not learned twice."""
    records = workspace.records
    answers, last = _answers(records, job_folder(workspace, job.id, "answers.npy"), len(workspace.items))
    checkpoint = job_folder(workspace, job.id, "state")

    def tell(progress: dict[str, Any]) -> None:
        if not records.change_job(job.id, when=("running",), progress=progress):
            raise KeyboardInterrupt

    about = {"last_answer": last, "job": job.id}
    finished = [version for version in records.versions() if version.job == job.id]
    version = (
        finished[0]
        if finished
        else learn(workspace, answers, job.parameters, about=about, checkpoint=checkpoint, tell=tell)
    )
    message = f"version {version.version} was learned from {len(answers)} answers"
    records.change_job(job.id, state="done", version=version.version, message=message)


def _answers(records: Records, path: Path, n_items: int) -> tuple[Ints, int]:
    """The answers that were there when the job first began, and the number of the last."""
    if not path.exists():
        known = records.answers()
        told = [a.triplet for a in known if a.source in LEARNED_FROM and a.triplet is not None]
        rows = np.array([(known[-1].id if known else 0, 0, 0), *told], dtype=np.int64)
        with written_atomically(path) as file:
            np.save(file, rows, allow_pickle=False)
    rows = np.array(read_array(source_of(path)))
    if rows.dtype != np.int64 or rows.shape[1:] != (3,) or not len(rows):
        raise FormatError(f"{path} must hold answers, (n, 3) int64, got {rows.shape} {rows.dtype}")
    if rows[1:].size and not 0 <= rows[1:].min() <= rows[1:].max() < n_items:
        raise FormatError(f"{path} must hold numbers of items, 0 to {n_items - 1}, got others")
    return rows[1:], int(rows[0, 0])


def _end(records: Records, folder: Path, number: int, state: str, message: str) -> str:
    """End a job that has not ended otherwise."""
    records.change_job(number, when=ACTIVE_STATES, state=state, message=message)
    shutil.rmtree(folder, ignore_errors=True)
    return records.job(number).state


@contextmanager
def _interrupted_when_cancelled(workspace: Workspace, number: int) -> Iterator[None]:
    """Raises KeyboardInterrupt inside, at the next chance, once the job is to be cancelled."""
    over = threading.Event()

    def watch() -> None:
        while not over.wait(_LOOK):
            with suppress(CGHashError):  # a database that cannot be reached now may be later
                if workspace.records.job(number).state == "cancelling":
                    signal.raise_signal(signal.SIGINT)
                    return

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        watcher.join()


@contextmanager
def _locked(workspace: Workspace, job: int, patience: float = 0.0) -> Iterator[bool]:
    """Hold a job's lock; False where another process holds it. It is free once its holder is dead."""
    path = job_folder(workspace, job, "lock")
    path.parent.mkdir(parents=True, exist_ok=True)
    lock = _opened(path)
    try:
        last = time.monotonic() + patience
        while not (mine := _taken(lock)) and time.monotonic() < last:
            time.sleep(0.05)
        yield mine
    finally:
        os.close(lock)


def _opened(path: Path) -> int:
    """A lock file, made where there is none; what is in it stays, and no link is followed."""
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise
        raise FormatError(f"{path} must be a file, and is a link") from error


def _taken(lock: int) -> bool:
    import fcntl

    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def main(arguments: list[str]) -> int:
    """Work at a job of a folder; the database comes from the environment, since commands can be seen by all."""
    folder, number = arguments
    for one in (signal.SIGTERM, signal.SIGINT):  # which a server that a script began in the background would ignore
        signal.signal(one, signal.default_int_handler)
    os.nice(_GENTLE)
    try:
        state = work(Workspace.open(folder), int(number))
    except KeyboardInterrupt:  # before it began: the next worker does
        return 1
    return 0 if state == "done" else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
