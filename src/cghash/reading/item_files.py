"""Items: rows of numbers with the labels and ids that lie beside them, whole or some rows at a time."""

from __future__ import annotations

import os
from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import Any

import numpy as np

from .._arrays import Array
from .._validation import did_you_mean, is_number
from ..exceptions import InvalidInputError
from .binary_files import (
    column_of,
    opened_parquet,
    read_array,
    read_arrays,
    read_columns,
    without_texts_in_lists,
)
from .label_files import check_lengths, plain_labels, written_labels
from .sources import Source, check_inflated, source_of
from .text_files import Row, TextTable, is_missing, read_rows, shortened, why_no_number

_ROWS = 1 << 16  # of a block


@dataclass
class Items:
    """Items (n, d) of one file.

    `names` are the features' names where the file has them, `labels` and `ids` one entry an item where they were found,
    `ignored` the columns that are neither.
    """

    name: str
    X: Array
    names: list[str] | None = None
    labels: Array | None = None
    ids: Array | None = None
    ignored: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class _Asked:
    label: str | None
    id: str | None
    features: Sequence[str] | None  # names that a model was fitted on
    as_written: bool  # labels

    @property
    def beside(self) -> tuple[str, ...]:
        return tuple(name for name in (self.label, self.id) if name is not None)

    def labels(self, found: Array) -> Array:
        return written_labels(found) if self.as_written else plain_labels(found)


def read_items(
    path: str | os.PathLike[str],
    *,
    label_column: str | None = None,
    id_column: str | None = None,
    features: Sequence[str] | None = None,
    as_written: bool = False,
) -> Items:
    """Read items from a file, or from standard input for `-`.

    Parameters
    ----------
    path : .npy (memory-mapped), .npz (array X, or the only one, and labels y), .csv, .tsv or .parquet, whose numeric
        columns are the features
    label_column, id_column : names of columns (arrays of an .npz) that are not features; the number of the column,
        from 0, where a .csv has no header
    features : names of the features to take, in this order, where the file has names
    as_written : whether labels stay as they are written, for `alike_labels`, and do not become numbers where all are
    """
    source = source_of(path)
    asked = _Asked(label_column, id_column, features, as_written)
    readers = {"npy": _from_npy, "npz": _from_npz, "csv": _from_csv, "parquet": _from_parquet}
    if source.kind not in readers:
        raise InvalidInputError(f"{source.name} must be .npy, .npz, .csv or .parquet to hold items")
    items = readers[source.kind](source, asked)
    items.X = checked_items(items.X, source.name)
    return items


def item_blocks(
    path: str | os.PathLike[str], features: Sequence[str] | None = None, rows: int = _ROWS
) -> Iterator[Array]:
    """Blocks (rows, d) of the items of a .npy or .parquet file.

    Parameters
    ----------
    path : file; all numeric columns of a .parquet are features, a column of lists as many as they are long
    features : names of the columns to take, in this order, where the file has names
    """
    source = source_of(path)
    if source.kind == "npy":
        items = checked_items(read_array(source), source.name)
        yield from (items[first : first + rows] for first in range(0, len(items), rows))
    elif source.kind == "parquet":
        yield from _parquet_blocks(source, features, rows)
    else:
        raise InvalidInputError(f"{source.name} must be .npy or .parquet to be read in blocks")


def _from_npy(source: Source, asked: _Asked) -> Items:
    if asked.beside:
        raise InvalidInputError(
            f"{source.name} is an .npy file, which has no columns: {asked.beside[0]!r} not found; "
            "put labels into a file of their own (--labels), ids into an .npz: numpy.savez(file, X=items, id=ids)"
        )
    return Items(source.name, read_array(source))


def _from_npz(source: Source, asked: _Asked) -> Items:
    arrays = read_arrays(source)
    beside = [_found(arrays, name, source) for name in asked.beside]
    left = [name for name in arrays if name not in (*asked.beside, "y")]
    if "X" not in arrays and len(left) != 1:
        raise InvalidInputError(
            f"{source.name} must hold an array X, or a single array, got {_listed(arrays)}; "
            "numpy.savez(file, X=items, y=labels) writes one"
        )
    chosen = "X" if "X" in arrays else left[0]
    X = arrays[chosen]
    labels = beside[0] if asked.label is not None else arrays.get("y")
    items = Items(source.name, X, labels=None if labels is None else asked.labels(labels))
    items.ids = beside[-1] if asked.id is not None else None
    items.ignored = [name for name in left if name != chosen]
    for name, values in (*zip(asked.beside, beside, strict=True), ("y", items.labels)):
        if values is not None and (values.ndim == 0 or X.ndim == 0 or len(values) != len(X)):
            raise InvalidInputError(
                f"{source.name}: array {name!r} must have one entry an item, shapes are {values.shape} and {X.shape}"
            )
    return items


