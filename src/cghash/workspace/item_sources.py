"""Sources of items, as tables: columns with a value an item, and columns with a vector an item.

A table can be read again and again, and is never whole in memory, except for arrays that are.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from .._arrays import Array
from ..exceptions import InvalidInputError
from ..reading.binary_files import (
    check_parquet,
    parquet_errors,
    parquet_file,
    pyarrow_for,
    read_array,
    read_arrays,
    words_of,
)
from ..reading.sources import Source, source_of
from ..reading.text_files import read_objects, read_rows
from .pictures import ENDINGS

__all__ = ["LabelledTable", "PictureFolder", "Table", "open_table"]

LocatedRow = tuple[str, list[Any]]  # a place for messages, and the cells there

_BLOCK = 4096  # rows of vectors at a time


class Table:
    """Items in rows; most tables have no columns of vectors."""

    name: str  # as messages call it
    columns: list[str]  # that hold a value an item: text, number, True, False or None
    vector_columns: Sequence[str] = ()

    def rows(self) -> Iterator[LocatedRow]:
        """The cells of `columns`, row after row."""
        raise NotImplementedError

    def vectors(self, column: str) -> Iterator[Array]:
        """The vectors of one of `vector_columns`, some rows at a time."""
        raise NotImplementedError

    def picture(self, cell: str, place: str) -> Path:
        """The file that a cell names."""
        raise NotImplementedError


def open_table(source: str | os.PathLike[str] | Array, names: tuple[str, ...] = ()) -> Table:
    """The table in a file: .csv, .tsv, .jsonl, .parquet, .npy or .npz; or an array (n, d).

    Parameters
    ----------
    source : the file, or the vectors themselves
    names : columns that are expected, which make the first line of a .csv a header
    """
    if isinstance(source, np.ndarray):
        return ArrayTable("vectors", {"X": source})
    found = source_of(source)
    readers: dict[str, Callable[[], Table]] = {
        "csv": lambda: CsvTable(found, names),
        "jsonl": lambda: JsonLinesTable(found),
        "parquet": lambda: ParquetTable(found),
        "npz": lambda: ArrayTable(found.name, read_arrays(found)),
        "npy": lambda: ArrayTable(found.name, {"X": read_array(found)}),
    }
    return readers[found.kind]()


class _FileTable(Table):
    """What tables in files share: pictures lie below the file's folder."""

    def __init__(self, source: Source) -> None:
        self.source, self.name = source, source.name
        self._root = Path() if source.path is None else source.path.parent.resolve()

    def picture(self, cell: str, place: str) -> Path:
        if self.source.path is None:
            raise InvalidInputError(f"{place}: pictures need a file to lie beside, got {self.name}")
        path = self.source.path.parent / cell
        if Path(cell).is_absolute() or not path.resolve().is_relative_to(self._root):
            raise InvalidInputError(
                f"{place}: a picture must lie below the folder of {self.source.path.name}, got {cell!r}"
            )
        return path


class CsvTable(_FileTable):
    """A .csv or .tsv file, whose first line names the columns."""

    def __init__(self, source: Source, names: tuple[str, ...]) -> None:
        super().__init__(source)
        self._names = names
        table = read_rows(source, names)
        if table.header is None:
            shown = ", ".join(next(table.rows)[1][:4])
            raise InvalidInputError(f"{source.name}, line 1: must name the columns, got {shown!r}")
        self._places = [i for i, name in enumerate(table.header) if _has_name(name)]
        self.columns = [table.header[i] for i in self._places]
        twice = [name for name in self.columns if self.columns.count(name) > 1]
        if twice:
            raise InvalidInputError(f"{source.name}, line 1: must name each column once, got {twice[0]!r} twice")

    def rows(self) -> Iterator[LocatedRow]:
        for line, cells in read_rows(self.source, self._names).rows:
            yield self.source.at(line), [cells[i] for i in self._places]


