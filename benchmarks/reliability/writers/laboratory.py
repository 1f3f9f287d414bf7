"""The raw results of `cghash lab run`."""

from __future__ import annotations

import multiprocessing
from pathlib import Path
from typing import Any

from ledger import Ledger

from cghash.lab.experiments import runner
from cghash.lab.experiments.plan import DataSpec, Experiment, MethodSpec
from cghash.lab.experiments.results import Store, read_results
from cghash.lab.experiments.scaled_items import prepared

from .base import Change, Random, Writer


class LabResults(Writer):
    """A run that is stopped goes on from what was measured; its tasks are forked here, which is faster."""

    name, patience = "lab results", 60.0

    def prepare(self, folder: Path) -> None:
        runner._context = lambda: multiprocessing.get_context("fork")

    def work(self, child: Any, folder: Path, rng: Random) -> None:
        runner._context = lambda: multiprocessing.get_context("fork")
        plan = _plan()

        def measured() -> None:
            failed = runner.run(plan, Store(folder / "results"), n_jobs=1, told=lambda event: _tell(child, event))
            if failed:
                raise OSError(failed[0].error)

        child.begin()
        for _ in range(9):
            outcome = child.attempt(Change({}, measured))
            assert outcome != "refused", f"the run does not go on: {child.ledger.last.get('words')}"
            if outcome == "done":
                break
        child.end()

    def problems(self, folder: Path, ledger: Ledger, rng: Random) -> list[tuple[str, str]]:
        runner._context = lambda: multiprocessing.get_context("fork")
        plan, store = _plan(), Store(folder / "results")
        there = {task.name: not store.missing(plan, task) for task in plan.tasks()}
        problems = [("lost", name) for name in ledger.said("measured") if not there[name]]
        assert not runner.run(plan, store, n_jobs=1)
        assert len(read_results(folder / "results")) == 4
        left = [path.name for path in (folder / "results").rglob("*") if path.is_file() and path.suffix != ".json"]
        return problems + [("left", name) for name in left]


def _tell(child: Any, event: Any) -> None:
    if event.error is None:
        child.say(measured=event.task.name)


def _plan() -> Experiment:
    methods = (MethodSpec("LSH", "LSH"), MethodSpec("ITQ", "ITQ"))
    plan = Experiment("tried", "tried", (DataSpec("digits", train=60, test=30),), methods, bits=(4, 8), splits=1)
    return prepared(plan, None)
