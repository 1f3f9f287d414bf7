"""Which partitions a Parquet file or a folder of them has, from the footers alone."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..exceptions import InvalidInputError, MissingDataError
from ..reading.binary_files import check_parquet
from ..reading.parquet_footer import Group
from ..stores.base import require
from .parquet_partitions import ENDINGS, ArrowFile, Columns, ParquetPartition, Stamp, is_list, open_parquet
from .partitions import item_dtype


@dataclass(frozen=True)
class Footer:
    """What the end of a file tells: its columns' types, and how many rows and features each row group has."""

    path: Path
    name: str
    stamp: Stamp
    kinds: dict[str, Any]  # types of the wanted columns
    groups: list[tuple[int, int]]  # (rows, features)


def list_parquet(root: Path, columns: Columns, by_file: bool) -> tuple[ParquetPartition, ...]:
    """The partitions of a file or folder, in the order of the files' names; all are of one schema."""
    footers = [_footer(path, _name(path, root), columns) for path in _files(root)]
    _check_same_schema(footers)
    n_features = _common_width(footers)
    dtype = _dtype(footers[0], columns)
    parts: list[ParquetPartition] = []
    first = 0
    for footer in footers:
        row = 0
        numbers = range(len(footer.groups))
        for chosen in [tuple(numbers)] if by_file and footer.groups else [(i,) for i in numbers]:
            n_rows = sum(footer.groups[i][0] for i in chosen)
            parts.append(
                ParquetPartition(
                    name=footer.name if by_file else f"{footer.name}, row group {chosen[0]}",
                    first=first,
                    n_rows=n_rows,
                    n_features=n_features,
                    dtype=dtype,
                    has_labels=columns.labels is not None,
                    fingerprint=repr((footer.name, chosen, columns, footer.stamp)),
                    path=os.path.abspath(footer.path),
                    groups=chosen,
                    row=row,
                    columns=columns,
                    stamp=footer.stamp,
                )
            )
            first, row = first + n_rows, row + n_rows
    return tuple(parts)


def _files(root: Path) -> list[Path]:
    if root.is_file():
        return [root]
    if not root.exists():
        raise MissingDataError(f"no such file or folder: {str(root)!r}")
    found = [path.relative_to(root) for path in root.rglob("*") if path.suffix in ENDINGS and path.is_file()]
    found = [path for path in found if not any(part.startswith(("_", ".")) for part in path.parts)]
    if not found:
        raise MissingDataError(f"{root} must hold files that end in {', '.join(ENDINGS)}, got none")
    return [root / path for path in sorted(found, key=lambda path: path.as_posix())]


def _name(path: Path, root: Path) -> str:
    return path.name if path == root else path.relative_to(root).as_posix()


def _footer(path: Path, name: str, columns: Columns) -> Footer:
    stamp = Stamp.of(os.fspath(path))
    with open_parquet(path, name) as file:
        schema = file.schema_arrow
        missing = [column for column in columns.wanted if schema.get_field_index(column) < 0]
        if missing:
            known = ", ".join(map(repr, schema.names[:8])) + (" …" if len(schema.names) > 8 else "")
            raise InvalidInputError(f"{name} must have one column {missing[0]!r}, got {known or 'none'}")
        kinds = {column: _plain(schema.field(column).type) for column in columns.wanted}
        _check_kinds(kinds, columns, name)
        groups = file.sizes(columns.vector, name) if isinstance(file, ArrowFile) else _listed(path, columns, name)
    return Footer(path, name, stamp, kinds, groups)


def _plain(kind: Any) -> Any:
    """A type of Arrow; of a dictionary that of its values."""
    return kind.value_type if require("pyarrow", "dask").types.is_dictionary(kind) else kind


def _check_kinds(kinds: dict[str, Any], columns: Columns, name: str) -> None:
    types = require("pyarrow", "dask").types
    for feature in columns.features:
        kind = kinds[feature]
        if is_list(kind) and not isinstance(columns.vector, str):
            raise InvalidInputError(f"{name}: column {feature!r} must hold one number a row, got {kind}")
        number = kind.value_type if is_list(kind) else kind
        if not types.is_integer(number) and not types.is_floating(number):
            raise InvalidInputError(f"{name}: column {feature!r} must hold numbers or lists of numbers, got {kind}")
    if columns.ids is not None and not types.is_integer(kinds[columns.ids]):
        raise InvalidInputError(
            f"{name}: column {columns.ids!r} must hold whole numbers as ids, got {kinds[columns.ids]}"
        )
    if columns.labels is not None and types.is_nested(kinds[columns.labels]):
        raise InvalidInputError(
            f"{name}: column {columns.labels!r} must hold one label a row, got {kinds[columns.labels]}"
        )


def _listed(path: Path, columns: Columns, name: str) -> list[tuple[int, int]]:
    with open(path, "rb") as file:
        return _sizes(check_parquet(file, name, columns.wanted, one_by_one=True), columns, name)


def _sizes(groups: list[Group], columns: Columns, name: str) -> list[tuple[int, int]]:
    return [_size(group, columns, f"{name}, row group {i}") for i, group in enumerate(groups)]


def _size(group: Group, columns: Columns, name: str) -> tuple[int, int]:
    """(rows, features) of a row group: the column of lists holds rows · features numbers."""
    if not isinstance(columns.vector, str):
        return group.n_rows, len(columns.vector)
    n_values = sum(chunk.n_values for chunk in group.chunks if chunk.column == columns.vector)
    if group.n_rows and n_values % group.n_rows:
        raise InvalidInputError(
            f"{name}: column {columns.vector!r} must hold lists of one length, "
            f"got {n_values} numbers in {group.n_rows} rows"
        )
    return group.n_rows, n_values // max(1, group.n_rows)


def _check_same_schema(footers: list[Footer]) -> None:
    first = footers[0]
    for footer in footers[1:]:
        for column, kind in footer.kinds.items():
            if kind != first.kinds[column]:
                raise InvalidInputError(
                    f"all files must have columns of the same types: {column!r} is {first.kinds[column]} "
                    f"in {first.name}, {kind} in {footer.name}"
                )


def _common_width(footers: list[Footer]) -> int:
    widths: dict[int, str] = {}
    for footer in footers:
        for number, (rows, width) in enumerate(footer.groups):
            if rows:
                widths.setdefault(width, f"{footer.name}, row group {number}")
    if not widths or 0 in widths:
        raise InvalidInputError(f"{footers[0].path.parent} must hold at least one item and one feature, got none")
    if len(widths) > 1:
        (a, at), (b, there) = list(widths.items())[:2]
        raise InvalidInputError(f"all vectors must have one length: {a} in {at}, {b} in {there}")
    return next(iter(widths))


def _dtype(footer: Footer, columns: Columns) -> str:
    kinds = [footer.kinds[name] for name in columns.features]
    plain = {item_dtype((k.value_type if is_list(k) else k).to_pandas_dtype(), footer.name) for k in kinds}
    return max(plain)  # float64 where one of them needs it
