"""What people answered, which models were learned and which jobs ran: all of it in one database.

Answers are never deleted: one that was taken back is marked. A model version is seen only once its files are whole.

A row that is damaged, by another program or a disk, is passed over and said so in the log; `damage` names all of them.
"""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

from .._validation import check_choice
from ..exceptions import FormatError, InvalidInputError
from .database import Database, Row, open_database
from .untrusted import read_json

__all__ = ["ACTIVE_STATES", "Answer", "Job", "Records", "Version", "open_records"]

CHOICES = ("left", "right", "unsure")
SOURCES = ("active", "test", "list", "import")
LEARNED_FROM = ("active", "list", "import")  # test answers only measure
STATES = ("queued", "running", "cancelling", "done", "failed", "cancelled")
ACTIVE_STATES = ("queued", "running", "cancelling")
FORMAT = 1
_MOST_VERSIONS = 10**9
_ROWS_OF = {  # what is kept, in which table, and the column that numbers it
    "answer": ("cghash_answers", "id"), "version": ("cghash_models", "version"), "job": ("cghash_jobs", "id"),
}  # fmt: skip

_log = logging.getLogger("cghash.workspace")

Kept = TypeVar("Kept")

_TABLES = """
CREATE TABLE IF NOT EXISTS cghash_format (format INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS cghash_answers (
    id {identity}, workspace TEXT NOT NULL, token TEXT NOT NULL,
    anchor BIGINT NOT NULL, lefthand BIGINT NOT NULL, righthand BIGINT NOT NULL,
    choice TEXT NOT NULL, source TEXT NOT NULL, model BIGINT, seconds DOUBLE PRECISION,
    created TEXT NOT NULL, undone TEXT, UNIQUE (workspace, token));
CREATE INDEX IF NOT EXISTS cghash_answers_of ON cghash_answers (workspace, id);
CREATE TABLE IF NOT EXISTS cghash_models (
    workspace TEXT NOT NULL, version BIGINT NOT NULL, name TEXT NOT NULL, method TEXT NOT NULL, bits BIGINT NOT NULL,
    answers BIGINT NOT NULL, last_answer BIGINT NOT NULL, job BIGINT, report TEXT NOT NULL, ready BIGINT NOT NULL,
    created TEXT NOT NULL, PRIMARY KEY (workspace, version));
CREATE TABLE IF NOT EXISTS cghash_current (workspace TEXT PRIMARY KEY, version BIGINT NOT NULL);
CREATE TABLE IF NOT EXISTS cghash_jobs (
    id {identity}, workspace TEXT NOT NULL, state TEXT NOT NULL, parameters TEXT NOT NULL, progress TEXT NOT NULL,
    message TEXT NOT NULL, version BIGINT, created TEXT NOT NULL, changed TEXT NOT NULL);
CREATE INDEX IF NOT EXISTS cghash_jobs_of ON cghash_jobs (workspace, id)
"""


@dataclass(frozen=True)
class Answer:
    """A person's answer: is the anchor more like `left` or more like `right`? All three are row numbers."""

    key: str  # from whoever asked: the same answer sent twice is stored once
    anchor: int
    left: int
    right: int
    choice: str  # one of CHOICES
    source: str  # one of SOURCES; answers to "test" questions are never learned from
    model: int | None = None  # version that was in use
    seconds: float | None = None  # that the person took
    id: int = 0
    created: str = ""
    undone: str | None = None  # when it was taken back

    @property
    def triplet(self) -> tuple[int, int, int] | None:
        """(anchor, near, far), where it could be told and was not taken back."""
        if self.choice == "unsure" or self.undone is not None:
            return None
        near, far = (self.left, self.right) if self.choice == "left" else (self.right, self.left)
        return self.anchor, near, far


@dataclass(frozen=True)
class Version:
    """A model version: what it is, and from what it was learned."""

    version: int
    name: str
    method: str
    bits: int
    answers: int = 0  # that it was learned from
    last_answer: int = 0  # the newest answer that was there then
    job: int | None = None
    report: dict[str, Any] = field(default_factory=dict)
    created: str = ""


@dataclass(frozen=True)
class Job:
    """A fit in the background."""

    id: int
    state: str  # one of STATES
    parameters: dict[str, Any]
    progress: dict[str, Any]
    message: str
    version: int | None
    created: str
    changed: str


def open_records(where: str | Path, workspace: str = "", n_items: int | None = None) -> Records:
    """The records of one workspace in a database, whose tables are made where they are missing."""
    database = open_database(where)
    try:
        return Records(database, workspace, n_items)
    except BaseException:
        database.close()
        raise


