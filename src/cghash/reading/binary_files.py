"""Arrays from .npy, .npz and .parquet files; nothing is ever unpickled."""

from __future__ import annotations

import math
import zipfile
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import IO, Any

import numpy as np

from .._arrays import Array
from ..exceptions import CGHashError, FormatError, InvalidInputError, MissingDependencyError
from .parquet_footer import Group, read_groups
from .sources import Source, check_inflated, size_of

_ROWS = 1 << 16  # of a table that are decoded at a time
_PICKLED = "it holds Python objects, which are never unpickled; save numpy.array(rows, dtype=float), rows of one length"
_WRITTEN_AGAIN = "write it without dictionaries and compression"


def read_array(source: Source) -> Array:
    """The array of an .npy file, memory-mapped where it is a file."""
    try:
        with source.binary() as file:
            if not file.read(1):
                raise ValueError("it is empty")
            file.seek(0)
            if is_archive(file):
                raise ValueError("it is an archive of several arrays")
            n_bytes = check_npy_header(file, size_of(file))
            if source.path is not None and n_bytes:  # nothing cannot be mapped
                return np.load(source.path, mmap_mode="r", allow_pickle=False)  # type: ignore[no-any-return]
            return np.load(file, allow_pickle=False)  # type: ignore[no-any-return]
    except OSError:
        raise
    except Exception as error:  # decoders of foreign bytes raise anything
        raise FormatError(f"{source.name} must be an .npy file of plain numbers or strings: {error}") from error


def read_arrays(source: Source) -> dict[str, Array]:
    """The arrays of an .npz file by name."""
    try:
        with source.binary() as file, zipfile.ZipFile(file) as archive:
            inflated = sum(member.file_size for member in archive.infolist())
            check_inflated(inflated, size_of(file), source.name, "save it with numpy.savez, which does not compress")
            return {member.filename.removesuffix(".npy"): _member(archive, member) for member in archive.infolist()}
    except (FileNotFoundError, FormatError):
        raise
    except Exception as error:
        sheet = "; a spreadsheet? Save it as CSV" if source.name.lower().endswith((".xlsx", ".xls", ".ods")) else ""
        raise FormatError(f"{source.name} must be an .npz file of plain numbers or strings: {error}{sheet}") from error


def check_npy_header(file: IO[bytes], size: int) -> int:
    """The bytes of the array in an .npy stream of `size` bytes; ValueError for a header that is none, or names more.

    The stream is left where it began.
    """
    begin = file.tell()
    version = np.lib.format.read_magic(file)
    if version not in ((1, 0), (2, 0)):
        raise ValueError(f"it is of version {version}, and must be of version 1.0 or 2.0")
    one = version == (1, 0)
    read = np.lib.format.read_array_header_1_0 if one else np.lib.format.read_array_header_2_0
    try:
        shape, _, dtype = read(file)
    except MemoryError:  # so Python's parser says that a text is nested too deeply
        raise ValueError("its header is nested too deeply") from None
    if dtype.hasobject:
        raise ValueError(_PICKLED)
    needed = math.prod(shape) * max(dtype.itemsize, 1)  # entries of no bytes count too
    if any(length < 0 for length in shape) or (needed > size - (file.tell() - begin)):
        raise ValueError(f"its header names shape {shape}, {dtype}, and the file has {size} bytes")
    file.seek(begin)
    return int(needed)


def is_archive(file: IO[bytes]) -> bool:
    """Whether a stream begins as zip archives do; it is left where it was."""
    found = file.read(4) == b"PK\3\4"
    file.seek(0)
    return found