class JsonLinesTable(_FileTable):
    """A .jsonl file: an object a line; a list of numbers is a vector."""

    def __init__(self, source: Source) -> None:
        super().__init__(source)
        found: dict[str, bool] = {}  # whether each name holds vectors
        for _, value in self._objects():
            for name, cell in value.items():
                if _has_name(name) and cell is not None:
                    found[name] = found.get(name, True) and _is_vector(cell)
                elif _has_name(name) and name not in found:
                    found[name] = True  # nothing but null so far
        self.columns = [name for name, vectors in found.items() if not vectors]
        self.vector_columns = [name for name, vectors in found.items() if vectors and self._filled(name)]

    def rows(self) -> Iterator[LocatedRow]:
        for line, value in self._objects():
            yield self.source.at(line), [_plain(value.get(name)) for name in self.columns]

    def vectors(self, column: str) -> Iterator[Array]:
        block: list[Any] = []
        width = None
        for line, value in self._objects():
            cell = value.get(column)
            width = width or (len(cell) if cell else None)
            if cell is None or len(cell) != width:
                raise InvalidInputError(f"{self.source.at(line)}: {column!r} must hold {width or 'some'} numbers")
            block.append(cell)
            if len(block) == _BLOCK:
                yield np.array(block, dtype=np.float64)
                block = []
        if block:
            yield np.array(block, dtype=np.float64)

    def _objects(self) -> Iterator[tuple[int, dict[str, Any]]]:
        for line, value in read_objects(self.source):
            if not isinstance(value, dict):
                raise InvalidInputError(f"{self.source.at(line)}: must be an object, got {value!r:.40}")
            yield line, value

    def _filled(self, name: str) -> bool:
        return any(value.get(name) is not None for _, value in self._objects())


class ParquetTable(_FileTable):
    """A .parquet file; columns of lists of numbers hold vectors."""

    def __init__(self, source: Source) -> None:
        super().__init__(source)
        with parquet_errors(self.name), source.binary() as file:
            schema = pyarrow_for(source)[1].ParquetFile(file).schema_arrow
            kinds = [(field.name, _holds_vectors(field.type)) for field in schema]
        names = [name for name, _ in kinds]
        if len(set(names)) < len(names):
            raise InvalidInputError(f"{self.name} must name each column once, got {', '.join(names[:8])}")
        self.columns = [name for name, vectors in kinds if not vectors and _has_name(name)]
        self.vector_columns = [name for name, vectors in kinds if vectors]

    def rows(self) -> Iterator[LocatedRow]:
        row = 0
        for batch in self._batches(self.columns):
            columns = [_cells(column) for column in batch.columns]
            for cells in zip(*columns, strict=True) if columns else ((),) * batch.num_rows:
                yield f"{self.name}, row {row}", [_plain(cell) for cell in cells]
                row += 1

    def vectors(self, column: str) -> Iterator[Array]:
        first, width = 0, None
        for batch in self._batches([column]):
            lists = batch.column(0)
            lengths = lists.value_lengths().to_numpy(zero_copy_only=False)
            width = width or (lengths[0] if len(lengths) else None)
            if lists.null_count or not np.all(lengths == width):
                raise InvalidInputError(
                    f"{self.name}, rows {first} to {first + len(lists) - 1}: {column!r} must hold vectors of one length"
                )
            yield lists.flatten().to_numpy(zero_copy_only=False).reshape(len(lists), -1)
            first += len(lists)

    def _batches(self, columns: list[str]) -> Iterator[Any]:
        with parquet_errors(self.name), self.source.binary() as file:
            check_parquet(file, self.name)
            for batch in parquet_file(pyarrow_for(self.source)[1], file).iter_batches(_BLOCK, columns=columns):
                batch.validate(full=True)
                yield batch


def _cells(column: Any) -> list[Any]:
    """The values of a column; a text that many rows name is one object."""
    return words_of(column).tolist() if hasattr(column, "dictionary") else column.to_pylist()  # type: ignore[no-any-return]


class ArrayTable(Table):
    """Vectors X (n, d), or the only 2-D array; arrays (n,) beside them are columns."""

    def __init__(self, name: str, arrays: dict[str, Array]) -> None:
        self.name = name
        wide = [key for key, array in arrays.items() if array.ndim == 2]
        chosen = "X" if "X" in arrays else wide[0] if len(wide) == 1 else None
        if chosen is None:
            raise InvalidInputError(f"{name} must hold an array X, or a single 2-D array, got {list(arrays)}")
        self.X = arrays[chosen]
        if self.X.ndim != 2 or self.X.dtype.kind not in "buif" or 0 in self.X.shape:
            raise InvalidInputError(
                f"{name} must hold numbers of shape (n, d), got shape {self.X.shape}, dtype {self.X.dtype}"
            )
        beside = {key: array for key, array in arrays.items() if array.shape == self.X.shape[:1]}
        self.columns, self._arrays = list(beside), list(beside.values())
        self.vector_columns = [chosen]

    def rows(self) -> Iterator[LocatedRow]:
        blocks = range(0, len(self.X), _BLOCK)
        cells = chain.from_iterable(self._cells(first) for first in blocks)
        for row, found in enumerate(cells):
            yield f"{self.name}, row {row}", found

    def vectors(self, column: str) -> Iterator[Array]:
        for first in range(0, len(self.X), _BLOCK):
            yield self.X[first : first + _BLOCK]

    def picture(self, cell: str, place: str) -> Path:
        raise InvalidInputError(f"{place}: arrays name no pictures, got {cell!r}")

    def _cells(self, first: int) -> Iterator[list[Any]]:
        length = min(_BLOCK, len(self.X) - first)
        columns = [array[first : first + length].tolist() for array in self._arrays]
        return ([_plain(column[i]) for column in columns] for i in range(length))