class Records:
    """Answers, model versions and jobs of one workspace.

    Parameters
    ----------
    database : Database
    workspace : its key
    n_items : that it has, where that is known; answers about others are damaged

    Examples
    --------
    >>> records = open_records(":memory:", "mine")
    >>> [answer] = records.add_answers([Answer("a1", anchor=0, left=1, right=2, choice="right", source="active")])
    >>> answer.triplet
    (0, 2, 1)
    >>> records.undo(answer.id)
    >>> records.triplets()
    []
    """

    def __init__(self, database: Database, workspace: str, n_items: int | None = None) -> None:
        self.database, self.workspace, self.n_items = database, workspace, n_items
        self._damaged: dict[tuple[str, Any], str] = {}  # what and its number: why
        database.change(self._make_tables)
        database.freeze()

    def _make_tables(self) -> None:
        database = self.database
        first, *tables = _TABLES.format(identity=database.identity).split(";\n")
        database.alone()
        database.run(first)
        formats = [row["format"] for row in database.run("SELECT format FROM cghash_format")]
        newest = max((found for found in formats if isinstance(found, int)), default=FORMAT)
        if newest > FORMAT:
            raise FormatError(f"the database must be of format {FORMAT} or older, got {newest}")
        if not formats:
            database.run("INSERT INTO cghash_format VALUES (?)", [FORMAT])
        for statement in tables:
            database.run(statement)

    def close(self) -> None:
        self.database.close()

    def damage(self) -> list[str]:
        """A sentence for each row that cannot be read, of all that there are."""
        self.answers()
        self.versions()
        self.jobs(2**62)
        _ = self.current
        return sorted(f"{what} {number}: {reason}" for (what, number), reason in [*self._damaged.items()])

    def _select(self, what: str, read: Callable[[Row], Kept], which: str, values: list[Any]) -> list[Kept]:
        """What can be read of some rows about answers, versions or jobs, as `which` says behind WHERE."""
        table, number = _ROWS_OF[what]
        statement = f"SELECT * FROM {table} WHERE workspace = ? {which}"
        found = []
        for row in self.database.run(statement, [self.workspace, *values]):
            try:
                found.append(read(row))
                self._damaged.pop((what, row[number]), None)
            except ValueError as error:
                self._note(what, row.get(number), str(error))
            except KeyError as error:
                self._note(what, row.get(number), f"it has no column {error}")
        return found

    def _insert(self, what: str, values: dict[str, Any], otherwise: str = "") -> list[Row]:
        names = ", ".join(("workspace", *values))
        statement = f"INSERT INTO {_ROWS_OF[what][0]} ({names}) VALUES ({_marks(1 + len(values))}) {otherwise}"
        return self.database.run(statement, [self.workspace, *values.values()])

    def _note(self, what: str, number: Any, reason: str) -> None:
        if (what, number) not in self._damaged:
            _log.error("%s %s of the database is damaged, and passed over: %s", what, number, reason)
        self._damaged[what, number] = reason

    # Answers

    def add_answers(self, answers: Sequence[Answer]) -> list[Answer]:
        """Store answers, all or none, and return them as stored; one whose key is known is returned as it was."""
        for answer in answers:
            check_choice(answer.choice, CHOICES, "choice")
            check_choice(answer.source, SOURCES, "source")
            if len({answer.anchor, answer.left, answer.right}) < 3:
                raise InvalidInputError("an answer must be about three different items")
        now = _now()

        def store() -> list[Answer]:
            for a in answers:
                values = {
                    "token": a.key, "anchor": a.anchor, "lefthand": a.left, "righthand": a.right, "choice": a.choice,
                    "source": a.source, "model": a.model, "seconds": a.seconds, "created": a.created or now,
                }  # fmt: skip
                self._insert("answer", values, "ON CONFLICT DO NOTHING")
            return [self._by_key(a.key) for a in answers]

        return self.database.change(store)

    def answer(self, number: int) -> Answer | None:
        found = self._answers("AND id = ?", [number])
        return found[0] if found else None

    def answers(self, start: int = 0, count: int | None = None, *, newest_first: bool = False) -> list[Answer]:
        """Answers in the order in which they came, those taken back among them."""
        order = "ORDER BY id DESC" if newest_first else "ORDER BY id"
        most = 2**62 if count is None else count
        return self._answers(f"{order} LIMIT ? OFFSET ?", [most, start])

    def count_answers(self) -> tuple[int, int]:
        """How many answers there are, without those known to be damaged, and how many of them were taken back."""
        damaged = [str(number) for what, number in [*self._damaged] if what == "answer" and isinstance(number, int)]
        found = self.database.run(
            "SELECT COUNT(*) AS n, COUNT(undone) AS undone FROM cghash_answers "
            f"WHERE workspace = ? AND id NOT IN ({', '.join(damaged) or 0})",
            [self.workspace],
        )
        return int(found[0]["n"]), int(found[0]["undone"])

    def answers_after(self, number: int) -> list[Answer]:
        """Answers that came after one, in order."""
        return self._answers("AND id > ? ORDER BY id", [number])

    def undo(self, number: int) -> None:
        """Take an answer back: it stays, but nothing is learned from it. Twice is once."""
        if self.answer(number) is None:
            raise InvalidInputError(f"there is no answer {number}")
        self.database.run(
            "UPDATE cghash_answers SET undone = ? WHERE workspace = ? AND id = ? AND undone IS NULL",
            [_now(), self.workspace, number],
        )

    def triplets(self, sources: Iterable[str] = LEARNED_FROM) -> list[tuple[int, int, int]]:
        """(anchor, near, far) of every answer of some sources that tells something."""
        wanted = set(sources)
        return [a.triplet for a in self.answers() if a.source in wanted and a.triplet is not None]

    def _by_key(self, key: str) -> Answer:
        found = self._answers("AND token = ?", [key])
        if not found:
            raise InvalidInputError(f"the answer with the key {key!r} is damaged in the database: give it another key")
        return found[0]

    def _answers(self, which: str, values: list[Any]) -> list[Answer]:
        return self._select("answer", lambda row: _answer(row, self.n_items), which, values)

    # Model versions

    def begin_version(self, version: Version) -> Version:
        """Take the next number for a model whose files are still to be written."""

        def number() -> Version:
            self.database.alone()
            found = self.database.run(
                "SELECT COALESCE(MAX(CAST(version AS BIGINT)), 0) AS last FROM cghash_models "
                "WHERE workspace = ? AND version BETWEEN 1 AND ?",
                [self.workspace, _MOST_VERSIONS - 1],
            )
            numbered = replace(version, version=int(found[0]["last"]) + 1, created=_now())
            self._insert("version", {"ready": 0} | _plain(asdict(numbered)))
            return numbered

        return self.database.change(number)

    def finish_version(self, version: Version, *, use: bool = False) -> None:
        """The files are there: from now on the version is seen, and used if so wanted."""

        def finish() -> None:
            self.database.run(
                "UPDATE cghash_models SET ready = 1, bits = ?, report = ? WHERE workspace = ? AND version = ?",
                [version.bits, json.dumps(version.report), self.workspace, version.version],
            )
            if use:
                self.use(version.version)

        self.database.change(finish)

    def versions(self) -> list[Version]:
        """All versions that can be used, oldest first."""
        return self._versions("ORDER BY version", [])

    def version(self, number: int) -> Version:
        found = self._versions("AND version = ?", [number])
        if not found:
            raise InvalidInputError(f"there is no model version {number}")
        return found[0]

    @property
    def current(self) -> int | None:
        """The version in use."""
        found = self.database.run("SELECT version FROM cghash_current WHERE workspace = ?", [self.workspace])
        if not found:
            return None
        number = found[0]["version"]
        if isinstance(number, int) and self._versions("AND version = ?", [number]):
            return number
        self._note("current version", number, "there is no such version that can be read; none is in use")
        return None

    def use(self, number: int) -> None:
        """Search and ask by this version from now on."""
        self.version(number)
        self.database.run(
            "INSERT INTO cghash_current VALUES (?, ?) ON CONFLICT (workspace) DO UPDATE SET version = excluded.version",
            [self.workspace, number],
        )

    def _versions(self, which: str, values: list[Any]) -> list[Version]:
        return self._select("version", self._version, f"AND ready = 1 {which}", values)

    def _version(self, row: Row) -> Version:
        """A version; one whose report alone is damaged can still be used."""
        _check(row, _OF_VERSION)
        if not 1 <= row["version"] <= _MOST_VERSIONS:
            raise ValueError(f"version must be from 1 to {_MOST_VERSIONS}, got {row['version']}")
        try:
            report = _object(row["report"], "report")
        except ValueError as error:
            self._note("report of version", row["version"], str(error))
            report = {}
        names = [name for name in Version.__dataclass_fields__ if name != "report"]
        return Version(report=report, **{name: row[name] for name in names})

    # Jobs

    def add_job(self, parameters: dict[str, Any]) -> Job | None:
        """A queued job, or None while another one is under way."""

        def queue() -> Job | None:
            self.database.alone()
            if self.active_job() is not None:
                return None
            now = _now()
            values = {"state": "queued", "parameters": parameters, "progress": {}, "message": "", "created": now}
            [row] = self._insert("job", _plain(values) | {"changed": now}, "RETURNING *")
            return _job(row)

        return self.database.change(queue)

    def job(self, number: int) -> Job:
        found = self._jobs("AND id = ?", [number])
        if not found:
            raise InvalidInputError(f"there is no job {number}")
        return found[0]

    def has_job(self, number: int) -> bool:
        return bool(self._jobs("AND id = ?", [number]))

    def jobs(self, count: int = 50) -> list[Job]:
        """Newest first."""
        return self._jobs("ORDER BY id DESC LIMIT ?", [count])

    def active_job(self) -> Job | None:
        found = self._jobs(f"AND state IN ({_marks(len(ACTIVE_STATES))}) ORDER BY id LIMIT 1", [*ACTIVE_STATES])
        return found[0] if found else None

    def change_job(self, number: int, *, when: Sequence[str] = STATES, **values: Any) -> bool:
        """Write state, progress, message or version of a job, if it is in one of some states; tells whether it was."""
        check_choice(values.get("state", STATES[0]), STATES, "state")
        plain = _plain(values) | {"changed": _now()}
        settings = ", ".join(f"{name} = ?" for name in plain)
        found = self.database.run(
            f"UPDATE cghash_jobs SET {settings} "
            f"WHERE workspace = ? AND id = ? AND state IN ({_marks(len(when))}) RETURNING id",
            [*plain.values(), self.workspace, number, *when],
        )
        return bool(found)

    def _jobs(self, which: str, values: list[Any]) -> list[Job]:
        return self._select("job", _job, which, values)


