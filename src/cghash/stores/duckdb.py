"""Codes as a table of DuckDB, and exact search among them in SQL.

A table has the columns `id` (BIGINT) and `word0`, `word1`, … (UBIGINT): 8 bytes of the packed code each, the first byte
lowest. The table `cghash_codes` of the same database says of each what codes it holds. A query is SQL: for each
byte of the code a list of 256 whole numbers, what the bits that differ from the query's weigh, looked up and added.
"""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from .._arrays import Codes, Ints
from .._unfinished import is_of_the_disk
from ..exceptions import FormatError, InUseError, InvalidInputError
from .base import Found, Path, Store, check_file, checked, require
from .origin import Origin, read_header
from .ranking import Ranked, joined

ABOUT = "cghash_codes"
_WORD = 8  # bytes
# a stranger's file may hold views: they read no other file and no address, and bring no extension in
_CLOSED = {
    "enable_external_access": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "lock_configuration": "true",
}
# DuckDB trusts the numbers of a file whose checksums are right: a forged one may hang or crash it
_OPEN = f"import duckdb, sys; duckdb.connect(sys.argv[1], read_only=True, config={_CLOSED})"
_PATIENCE = 20.0  # seconds that opening a file may take, and one more for each _A_SECOND bytes
_A_SECOND = 10_000_000
_HERE = "AND schema_name = current_schema() AND database_name = current_database()"


class DuckDBStore(Store):
    """Codes in a table of a DuckDB file, which is open for reading until `close`.

    Examples
    --------
    >>> import tempfile
    >>> codes = np.array([[0b001], [0b110], [0b111]], dtype=np.uint8)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with DuckDBStore.write(f"{folder}/codes.duckdb", Origin([4.0, 2.0, 1.0]), codes, ids=[7, 8, 9]) as store:
    ...         store.search(codes[:1], k=2).distances
    array([[0., 3.]])
    """

    def __init__(self, connection: Any, origin: Origin, table: str, where: str) -> None:
        self.connection, self.origin, self.table, self.where = connection, origin, table, where
        distance = " + ".join(
            f"list_extract($byte{b}::BIGINT[], 1 + (word{b // _WORD} >> {8 * (b % _WORD)} & 255)::BIGINT)"
            for b in range(origin.n_bytes)
        )
        self._nearest = f"SELECT id, {distance} AS distance FROM {quoted(table)} ORDER BY distance, id LIMIT $k"

    @classmethod
    def write(
        cls, path: Path, model: Any, codes: ArrayLike, ids: ArrayLike | None = None, *, table: str = "codes"
    ) -> Self:
        """Write codes into a table of a DuckDB file, in one transaction (`Store.write`).

        The file may hold other tables. A table of codes of the same name is replaced; any other is an error.
        """
        origin, packed, numbers = checked(model, codes, ids)
        _check_can_be_opened(path)
        with _connected(path, table, read_only=False) as connection, _errors(path):  # closed at the end
            _check_functions(connection, os.fspath(path))
            _write(connection, table, origin, packed, numbers)
        return cls._opened(path, table)

    @classmethod
    def open(cls, path: Path, model: Any = None, *, table: str = "codes") -> Self:
        """Open a table that `write` wrote, for reading (`Store.open`)."""
        if not os.path.exists(path):
            raise FileNotFoundError(f"No such file: {os.fspath(path)}")
        _check_can_be_opened(path)
        return cls._opened(path, table, model)

    @classmethod
    def _opened(cls, path: Path, table: str, model: Any = None) -> Self:
        where = f"table {table!r} of {os.fspath(path)}"
        connection = _connected(path, table, read_only=True)
        try:
            with _errors(path):
                origin = _origin(connection, table, where)
            if model is not None:
                origin.check(model, where)
            return cls(connection, origin, table, where)
        except BaseException:
            connection.close()
            raise

    def close(self) -> None:
        """Let go of the file."""
        self.connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __len__(self) -> int:
        with _errors(self.where), self.connection.cursor() as cursor:
            return int(cursor.execute(f"SELECT count(*) FROM {quoted(self.table)}").fetchone()[0])

    def info(self) -> dict[str, Any]:
        """What is stored, and in which `table`."""
        return super().info() | {"table": self.table}

    def _search(self, queries: Codes, k: int) -> Found:
        with _errors(self.where), self.connection.cursor() as cursor:  # a cursor for each thread that searches
            ranked = [self._one(cursor, query, k) for query in queries]
        return Found(*joined(self.origin, ranked, k))

    def _one(self, cursor: Any, query: Codes, k: int) -> Ranked:
        byte = np.arange(256)
        lists = {f"byte{b}": row[byte ^ query[b]].tolist() for b, row in enumerate(self.origin.byte_tables)}
        found = cursor.execute(self._nearest, lists | {"k": k}).fetchnumpy()
        return Ranked(np.asarray(found["distance"], dtype=np.int64), np.asarray(found["id"], dtype=np.int64), True)


def quoted(name: Any) -> str:
    """A name as SQL takes it, whatever is in it.

    Examples
    --------
    >>> quoted('my "codes"; DROP TABLE x')
    '"my ""codes""; DROP TABLE x"'
    """
    if not isinstance(name, str) or not name or "\0" in name:
        raise InvalidInputError(f"table must be a name of at least one character, none of them NUL, got {name!r}")
    return '"' + name.replace('"', '""') + '"'


