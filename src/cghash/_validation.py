"""Checks of what users hand in; each error names the parameter, what it must be and what it got."""

from __future__ import annotations

import math
from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any

import numpy as np

from ._arrays import Array, Floats, Ints
from .exceptions import InvalidInputError

LARGEST = 1e150
MOST_JOBS = 4096
MOST_ANSWERS = 2**33 // 16  # of a search: a distance and an id take 16 bytes
_OTHER_NAMES = {"near": "positive", "far": "negative"}  # which tables of triplets may have


def did_you_mean(value: Any, choices: Iterable[str]) -> str:
    """The choice that a word is nearest to, as the end of a message; nothing where none is near.

    >>> did_you_mean("neighbours", ["mixed", "neighbors"]), did_you_mean("L1", ["l1"]), did_you_mean("cube", ["tree"])
    ("; did you mean 'neighbors'?", "; did you mean 'l1'?", '')
    """
    if not isinstance(value, str):
        return ""
    plain = {choice.lower().replace("_", "-"): choice for choice in choices}
    near = get_close_matches(value.lower().replace("_", "-"), plain, n=1)
    return f"; did you mean {plain[near[0]]!r}?" if near else ""


def is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True


def check_rows(rows: Any, width: int, n_items: int, name: str, words: str) -> Ints:
    """An (m, width) array of row numbers, each row of different items; a table's columns may be named by the words."""
    try:
        array = np.asarray(_in_order(rows, words.split(", ")))
    except ValueError as error:  # rows of different lengths
        raise InvalidInputError(f"{name} must have shape (m, {width}) ({words}), got {error}") from error
    if array.ndim != 2 or array.shape[1] != width:
        raise InvalidInputError(
            f"{name} must have shape (m, {width}) ({words}), got shape {array.shape}{_shape_hint(array, width)}"
        )
    if array.shape[0] == 0:
        raise InvalidInputError(f"{name} must not be empty")
    if array.dtype.kind not in "iu":
        whole = array.dtype.kind == "f" and bool(np.all(np.isfinite(array)) and np.all(array == np.floor(array)))
        hint = "; they look whole: pass astype(int)" if whole else ""
        raise InvalidInputError(f"{name} must be integer row numbers, got dtype {array.dtype}{hint}")
    outside = (array < 0) | (array >= n_items)
    if outside.any():
        row = int(np.argmax(outside.any(axis=1)))
        counted = "; do they count from 1? Subtract 1" if array.min() >= 1 and array.max() == n_items else ""
        raise InvalidInputError(
            f"{name} must be row numbers from 0 to {n_items - 1}, got {array[row].tolist()} in row {row}{counted}"
        )
    array = np.ascontiguousarray(array, dtype=np.int64)
    ordered = np.sort(array, axis=1)
    repeated = np.any(ordered[:, 1:] == ordered[:, :-1], axis=1)
    if repeated.any():
        row = int(np.argmax(repeated))
        raise InvalidInputError(
            f"{name} must name {width} different items in each row, got {array[row].tolist()} in row {row}"
        )
    return array


def _in_order(rows: Any, words: list[str]) -> Any:
    """A table of as many columns as words, these in the order of the words where they are named so."""
    columns = list(getattr(rows, "columns", ()))
    names = [word if word in columns else _OTHER_NAMES.get(word, word) for word in words]
    return rows[names] if sorted(map(str, columns)) == sorted(names) else rows


def _shape_hint(array: Array, width: int) -> str:
    if array.ndim == 2 and array.shape[0] == width:
        return "; its transpose, .T, has that shape"
    if array.ndim == 2 and width == 3 and array.shape[1] == 4:
        return "; weights go to triplet_weights"
    return f"; a single one is a list of one row, [[{', '.join(map(str, array))}]]" if array.shape == (width,) else ""


def check_triplet_weights(weights: Any, n: int) -> Floats:
    """Non-negative finite weights (n,), not all zero."""
    try:
        array = np.asarray(weights, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidInputError(f"triplet_weights must be numbers, got {weights!r}") from error
    if array.shape != (n,):
        raise InvalidInputError(
            f"triplet_weights must have shape ({n},), one weight a triplet, got shape {array.shape}"
        )
    wrong = ~np.isfinite(array) | (array < 0)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise InvalidInputError(f"triplet_weights must be finite and not negative, got {array[row]} in row {row}")
    if not np.any(array > 0):
        raise InvalidInputError("triplet_weights must hold at least one positive weight, got only zeros")
    return array


def check_size(X: Any) -> None:
    """Items whose squared distances are finite."""
    size = max(float(X.max()), -float(X.min()))
    if size > LARGEST:
        raise InvalidInputError(f"X must hold numbers of at most {LARGEST:g}, whose squares are finite, got {size:g}")


def check_choice(value: Any, choices: tuple[str, ...], name: str) -> str:
    if not isinstance(value, str) or value not in choices:
        raise InvalidInputError(f"{name} must be one of {list(choices)}, got {value!r}{did_you_mean(value, choices)}")
    return str(value)


def check_whole(value: Any, low: int, name: str) -> int:
    if type(value) is int and value >= low:  # looked for first: a search takes microseconds
        return value
    if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < low:
        raise InvalidInputError(f"{name} must be a whole number of at least {low}, got {value!r}")
    return int(value)


def check_answers(n_queries: int, k: Any) -> int:
    """k, where that many distances and ids of each query take at most 8 GB.

    >>> check_answers(1000, 10**6)
    Traceback (most recent call last):
    cghash.exceptions.InvalidInputError: k must be smaller, or the queries fewer: 1000 times 1000000 answers take more \
than 8 GB; ask for 536 queries at a time
    """
    wanted = check_whole(k, 1, "k")
    if n_queries * wanted > MOST_ANSWERS:
        few = MOST_ANSWERS // wanted
        hint = f"ask for {few} queries at a time" if few else f"k can be at most {MOST_ANSWERS}"
        raise InvalidInputError(
            f"k must be smaller, or the queries fewer: {n_queries} times {wanted} answers take more than 8 GB; {hint}"
        )
    return wanted


def check_positive(value: Any, name: str, zero: bool = False) -> float:
    numeric = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
    try:
        number = float(value) if numeric else math.nan
    except OverflowError:
        number = math.inf
    if not 0 <= number < math.inf or (number == 0 and not zero):
        kind = "a number of at least 0" if zero else "a positive number"
        raise InvalidInputError(f"{name} must be {kind}, got {value!r:.40}")
    return number


def check_jobs(n_jobs: Any) -> int | None:
    whole = isinstance(n_jobs, int | np.integer) and not isinstance(n_jobs, bool)
    if n_jobs is not None and (not whole or n_jobs == 0):
        raise InvalidInputError(f"n_jobs must be None or a whole number other than 0, got {n_jobs!r}")
    if n_jobs is not None and n_jobs > MOST_JOBS:
        raise InvalidInputError(f"n_jobs must be at most {MOST_JOBS}, got {n_jobs!r}")
    return None if n_jobs is None else int(n_jobs)