_NUMBER, _TEXT = (int,), (str,)
_PERHAPS_NUMBER = (int, type(None))
_OF_ANSWER = {
    "id": _NUMBER, "token": _TEXT, "anchor": _NUMBER, "lefthand": _NUMBER, "righthand": _NUMBER, "choice": _TEXT,
    "source": _TEXT, "model": _PERHAPS_NUMBER, "seconds": (int, float, type(None)), "created": _TEXT,
    "undone": (str, type(None)),
}  # fmt: skip
_OF_VERSION = {
    "version": _NUMBER, "name": _TEXT, "method": _TEXT, "bits": _NUMBER, "answers": _NUMBER, "last_answer": _NUMBER,
    "job": _PERHAPS_NUMBER, "created": _TEXT,
}  # fmt: skip
_OF_JOB = {
    "id": _NUMBER, "state": _TEXT, "message": _TEXT, "version": _PERHAPS_NUMBER, "created": _TEXT, "changed": _TEXT,
}  # fmt: skip


def _check(row: Row, kinds: dict[str, tuple[type, ...]]) -> None:
    for name, allowed in kinds.items():
        if not isinstance(row[name], allowed):
            raise ValueError(f"{name} must be {' or '.join(kind.__name__ for kind in allowed)}, got {row[name]!r:.60}")


