"""The items of a workspace: an SQLite file that is written once, then read from any number of threads."""

from __future__ import annotations

import json
import logging
import math
import os
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from .._arrays import Ints
from ..exceptions import FormatError, InvalidInputError
from .item_filters import NUMBER, TEXT, Column, NumberColumn, TextColumn, Value, parse_filter
from .untrusted import distrust_schema, read_json, readable

__all__ = ["Attribute", "Item", "ItemTable"]


_log = logging.getLogger("cghash.workspace")

VERSION = 1
_TABLES: dict[str, tuple[str, ...]] = {"items": (), "attributes": (), "columns": ()}
_MAPPED = (1 << 31) - (1 << 16)  # bytes, the most that SQLite maps
_REMEMBERED = 16  # answers to filters; of a million items, 8 MB each


@dataclass(frozen=True)
class Attribute:
    """What is known of one attribute of the items.

    `values` are the different ones where there are few; `least` and `most` are of numbers.
    """

    name: str
    kind: str  # "number" or "text"
    values: list[str | int | float] | None = None
    least: int | float | None = None
    most: int | float | None = None


@dataclass(frozen=True)
class Item:
    """One item: its row number, the user's id, and what is there of file (below DIR/items), text and attributes."""

    row: int
    id: str
    file: str | None
    text: str | None
    attributes: dict[str, Value]


