"""One face for SQLite and PostgreSQL: statements with `?`, rows as dictionaries, transactions.

A change is committed, and on the disk, when `database.change(work)` returns: SQLite runs in WAL mode with
`synchronous=FULL`, PostgreSQL with its own defaults.
"""

from __future__ import annotations

import os
import re
import sqlite3
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from ..exceptions import CGHashError, FormatError, InvalidInputError, MissingDependencyError
from ..reading.text_files import shortened

__all__ = ["Database", "guard", "open_database", "readable"]

Row = dict[str, Any]
T = TypeVar("T")

_PATIENCE = 30.0  # seconds that one writer waits for another
_POSTGRES = ("postgresql://", "postgres://")
_ALONE = 0x636768617368  # the number of our lock among those of the database's other users
_OURS = {  # tables of a SQLite file, and the indexes of each
    "cghash_format": (), "cghash_answers": ("cghash_answers_of",), "cghash_models": (), "cghash_current": (),
    "cghash_jobs": ("cghash_jobs_of",),
}  # fmt: skip
_NAMES_ANOTHER = bytes.fromhex("d9d505f920a163d7")  # the end of a journal that names a "super-journal"
_EXPRESSION = -2  # the number of a column of an index that is none


def open_database(where: str | Path) -> Database:
    """A SQLite file, made where there is none, or a PostgreSQL database by its URL.

    >>> database = open_database(":memory:")
    >>> _ = database.run("CREATE TABLE answers (id INTEGER)")
    >>> database.change(lambda: database.run("INSERT INTO answers VALUES (?) RETURNING id", [3]))
    [{'id': 3}]
    """
    if str(where).startswith(_POSTGRES):
        return PostgreSQL(str(where))
    if "://" in str(where):
        scheme = str(where).split("://")[0]
        raise InvalidInputError(f"database must be a file or a postgresql:// URL, got the scheme {scheme!r}")
    return SQLite(where)


class Database(ABC):
    """A connection that threads share: one statement, or one transaction, at a time."""

    identity: str  # the type of a column that numbers its rows
    read_only = ""  # why it cannot be changed, where that is so

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._changing = False

    @abstractmethod
    def close(self) -> None:
        """Give the connection back."""

    def freeze(self) -> None:  # noqa: B027  most have nothing to do
        """Take no change from now on, where none could be kept."""

    def check_writable(self) -> None:  # noqa: B027  most are
        """Refuse a database that cannot be changed."""

    @abstractmethod
    def _run(self, statement: str, values: Sequence[Any]) -> list[Row]: ...

    @abstractmethod
    def _begin(self) -> None: ...

    @abstractmethod
    def _settle(self) -> None:
        """End a transaction that Ctrl-C left open; nothing of it is kept."""

    def run(self, statement: str, values: Sequence[Any] = ()) -> list[Row]:
        """The rows that a statement gives; alone it is a transaction of its own."""
        with self._lock:
            if not self._changing:
                self._settle()
            return self._run(statement, values)

    def change(self, work: Callable[[], T]) -> T:
        """What `work()` gives, once all its statements have taken hold; or an error, and none has.

        A change inside another belongs to the outer. Ctrl-C may come anywhere: no `with` ends a transaction, since
        Python may raise it before the end of a `with` is reached.
        """
        with self._lock:
            if self._changing:
                return work()
            self._settle()
            try:
                self._changing = True
                self._begin()
                done = work()
                self._run("COMMIT", ())
                return done
            except BaseException:
                self._undo()
                raise
            finally:
                self._changing = False

    @abstractmethod
    def alone(self) -> None:
        """Inside `change`: wait until no other transaction is alone, and be it until the end."""

    def _undo(self) -> None:
        try:
            self._run("ROLLBACK", ())
        except CGHashError:  # the connection is gone, and the transaction with it
            return


def _check_journal(path: str | os.PathLike[str]) -> None:
    """Refuse a journal that names another file, which SQLite then deletes: ours never does, a stranger's may."""
    journal = os.path.realpath(path) + "-journal"
    if not os.path.isfile(journal):
        return
    with open(journal, "rb") as file:
        file.seek(max(0, os.path.getsize(journal) - len(_NAMES_ANOTHER)))
        names_another = file.read() == _NAMES_ANOTHER
    if names_another:
        raise FormatError(
            f"{journal} must name no other file, which SQLite would delete; cghash writes no such journal: delete it"
        )