def _write(connection: Any, table: str, origin: Origin, codes: Codes, ids: Ints) -> None:
    columns = _columns(origin)
    words = np.zeros((len(codes), _WORD * (len(columns) - 1)), dtype=np.uint8)
    words[:, : origin.n_bytes] = codes
    named = dict(zip(columns, (ids, *words.view("<u8").T), strict=True))
    given = f"cghash_{uuid.uuid4().hex}"  # a view, which hides any table of its name
    connection.register(given, require("pyarrow", "duckdb").table(named))
    connection.execute("BEGIN")
    try:
        connection.execute(f"CREATE TABLE IF NOT EXISTS {ABOUT} (name VARCHAR PRIMARY KEY, about VARCHAR NOT NULL)")
        if _types(connection, table) and not _about(connection, table):
            raise InvalidInputError(f"table must be new or hold codes, got {table!r}, which holds something else")
        kinds = ", ".join(f"{name} {kind} NOT NULL" for name, kind in columns.items())
        connection.execute(f"CREATE OR REPLACE TABLE {quoted(table)} ({kinds})")
        connection.execute(f"INSERT INTO {quoted(table)} SELECT * FROM {given}")
        connection.execute(f"INSERT OR REPLACE INTO {ABOUT} VALUES (lower(?), ?)", [table, origin.header()])
        connection.execute("COMMIT")
    except BaseException:
        with suppress(require("duckdb", "duckdb").Error):  # there is none where the commit was reached
            connection.execute("ROLLBACK")
        raise


def _origin(connection: Any, table: str, where: str) -> Origin:
    _check_functions(connection, where)
    about = _about(connection, table)
    if about is None:
        raise FormatError(f"{where} is not a table of codes")
    if not _is_stored(connection, table):
        raise FormatError(f"{where} must be a table whose columns are stored, got a view or computed columns")
    origin, _ = read_header(about, where)
    found = _types(connection, table)
    if found != _columns(origin):
        raise FormatError(f"{where} must have the columns {_columns(origin)}, got {found}")
    return origin


def _columns(origin: Origin) -> dict[str, str]:
    n_words = -(-origin.n_bytes // _WORD)
    return {"id": "BIGINT"} | {f"word{i}": "UBIGINT" for i in range(n_words)}


def _types(connection: Any, table: str) -> dict[str, str]:
    """Columns of a table or view and their types; none when there is no such table."""
    rows = connection.execute(
        "SELECT column_name, data_type FROM system.main.duckdb_columns() "
        f"WHERE lower(table_name) = lower(?) {_HERE} ORDER BY column_index",
        [table],
    ).fetchall()
    return dict(rows)


def _is_stored(connection: Any, table: str) -> bool:
    """Whether a table is no view and none of its columns is computed: a stranger's may never come to an end."""
    row = connection.execute(
        f"SELECT sql FROM system.main.duckdb_tables() WHERE lower(table_name) = lower(?) {_HERE}", [table]
    ).fetchone()
    return row is not None and "GENERATED ALWAYS" not in row[0]


def _check_functions(connection: Any, where: str) -> None:
    """Refuse functions in the file that hide DuckDB's own, which our SQL calls."""
    rows = connection.execute("SELECT internal, function_name FROM system.main.duckdb_functions()").fetchall()
    known = {name.lower() for internal, name in rows if internal}
    hiding = sorted(name for internal, name in rows if not internal and name.lower() in known)
    if hiding:
        raise FormatError(f"{where} is in a file whose function {hiding[0]!r} hides DuckDB's own")


def _about(connection: Any, table: str) -> str | None:
    if _types(connection, ABOUT) != {"name": "VARCHAR", "about": "VARCHAR"} or not _is_stored(connection, ABOUT):
        return None
    row = connection.execute(f"SELECT about FROM {ABOUT} WHERE name = lower(?)", [table]).fetchone()
    return None if row is None else str(row[0])


def _connected(path: Path, table: str, read_only: bool) -> Any:
    duckdb = require("duckdb", "duckdb")
    if quoted(table).strip('"').lower() == ABOUT:
        raise InvalidInputError(f"table must not be {ABOUT!r}, which says what the others hold")
    check_file(path)
    with _errors(path):
        return duckdb.connect(os.fspath(path), read_only=read_only, config=_CLOSED)


def _check_can_be_opened(path: Path) -> None:
    """Refuse a file that hangs or crashes DuckDB: another process opens it first."""
    if not os.path.isfile(path) or getattr(sys, "frozen", False):
        return
    patience = _PATIENCE + os.path.getsize(path) / _A_SECOND
    command, nowhere = [sys.executable, "-P", "-c", _OPEN, os.fspath(path)], subprocess.DEVNULL
    try:
        tried = subprocess.run(command, timeout=patience, check=False, stdin=nowhere, stdout=nowhere, stderr=nowhere)
    except subprocess.TimeoutExpired as error:
        raise FormatError(f"{path} is damaged: DuckDB did not open it in {patience:.0f} s") from error
    if tried.returncode < 0:
        raise FormatError(f"{path} is damaged: DuckDB crashes when it opens it (signal {-tried.returncode})")


@contextmanager
def _errors(where: Any) -> Iterator[None]:
    """DuckDB's errors in our words."""
    duckdb = require("duckdb", "duckdb")
    try:
        yield
    except duckdb.ConnectionException as error:
        raise InUseError(
            f"{where} is closed, or open elsewhere in this process by other settings, as duckdb.connect has them; "
            f"close that first: {error}"
        ) from error
    except (duckdb.Error, UnicodeDecodeError) as error:
        if "Could not set lock" in str(error):
            raise InUseError(f"{where} is in use: {error}") from error
        for number in errno.errorcode:
            of_the_disk = OSError(number, os.strerror(number), str(where))
            if is_of_the_disk(of_the_disk) and os.strerror(number) in str(error):
                raise of_the_disk from error
        raise FormatError(f"{where} is not a DuckDB file that can be read, or it is damaged: {error}") from error
    except RuntimeError as error:
        if "interrupted" in str(error):  # so DuckDB tells of Ctrl-C
            raise KeyboardInterrupt from error
        raise
