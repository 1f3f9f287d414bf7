"""Arrays from .npy, .npz and .parquet files; nothing is ever unpickled."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..exceptions import FormatError, MissingDependencyError
from .sources import Source

Array = NDArray[Any]

_HEADER = 1 << 12  # bytes; an array of no items is shorter, and cannot be mapped


def read_array(source: Source) -> Array:
    """The array of an .npy file, memory-mapped where it is a file."""
    try:
        if source.path is not None and source.path.stat().st_size:
            return _mapped(source)
        with source.binary() as file:
            return _array(np.load(file, allow_pickle=False))
    except OSError:
        raise
    except Exception as error:  # decoders of foreign bytes raise anything
        raise FormatError(
            f"{source.name} must be an .npy file of plain numbers or strings: {_without_pickle(error)}"
        ) from error


def read_arrays(source: Source) -> dict[str, Array]:
    """The arrays of an .npz file by name."""
    try:
        with source.binary() as file, np.load(file, allow_pickle=False) as archive:
            return {name: archive[name] for name in archive.files}
    except FileNotFoundError:
        raise
    except Exception as error:
        sheet = "; a spreadsheet? Save it as CSV" if source.name.lower().endswith((".xlsx", ".xls", ".ods")) else ""
        raise FormatError(
            f"{source.name} must be an .npz file of plain numbers or strings: {_without_pickle(error)}{sheet}"
        ) from error


def read_columns(source: Source) -> dict[str, Array]:
    """The columns of a .parquet file by name; a column of lists of one length is 2-D."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as parquet
    except ImportError as error:
        raise MissingDependencyError(
            f'{source.name}: reading .parquet needs pyarrow: pip install "cghash[parquet]" '
            '(in a checkout: pip install ".[parquet]")'
        ) from error
    try:
        with source.binary() as file:
            table = parquet.read_table(file)
        return {name: column_of(pa, table.column(name).combine_chunks()) for name in table.column_names}
    except OSError as error:
        if error.errno is not None:
            raise
        raise FormatError(f"{source.name} must be a .parquet file: {error}") from error
    except Exception as error:
        raise FormatError(f"{source.name} must be a .parquet file: {error}") from error


def _without_pickle(error: Exception) -> str:
    """NumPy's words, or ours for Python objects."""
    if "allow_pickle" not in str(error):
        return str(error)
    return "it holds Python objects, which are never unpickled; save numpy.array(rows, dtype=float), rows of one length"


def _mapped(source: Source) -> Array:
    assert source.path is not None
    try:
        return _array(np.load(source.path, mmap_mode="r", allow_pickle=False))
    except ValueError:
        if source.path.stat().st_size > _HEADER:
            raise
        with source.binary() as file:
            return _array(np.load(file, allow_pickle=False))


def _array(loaded: Any) -> Array:
    if not isinstance(loaded, np.ndarray):
        loaded.close()
        raise ValueError("it is an archive of several arrays")
    return loaded


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
