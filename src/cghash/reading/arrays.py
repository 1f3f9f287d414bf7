"""Arrays from .npy, .npz and .parquet files; nothing is ever unpickled."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from ..exceptions import CGHashError, FormatError, InvalidInputError, MissingDependencyError
from .parquet_footer import Group, read_groups
from .sizes import check_inflated, check_npy_header, size_of
from .sources import Source

Array = NDArray[Any]

_ROWS = 1 << 16  # of a table that are decoded at a time
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
    pa, parquet = pyarrow_for(source)
    with parquet_errors(source.name), source.binary() as file:
        check_parquet(file, source.name)
        table = _whole(pa, parquet.ParquetFile(file), size_of(file), source.name)
        return {name: column_of(pa, table.column(name).combine_chunks()) for name in table.column_names}


def check_parquet(file: IO[bytes], name: str) -> list[Group]:
    """The row groups of a Parquet file, by its footer, if they do not hold much more than its size."""
    groups = read_groups(file, name)
    n_bytes = sum(chunk.n_bytes for group in groups for chunk in group.chunks)
    check_inflated(n_bytes, size_of(file), name, _WRITTEN_AGAIN)
    return groups


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


def _whole(pa: Any, file: Any, size: int, name: str) -> Any:
    """The table of a Parquet file, decoded in pieces: pages may hold more than the footer says."""
    if len(set(file.schema_arrow.names)) < len(file.schema_arrow.names):
        raise InvalidInputError(f"{name} must name each column once, got {', '.join(file.schema_arrow.names[:8])}")
    batches, total = [], 0
    for batch in file.iter_batches(_ROWS):
        total += batch.nbytes
        check_inflated(total, size, name, _WRITTEN_AGAIN)
        batches.append(batch)
    table = pa.Table.from_batches(batches, file.schema_arrow)
    table.validate(full=True)
    return table


def column_of(pa: Any, column: Any) -> Array:
    """A column of a table; one of lists of one length is 2-D."""
    kinds = pa.types
    if kinds.is_list(column.type) or kinds.is_large_list(column.type) or kinds.is_fixed_size_list(column.type):
        return _matrix(column)
    values: Array = column.to_numpy(zero_copy_only=False)
    return values


def _matrix(column: Any) -> Array:
    """A column of lists as (n, width) numbers, or as objects where the lists differ in length."""
    lengths = np.unique(column.value_lengths().to_numpy(zero_copy_only=False))
    if column.null_count or len(lengths) != 1:
        return np.full(len(column), None, dtype=object)
    flat: Array = column.flatten().to_numpy(zero_copy_only=False)
    return flat.reshape(len(column), int(lengths[0]))
