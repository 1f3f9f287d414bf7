"""Rows for COPY: ids and codes in PostgreSQL's binary form, made by the block; with payload a row at a time."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from .._arrays import Array, Codes, Ints
from ..codes import unpack
from ..exceptions import InvalidInputError
from .base import require
from .postgres_layout import OWN, check_name

sql = require("psycopg.sql", "postgres")

_ROWS = 1 << 16  # at a time
_START, _END = b"PGCOPY\n\xff\r\n\0" + bytes(8), b"\xff\xff"  # of a file in binary form
_KINDS = {"b": "boolean", "i": "bigint", "u": "bigint", "f": "double precision", "U": "text", "S": "bytea"}
_OBJECTS = {bool: "boolean", int: "bigint", float: "double precision", str: "text", bytes: "bytea", dict: "jsonb"}


class Column(NamedTuple):
    """A column of the user's, beside the codes."""

    name: str
    kind: str  # its type in SQL
    values: list[Any]


def payload_columns(payload: Mapping[str, Any] | None, n: int) -> list[Column]:
    """Columns and their types, of arrays or lists by name; None is NULL, dictionaries are jsonb.

    Examples
    --------
    >>> payload_columns({"title": ["oak", None], "price": [2, 3]}, 2)
    [Column(name='title', kind='text', values=['oak', None]), Column(name='price', kind='bigint', values=[2, 3])]
    """
    if payload is None:
        return []
    if not isinstance(payload, Mapping):
        raise InvalidInputError(f"payload must be columns by name, got {type(payload).__name__}")
    return [_column(name, values, n) for name, values in payload.items()]


def copy_rows(cursor: Any, target: Any, ids: Ints, codes: Codes, n_bits: int, payload: list[Column], how: str) -> None:
    """Send rows into a table's columns `id`, `code` and those of the payload; `how` is an option of COPY, or empty."""
    names = sql.SQL(", ").join(sql.Identifier(name) for name in ("id", "code", *(c.name for c in payload)))
    options = ", ".join(filter(None, (how, "" if payload else "FORMAT binary")))
    statement = sql.SQL("COPY {} ({}) FROM STDIN" + (f" WITH ({options})" if options else ""))
    with cursor.copy(statement.format(target, names)) as copy:
        if payload:
            _send_rows(copy, ids, codes, n_bits, payload)
        else:
            _send_blocks(copy, ids, codes, n_bits)


def as_text(codes: Codes, n_bits: int) -> list[str]:
    """Codes as PostgreSQL writes bits.

    Examples
    --------
    >>> as_text(np.array([[6]], dtype=np.uint8), 3)
    ['011']
    """
    digits = unpack(codes, n_bits) + np.uint8(ord("0"))
    return [str(row) for row in digits.view(f"S{n_bits}").ravel().astype(str)]


def from_text(texts: list[str], n_bits: int) -> Codes:
    """The inverse of `as_text`."""
    digits = np.frombuffer("".join(texts).encode(), dtype=np.uint8).reshape(-1, n_bits)
    return np.packbits(digits - np.uint8(ord("0")), axis=1, bitorder="little")


def _send_blocks(copy: Any, ids: Ints, codes: Codes, n_bits: int) -> None:
    """Each row: number of fields, length of the id, the id, length of the code, its bits' number, the bits."""
    n_bytes = codes.shape[1]
    form = [("fields", ">i2"), ("eight", ">i4"), ("id", ">i8"), ("size", ">i4"), ("bits", ">i4")]
    copy.write(_START)
    for first in range(0, len(ids), _ROWS):
        block = slice(first, first + _ROWS)
        rows = np.zeros(len(ids[block]), dtype=[*form, ("code", "u1", (n_bytes,))])
        rows["fields"], rows["eight"], rows["size"], rows["bits"] = 2, 8, 4 + n_bytes, n_bits
        rows["id"] = ids[block]
        rows["code"] = np.packbits(unpack(codes[block], n_bits), axis=1)  # leftmost first
        copy.write(rows.tobytes())
    copy.write(_END)


def _send_rows(copy: Any, ids: Ints, codes: Codes, n_bits: int, payload: list[Column]) -> None:
    for first in range(0, len(ids), _ROWS):
        block = slice(first, first + _ROWS)
        columns = ids[block].tolist(), as_text(codes[block], n_bits), *(c.values[block] for c in payload)
        for row in zip(*columns, strict=True):
            copy.write_row(row)


def _column(name: Any, values: Any, n: int) -> Column:
    check_name(name, "a column of payload")
    if name in OWN:
        raise InvalidInputError(f"a column of payload must not be called {' or '.join(OWN)}, got {name!r}")
    array = _as_array(values)
    if array.shape != (n,):
        raise InvalidInputError(f"payload[{name!r}] must be {n} values, one a code, got shape {array.shape}")
    if array.dtype.kind in _KINDS:
        return Column(name, _KINDS[array.dtype.kind], array.tolist())
    kind, given = _kind_of(name, array), array.tolist()
    if kind == "jsonb":
        given = [None if value is None else json.dumps(value) for value in given]
    return Column(name, kind, given)


def _as_array(values: Any) -> Array:
    """1-D; lists as objects, since NumPy would make text of [1, "a"] and pad bytes."""
    if not isinstance(values, list | tuple):
        return np.asarray(values)
    return np.fromiter(values, dtype=object, count=len(values))


def _kind_of(name: str, array: Array) -> str:
    found = {type(value.item() if isinstance(value, np.generic) else value) for value in array.tolist()} - {type(None)}
    if found == {int, float}:
        found = {float}
    if len(found) > 1 or not found <= set(_OBJECTS):
        kinds = ", ".join(sorted(kind.__name__ for kind in found)) or str(array.dtype)
        raise InvalidInputError(f"payload[{name!r}] must be all {', '.join(k.__name__ for k in _OBJECTS)}, got {kinds}")
    return _OBJECTS[found.pop()] if found else "text"