def _member(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> Array:
    """An array of an archive; nothing is allocated that the member does not hold."""
    with archive.open(member) as content:
        check_npy_header(content, member.file_size)
        array: Array = np.load(content, allow_pickle=False)
        return array


def read_columns(source: Source) -> dict[str, Array]:
    """The columns of a .parquet file by name; a column of lists of one length is 2-D."""
    with opened_parquet(source) as (pa, opened, size):
        schema = opened.schema_arrow
        table = whole_table(pa, opened, size, source.name, without_texts_in_lists(pa, schema))
        nothing = np.full(opened.metadata.num_rows if len(table.column_names) < len(schema) else 0, None, dtype=object)
        read = {name: column_of(pa, table.column(name).combine_chunks()) for name in table.column_names}
        return {name: read.get(name, nothing) for name in schema.names}


@contextmanager
def opened_parquet(source: Source) -> Iterator[tuple[Any, Any, int]]:
    """pyarrow, a .parquet file whose footer was checked, and the file's size."""
    pa, parquet = pyarrow_for(source)
    with parquet_errors(source.name), source.binary() as file:
        check_parquet(file, source.name)
        yield pa, parquet_file(parquet, file), size_of(file)


def check_parquet(
    file: IO[bytes], name: str, columns: Collection[str] | None = None, one_by_one: bool = False
) -> list[Group]:
    """The row groups of a Parquet file, by its footer, if they do not hold much more than its size.

    Parameters
    ----------
    columns : those that are read, None: all
    one_by_one : whether row groups are read one after another, so that each may hold so much
    """
    groups = read_groups(file, name)
    held = [
        sum(chunk.n_bytes for chunk in group.chunks if columns is None or chunk.column in columns) for group in groups
    ]
    check_inflated(max(held, default=0) if one_by_one else sum(held), size_of(file), name, _WRITTEN_AGAIN)
    return groups


def parquet_file(parquet: Any, file: Any, **how: Any) -> Any:
    """A Parquet file whose texts stay in dictionaries: one that many rows name is in memory once."""
    about = parquet.read_metadata(file)
    names = set(about.schema.to_arrow_schema().names)
    flat = [i for i in range(about.num_columns) if about.schema.column(i).path in names]  # pyarrow leaves numbers out
    return parquet.ParquetFile(file, metadata=about, read_dictionary=flat, **how)


def without_texts_in_lists(pa: Any, schema: Any) -> list[str] | None:
    """The columns that are read, None for all: texts in lists would each be in memory, and nothing asks for them."""
    kept = [field.name for field in schema if not pa.types.is_nested(field.type) or not _holds_texts(pa, field.type)]
    return None if len(kept) == len(schema) else kept


def _holds_texts(pa: Any, kind: Any) -> bool:
    inner = [kind.field(i).type for i in range(kind.num_fields)]
    return not (inner or pa.types.is_primitive(kind)) or any(_holds_texts(pa, one) for one in inner)


@contextmanager
def parquet_errors(name: str) -> Iterator[None]:
    """What pyarrow says of a file, as a FormatError; errors of the system and our own stay what they are."""
    try:
        yield
    except CGHashError:
        raise
    except Exception as error:  # decoders of foreign bytes raise anything
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise FormatError(f"{name} must be a .parquet file: {error}") from error


def pyarrow_for(source: Source) -> tuple[Any, Any]:
    """The modules that read a .parquet file, or a word on how to install them."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as parquet
    except ImportError as error:
        raise MissingDependencyError(
            f'{source.name}: reading .parquet needs pyarrow: pip install "cghash[parquet]" '
            '(in a checkout: pip install ".[parquet]")'
        ) from error
    return pa, parquet


def whole_table(pa: Any, file: Any, size: int, name: str, columns: list[str] | None = None) -> Any:
    """The table of a Parquet file, decoded in pieces: pages may hold more than the footer says."""
    if len(set(file.schema_arrow.names)) < len(file.schema_arrow.names):
        raise InvalidInputError(f"{name} must name each column once, got {', '.join(file.schema_arrow.names[:8])}")
    batches, total = [], 0
    for batch in file.iter_batches(_ROWS, columns=columns):
        total += batch.nbytes
        check_inflated(total, size, name, _WRITTEN_AGAIN)
        batches.append(batch)
    schema = file.schema_arrow
    read = [field for field in schema if columns is None or field.name in columns]
    table = pa.Table.from_batches(batches, pa.schema(read, schema.metadata))
    table.validate(full=True)
    return table


def column_of(pa: Any, column: Any) -> Array:
    """A column of a table; one of lists of one length is 2-D."""
    kinds = pa.types
    if kinds.is_list(column.type) or kinds.is_large_list(column.type) or kinds.is_fixed_size_list(column.type):
        return _matrix(pa, column)
    if kinds.is_nested(column.type):
        return np.full(len(column), None, dtype=object)
    return words_of(column) if kinds.is_dictionary(column.type) else column.to_numpy(zero_copy_only=False)


def words_of(column: Any) -> Array:
    """The values of a dictionary (n,), None where there is none; what many rows name is one object."""
    if column.dictionary.type.num_fields or not len(column.dictionary):
        return np.full(len(column), None, dtype=object)
    words: Array = column.dictionary.to_numpy(zero_copy_only=False)
    rows: Array = column.indices.fill_null(0).to_numpy(zero_copy_only=False)
    found: Array = words[rows]
    if column.null_count:
        found = found.astype(np.float64 if words.dtype.kind in "iuf" else object)
        found[column.is_null().to_numpy(zero_copy_only=False)] = np.nan if found.dtype.kind == "f" else None
    return found


def _matrix(pa: Any, column: Any) -> Array:
    """A column of lists as (n, width) numbers, or as objects where the lists differ in length or hold lists."""
    lengths = np.unique(column.value_lengths().to_numpy(zero_copy_only=False))
    if column.null_count or len(lengths) != 1 or pa.types.is_nested(column.type.value_type):
        return np.full(len(column), None, dtype=object)
    return column_of(pa, column.flatten()).reshape(len(column), int(lengths[0]))
