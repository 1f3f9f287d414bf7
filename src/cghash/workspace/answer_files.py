"""Answers as files: the triplets of those that tell something, and beside them those that could not tell.

Items are named by their ids, so that the files mean the same in another workspace of the same items.
"""

from __future__ import annotations

import csv
import hashlib
import json
import os
from collections.abc import Callable, Iterator
from datetime import datetime
from importlib.util import find_spec
from io import BytesIO, StringIO
from pathlib import Path
from typing import Any

import numpy as np

from ..exceptions import CGHashError, InvalidInputError, MissingDependencyError
from ..reading import read_triplets
from ..reading.sources import source_of
from ..reading.text_files import shortened
from ..storage import write_atomically
from .import_plan import key_of
from .item_sources import Table, open_table
from .records import SOURCES, Answer
from .workspace import Workspace

__all__ = ["KINDS", "read_answers", "write_triplets", "write_unsure"]

Cells = tuple[str, ...]

TRIPLET = ("anchor", "near", "far", "source", "created", "key")
UNSURE = ("anchor", "left", "right", "choice", "source", "created", "key")
KINDS = (".csv", ".jsonl", ".parquet") if find_spec("pyarrow") is not None else (".csv", ".jsonl")


def write_triplets(workspace: Workspace, path: str | os.PathLike[str]) -> int:
    """Write the answers that tell something to a .csv, .jsonl or .parquet file; how many there are.

    Its columns are the ids anchor, near and far, then source ("test" ones are never learned from), created and key.
    """
    ids = workspace.items.ids()
    told = ((answer, answer.triplet) for answer in workspace.records.answers())
    rows = [
        (*(ids[row] for row in triplet), answer.source, answer.created, answer.key)
        for answer, triplet in told
        if triplet is not None
    ]
    return _write(path, TRIPLET, rows)


def write_unsure(workspace: Workspace, path: str | os.PathLike[str]) -> int:
    """Write the answers "can't tell", but for those taken back, as `write_triplets` does; how many there are.

    Its columns are the ids anchor, left and right, then choice ("unsure"), source, created and key.
    """
    ids = workspace.items.ids()
    rows: list[Cells] = [
        (ids[a.anchor], ids[a.left], ids[a.right], a.choice, a.source, a.created, a.key)
        for a in workspace.records.answers()
        if a.choice == "unsure" and a.undone is None
    ]
    return _write(path, UNSURE, rows)


def read_answers(workspace: Workspace, path: Path) -> tuple[list[Answer], bool]:
    """The answers of a file, and whether it holds weights, which are not kept.

    Answers without a key have one of the file's content and the row, so that the same file says the same again.
    """
    prefix = f"import-{hashlib.sha256(path.read_bytes()).hexdigest()[:16]}" if path.is_file() else ""
    numbered = source_of(path).kind in ("npy", "npz")
    unsure = None if numbered else _table_of(path, UNSURE)
    ids = workspace.items.ids()
    if unsure is not None and {"anchor", "left", "right"} <= set(unsure.columns):
        return list(_unsure(unsure, ids, prefix)), False
    rows, weights = read_triplets(path, len(ids), None if numbered else np.array(ids, dtype=object))
    table = _table_of(path, TRIPLET)
    return list(_told(rows.tolist(), _cells_of(table, len(rows)), prefix)), weights is not None


def _table_of(path: Path, names: Cells) -> Table | None:
    """The table in a file; None where it has no header, or lists for objects."""
    try:
        return open_table(path, names)
    except CGHashError:
        return None


def _unsure(table: Table, ids: list[str], prefix: str) -> Iterator[Answer]:
    rows = {key_of(key): row for row, key in enumerate(ids)}
    for number, (place, cells) in enumerate(table.rows()):
        about = dict(zip(table.columns, cells, strict=True))
        if about.get("choice", "unsure") != "unsure":
            raise InvalidInputError(f"{place}: choice must be 'unsure', got {shortened(str(about['choice']))!r}")
        named = [key_of(about[side]) for side in ("anchor", "left", "right")]
        unknown = next((key for key in named if key not in rows), None)
        if unknown is not None:
            raise InvalidInputError(f"{place}: no item has the id {shortened(unknown)!r}")
        if len(set(named)) < 3:
            raise InvalidInputError(f"{place}: must name 3 different items")
        yield _answer([rows[key] for key in named], "unsure", about, f"{prefix}-{number}")


def _told(rows: list[list[int]], cells: list[dict[str, Any]], prefix: str) -> Iterator[Answer]:
    for number, row in enumerate(rows):
        yield _answer(row, "left", cells[number] if cells else {}, f"{prefix}-{number}")


def _cells_of(table: Table | None, n: int) -> list[dict[str, Any]]:
    """What a file tells beside the items, row by row; nothing where that is not about each of n triplets."""
    try:
        rows = [] if table is None else [dict(zip(table.columns, cells, strict=True)) for _, cells in table.rows()]
    except CGHashError:
        return []
    return rows if len(rows) == n else []


def _answer(rows: list[int], choice: str, about: dict[str, Any], key: str) -> Answer:
    """An answer with its key, source and time, as the file tells them and where it can be believed."""
    anchor, left, right = rows
    source = about.get("source")
    if not isinstance(source, str) or source not in SOURCES:
        source = "import"
    key = str(about.get("key") or key)[:200]
    return Answer(key, anchor, left, right, choice, source, created=_time(about.get("created")))


def _time(text: Any) -> str:
    try:
        return datetime.fromisoformat(str(text)).isoformat(timespec="milliseconds")
    except ValueError:
        return ""


def _write(path: str | os.PathLike[str], columns: Cells, rows: list[Cells]) -> int:
    writers: dict[str, Callable[[Cells, list[Cells]], bytes]] = {".csv": _csv, ".jsonl": _jsonl, ".parquet": _parquet}
    writer = writers.get(Path(path).suffix.lower())
    if writer is None:
        raise InvalidInputError(
            f"triplets must go to a file that ends in {', '.join(writers)}, got {os.fspath(path)!r}"
        )
    write_atomically(path, writer(columns, rows))
    return len(rows)


def _csv(columns: Cells, rows: list[Cells]) -> bytes:
    lines = StringIO()
    csv.writer(lines, lineterminator="\n").writerows([columns, *rows])
    return lines.getvalue().encode()


def _jsonl(columns: Cells, rows: list[Cells]) -> bytes:
    lines = (json.dumps(dict(zip(columns, row, strict=True)), ensure_ascii=False) for row in rows)
    return "".join(f"{line}\n" for line in lines).encode()


def _parquet(columns: Cells, rows: list[Cells]) -> bytes:
    try:
        import pyarrow as pa
        import pyarrow.parquet as parquet
    except ImportError as error:
        raise MissingDependencyError(
            'writing .parquet needs pyarrow: pip install "cghash[parquet]" (in a checkout: pip install ".[parquet]")'
        ) from error
    cells = zip(*rows, strict=True) if rows else ((),) * len(columns)
    table = pa.table({name: pa.array(column, pa.string()) for name, column in zip(columns, cells, strict=True)})
    file = BytesIO()
    parquet.write_table(table, file)
    return file.getvalue()
