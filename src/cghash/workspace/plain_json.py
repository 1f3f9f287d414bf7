"""JSON from files and databases that others may have written, of which we can say all again."""

from __future__ import annotations

import json
from typing import Any

__all__ = ["read_json"]

_LEAST, _MOST = -(2**63), 2**63 - 1  # whole numbers that every program's JSON, and every database, can hold
_MOST_LEVELS = 100


def read_json(text: str | bytes) -> Any:
    """What JSON says; ValueError where it is damaged, or holds what the page could not be told.

    >>> read_json('{"bit": 3}')
    {'bit': 3}
    >>> read_json("[" + "9" * 24 + "]")
    Traceback (most recent call last):
    ValueError: whole numbers must fit in 64 bits, got 999999999999999999999999
    """
    if not isinstance(text, str | bytes):
        raise ValueError(f"it must be text, got {text!r:.60}")
    try:
        found = json.loads(text)
    except RecursionError as error:
        raise ValueError(f"it must have at most {_MOST_LEVELS} levels") from error
    _check(found, _MOST_LEVELS)
    return found


def _check(value: Any, levels: int) -> None:
    if not levels:
        raise ValueError(f"it must have at most {_MOST_LEVELS} levels")
    if isinstance(value, str):
        value.encode()  # UnicodeEncodeError is a ValueError
    elif isinstance(value, int) and not _LEAST <= value <= _MOST:
        raise ValueError(f"whole numbers must fit in 64 bits, got {value!s:.60}")
    elif isinstance(value, list | dict):
        for part in value:
            _check(part, levels - 1)
        for part in value.values() if isinstance(value, dict) else ():
            _check(part, levels - 1)