def _answer(row: Row, n_items: int | None) -> Answer:
    _check(row, _OF_ANSWER)
    rows = (row["anchor"], row["lefthand"], row["righthand"])
    if row["choice"] not in CHOICES or row["source"] not in SOURCES:
        raise ValueError(f"choice and source must be known, got {row['choice']!r:.60} and {row['source']!r:.60}")
    if len(set(rows)) < 3 or min(rows) < 0 or (n_items is not None and max(rows) >= n_items):
        raise ValueError(f"it must be about three different items of the workspace, got {rows}")
    if row["seconds"] is not None and not math.isfinite(row["seconds"]):
        raise ValueError(f"seconds must be finite, got {row['seconds']}")
    more = (row["choice"], row["source"], row["model"], row["seconds"], row["id"], row["created"], row["undone"])
    return Answer(row["token"], *rows, *more)


def _job(row: Row) -> Job:
    _check(row, _OF_JOB)
    if row["state"] not in STATES:
        raise ValueError(f"state must be one of {', '.join(STATES)}, got {row['state']!r:.60}")
    if datetime.fromisoformat(row["changed"]).tzinfo is None:
        raise ValueError(f"changed must be a time with its zone, got {row['changed']!r:.60}")
    read = {name: _object(row[name], name) for name in ("parameters", "progress")}
    return Job(**{name: row[name] for name in Job.__dataclass_fields__} | read)


def _object(text: Any, name: str) -> dict[str, Any]:
    try:
        found = read_json(text)
    except ValueError as error:
        raise ValueError(f"{name} must be JSON: {error}") from error
    if not isinstance(found, dict):
        raise ValueError(f"{name} must be a JSON object, got {found!r:.60}")
    return found


def _plain(values: dict[str, Any]) -> dict[str, Any]:
    return {name: json.dumps(value) if isinstance(value, dict) else value for name, value in values.items()}


def _marks(n: int) -> str:
    return ", ".join("?" * n)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