class PictureFolder(Table):
    """The pictures in a folder and those below it, by name; an item's id is its path from the folder.

    Hidden files are left out, and so are workspaces below the folder. A link to a file counts as the file, but one that
    leads out of the folder is left out unless `follow_links`; a link to a folder is not followed. The folder just
    below, where there is one, is the attribute `folder`.
    """

    def __init__(self, folder: str | os.PathLike[str], *, follow_links: bool = False) -> None:
        self.root = Path(folder)
        self.name = os.fspath(folder)
        found = [os.path.relpath(path, folder).replace(os.sep, "/") for path in _files(folder)]
        pictures = sorted(path for path in found if os.path.splitext(path)[1].lower() in ENDINGS)
        self.n_others = len(found) - len(pictures)
        self.paths = pictures if follow_links else [path for path in pictures if self._is_inside(path)]
        self.n_links_out = len(pictures) - len(self.paths)
        if not self.paths:
            holds = f"{self.n_others} files of other kinds" if self.n_others else "no file"
            holds = f"{self.n_links_out} links that lead out of it" if self.n_links_out else holds
            raise InvalidInputError(f"{folder} must hold pictures ({', '.join(sorted(ENDINGS))}), got {holds}")
        parted = any("/" in path for path in self.paths)
        self.columns = ["id", "image", "folder"] if parted else ["id", "image"]

    def _is_inside(self, path: str) -> bool:
        return Path(os.path.realpath(self.root / path)).is_relative_to(os.path.realpath(self.root))

    def rows(self) -> Iterator[LocatedRow]:
        for path in self.paths:
            top, slash, _ = path.partition("/")
            yield path, [path, path, top if slash else None][: len(self.columns)]

    def picture(self, cell: str, place: str) -> Path:
        return self.root / cell


def _files(folder: str | os.PathLike[str]) -> Iterator[str]:
    for here, folders, files in os.walk(folder):
        if "workspace.json" in files and "items.sqlite" in files:
            folders.clear()
            continue
        folders[:] = [name for name in folders if not name.startswith(".")]
        yield from (os.path.join(here, name) for name in files if not name.startswith("."))


class LabelledTable(Table):
    """A table with labels of another file as one more column."""

    def __init__(self, table: Table, values: list[Any], name: str = "label") -> None:
        if name in table.columns:
            raise InvalidInputError(f"{table.name} has a column {name!r} already: name it instead of a file of labels")
        self.table, self.values, self.name = table, values, table.name
        self.columns = [*table.columns, name]
        self.vector_columns = table.vector_columns

    def rows(self) -> Iterator[LocatedRow]:
        for (place, cells), value in zip(self.table.rows(), self.values, strict=True):
            yield place, [*cells, value]

    def vectors(self, column: str) -> Iterator[Array]:
        return self.table.vectors(column)

    def picture(self, cell: str, place: str) -> Path:
        return self.table.picture(cell, place)


def _has_name(name: str) -> bool:
    """Whether a column has a name of its own: row numbers that tables are saved with have none."""
    return bool(name) and not name.startswith(("Unnamed:", "__index_level_"))


def _is_vector(cell: Any) -> bool:
    return isinstance(cell, list) and bool(cell) and all(type(number) in (int, float) for number in cell)


def _holds_vectors(kind: Any) -> bool:
    import pyarrow as pa

    lists = pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)
    return bool(lists and (pa.types.is_floating(kind.value_type) or pa.types.is_integer(kind.value_type)))


def _plain(cell: Any) -> Any:
    """A cell as text, number, bool or None; text without what UTF-8 cannot say."""
    if cell is None or isinstance(cell, bool | int | float):
        return cell
    if isinstance(cell, dict | list):
        cell = json.dumps(cell, ensure_ascii=False, default=str)
    if isinstance(cell, bytes):
        cell = cell.decode("utf-8", "replace")
    text = str(cell)
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")
