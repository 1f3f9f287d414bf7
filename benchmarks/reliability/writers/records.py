"""What a workspace keeps in its database, SQLite or PostgreSQL: answers, model versions and jobs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from cghash.workspace.records import CHOICES, Answer, Records, Version, open_records

from .base import Change, Random, State, Writer


class WorkspaceRecords(Writer):
    """Answers, those taken back, versions and jobs in SQLite."""

    name, steps, journals = "workspace answers", 30, True

    def prepare(self, folder: Path) -> None:
        self.open(folder).close()

    def where(self, folder: Path) -> str:
        """The file or URL of the database."""
        return str(folder / "answers.sqlite")

    def open(self, folder: Path) -> Records:
        return open_records(self.where(folder), "tried")

    def change(self, thing: Any, folder: Path, state: State, number: int, rng: Random) -> Change:
        taken = [key for key in state if key.startswith("answer ") and not state[key].endswith("undone")]
        kind = rng.choice(["answers", "answers", "undo", "version", "job"])
        if kind == "undo" and taken:
            return _undo(thing, str(rng.choice(taken)), state)
        if kind == "version":
            name = f"number {number}"
            return Change({f"version {name}": 1, "current": name}, lambda: _learned(thing, name))
        if kind == "job":
            return _job(thing, state)
        choices = {f"answer {number}-{i}": str(rng.choice(CHOICES)) for i in range(int(rng.integers(1, 4)))}
        answers = [Answer(key.removeprefix("answer "), 0, 1, 2, choice, "active") for key, choice in choices.items()]
        return Change(choices, lambda: thing.add_answers(answers))

    def state(self, folder: Path) -> State:
        records = self.open(folder)
        try:
            return self.memory(records)
        finally:
            records.close()

    def memory(self, thing: Any) -> State:
        told = {f"answer {a.key}": f"{a.choice}{' undone' if a.undone else ''}" for a in thing.answers()}
        versions = {v.version: v.name for v in thing.versions()}
        jobs = {f"job {place}": job.state for place, job in enumerate(reversed(thing.jobs(10**6)), 1)}
        current = {} if thing.current is None else {"current": versions[thing.current]}
        return told | {f"version {name}": 1 for name in versions.values()} | jobs | current

    def close(self, thing: Any) -> None:
        thing.close()

    def strays(self, folder: Path) -> list[str]:
        return sorted(path.name for path in folder.iterdir() if path.name != "answers.sqlite")


def _undo(records: Records, key: str, state: State) -> Change:
    [number] = [answer.id for answer in records.answers() if f"answer {answer.key}" == key]
    return Change({key: f"{state[key]} undone"}, lambda: records.undo(number))


def _learned(records: Records, name: str) -> None:
    version = records.begin_version(Version(0, name, "tried", 8))
    records.finish_version(version, use=True)


def _job(records: Records, state: State) -> Change:
    """The job that is under way ends; without one, another begins."""
    jobs = list(reversed(records.jobs(10**6)))  # numbers may be left out, places are not
    if jobs and jobs[-1].state == "queued":
        return Change({f"job {len(jobs)}": "done"}, lambda: records.change_job(jobs[-1].id, state="done"))
    return Change({f"job {1 + len(jobs)}": "queued"}, lambda: records.add_job({}))
