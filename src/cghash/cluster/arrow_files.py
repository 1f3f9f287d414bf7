"""Files of Arrow's own format (IPC, or Feather), with the face of a Parquet file: record batches are its groups."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..exceptions import InvalidInputError
from ..stores.base import require

MAGIC = b"ARROW1"
ENDINGS = (".arrow", ".feather")


def is_arrow(path: Any) -> bool:
    """Whether a file begins as those of Arrow do."""
    with open(path, "rb") as file:
        return file.read(len(MAGIC)) == MAGIC


class ArrowFile:
    """A file that is mapped: a batch is read where it is used."""

    def __init__(self, path: Any) -> None:
        pa = require("pyarrow", "dask")
        self._source = pa.memory_map(str(path))
        self._file = require("pyarrow.ipc", "dask").open_file(self._source)
        self.schema_arrow = self._file.schema

    def __enter__(self) -> ArrowFile:
        return self

    def __exit__(self, *error: object) -> None:
        self._source.close()

    def sizes(self, vector: str | tuple[str, ...], name: str) -> list[tuple[int, int]]:
        """(rows, features) of each batch."""
        wanted = [vector] if isinstance(vector, str) else list(vector)
        return [self._size(self._batch(i, wanted), vector, f"{name}, batch {i}") for i in range(self._n_batches)]

    def iter_batches(self, rows: int, groups: list[int], columns: list[str], use_threads: bool) -> Iterator[Any]:
        for group in groups:
            batch = self._batch(group, columns)
            for first in range(0, batch.num_rows, rows):
                yield batch.slice(first, rows)

    @property
    def _n_batches(self) -> int:
        return int(self._file.num_record_batches)

    def _batch(self, number: int, columns: list[str]) -> Any:
        """Some columns of a batch, whose lists lie within its numbers, whatever the file says."""
        batch = self._file.get_batch(number).select(columns)
        batch.validate(full=True)
        return batch

    @staticmethod
    def _size(batch: Any, vector: str | tuple[str, ...], name: str) -> tuple[int, int]:
        if not isinstance(vector, str):
            return batch.num_rows, len(vector)
        column = batch.column(vector)
        if not hasattr(column, "flatten") or not hasattr(column.type, "value_type"):
            return batch.num_rows, 1  # one number a row
        n_values = len(column.flatten())
        if batch.num_rows and n_values % batch.num_rows:
            raise InvalidInputError(
                f"{name}: column {vector!r} must hold lists of one length, "
                f"got {n_values} numbers in {batch.num_rows} rows"
            )
        return batch.num_rows, n_values // max(1, batch.num_rows)
