"""Triplets and duplets: by row number, or by id where the items have ids."""

from __future__ import annotations

import os
from array import array
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from .._arrays import Array, Floats, Ints
from ..exceptions import InvalidInputError
from .binary_files import read_array, read_arrays, read_columns
from .sources import Source, source_of
from .text_files import read_objects, read_rows, shortened

Located = tuple[str, list[Any]]  # a place for messages, and the cells there

_TRIPLET = (("anchor",), ("near", "positive"), ("far", "negative"))
_DUPLET = (("first",), ("second",))
_WEIGHT = "weight"


def read_triplets(path: str | os.PathLike[str], n_items: int, ids: Array | None = None) -> tuple[Ints, Floats | None]:
    """Read triplets (t, 3) as row numbers, and their weights (t,) where the file has some.

    Parameters
    ----------
    path : .npy (t, 3), or .csv, .jsonl or .parquet with columns anchor, near, far (or anchor, positive, negative) and
        optionally weight; without names, three or four columns in that order
    n_items : how many items there are
    ids : (n_items,) their ids, where the file names items by id
    """
    return _read(path, _TRIPLET, Finder(n_items, ids), weighted=True)


def read_duplets(path: str | os.PathLike[str], n_items: int, ids: Array | None = None) -> Ints:
    """Read duplets (k, 2) as row numbers; columns first and second, or any two."""
    return _read(path, _DUPLET, Finder(n_items, ids), weighted=False)[0]


class Finder:
    """Finds an item's row, by number or by id.

    >>> Finder(2, np.array(["a", "b"])).row("b", "pairs.csv, line 1")
    1
    """

    def __init__(self, n_items: int, ids: Array | None) -> None:
        self.n_items = n_items
        self.rows = None if ids is None else _numbered(ids)

    def row(self, cell: Any, place: str) -> int:
        key = _key(cell)
        if self.rows is not None:
            if key not in self.rows:
                raise InvalidInputError(f"{place}: no item has the id {shortened(key)!r}")
            return self.rows[key]
        try:
            row = int(key)
        except ValueError:
            row = -1
        if not 0 <= row < self.n_items:
            counted = "; rows are counted from 0" if row == self.n_items else ""
            hint = counted if row >= 0 else "; ids need those of the items, by --id-column"
            raise InvalidInputError(
                f"{place}: must be a row number from 0 to {self.n_items - 1}, got {shortened(key)!r}{hint}"
            )
        return row


def _read(
    path: str | os.PathLike[str], words: tuple[tuple[str, ...], ...], finder: Finder, weighted: bool
) -> tuple[Ints, Floats | None]:
    source = source_of(path)
    rows, weights = array("q"), array("d")
    width = len(words)
    for place, cells in _located(source, words, weighted):
        found = [finder.row(cell, place) for cell in cells[:width]]
        if len(set(found)) < width:
            shown = ", ".join(_key(cell) for cell in cells[:width])
            raise InvalidInputError(f"{place}: must name {width} different items, got {shortened(shown)}")
        rows.extend(found)
        if len(cells) > width:
            weights.append(_weight(cells[width], place))
    if not rows:
        raise InvalidInputError(f"{source.name} must hold at least one row of {_described(words)}, got none")
    numbers = np.frombuffer(rows, dtype=np.int64).reshape(-1, width)
    if weights and len(weights) != len(numbers):
        raise InvalidInputError(f"{source.name} must give every row a weight or none, got {len(weights)} weights")
    return numbers, np.frombuffer(weights) if weights else None


def _located(source: Source, words: tuple[tuple[str, ...], ...], weighted: bool) -> Iterator[Located]:
    """The cells of each row, in the order of `words`, then the weight where there is one."""
    if source.kind == "csv":
        return _from_csv(source, words, weighted)
    if source.kind == "jsonl":
        return _from_jsonl(source, words, weighted)
    if source.kind == "parquet":
        columns = read_columns(source)
        order = _order(list(columns), words, weighted, source.name, named=True)
        names = list(columns)
        return _from_array(source, zip(*(columns[names[i]].tolist() for i in order), strict=True))
    return _from_array(source, _matrix(source, words).tolist())


