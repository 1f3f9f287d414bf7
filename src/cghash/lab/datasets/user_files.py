"""The user's own data, by path."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from ..._arrays import Array
from ...codes import check_bits
from ...exceptions import FormatError, InvalidInputError
from ...reading import read_items, read_labels
from ...reading.binary_files import read_arrays
from ...reading.sources import SUFFIXES, source_of
from .dataset import DataSet

__all__ = ["is_path", "load_own", "numbered", "plain_numbers"]

_SMALL = (np.bool_, np.float16, np.int8, np.uint8, np.int16, np.uint16)


def is_path(name: str | os.PathLike[str]) -> bool:
    """Whether a name means a file, and not a data set of the registry."""
    return not isinstance(name, str) or Path(name).suffix.lower() in SUFFIXES or os.sep in name


def load_own(
    path: str | os.PathLike[str], labels: str | os.PathLike[str] | None = None, label_column: str | None = None
) -> DataSet:
    """Items and labels from files.

    Parameters
    ----------
    path : .npz (arrays X, y and n_train, of which X is needed), .npy, .parquet or .csv
    labels : a second file, with one label an item
    label_column : the column, or the array, that holds the labels
    """
    if not Path(path).is_file():
        raise InvalidInputError(f"name must be a data set or a file, got {os.fspath(path)!r}, which is not there")
    if labels is not None and label_column is not None:
        raise InvalidInputError("labels and label_column must not both be given")
    items = read_items(path, label_column=label_column)
    found = items.labels if labels is None else read_labels(labels, len(items.X))
    y, classes = (None, ()) if found is None else numbered(found)
    n_train = _n_train(Path(path), len(items.X)) if source_of(path).kind == "npz" else None
    return DataSet(os.fspath(path), plain_numbers(items.X, items.name), y, n_train, classes, source=os.fspath(path))


def numbered(labels: Array) -> tuple[Array, tuple[str, ...]]:
    """Labels as numbers from 0, in the order of their values, with their names; indicators stay as they are.

    >>> y, classes = numbered(np.array(["b", "a", "b"]))
    >>> y.tolist(), classes
    ([1, 0, 1], ('a', 'b'))
    """
    if labels.ndim == 2:
        return check_bits(labels, "labels"), tuple(str(i) for i in range(labels.shape[1]))
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        raise InvalidInputError("labels must not be missing, got a number that is not finite")
    names, y = np.unique(labels, return_inverse=True)
    return y.astype(np.int64), tuple(str(name) for name in names)


def plain_numbers(X: Array, name: str) -> Array:
    """Items as float32 where they are small numbers, else as float32 or float64; all finite."""
    kind = np.float32 if X.dtype in _SMALL else X.dtype if X.dtype.kind == "f" else np.float64
    numbers = np.asarray(X, dtype=kind)
    if X.dtype.kind == "f" and not np.isfinite(numbers).all():
        row, column = np.argwhere(~np.isfinite(numbers))[0].tolist()
        raise InvalidInputError(f"{name} must hold finite numbers, got {numbers[row, column]} in row {row}")
    return numbers


def check_n_train(value: Array, n: int, name: str) -> int:
    """The number of leading rows that are for training."""
    if value.size != 1 or value.dtype.kind not in "iu" or not 0 < int(value.reshape(())) <= n:
        raise FormatError(f"{name}: n_train must be a whole number of 1 to {n}, got {value.tolist()!r}")
    return int(value.reshape(()))


def _n_train(path: Path, n: int) -> int | None:
    found = read_arrays(source_of(path)).get("n_train")
    return None if found is None else check_n_train(found, n, os.fspath(path))