def guard(
    connection: sqlite3.Connection, path: str | os.PathLike[str], tables: Mapping[str, Sequence[str]] = _OURS
) -> None:
    """Let nothing run that a stranger's file holds: views, triggers, checks, and functions of columns and indexes.

    Parameters
    ----------
    connection : its schema is checked, and distrusted from now on
    path : for messages
    tables : the names of ours, which must be plain, and the indexes of each
    """
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute("PRAGMA cell_size_check = ON")
    ours = re.compile(rf"\b({'|'.join(tables)})\b", re.IGNORECASE)
    for kind, name, sql in connection.execute("SELECT type, name, CAST(sql AS TEXT) FROM sqlite_master").fetchall():
        if ours.search(str(sql)) and not _PLAIN.get(kind, _NEVER).match(str(sql)):
            raise _not_plain(path, kind, name)
    for table, indexes in tables.items():
        for _, name, _, _, default, _, hidden in connection.execute(f"PRAGMA table_xinfo({table})").fetchall():
            if hidden or default is not None:
                raise _not_plain(path, "column", name)
        for _, name, _, origin, some_rows in connection.execute(f"PRAGMA index_list({table})").fetchall():
            if some_rows or (origin == "c" and name not in indexes) or _is_computed(connection, name):
                raise _not_plain(path, "index", name)


# what SQLite itself writes of tables and indexes that compute nothing: other words mean other things
_PLAIN = {
    "table": re.compile(r"CREATE TABLE (?!.*\bcheck\b)", re.IGNORECASE | re.DOTALL),
    "index": re.compile(r"CREATE (UNIQUE )?INDEX "),
}
_NEVER = re.compile(r"(?!)")


def _is_computed(connection: sqlite3.Connection, index: str) -> bool:
    quoted = index.replace('"', '""')
    return any(
        column == _EXPRESSION for _, column, _ in connection.execute(f'PRAGMA index_info("{quoted}")').fetchall()
    )


def _not_plain(path: str | os.PathLike[str], kind: Any, name: Any) -> FormatError:
    what = f"{shortened(str(kind))} {shortened(str(name))!r}"
    return FormatError(f"{path} must keep what is ours in plain tables, got the {what}")


def _why_read_only(path: str) -> str:
    """Why a file cannot be changed, or made; nothing where it can."""
    folder = os.path.dirname(path) or "."
    for place in (folder, path):
        if os.path.exists(place) and not os.access(place, os.W_OK):
            read_only = hasattr(os, "statvfs") and os.statvfs(place).f_flag & os.ST_RDONLY
            return "its disk is read-only" if read_only else f"you may not write to {place}"
    return ""


def readable(text: bytes) -> str:
    """A text of SQLite, whose bytes may be damaged."""
    return text.decode("utf-8", "replace")


