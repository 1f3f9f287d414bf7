"""Answers as files: the triplets of those that tell something, and beside them those that could not tell.

Items are named by their ids, so that the files mean the same in another workspace of the same items.
"""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from importlib.util import find_spec
from io import StringIO
from pathlib import Path
from typing import Any

from ..exceptions import CGHashError, InvalidInputError, MissingDependencyError
from ..reading.text_files import shortened
from ..storage import written_atomically
from .folder import Workspace
from .importing import key_of
from .records import SOURCES, Answer
from .tables import Table, open_table

__all__ = ["TRIPLET", "has_parquet", "read_unsure", "told_of", "unsure_table", "write_triplets", "write_unsure"]

TRIPLET = ("anchor", "near", "far", "source", "created", "key")
UNSURE = ("anchor", "left", "right", "choice", "source", "created", "key")

Cells = tuple[str, ...]


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


def unsure_table(path: Path) -> Table | None:
    """The table in a file that `write_unsure` wrote, or one like it; None where the file is another."""
    try:
        table = open_table(path, UNSURE)
    except CGHashError:
        return None
    return table if {"anchor", "left", "right"} <= set(table.columns) else None


def read_unsure(table: Table, ids: Sequence[str], prefix: str) -> Iterator[Answer]:
    """The answers of a table; those without a key have one of the prefix and the row."""
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
        anchor, left, right = (rows[key] for key in named)
        yield Answer(anchor=anchor, left=left, right=right, choice="unsure", **told_of(about, f"{prefix}-{number}"))


def told_of(about: dict[str, Any], key: str) -> dict[str, Any]:
    """Key, source and time of an answer, from what a file tells of it and where it can be believed."""
    source = about.get("source")
    return {
        "key": str(about.get("key") or key)[:200],
        "source": source if isinstance(source, str) and source in SOURCES else "import",
        "created": _time(about.get("created")),
    }


def has_parquet() -> bool:
    return find_spec("pyarrow") is not None


def _write(path: str | os.PathLike[str], columns: Cells, rows: list[Cells]) -> int:
    writers: dict[str, Callable[[Path, Cells, list[Cells]], None]] = {
        ".csv": _write_csv,
        ".jsonl": _write_jsonl,
        ".parquet": _write_parquet,
    }
    writer = writers.get(Path(path).suffix.lower())
    if writer is None:
        raise InvalidInputError(
            f"triplets must go to a file that ends in {', '.join(writers)}, got {os.fspath(path)!r}"
        )
    writer(Path(path), columns, rows)
    return len(rows)


def _write_csv(path: Path, columns: Cells, rows: list[Cells]) -> None:
    with written_atomically(path) as file:
        for row in (columns, *rows):
            line = StringIO()
            csv.writer(line, lineterminator="\n").writerow(row)
            file.write(line.getvalue().encode())


def _write_jsonl(path: Path, columns: Cells, rows: list[Cells]) -> None:
    with written_atomically(path) as file:
        for row in rows:
            file.write(json.dumps(dict(zip(columns, row, strict=True)), ensure_ascii=False).encode() + b"\n")


def _write_parquet(path: Path, columns: Cells, rows: list[Cells]) -> None:
    try:
        import pyarrow as pa
        import pyarrow.parquet as parquet
    except ImportError as error:
        raise MissingDependencyError(
            'writing .parquet needs pyarrow: pip install "cghash[parquet]" (in a checkout: pip install ".[parquet]")'
        ) from error
    cells = zip(*rows, strict=True) if rows else ((),) * len(columns)
    table = pa.table({name: pa.array(column, pa.string()) for name, column in zip(columns, cells, strict=True)})
    with written_atomically(path) as file:
        parquet.write_table(table, file)


def _time(text: Any) -> str:
    try:
        return datetime.fromisoformat(str(text)).isoformat(timespec="milliseconds")
    except ValueError:
        return ""
