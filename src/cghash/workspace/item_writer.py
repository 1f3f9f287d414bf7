"""The items of a workspace, written as they come: a million need no more memory than a batch."""

from __future__ import annotations

import errno
import json
import os
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import Any

from ..exceptions import InvalidInputError
from ..reading.text_files import shortened
from .item_filters import NUMBER, NumberColumn, TextColumn, Value
from .item_table import VERSION

__all__ = ["MOST_ATTRIBUTES", "ItemWriter", "NewItem", "disk_errors"]

MOST_ATTRIBUTES = 500
LONGEST_ID = 1000  # characters
FEW = 50  # values of an attribute that are listed
_BATCH = 1000


@contextmanager
def disk_errors(path: str | os.PathLike[str]) -> Iterator[None]:
    """A disk that is full, or fails, as the error that other files give."""
    try:
        yield
    except sqlite3.OperationalError as error:
        number = errno.ENOSPC if error.sqlite_errorcode == sqlite3.SQLITE_FULL else errno.EIO
        raise OSError(number, os.strerror(number), os.fspath(path)) from error


@dataclass(frozen=True)
class NewItem:
    """An item to write: its id, a value for each attribute, and where it came from, for messages."""

    id: str
    values: Sequence[Value] = ()
    file: str | None = None  # below DIR/items
    text: str | None = None
    place: str = "items"


class ItemWriter:
    """Writes DIR/items.sqlite; `with` ends it whole.

    Parameters
    ----------
    path : a file that is not there yet
    attributes : (name, "number" or "text") of each
    """

    def __init__(self, path: str | os.PathLike[str], attributes: Sequence[tuple[str, str]]) -> None:
        if len(attributes) > MOST_ATTRIBUTES:
            raise InvalidInputError(f"items must have at most {MOST_ATTRIBUTES} attributes, got {len(attributes)}")
        self.n_items = 0
        self._attributes = list(attributes)
        columns = "".join(f", a{i}" for i in range(len(attributes)))
        self._connection = sqlite3.connect(path, isolation_level=None)
        # no journal: the whole folder is thrown away when the making of a workspace fails
        self._connection.executescript(
            f"PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA user_version = {VERSION};"
            # the text is last, so that reading an attribute does not read the texts
            f"CREATE TABLE items (row INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, file TEXT{columns}, text TEXT);"
            'CREATE TABLE attributes (position INTEGER PRIMARY KEY, name TEXT, kind TEXT, "values" TEXT, least, most);'
            "CREATE TABLE columns (position INTEGER PRIMARY KEY, numbers BLOB, words TEXT);"
            "BEGIN"
        )
        marks = ", ".join("?" * (len(self._attributes) + 4))
        self._insert = f"INSERT INTO items VALUES ({marks})"

    def __enter__(self) -> ItemWriter:
        return self

    def __exit__(self, kind: Any, *rest: Any) -> None:
        try:
            if kind is None:
                self._describe()
                self._connection.execute("COMMIT")
        finally:
            self._connection.close()

    def add(self, items: Iterable[NewItem]) -> None:
        """Write more items; their rows go on from those before."""
        waiting = iter(items)
        while batch := list(islice(waiting, _BATCH)):
            for item in batch:
                _check_id(item)
            try:
                self._connection.executemany(self._insert, [self._cells(i, item) for i, item in enumerate(batch)])
            except sqlite3.IntegrityError as error:
                raise self._twice(batch) from error
            self.n_items += len(batch)

    def _cells(self, place: int, item: NewItem) -> tuple[Any, ...]:
        return (self.n_items + place, item.id, item.file, *item.values, item.text)

    def _twice(self, batch: list[NewItem]) -> InvalidInputError:
        """The first item of a batch whose id another has."""
        for row, item in enumerate(batch, self.n_items):
            found = self._connection.execute("SELECT row FROM items WHERE id = ?", (item.id,)).fetchone()
            if found is not None and found[0] != row:
                return InvalidInputError(
                    f"{item.place}: ids must differ, got {shortened(item.id)!r}, which item {found[0]} has already"
                )
        return InvalidInputError(f"{batch[0].place}: ids must differ")  # pragma: no cover

    def _describe(self) -> None:
        """Write each attribute once more as one column, which filters read, and what its values are."""
        for i, (name, kind) in enumerate(self._attributes):
            values = (cells[0] for cells in self._connection.execute(f"SELECT a{i} FROM items ORDER BY row"))
            column = NumberColumn.of(values) if kind == NUMBER else TextColumn.of(values)
            different = column.different()
            bounds = (different[0], different[-1]) if different and kind == NUMBER else (None, None)
            listed = json.dumps(different) if len(different) <= FEW else None
            self._connection.execute("INSERT INTO columns VALUES (?, ?, ?)", (i, *column.stored()))
            self._connection.execute(
                "INSERT INTO attributes VALUES (?, ?, ?, ?, ?, ?)", (i, name, kind, listed, *bounds)
            )


def _check_id(item: NewItem) -> None:
    if not item.id or len(item.id) > LONGEST_ID:
        raise InvalidInputError(
            f"{item.place}: an id must have 1 to {LONGEST_ID} characters, got {len(item.id)}: {shortened(item.id)!r}"
        )
