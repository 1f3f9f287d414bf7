"""Items as scikit-learn validates them, with errors that say what to do."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from sklearn.utils.validation import validate_data

from ._tensors import in_host_memory
from ._validation import is_number
from .exceptions import InvalidInputError

_SMALL = {"float16", "int8", "uint8", "int16", "uint16", "bool"}


def validated_items(estimator: Any, X: Any, **options: Any) -> Any:
    """X as `sklearn.utils.validation.validate_data` returns it; a tensor is brought to host memory first.

    float32 and float64 stay as they are; what float32 holds exactly (halves, whole numbers of 8 and 16 bits) becomes
    float32, all else float64.
    """
    if isinstance(X, str | os.PathLike):
        raise InvalidInputError(
            f"X must be an array (n, d), got the path {os.fspath(X)!r}; cghash.reading.read_items(path).X reads it"
        )
    try:
        X = in_host_memory(X)
        dtype = np.float32 if str(getattr(X, "dtype", "")) in _SMALL else [np.float64, np.float32]
        return validate_data(estimator, X, dtype=dtype, **options)
    except ValueError as error:
        raise InvalidInputError(_explained(str(error), X, estimator)) from error


@contextmanager
def features_kept(estimator: Any) -> Iterator[None]:
    """Where what is within fails, the estimator knows the features again that it knew before."""
    names = ("n_features_in_", "feature_names_in_")
    before = {name: value for name, value in vars(estimator).items() if name in names}
    try:
        yield
    except BaseException:
        for name in names:
            vars(estimator).pop(name, None)
        vars(estimator).update(before)
        raise


def _explained(said: str, X: Any, estimator: Any) -> str:
    """scikit-learn's words, what came where they do not tell it, and what to do."""
    if "Expected 2D array, got 1D" in said:
        return (
            f"Expected 2D array, got 1D array instead: X must be (n, d), a row an item, got shape {np.shape(X)}. "
            "Reshape your data: X.reshape(1, -1) is one item, X.reshape(-1, 1) are items of one feature"
        )
    if "inhomogeneous" in said:
        lengths = sorted({np.size(row) for row in X})
        return f"X must be (n, d), rows of one length, got rows of {lengths[0]} to {lengths[-1]} numbers"
    if "feature names should match" in said:
        return said.rstrip() + _columns_of_fit(X, estimator)
    first = said.strip().splitlines()[0]
    if "array with dim" in first:
        return f"{first} X must be (n, d), got shape {np.shape(X)}; X.reshape(len(X), -1) makes a row of each item"
    if "could not convert string" in first:
        return f"X must hold numbers: {first}{_word_in(X)}"
    if "contains NaN" in first or "contains infinity" in first:
        return f"{first}{_not_finite_in(X)} Leave such items out, or fill them in (sklearn.impute.SimpleImputer)"
    if "Complex data" in first:
        return f"{first}: X must be real numbers; np.hstack([X.real, X.imag]) keeps both parts"
    if "features, but" in first:
        return (
            f"{first} X must be items as in fit, not their codes or bits, with the same features{_turned(X, estimator)}"
        )
    return said


def _columns_of_fit(X: Any, estimator: Any) -> str:
    if set(estimator.feature_names_in_) <= set(X.columns):
        return "\nX[model.feature_names_in_] has the columns of fit in their order"
    return ""


def _word_in(X: Any) -> str:
    """Where the first word is; a table's column by its name."""
    names = list(X.columns) if hasattr(X, "columns") else None
    cells = np.asarray(X, dtype=object)
    if cells.ndim != 2:
        return ""
    for row, column in np.ndindex(*cells.shape):
        cell: Any = cells[row, column]
        if isinstance(cell, str) and not is_number(cell):
            place = f"column {column}" if names is None else f"column {names[column]!r}"
            return f" in row {row}, {place}; leave that column out, or turn it into numbers (sklearn's OneHotEncoder)"
    return ""


def _not_finite_in(X: Any) -> str:
    """How many items, and where the first is."""
    if hasattr(X, "tocoo"):
        X = X.tocoo()
        rows, columns = (place[~np.isfinite(X.data)] for place in (X.row, X.col))
        n = X.shape[0]
    else:
        items = np.asarray(in_host_memory(X), dtype=np.float64)
        (rows, columns), n = np.nonzero(~np.isfinite(items)), len(items)
    if not rows.size:  # too large for float32
        return ""
    found = len(np.unique(rows))
    return f" {found} of {n} items have such values, the first is row {rows.min()}, column {columns[rows.argmin()]}."


def _turned(X: Any, estimator: Any) -> str:
    turned = np.ndim(X) == 2 and np.shape(X)[0] == estimator.n_features_in_
    return "; X.T looks like it" if turned else ""