class SQLite(Database):
    identity = "INTEGER PRIMARY KEY AUTOINCREMENT"

    def __init__(self, path: str | Path) -> None:
        super().__init__()
        self.path = str(path)
        self.read_only = "" if self.path == ":memory:" else _why_read_only(self.path)
        _check_journal(self.path)
        try:
            self._connection = self._opened()
            self._connection.row_factory = sqlite3.Row
            self._connection.text_factory = readable  # else one damaged text hides all rows that are read with it
            if not self.read_only:
                self._write_ahead()
            self._run("PRAGMA synchronous=FULL", ())
            self._run("PRAGMA foreign_keys=ON", ())
            guard(self._connection, path)
        except (sqlite3.Error, UnicodeDecodeError) as error:  # the latter of a message that quotes a damaged file
            raise self._told(error, f"{path} must be a SQLite database: {error}") from error

    def _opened(self) -> sqlite3.Connection:
        """The file; where it cannot be changed, to be read as it is, and empty where there is none."""
        connect = partial(sqlite3.connect, timeout=_PATIENCE, isolation_level=None, check_same_thread=False)
        if not self.read_only or os.path.isdir(self.path):
            return connect(self.path)
        if not os.path.exists(self.path):
            return connect(":memory:")
        where = f"{Path(self.path).resolve().as_uri()}?mode=ro"
        connection = connect(where, uri=True)
        try:
            connection.execute("SELECT count(*) FROM sqlite_master").fetchall()
        except sqlite3.OperationalError:  # it would make files beside, which tell others that it reads
            connection.close()
            log = os.path.realpath(self.path) + "-wal"
            if os.path.exists(log) and os.path.getsize(log):
                words = f"{self.path} can be read only with its log, for which SQLite must write beside it"
                raise CGHashError(f"{words}, and {self.read_only}: copy the workspace to another place") from None
            connection = connect(f"{where}&immutable=1", uri=True)
        return connection

    def freeze(self) -> None:
        if self.read_only:
            self._run("PRAGMA query_only=ON", ())

    def check_writable(self) -> None:
        if self.read_only:
            raise self._unchangeable(self.read_only)

    def _write_ahead(self) -> None:
        """Keep a log beside the file; SQLite does not wait by itself for another that is just changing to one."""
        last = time.monotonic() + _PATIENCE
        while True:
            try:
                self._connection.execute("PRAGMA journal_mode=WAL").fetchall()
                return
            except sqlite3.OperationalError as error:
                if "locked" not in str(error) or time.monotonic() > last:
                    raise
                time.sleep(0.01)

    def close(self) -> None:
        with self._lock:
            self._connection.close()

    def alone(self) -> None:
        """Nothing to do: SQLite has one writer at a time."""

    def _begin(self) -> None:
        self._run("BEGIN" if self.read_only else "BEGIN IMMEDIATE", ())

    def _settle(self) -> None:
        if self._connection.in_transaction:
            self._run("ROLLBACK", ())

    def _run(self, statement: str, values: Sequence[Any]) -> list[Row]:
        cursor = self._connection.cursor()
        try:
            return [dict(row) for row in cursor.execute(statement, values).fetchall()]
        except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
            raise self._told(error, f"{self.path} could not be read or changed: {error}") from error
        finally:
            cursor.close()  # a statement that has not ended keeps its transaction open

    def _told(self, error: Exception, otherwise: str) -> CGHashError:
        """What an error means: of the disk, else of the file."""
        kind = getattr(error, "sqlite_errorcode", 0) & 0xFF  # without its details
        if kind == sqlite3.SQLITE_FULL:
            return CGHashError(f"{self.path} could not be changed: the disk is full")
        if kind in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN) and (why := _why_read_only(self.path)):
            return self._unchangeable(why)
        return FormatError(otherwise)

    def _unchangeable(self, why: str) -> CGHashError:
        return CGHashError(f"{self.path} cannot be changed: {why}; --database names another place for the answers")


class PostgreSQL(Database):
    identity = "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY"

    def __init__(self, url: str) -> None:
        super().__init__()
        try:
            import psycopg
        except ImportError as error:
            raise MissingDependencyError(
                'a PostgreSQL database needs psycopg: pip install "cghash[postgres]"'
            ) from error
        self._psycopg, self._url = psycopg, url
        self._connection: Any = None
        self._connect()

    def close(self) -> None:
        with self._lock:
            self._connection.close()

    def _connect(self) -> None:
        from psycopg.rows import dict_row

        try:
            self._connection = self._psycopg.connect(
                self._url, autocommit=True, row_factory=dict_row, connect_timeout=10
            )
        except self._psycopg.Error as error:
            raise CGHashError(f"the PostgreSQL database cannot be reached: {str(error).splitlines()[0]}") from error

    def alone(self) -> None:
        self.run("SELECT pg_advisory_xact_lock(?)", [_ALONE])

    def _begin(self) -> None:
        self._reconnecting("BEGIN", ())

    def _settle(self) -> None:
        """Ctrl-C may also leave a connection in the middle of an answer."""
        if self._connection.info.transaction_status != self._psycopg.pq.TransactionStatus.IDLE:
            self._connection.close()

    def _run(self, statement: str, values: Sequence[Any]) -> list[Row]:
        return (self._rows if self._changing else self._reconnecting)(statement, values)

    def _reconnecting(self, statement: str, values: Sequence[Any]) -> list[Row]:
        try:
            return self._rows(statement, values)
        except CGHashError:
            if not self._connection.closed:
                raise
        self._connect()  # the server was restarted; outside a transaction every statement may be said again
        return self._rows(statement, values)

    def _rows(self, statement: str, values: Sequence[Any]) -> list[Row]:
        try:
            found = self._connection.execute(statement.replace("?", "%s"), values)
            return list(found.fetchall()) if found.description else []
        except self._psycopg.Error as error:
            words = str(error).splitlines()[0]
            raise CGHashError(f"the PostgreSQL database did not take it: {words}") from error