def _from_parquet(source: Source, asked: _Asked) -> Items:
    columns = read_columns(source)
    beside = {name: _found(columns, name, source) for name in asked.beside}
    numeric = [
        name for name, values in columns.items() if values.dtype.kind in "buif" and name not in beside and _named(name)
    ]
    chosen = _chosen(numeric, list(columns), asked, source)
    if not chosen:
        raise InvalidInputError(f"{source.name} must hold a column of numbers, got {_listed(columns)}")
    names = [n for name in chosen for n in _expanded(name, columns[name])]
    X = np.column_stack([columns[name] for name in chosen])
    items = Items(source.name, X, names)
    items.labels = asked.labels(beside[asked.label]) if asked.label is not None else None
    items.ids = beside[asked.id] if asked.id is not None else None
    items.ignored = [name for name in columns if name not in chosen and name not in beside]
    _check_finite(X, names, lambda row: f"{source.name}, row {row}")
    return items


def _from_csv(source: Source, asked: _Asked) -> Items:
    table = read_rows(source, asked.beside, asked.features or (), counted=True)
    places = {name: _place(table, name) for name in asked.beside}
    ahead = list(islice(table.rows, 2))
    if not ahead:
        raise InvalidInputError(f"{source.name} must hold items, got only a header")
    numeric = [
        name
        for name, *cells in zip(table.names, *(cells for _, cells in ahead), strict=True)
        if name not in places and _named(name) and _holds_numbers(cells)
    ]
    chosen = _chosen(numeric, table.names, asked, source, named=table.header is not None)
    if not chosen:
        first = (why_no_number(cell) for cell in (*table.names, *ahead[0][1]) if cell.strip())
        raise InvalidInputError(
            f"{source.name} must hold a column of numbers, got {_listed(table.names)}{next(filter(None, first), '')}"
        )
    _check_unique(table)
    wanted = [table.names.index(name) for name in chosen]
    numbers, beside, lines = _cells(table, ahead, wanted, list(places.values()))
    X = np.frombuffer(numbers, dtype=np.float64).reshape(-1, len(wanted))
    _check_finite(X, chosen, lambda row: source.at(lines[row]))
    items = Items(source.name, X, chosen if table.header is not None else None)
    for name, words in zip(asked.beside, beside, strict=True):
        check_lengths(words, name)
    items.labels = asked.labels(np.array(beside[0])) if asked.label is not None else None
    items.ids = np.array(beside[-1]) if asked.id is not None else None
    items.ignored = [name for name in table.names if name not in chosen and name not in places]
    return items


def _cells(
    table: TextTable, ahead: list[Row], wanted: list[int], beside: list[int]
) -> tuple[array[float], list[list[str]], array[int]]:
    """The numbers of the wanted columns, row after row; the words of the columns beside; the lines' numbers."""
    numbers, lines = array("d"), array("q")
    words: list[list[str]] = [[] for _ in beside]
    for line, cells in chain(ahead, table.rows):
        try:
            numbers.extend([float(cells[i]) for i in wanted])
        except ValueError as error:
            raise _not_a_number(table, line, cells, wanted) from error
        for found, i in zip(words, beside, strict=True):
            if not cells[i].strip():
                raise InvalidInputError(
                    f"{table.source.at(line)}, column {table.names[i]!r}: must not be empty, got {cells[i]!r}"
                )
            found.append(cells[i].strip())
        lines.append(line)
    return numbers, words, lines


def _holds_numbers(cells: list[str]) -> bool:
    """Whether the first cells of a column are of a feature; a missing value above a number is, and is refused later."""
    first = cells[0]
    return is_number(first) or not first.strip() or (is_missing(first) and is_number(cells[-1]))