def _from_csv(source: Source, words: tuple[tuple[str, ...], ...], weighted: bool) -> Iterator[Located]:
    table = read_rows(source, tuple(name for names in words for name in names))
    order = _order(table.names, words, weighted, source.name, table.header is not None)
    for line, cells in table.rows:
        yield source.at(line), [cells[i] for i in order]


def _from_jsonl(source: Source, words: tuple[tuple[str, ...], ...], weighted: bool) -> Iterator[Located]:
    for line, value in read_objects(source):
        place = source.at(line)
        if isinstance(value, dict):
            names = list(value)
            order = _order(names, words, weighted, place, named=True)
            value = list(value.values())
        elif isinstance(value, list):
            order = _order([""] * len(value), words, weighted, place, named=False)
        else:
            raise InvalidInputError(f"{place}: must be an object with {_described(words)}, got {value!r:.40}")
        yield place, [value[i] for i in order]


def _from_array(source: Source, rows: Iterable[Any]) -> Iterator[Located]:
    for number, cells in enumerate(rows):
        yield f"{source.name}, row {number}", list(cells)


def _matrix(source: Source, words: tuple[tuple[str, ...], ...]) -> Array:
    if source.kind == "npz":
        arrays = read_arrays(source)
        if len(arrays) != 1:
            raise InvalidInputError(f"{source.name} must hold a single array, got {list(arrays)}")
        matrix = next(iter(arrays.values()))
    else:
        matrix = read_array(source)
    if matrix.ndim != 2 or matrix.shape[1] != len(words) or matrix.dtype.kind not in "iuUS":
        raise InvalidInputError(
            f"{source.name} must hold whole numbers or ids of shape (m, {len(words)}) ({_described(words)}), "
            f"got shape {matrix.shape}, dtype {matrix.dtype}"
        )
    return matrix.astype(str) if matrix.dtype.kind == "S" else matrix


def _order(names: list[str], words: tuple[tuple[str, ...], ...], weighted: bool, place: str, named: bool) -> list[int]:
    """Which columns hold the items, and the weight where there is one."""
    lower = [name.strip().lower() for name in names]
    places = [next((lower.index(word) for word in group if word in lower), None) for group in words]
    weight = [lower.index(_WEIGHT)] if weighted and _WEIGHT in lower else []
    if named and None not in places:
        return [i for i in places if i is not None] + weight
    anyhow = not weighted or not named  # columns of any name, or of none, by their order
    rest = [i for i in range(len(names)) if i not in weight]
    if anyhow and (len(rest) == len(words) or (weighted and len(rest) == len(words) + 1)):
        return rest + weight
    got = f"{', '.join(repr(name) for name in names[:8])}" if named else f"{len(names)} columns"
    rename = "; rename them" if named and len(rest) >= len(words) else ""
    raise InvalidInputError(f"{place}: must have the columns {_described(words)}, got {got}{rename}")


def _described(words: tuple[tuple[str, ...], ...]) -> str:
    return ", ".join(group[0] for group in words)


def _weight(cell: Any, place: str) -> float:
    try:
        weight = float(cell)
    except (TypeError, ValueError):
        weight = float("nan")
    if not 0 <= weight < float("inf"):
        raise InvalidInputError(f"{place}: weight must be a number of at least 0, got {cell!r:.40}")
    return weight


def _numbered(ids: Array) -> dict[str, int]:
    rows: dict[str, int] = {}
    for row, value in enumerate(ids.tolist()):
        key = _key(value)
        if key in rows:
            raise InvalidInputError(f"ids must differ, got {shortened(key)!r} in rows {rows[key]} and {row}")
        rows[key] = row
    return rows


def _key(value: Any) -> str:
    """An id as text: 7, 7.0 and "7" are the same."""
    if isinstance(value, bytes):
        value = value.decode("utf-8", "replace")
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return str(value).strip()
