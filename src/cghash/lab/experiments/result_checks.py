"""What a raw result must be, before a report or a run relies on it."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ...storage import json_object

__all__ = ["KEYS", "checked_result"]

KEYS = ("dataset", "protocol", "split", "method", "bits")
STATUSES = ("ok", "failed")

_MOST = 2**31  # that is counted
_LARGEST = 1e15  # that is measured


def checked_result(text: str | bytes) -> dict[str, Any]:
    """The result of a cell in a JSON text; ValueError where a part that is read later is not what it must be.

    >>> checked_result('{"dataset": "digits", "protocol": "seen", "split": 0, "method": 3, "bits": 8, "status": "ok"}')
    Traceback (most recent call last):
    ValueError: 'method' must be a word, got 3
    """
    result = json_object(text)
    missing = [key for key in (*KEYS, "status") if key not in result]
    if missing:
        raise ValueError(f"it has no {missing[0]!r}")
    for key, value in result.items():
        words, good = _KINDS.get(key, ("", None))
        if good is not None and not good(value):
            raise ValueError(f"{key!r} must be {words}, got {value!r:.40}")
    return result


def _is_word(value: Any) -> bool:
    return isinstance(value, str)


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value < _MOST


def _is_number(value: Any) -> bool:
    """A number, or null for one that is not known."""
    if isinstance(value, float) and math.isnan(value):
        return True
    return value is None or (isinstance(value, int | float) and type(value) is not bool and abs(value) < _LARGEST)


def _are_criteria(value: Any) -> bool:
    return isinstance(value, dict) and all(map(_is_number, value.values()))


def _is_curve(value: Any) -> bool:
    if not isinstance(value, dict):
        return False
    recall, precision = value.get("recall", []), value.get("precision", [])
    return (
        isinstance(recall, list)
        and isinstance(precision, list)
        and len(recall) == len(precision)
        and all(number is not None and _is_number(number) for number in recall)
        and all(map(_is_number, precision))
    )


def _are_tried(value: Any) -> bool:
    """Rows of what was tried, with what was measured."""
    if not isinstance(value, list) or not all(isinstance(row, dict) for row in value):
        return False
    return all(_is_number(row.get(key)) for row in value for key in ("C", "map"))


_COUNT = ("a whole number of at least 0", _is_count)
_NUMBER = ("a number or null", _is_number)
_WORD = ("a word", _is_word)
_KINDS: dict[str, tuple[str, Callable[[Any], bool]]] = {
    **dict.fromkeys(("dataset", "protocol", "method"), _WORD),
    **dict.fromkeys(("split", "bits", "n_bits", "bytes", "top", "k"), _COUNT),
    **dict.fromkeys(("n_train", "n_database", "n_queries", "n_features", "seed", "cores"), _COUNT),
    **dict.fromkeys(("peak_mb", "seconds_fit", "seconds_encode", "seconds_choice"), _NUMBER),
    **dict.fromkeys(("asked", "estimator", "error", "trace"), ("a text", lambda value: isinstance(value, str))),
    **dict.fromkeys(("versions", "parameters", "chosen"), ("an object", lambda value: isinstance(value, dict))),
    "status": (f"one of {STATUSES}", lambda value: value in STATUSES),
    "criteria": ("numbers by name", _are_criteria),
    "curve": ("a recall and a precision of one length", _is_curve),
    "tried": ("a list of what was tried", _are_tried),
}
