"""Starting, cancelling and taking up again the jobs of a workspace; each runs in a process of its own."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
from datetime import UTC, datetime, timedelta
from typing import Any

from ..exceptions import FormatError, InUseError, InvalidInputError
from .fitting import check_parameters
from .records import ACTIVE_STATES, Job
from .worker import is_working, job_folder
from .workspace import DATABASE, Workspace

__all__ = ["Jobs"]

_PATIENCE = 5.0  # seconds that a worker has to keep what it did
_COMING_UP = timedelta(seconds=10)


class Jobs:
    """The jobs of a workspace, one at a time."""

    def __init__(self, workspace: Workspace) -> None:
        self.workspace = workspace
        self._processes: dict[int, subprocess.Popen[bytes]] = {}
        self._lock = threading.Lock()

    def start(self, parameters: dict[str, Any]) -> Job:
        """Begin to learn from the answers that there are."""
        self._check_place()
        before = self.workspace.records.active_job()
        if before is not None:
            self.look_after(before.id)
        job = self.workspace.records.add_job(check_parameters(parameters))
        if job is None:
            raise InUseError("another job is under way: wait for it, or cancel it")
        self._run(job.id)
        return self.workspace.records.job(job.id)

    def resume(self) -> Job | None:
        """Take up the job that was under way when its worker ended, if there is one."""
        job = self.workspace.records.active_job()
        if job is None or is_working(self.workspace, job.id):
            return None
        if job.state == "cancelling":
            self.workspace.records.change_job(job.id, state="cancelled", message="cancelled")
            return None
        self._run(job.id)
        return job

    def cancel(self, number: int) -> Job:
        """Ask a job to end; what it learned so far is thrown away. One that has ended stays as it is."""
        records = self.workspace.records
        alone = not self._has_worker(records.job(number))
        records.change_job(number, when=("queued", "running"), state="cancelling")
        if alone:
            records.change_job(number, when=("cancelling",), state="cancelled", message="cancelled")
        return records.job(number)

    def look_after(self, number: int) -> Job:
        """A job as it is; one whose worker died without a word is failed."""
        records = self.workspace.records
        job = records.job(number)
        if job.state in ACTIVE_STATES and not self._has_worker(job):
            words = "its process ended without a word"
            records.change_job(number, when=("cancelling",), state="cancelled", message="cancelled")
            records.change_job(number, when=("queued", "running"), state="failed", message=words)
            shutil.rmtree(job_folder(self.workspace, number), ignore_errors=True)
            job = records.job(number)
        return job

    def stop(self) -> None:
        """End the workers; their jobs go on from their checkpoints when `resume` is called."""
        with self._lock:
            running = [process for process in self._processes.values() if process.poll() is None]
        for process in running:
            process.send_signal(signal.SIGTERM)
        for process in running:
            try:
                process.wait(_PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def _check_place(self) -> None:
        place = self.workspace.inside("checkpoints")
        try:
            place.mkdir(exist_ok=True)
        except OSError as error:
            raise InvalidInputError(f"nothing can be learned where models cannot be kept: {error.strerror}") from error

    def _run(self, number: int) -> None:
        job_folder(self.workspace, number).mkdir(parents=True, exist_ok=True)
        settings = {DATABASE: self.workspace.database, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
        # -P: nothing is imported from the folder in which the server was started, which may be a stranger's
        command = [sys.executable, "-P", "-m", "cghash.workspace.worker", os.fspath(self.workspace.folder), str(number)]
        with self._lock:
            self._processes[number] = subprocess.Popen(
                command,
                env=os.environ | settings,
                stdin=subprocess.DEVNULL,
                start_new_session=True,  # Ctrl-C is for the server, which then stops its workers
            )

    def _has_worker(self, job: Job) -> bool:
        """Whether a worker is alive: ours, or one of another server, which needs a moment to come up."""
        with self._lock:
            process = self._processes.get(job.id)
        if process is None and datetime.now(UTC) - datetime.fromisoformat(job.changed) < _COMING_UP:
            return True
        if process is not None and process.poll() is None:
            return True
        try:
            return is_working(self.workspace, job.id)
        except FormatError:  # its lock is none of ours
            return False
