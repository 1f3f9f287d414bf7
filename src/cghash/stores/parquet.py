"""Codes as a Parquet file: a column `id` (int64) and a column `code` (fixed_size_binary), for any tool that reads it.

The schema's metadata has the key `cghash`: a JSON object with bits, weights, fingerprint, and SHA-256 over ids and
codes, which is verified when the file is read.
"""

from __future__ import annotations

import os
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from .._arrays import Codes, Ints
from ..exceptions import FormatError
from ..index import WeightedHammingIndex
from ..reading.binary_files import check_parquet, parquet_errors, parquet_file, whole_table
from ..reading.sources import size_of
from ..storage import digest, written_atomically
from .base import Found, Path, Store, check_file, checked, require
from .origin import Origin, read_header

KEY = b"cghash"
COLUMNS = ["id", "code"]
ROWS_IN_A_GROUP = 1 << 20


class ParquetStore(Store):
    """Codes of a Parquet file, searched in memory by a `WeightedHammingIndex`.

    Examples
    --------
    >>> import tempfile
    >>> codes = np.array([[0b001], [0b110], [0b111]], dtype=np.uint8)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store = ParquetStore.write(f"{folder}/codes.parquet", Origin([4.0, 2.0, 1.0]), codes, ids=[7, 8, 9])
    >>> store.search(codes[:1], k=2).ids
    array([[7, 9]])
    """

    def __init__(self, origin: Origin, codes: Codes, ids: Ints, where: str) -> None:
        self.origin, self.codes, self.ids, self.where = origin, codes, ids, where
        self._index: WeightedHammingIndex | None = None

    @classmethod
    def write(cls, path: Path, model: Any, codes: ArrayLike, ids: ArrayLike | None = None) -> Self:
        """Write codes to a Parquet file, beside its place, then renamed (`Store.write`)."""
        origin, packed, numbers = checked(model, codes, ids)
        write_codes(path, to_arrow(origin, packed, numbers))
        return cls(origin, packed, numbers, os.fspath(path))

    @classmethod
    def open(cls, path: Path, model: Any = None) -> Self:
        """Read and verify a file that `write` wrote (`Store.open`)."""
        origin, codes, ids = read_codes(path)
        if model is not None:
            origin.check(model, os.fspath(path))
        return cls(origin, codes, ids, os.fspath(path))

    def __len__(self) -> int:
        return len(self.ids)

    def _search(self, queries: Codes, k: int) -> Found:
        if self._index is None:
            index = WeightedHammingIndex(self.origin.n_bits, self.origin.weights)
            index.add(self.codes, self.ids)
            self._index = index
        distances, ids = self._index.search(queries, k)
        return Found(distances, ids, np.ones(len(queries), dtype=bool))


def to_arrow(origin: Origin, codes: Codes, ids: Ints) -> Any:
    """A table of Arrow: `id`, `code`, and the description in the schema's metadata."""
    pa = require("pyarrow", "parquet")
    column = pa.Array.from_buffers(
        pa.binary(origin.n_bytes), len(codes), [None, pa.py_buffer(np.ascontiguousarray(codes))]
    )
    header = origin.header(n_codes=len(codes), content=digest([ids, codes]))
    fields = [
        pa.field("id", pa.int64(), nullable=False),
        pa.field("code", pa.binary(origin.n_bytes), nullable=False),
    ]
    return pa.table([pa.array(ids), column], schema=pa.schema(fields, metadata={KEY: header}))


def write_codes(path: Path, table: Any) -> None:
    """Write a table of `to_arrow` to a file, whole or not at all."""
    with written_atomically(path) as file:
        require("pyarrow.parquet", "parquet").write_table(
            table,
            file,
            row_group_size=ROWS_IN_A_GROUP,
            use_dictionary=False,  # codes hardly repeat
            write_page_checksum=True,
        )


def read_codes(path: Path) -> tuple[Origin, Codes, Ints]:
    """Origin, codes (n, n_bytes) and ids (n,) of a file; FormatError when it is not whole."""
    pa, where = require("pyarrow", "parquet"), os.fspath(path)
    check_file(path)
    with parquet_errors(where), open(path, "rb") as file:
        check_parquet(file, where, COLUMNS)
        opened = parquet_file(require("pyarrow.parquet", "parquet"), file, page_checksum_verification=True)
        table = whole_table(pa, opened, size_of(file), where, COLUMNS)
    return from_arrow(table, where)


def from_arrow(table: Any, where: str) -> tuple[Origin, Codes, Ints]:
    """The inverse of `to_arrow`."""
    pa = require("pyarrow", "parquet")
    origin, about = read_header((table.schema.metadata or {}).get(KEY, b""), where)
    expected = {"id": pa.int64(), "code": pa.binary(origin.n_bytes)}
    for name, kind in expected.items():
        place = table.schema.get_field_index(name)
        if place < 0 or table.schema.field(place).type != kind or table.column(place).null_count:
            raise FormatError(f"{where} must have a column {name!r} of type {kind} without nulls")
    ids = np.ascontiguousarray(table.column("id").to_numpy())
    joined = table.column("code").combine_chunks()
    chunks = joined.chunks if hasattr(joined, "chunks") else [joined]
    codes = np.concatenate([np.zeros((0, origin.n_bytes), np.uint8), *(_bytes_of(chunk) for chunk in chunks)])
    if (about.get("n_codes"), about.get("content")) != (len(ids), digest([ids, codes])):
        raise FormatError(f"{where} was altered: its ids and codes are not those that were written")
    return origin, codes, ids


def _bytes_of(chunk: Any) -> Codes:
    """(n, n_bytes) of a chunk of fixed_size_binary."""
    width = chunk.type.byte_width
    values = np.frombuffer(chunk.buffers()[1] or b"", dtype=np.uint8)
    return values[chunk.offset * width : (chunk.offset + len(chunk)) * width].reshape(-1, width)