class ItemTable:
    """The items of DIR/items.sqlite.

    Examples
    --------
    >>> import tempfile
    >>> from cghash.workspace.item_writer import ItemWriter, NewItem
    >>> folder = tempfile.TemporaryDirectory()
    >>> with ItemWriter(f"{folder.name}/items.sqlite", [("colour", "text"), ("year", "number")]) as writer:
    ...     writer.add([NewItem("a", ("red", 1990)), NewItem("b", ("blue", 2001)), NewItem("c", ("red", None))])
    >>> items = ItemTable(f"{folder.name}/items.sqlite")
    >>> len(items), items.find("b"), items.rows(["colour=red"]).tolist(), items.get([1])[0].attributes
    (3, 1, [0, 2], {'colour': 'blue', 'year': 2001})
    >>> items.close()
    >>> folder.cleanup()
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._local = threading.local()
        self._opened: list[sqlite3.Connection] = []
        self._lock = threading.Lock()
        self._damaged: set[str] = set()
        self._columns: dict[int, Column] = {}
        self._rows_of = lru_cache(_REMEMBERED)(self._matching)
        if not self.path.is_file():
            raise FormatError(f"{path} must be the items of a workspace, but there is no such file")
        try:
            self._check_version()
            self._n = int(self._one("SELECT coalesce(max(row) + 1, 0) FROM items"))
            self._names = [attribute.name for attribute in self.attributes]
            self._check_columns()
        except BaseException:
            self.close()
            raise

    def __len__(self) -> int:
        return self._n

    @cached_property
    def attributes(self) -> list[Attribute]:
        """The attributes, in the order of the source."""
        found = self._all('SELECT name, kind, "values", least, most FROM attributes ORDER BY position')
        for name, kind, _, *bounds in found:
            if not isinstance(name, str) or kind not in (NUMBER, TEXT) or not all(map(_is_bound, bounds)):
                raise self._refused(f"attribute {name!r:.60} is damaged")
        return [Attribute(name, kind, self._values(name, values), *bounds) for name, kind, values, *bounds in found]

    def _values(self, name: str, stored: Any) -> list[str | int | float] | None:
        """The different values of an attribute; where they are damaged, as if there were many."""
        try:
            return _listed(stored) if stored else None
        except ValueError as error:
            self._note(f"the values of attribute {name!r} are damaged: {error}")
            return None

    def get(self, rows: Iterable[int]) -> list[Item]:
        """The items of some rows, in the order that was asked for."""
        wanted = [int(row) for row in rows]
        outside = next((row for row in wanted if not 0 <= row < self._n), None)
        if outside is not None:
            raise InvalidInputError(f"row must be a row number from 0 to {self._n - 1}, got {outside}")
        found = self._all("SELECT * FROM items WHERE row IN (SELECT value FROM json_each(?))", json.dumps(wanted))
        items = {cells[0]: self._item(cells) for cells in found}
        return [items[row] if row in items else self._lost(row) for row in wanted]

    def find(self, id: str) -> int | None:  # noqa: A002
        """The row of an id, or None."""
        found = self._all("SELECT row FROM items WHERE id = ?", id)
        return int(found[0][0]) if found else None

    def rows(self, filters: Iterable[str] = ()) -> Ints:
        """The rows of items that pass all filters, ascending; of all without one. Not to be written to.

        Parameters
        ----------
        filters : `colour=red`, `year>=1990`, `year<=2000`, `title~sea` (contains, in whatever case); `colour=` means
            items that have none
        """
        return self._rows_of(tuple(sorted(set(filters))))

    def ids(self) -> list[str]:
        """The ids of all items, by row."""
        found = enumerate(self._by_row("id"))
        return [key if isinstance(key, str) else self._lost(row).id for row, key in found]

    def ids_of(self, rows: Sequence[int]) -> list[str]:
        """The ids of some rows, which must be there, in the order that was asked for."""
        marks = ", ".join("?" * len(rows))
        found = dict(self._all(f"SELECT row, id FROM items WHERE row IN ({marks})", *rows))
        return [found[row] if isinstance(found.get(row), str) else self._lost(row).id for row in rows]

    def column(self, name: str) -> list[Value]:
        """One attribute of all items, by row."""
        if name not in self._names:
            raise InvalidInputError(f"attribute must be one of {self._names}, got {name!r}")
        return self._by_row(f"a{self._names.index(name)}")

    def texts(self, batch: int = 1024) -> Iterator[list[str]]:
        """The texts of all items, by row, some at a time; empty where there is none."""
        for first in range(0, self._n, batch):
            found = self._by_row("text", range(first, min(first + batch, self._n)))
            yield [text if isinstance(text, str) else "" for text in found]

    def files(self) -> list[str | None]:
        """The files of all items, by row, below DIR/items."""
        return self._by_row("file")

    def close(self) -> None:
        """Close the file in every thread."""
        for connection in self._opened:
            connection.close()
        self._opened.clear()
        self._rows_of.cache_clear()
        self._columns.clear()
        self._local = threading.local()

    def _by_row(self, column: str, rows: range | None = None) -> list[Any]:
        """A column of items, by row; None in the place of a row that is not there."""
        wanted = range(self._n) if rows is None else rows
        statement = f"SELECT row, {column} FROM items WHERE row >= ? AND row < ? ORDER BY row"
        found = self._all(statement, wanted.start, wanted.stop)
        if len(found) == len(wanted):
            return [cell for _, cell in found]
        there = dict(found)
        return [there.get(row) for row in wanted]

    def _item(self, cells: Sequence[Any]) -> Item:
        row, key, file, *values, text = cells
        if any(isinstance(value, bytes) for value in cells) or key is None:
            return self._lost(row)
        return Item(row, key, file, text, dict(zip(self._names, values, strict=True)))

    def _lost(self, row: int) -> Item:
        """What stands in the place of an item whose row is damaged."""
        self._note(f"item {row} is damaged")
        return Item(row, f"damaged item {row}", None, None, dict.fromkeys(self._names))

    def _note(self, words: str) -> None:
        if words not in self._damaged:
            _log.error("%s: %s", self.path, words)
        self._damaged.add(words)

    def _matching(self, filters: tuple[str, ...]) -> Ints:
        conditions = [parse_filter(text, self.attributes) for text in filters]
        if not conditions:
            found = np.arange(self._n, dtype=np.int64)
        else:
            masks = [self._column(condition.attribute).matches(condition) for condition in conditions]
            found = np.flatnonzero(np.logical_and.reduce(masks)).astype(np.int64, copy=False)
        found.flags.writeable = False
        return found

    def _column(self, position: int) -> Column:
        if position not in self._columns:
            kind = NumberColumn if self.attributes[position].kind == NUMBER else TextColumn
            try:
                [(stored, words)] = self._all("SELECT numbers, words FROM columns WHERE position = ?", position)
                self._columns[position] = kind.read(stored, words, self._n)
            except (TypeError, ValueError, RecursionError) as error:
                raise self._refused(f"the column of attribute {self._names[position]!r} is damaged: {error}") from error
        return self._columns[position]

    def _check_version(self) -> None:
        version = self._one("PRAGMA user_version")
        if version != VERSION:
            raise self._refused(f"its version is {version}; this cghash reads version {VERSION}")

    def _check_columns(self) -> None:
        cells = self._connection().execute("SELECT * FROM items LIMIT 0").description
        found = [name for name, *_ in cells]
        expected = ["row", "id", "file", *(f"a{i}" for i in range(len(self._names))), "text"]
        if found != expected:
            raise self._refused(f"its columns must be {', '.join(expected)}, got {', '.join(found)}")

    def _refused(self, words: str) -> FormatError:
        return FormatError(f"{self.path} must be the items of a workspace: {words}")

    def _one(self, statement: str) -> Any:
        return self._all(statement)[0][0]

    def _all(self, statement: str, *values: Any) -> list[Any]:
        try:
            return self._connection().execute(statement, values).fetchall()
        except (sqlite3.Error, UnicodeDecodeError) as error:  # the latter of a message that quotes a damaged file
            raise self._refused(str(error)) from error

    def _connection(self) -> sqlite3.Connection:
        """This thread's; the file never changes, so that no lock is needed."""
        if not hasattr(self._local, "connection"):
            where = f"{self.path.resolve().as_uri()}?mode=ro&immutable=1"
            connection = sqlite3.connect(where, uri=True, check_same_thread=False)
            connection.text_factory = readable
            distrust_schema(connection, self.path, _TABLES)
            connection.execute(f"PRAGMA mmap_size = {_MAPPED}")
            with self._lock:
                self._opened.append(connection)
            self._local.connection = connection
        return self._local.connection  # type: ignore[no-any-return]


def _is_bound(value: object) -> bool:
    return value is None or (isinstance(value, int | float) and math.isfinite(value))


def _listed(text: str) -> list[str | int | float]:
    """The different values of an attribute, as they are kept."""
    found = read_json(text)
    if not isinstance(found, list) or not all(isinstance(value, str) or _is_bound(value) for value in found):
        raise ValueError("they must be a list of texts or numbers")
    return found
