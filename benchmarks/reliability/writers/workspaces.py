"""New workspaces, and model versions that are learned from answers."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
from ledger import Ledger

from cghash.estimator import load
from cghash.workspace import Workspace, create_workspace
from cghash.workspace.fitting import first_model
from cghash.workspace.records import Answer
from cghash.workspace.worker import work

from .base import Change, Random, State, Writer

N_ITEMS, N_FEATURES, N_BITS = 24, 6, 8


class NewWorkspaces(Writer):
    """`create_workspace`, of texts and of pictures."""

    name, steps = "workspace new", 4

    def prepare(self, folder: Path) -> None:
        from PIL import Image

        lines = [f"item-{i},boat {i % 5} at sea {i % 3} and {i},{i}" for i in range(N_ITEMS)]
        (folder / "texts.csv").write_text("\n".join(["id,text,year", *lines]))
        for i in range(N_ITEMS):
            Image.new("L", (8, 8), i).save(folder / f"picture-{i}.png")
        lines = [f"item-{i},picture-{i}.png" for i in range(N_ITEMS)]
        (folder / "pictures.csv").write_text("\n".join(["id,image", *lines]))

    def open(self, folder: Path) -> Any:
        return None

    def change(self, thing: Any, folder: Path, state: State, number: int, rng: Random) -> Change:
        return Change({f"ws-{number}": N_ITEMS}, lambda: _made(folder, number))

    def state(self, folder: Path) -> State:
        return {path.name: _checked(path) for path in folder.glob("ws-*")}

    def strays(self, folder: Path) -> list[str]:
        """What a kill leaves goes when the same workspace is made once more."""
        for left in folder.glob(".ws-*.tmp"):
            target = folder / left.name[1:].split(".")[0]
            if not target.exists():
                _made(folder, int(target.name.removeprefix("ws-")))
        return super().strays(folder)


class LearnedVersions(Writer):
    """A job of the worker: stopped anywhere, the next worker gives the same version."""

    name = "workspace learning"
    journals = True

    def prepare(self, folder: Path) -> None:
        rng = np.random.default_rng(0)
        with create_workspace(folder / "ws", rng.standard_normal((N_ITEMS, N_FEATURES))) as workspace:
            first_model(workspace, bits=N_BITS, n_jobs=1)
            triplets = [rng.permutation(N_ITEMS)[:3].tolist() for _ in range(12)]
            answers = [Answer(f"a{i}", *rows, "left", "active") for i, rows in enumerate(triplets)]  # type: ignore[call-arg]
            workspace.records.add_answers(answers)
        shutil.copytree(folder / "ws", folder / "quiet")
        with Workspace.open(folder / "quiet") as workspace:
            version = _learned(workspace, lambda **line: None)
            (folder / "expected").write_text(_digest(workspace, version))
        shutil.rmtree(folder / "quiet")

    def work(self, child: Any, folder: Path, rng: Random) -> None:
        with Workspace.open(folder / "ws") as workspace:
            _ = workspace.records
            child.begin()
            for _ in range(9):
                outcome = child.attempt(Change({}, lambda: child.say(version=_learned(workspace, child.say))))
                assert outcome != "refused", f"learning does not go on: {child.ledger.last.get('words')}"
                if outcome == "done":
                    break
            child.end()
            version = child.ledger.last["version"]
            assert _digest(workspace, version) == (folder / "expected").read_text(), "another model was learned"

    def problems(self, folder: Path, ledger: Ledger, rng: Random) -> list[tuple[str, str]]:
        problems = []
        with Workspace.open(folder / "ws") as workspace:
            jobs = {job.id for job in workspace.records.jobs()}
            versions = {version.version for version in workspace.records.versions()}
            problems += [("lost", f"job {said}") for said in ledger.said("job") if said not in jobs]
            problems += [("lost", f"version {said}") for said in ledger.said("version") if said not in versions]
            version = ledger.last.get("version") or _learned(workspace, lambda **line: None)
            if _digest(workspace, version) != (folder / "expected").read_text():
                problems.append(("lost", "another model was learned"))
            if (ended := [job.state for job in workspace.records.jobs()]).count("done") != 1:
                problems.append(("lost", f"one job must be done, got {ended}"))
            another = workspace.records.add_job({"bits": N_BITS})
            assert another is not None
            assert work(workspace, another.id) == "done"
        left = [path.name for path in (folder / "ws" / "checkpoints").glob("*")]
        return problems + [("left", name) for name in [*left, *self.strays(folder / "ws")]]


def _made(folder: Path, number: int) -> None:
    vectors = np.random.default_rng(number).standard_normal((N_ITEMS, N_FEATURES))
    if number % 2:
        create_workspace(folder / f"ws-{number}", folder / "pictures.csv", vectors=vectors).close()
    else:
        create_workspace(folder / f"ws-{number}", folder / "texts.csv").close()


def _checked(path: Path) -> int:
    """How many items a workspace has, all of which can be read."""
    with Workspace.open(path) as workspace:
        found = workspace.items.get(range(len(workspace.items)))
        assert np.isfinite(workspace.vectors).all()
        assert (np.abs(workspace.vectors).sum(axis=1) > 0).all()
        assert all(workspace.picture(row) is not None for row, item in enumerate(found) if item.file)
        return len(found)


def _learned(workspace: Workspace, say: Any) -> int:
    """Take up the job that is under way, or begin one, and work until it is done; its version."""
    records = workspace.records
    finished = [job.version for job in records.jobs() if job.state == "done"]
    if finished:  # by an attempt that was interrupted after it
        return int(finished[0] or 0)
    job = records.active_job() or records.add_job({"bits": N_BITS})
    assert job is not None
    say(job=job.id)
    state = work(workspace, job.id)
    if state == "running":
        raise KeyboardInterrupt
    if state != "done":
        raise OSError(records.job(job.id).message)
    return int(records.job(job.id).version or 0)


def _digest(workspace: Workspace, version: int) -> str:
    return load(workspace.model_path(version)).weights_.tobytes().hex() + str(
        workspace.index_path(version).stat().st_size
    )
