"""One moment: a writer in a child, a fault at a random time, and a fresh look at what is on the disk."""

from __future__ import annotations

import json
import os
import shutil
import signal
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from child import run
from disk import ONCE, SHORT, Disk
from ledger import Ledger
from processes import Process, wait_until
from writers.base import Writer

SECOND = 0.002  # seconds within which a second interrupt follows


@dataclass
class Clean:
    """How long a phase takes that nothing hits, and how many calls it makes that could fail."""

    seconds: float
    calls: int


@dataclass
class Outcome:
    """What came of a moment."""

    hit: bool  # during a change
    refused: bool = False  # the object refused to go on, and said so
    raised: bool = False  # a change gave an error
    problems: list[tuple[str, str]] = field(default_factory=list)
    where: str = ""


class Place:
    """The folders of a writer: one prepared, and a copy of it for each moment."""

    def __init__(self, root: Path, writer: Writer, disk: Disk) -> None:
        self.root, self.writer, self.disk = root, writer, disk
        self.prepared = root / "prepared"
        self.folder = root / "moment"
        self.prepared.mkdir(parents=True)
        self.alone(lambda: writer.prepare(self.prepared), 600)

    def fresh(self) -> Path:
        shutil.rmtree(self.folder, ignore_errors=True)
        shutil.copytree(self.prepared, self.folder)
        self.writer.fresh(self.folder)
        return self.folder

    def alone(self, work: Callable[[], Any], patience: float) -> Any:
        """What some work gives in a process of its own; RuntimeError with its trace, TimeoutError when it hangs."""

        def told(pipe: int) -> None:
            try:
                line = {"gave": work()}
            except BaseException:
                line = {"trace": traceback.format_exc()}
            os.write(pipe, json.dumps(line).encode() + b"\n")

        process = Process(told)
        process.read_until(time.monotonic() + patience)
        process.finish()
        if not process.lines:
            raise TimeoutError(f"no answer in {patience:g} s")
        if (trace := process.said("trace")) is not None:
            raise RuntimeError(trace)
        return process.said("gave")

    def clean(self, fault: str, seed: int) -> Clean:
        """Run once without a fault; an error of the writer itself ends the program."""
        process = self._started(fault, seed, 0, ONCE)
        process.read_until(time.monotonic() + self.writer.patience * 5)
        process.finish()
        if process.said("finished") is None:
            raise SystemExit(f"{self.writer.name}: a run without a fault fails: {process.lines[-3:]}")
        problems = self._problems(process, seed)
        if problems:
            raise SystemExit(f"{self.writer.name}: a run without a fault has {problems}")
        return Clean(process.said("end") - process.said("begin"), process.said("seen"))

    def moment(self, fault: str, clean: Clean, seed: int) -> Outcome:
        """Hit a child at a time, or a call, that the seed draws."""
        rng = np.random.default_rng(seed)
        if fault in ("kill", "interrupt"):
            process = self._started(None, seed)
            self._signalled(process, fault, rng.random() * clean.seconds, rng)
        else:
            modes = [mode for mode in self.writer.modes if fault == "full-disk" or mode != SHORT]
            process = self._started(fault, seed, 1 + int(rng.integers(clean.calls)), int(rng.choice(modes)))
        stuck = not process.ended and not self._ended(process)
        process.finish()
        outcome = Outcome(self._was_hit(process, fault), where=self.disk.what)
        outcome.raised = any("failed" in line for line in process.lines)
        outcome.refused = any(line.get("refused") for line in process.lines)
        if not outcome.hit:
            return outcome
        if stuck:
            outcome.problems.append(("stuck", f"after {process.lines[-1]}"))
        elif fault != "kill":
            outcome.problems += [("wrong", line["wrong"]) for line in process.lines if "wrong" in line]
            unheard = [line["unheard"] for line in process.lines if line.get("unheard")]
            outcome.problems += [("unheard", words) for words in unheard if not self.writer.journals]
        outcome.problems += self._problems(process, seed)
        return outcome

    def _started(self, fault: str | None, seed: int, at: int = 0, mode: int = ONCE) -> Process:
        folder = self.fresh()
        self.disk.choose(self.writer.disk or folder, fault, at, mode)
        return Process(lambda pipe: run(self.writer, folder, seed, pipe, self.disk))

    def _signalled(self, process: Process, fault: str, after: float, rng: np.random.Generator) -> None:
        """Send the signal when the phase has lasted so long, and perhaps a second one."""
        process.read_until(time.monotonic() + self.writer.patience, "begin")
        wait_until((process.said("begin") or 0) + after)
        os.kill(process.pid, signal.SIGKILL if fault == "kill" else signal.SIGINT)
        if fault == "interrupt" and rng.random() < 0.5:
            wait_until(time.monotonic() + rng.random() * SECOND)
            os.kill(process.pid, signal.SIGINT)

    def _ended(self, process: Process) -> bool:
        process.read_until(time.monotonic() + self.writer.patience)
        return process.ended

    def _was_hit(self, process: Process, fault: str) -> bool:
        if fault == "kill":
            return process.said("begin") is not None and process.said("end") is None
        if fault == "interrupt":
            return process.said("hit") is not None
        return self.disk.failed > 0

    def _problems(self, process: Process, seed: int) -> list[tuple[str, str]]:
        """What a fresh process finds."""
        self.disk.disarm()
        ledger = Ledger()
        for line in process.lines:
            ledger.note(line)
        ledger.end()
        rng = np.random.default_rng(seed + 1)
        try:
            found = self.alone(lambda: self.writer.problems(self.folder, ledger, rng), self.writer.patience)
        except TimeoutError as error:
            return [("stuck", f"a fresh process: {error}")]
        except RuntimeError as error:
            return [("unreadable", str(error))]
        return [(kind, words) for kind, words in found]
