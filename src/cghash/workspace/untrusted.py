"""JSON and SQLite files that strangers may have written: checked, and nothing in them is run."""

from __future__ import annotations

import json
import os
import re
import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any

from ..exceptions import FormatError
from ..reading.text_files import shortened

__all__ = ["check_journal", "distrust_schema", "read_json", "readable"]

_LEAST, _MOST = -(2**63), 2**63 - 1  # whole numbers that every program's JSON, and every database, can hold
_MOST_LEVELS = 100
_NAMES_ANOTHER = bytes.fromhex("d9d505f920a163d7")  # the end of a journal that names a "super-journal"
_EXPRESSION = -2  # the number of a column of an index that is none
# what SQLite itself writes of tables and indexes that compute nothing: other words mean other things
_PLAIN = {
    "table": re.compile(r"CREATE TABLE (?!.*\bcheck\b)", re.IGNORECASE | re.DOTALL),
    "index": re.compile(r"CREATE (UNIQUE )?INDEX "),
}
_NEVER = re.compile(r"(?!)")


def read_json(text: str | bytes, *, finite: bool = False) -> Any:
    """What JSON says; ValueError where it is damaged, or holds what the page could not be told.

    Parameters
    ----------
    text : that others may have written
    finite : whether NaN and Infinity are refused, which Python reads and JSON does not know

    Examples
    --------
    >>> read_json('{"bit": 3}')
    {'bit': 3}
    >>> read_json("[" + "9" * 24 + "]")
    Traceback (most recent call last):
    ValueError: whole numbers must fit in 64 bits, got 999999999999999999999999
    """
    if not isinstance(text, str | bytes):
        raise ValueError(f"it must be text, got {text!r:.60}")
    try:
        found = json.loads(text, parse_constant=_no_constant if finite else None)
    except RecursionError as error:
        raise ValueError(f"it must have at most {_MOST_LEVELS} levels") from error
    _check(found, _MOST_LEVELS)
    return found


def _no_constant(name: str) -> None:
    raise ValueError(f"it holds {name}, which is not JSON")


def _check(value: Any, levels: int) -> None:
    if not levels:
        raise ValueError(f"it must have at most {_MOST_LEVELS} levels")
    if isinstance(value, str):
        value.encode()  # UnicodeEncodeError is a ValueError
    elif isinstance(value, int) and not _LEAST <= value <= _MOST:
        raise ValueError(f"whole numbers must fit in 64 bits, got {value!s:.60}")
    elif isinstance(value, list | dict):
        for part in (*value, *value.values()) if isinstance(value, dict) else value:
            _check(part, levels - 1)


def check_journal(path: str | os.PathLike[str]) -> None:
    """Refuse a journal that names another file, which SQLite then deletes: ours never does, a stranger's may."""
    journal = os.path.realpath(path) + "-journal"
    try:
        with open(journal, "rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - len(_NAMES_ANOTHER)))
            names_another = file.read() == _NAMES_ANOTHER
    except (FileNotFoundError, IsADirectoryError):  # or another process has just finished with it
        return
    if names_another:
        raise FormatError(
            f"{journal} must name no other file, which SQLite would delete; cghash writes no such journal: delete it"
        )


def distrust_schema(
    connection: sqlite3.Connection, path: str | os.PathLike[str], tables: Mapping[str, Sequence[str]]
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


def _is_computed(connection: sqlite3.Connection, index: str) -> bool:
    quoted = index.replace('"', '""')
    return any(
        column == _EXPRESSION for _, column, _ in connection.execute(f'PRAGMA index_info("{quoted}")').fetchall()
    )


def _not_plain(path: str | os.PathLike[str], kind: Any, name: Any) -> FormatError:
    what = f"{shortened(str(kind))} {shortened(str(name))!r}"
    return FormatError(f"{path} must keep what is ours in plain tables, got the {what}")


def readable(text: bytes) -> str:
    """A text of SQLite, whose bytes may be damaged."""
    return text.decode("utf-8", "replace")
