"""Items of a file in blocks of rows, for files that need not fit into memory."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

import numpy as np

from .._arrays import Array
from ..exceptions import InvalidInputError
from .arrays import (
    check_parquet,
    column_of,
    parquet_errors,
    parquet_file,
    pyarrow_for,
    read_array,
    without_texts_in_lists,
)
from .items import checked_items
from .sizes import check_inflated, size_of
from .sources import Source, source_of

_ROWS = 1 << 16


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
        yield from _from_parquet(source, features, rows)
    else:
        raise InvalidInputError(f"{source.name} must be .npy or .parquet to be read in blocks")


def _from_parquet(source: Source, features: Sequence[str] | None, rows: int) -> Iterator[Array]:
    pa, parquet = pyarrow_for(source)
    with parquet_errors(source.name), source.binary() as file:
        check_parquet(file, source.name)
        size = size_of(file)
        opened = parquet_file(parquet, file)
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