def _not_a_number(table: TextTable, line: int, cells: list[str], wanted: list[int]) -> InvalidInputError:
    i = next(i for i in wanted if not is_number(cells[i]))
    return InvalidInputError(
        f"{table.source.at(line)}, column {table.names[i]!r}: must be a number, got {shortened(cells[i])!r}"
        f"{why_no_number(cells[i])}"
    )


def _chosen(numeric: list[str], names: list[str], asked: _Asked, source: Source, named: bool = True) -> list[str]:
    """The columns that are features: those that a model names, else all numeric ones."""
    if asked.features is None or not named:
        return numeric
    lists = [name for name in numeric if f"{name}[0]" in asked.features]
    missing = [name for name in asked.features if name not in names and name.rpartition("[")[0] not in lists]
    if missing:
        raise InvalidInputError(
            f"{source.name} must have the columns that the model was fitted on; {missing[0]!r} is missing"
        )
    return list(dict.fromkeys(name if name in names else name.rpartition("[")[0] for name in asked.features))


def _place(table: TextTable, name: str) -> int:
    if name not in table.names:
        raise InvalidInputError(
            f"{table.source.name} must have a column {name!r}, got {_listed(table.names)}"
            f"{did_you_mean(name, table.names)}"
        )
    return table.names.index(name)


def _found(arrays: dict[str, Array], name: str, source: Source) -> Array:
    if name not in arrays:
        raise InvalidInputError(
            f"{source.name} must have a column {name!r}, got {_listed(arrays)}{did_you_mean(name, arrays)}"
        )
    return arrays[name]


def _named(name: str) -> bool:
    """Whether a column has a name of its own: row numbers that tables are saved with have none."""
    return bool(name) and not name.startswith(("Unnamed:", "__index_level_"))


def _expanded(name: str, values: Array) -> list[str]:
    return [name] if values.ndim == 1 else [f"{name}[{i}]" for i in range(values.shape[1])]


def _check_unique(table: TextTable) -> None:
    twice = [name for name in set(table.names) if name and table.names.count(name) > 1]
    if twice:
        raise InvalidInputError(f"{table.source.name} must name each column once, got {min(twice)!r} twice")


def _check_finite(X: Array, names: list[str], place: Callable[[int], str]) -> None:
    if X.dtype.kind == "f" and not np.isfinite(X).all():
        row, column = np.argwhere(~np.isfinite(X))[0].tolist()
        raise InvalidInputError(
            f"{place(row)}, column {names[column]!r}: must be a finite number, got {X[row, column]}"
        )


def checked_items(X: Array, name: str) -> Array:
    """Items (n, d), or a word on what they must be."""
    if X.ndim != 2 or X.dtype.kind not in "buif":
        hints = {1: "; reshape(1, -1) makes one item of it", 3: "; reshape(len(X), -1) makes a row of each item"}
        raise InvalidInputError(
            f"{name} must hold a 2-D array of numbers, got shape {X.shape}, dtype {X.dtype}{hints.get(X.ndim, '')}"
        )
    if X.shape[0] == 0 or X.shape[1] == 0:
        raise InvalidInputError(f"{name} must hold at least one item and one feature, got shape {X.shape}")
    return X


def _parquet_blocks(source: Source, features: Sequence[str] | None, rows: int) -> Iterator[Array]:
    with opened_parquet(source) as (pa, opened, size):
        for batch in opened.iter_batches(rows, columns=without_texts_in_lists(pa, opened.schema_arrow)):
            check_inflated(batch.nbytes, size, source.name, "write it with fewer rows in a group")
            batch.validate(full=True)
            columns = {name: column_of(pa, batch.column(name)) for name in batch.schema.names}
            yield _joined(columns, features, source.name)


def _joined(columns: dict[str, Array], features: Sequence[str] | None, name: str) -> Array:
    numeric = [column for column, values in columns.items() if values.dtype.kind in "buif"]
    whole = [column for column in numeric if features is None or column in features or f"{column}[0]" in features]
    wanted = whole if features is None else list(dict.fromkeys(f.rpartition("[")[0] or f for f in features))
    missing = [column for column in wanted if column not in whole]
    if missing or not wanted:
        raise InvalidInputError(f"{name} must have the columns of numbers {missing or 'that are features'}")
    return np.column_stack([columns[column] for column in wanted])


def _listed(names: Any, most: int = 8) -> str:
    names = list(names)
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(repr(name) for name in names[:most]) + more if names else "none"
