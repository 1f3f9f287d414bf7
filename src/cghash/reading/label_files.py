"""Labels: one for each item, from a file of their own."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from .._arrays import Array
from ..exceptions import InvalidInputError
from .binary_files import read_array, read_arrays, read_columns
from .sources import Source, source_of
from .text_files import read_rows

_MOST_BYTES = 1 << 31  # of words in an array


def read_labels(path: str | os.PathLike[str], n_items: int, as_written: bool = False) -> Array:
    """Read labels (n,), or an indicator matrix (n, L) from .npy or .npz.

    Parameters
    ----------
    path : .npy, .npz (array y, or the only one), or .csv, .txt or .parquet of one column
    n_items : how many there must be; it also tells whether a column of words has a header
    as_written : whether they stay as they are written, for `alike_labels`, and do not become numbers where all are
    """
    source = source_of(path)
    readers = {"npy": read_array, "npz": _from_npz, "parquet": _from_parquet}
    if source.kind == "csv":
        labels = _from_csv(source, n_items)
    elif source.kind in readers:
        labels = readers[source.kind](source)
    else:
        raise InvalidInputError(f"{source.name} must be .npy, .npz, .csv, .txt or .parquet to hold labels")
    if labels.ndim not in (1, 2) or len(labels) != n_items:
        raise InvalidInputError(
            f"{source.name} must hold one label for each of {n_items} items, got shape {labels.shape}"
        )
    return written_labels(labels) if as_written else plain_labels(labels)


def plain_labels(labels: Array) -> Array:
    """Labels as whole numbers where all are, as numbers where all are, else as strings.

    >>> plain_labels(np.array(["1", "2"])), plain_labels(np.array(["1", "b"], dtype=object))
    (array([1, 2]), array(['1', 'b'], dtype='<U1'))
    """
    words = written_labels(labels)
    if words.dtype.kind in "buif":
        return words
    for kind in (np.int64, np.float64):
        try:
            numbers: Array = words.astype(kind)
        except (ValueError, OverflowError):
            continue
        if np.isfinite(numbers).all():
            return numbers
    return words


def written_labels(labels: Array) -> Array:
    """Labels as the file has them: numbers, or strings."""
    if labels.dtype.kind in "buif":
        return labels
    if labels.dtype.kind == "O":
        missing = [i for i, label in enumerate(labels) if label is None or label != label]
        if missing:
            raise InvalidInputError(f"labels must not be missing, got {labels[missing[0]]!r} in row {missing[0]}")
        check_lengths(labels.tolist(), "labels")
    try:
        return labels.astype(str)
    except (ValueError, TypeError) as error:
        raise InvalidInputError(f"labels must be numbers or words, got {labels.dtype} ({error})") from error


def check_lengths(words: list[Any], what: str) -> None:
    """Refuse words that would take gigabytes as an array, where each takes as much as the longest.

    >>> check_lengths(["a"] * 99999 + ["a" * 99999], "ids")
    Traceback (most recent call last):
    cghash.exceptions.InvalidInputError: ids must be shorter: 100000 of up to 99999 letters take too much memory
    """
    longest = max((len(word) for word in words if isinstance(word, str | bytes)), default=0)
    if 4 * longest * len(words) > _MOST_BYTES:
        raise InvalidInputError(f"{what} must be shorter: {len(words)} of up to {longest} letters take too much memory")


def alike_labels(first: Array, second: Array) -> tuple[Array, Array]:
    """Labels of two files, as they are written, made comparable: numbers where both are, else both as strings.

    >>> alike_labels(np.array(["01", "02"]), np.array(["01", "b"]))
    (array(['01', '02'], dtype='<U2'), array(['01', 'b'], dtype='<U2'))
    """
    plain = plain_labels(first), plain_labels(second)
    if all(labels.dtype.kind in "buif" for labels in plain):
        return plain
    return _words(first), _words(second)


def _words(labels: Array) -> Array:
    if labels.dtype.kind == "f" and np.all(labels == np.floor(labels)):
        labels = labels.astype(np.int64)  # 1.0 is written 1 elsewhere
    return labels.astype(str)


def _from_npz(source: Source) -> Array:
    arrays = read_arrays(source)
    if "y" not in arrays and len(arrays) != 1:
        raise InvalidInputError(f"{source.name} must hold an array y, or a single array, got {list(arrays)}")
    return arrays["y"] if "y" in arrays else next(iter(arrays.values()))


def _from_parquet(source: Source) -> Array:
    columns = read_columns(source)
    if len(columns) != 1:
        raise InvalidInputError(f"{source.name} must have one column of labels, got {len(columns)}: {list(columns)}")
    return next(iter(columns.values()))


def _from_csv(source: Source, n_items: int) -> Array:
    table = read_rows(source)
    if table.width != 1:
        raise InvalidInputError(f"{source.name} must have one column of labels, got {table.width}")
    labels = [cells[0].strip() for _, cells in table.rows]
    if table.header is not None and len(labels) == n_items - 1:  # a word, but a label
        labels.insert(0, table.header[0])
    return np.array(labels)
