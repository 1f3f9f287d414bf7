"""Filters of items by attribute: `colour=red`, `year>=1990`, `year<=2000`, `title~sea`."""

from __future__ import annotations

import json
import math
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from .._arrays import Array, Bools, Floats, Int32s
from ..exceptions import InvalidInputError
from ..reading.text_files import shortened

Value = str | int | float | None

SIGNS = (">=", "<=", "=", "~")  # a longer one before its parts
NUMBER, TEXT = "number", "text"
_EXACT = 2.0**53  # whole numbers below are all told apart


class Named(Protocol):
    """What a filter needs to know of an attribute."""

    @property
    def name(self) -> str: ...

    @property
    def kind(self) -> str: ...


@dataclass(frozen=True)
class Filter:
    """One condition on one attribute.

    `value` is a number where the attribute is one; None, from an empty value, means items that have none.
    """

    attribute: int  # its position
    sign: str
    value: str | float | None


def parse_filter(text: str, attributes: Sequence[Named]) -> Filter:
    """A filter from how it is written; the longest name before a sign is the attribute's.

    >>> from types import SimpleNamespace as Name
    >>> known = [Name(name="year", kind="number"), Name(name="title", kind="text")]
    >>> parse_filter("year >= 1990", known), parse_filter("title~Sea", known).value
    (Filter(attribute=0, sign='>=', value=1990.0), 'Sea')
    """
    place, sign, value = _parted(text, attributes)
    attribute = attributes[place]
    if attribute.kind == TEXT:
        if sign in (">=", "<="):
            raise InvalidInputError(
                f"filter {shortened(text)!r}: {attribute.name!r} is text, which takes = or ~, got {sign}"
            )
        return Filter(place, sign, value if value or sign == "~" else None)
    if sign == "~":
        raise InvalidInputError(f"filter {shortened(text)!r}: {attribute.name!r} is a number, which takes =, >= or <=")
    return Filter(place, sign, _number(text, value, sign))


def _parted(text: str, attributes: Sequence[Named]) -> tuple[int, str, str]:
    for place in sorted(range(len(attributes)), key=lambda i: -len(attributes[i].name)):
        name = attributes[place].name
        rest = text[len(name) :].lstrip() if text.startswith(name) else ""
        sign = next((sign for sign in SIGNS if rest.startswith(sign)), None)
        if sign is not None:
            return place, sign, rest[len(sign) :]
    names = ", ".join(repr(attribute.name) for attribute in attributes[:8]) or "none"
    more = f" and {len(attributes) - 8} more" if len(attributes) > 8 else ""
    raise InvalidInputError(
        f"filter must be an attribute, one of {', '.join(SIGNS)}, and a value; the attributes are {names}{more}; "
        f"got {shortened(text)!r}"
    )


def _number(text: str, value: str, sign: str) -> float | None:
    if not value.strip() and sign == "=":
        return None
    try:
        number = float(value)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise InvalidInputError(f"filter {shortened(text)!r}: must end in a number, got {shortened(value)!r}")
    return number


class Column(Protocol):
    """All values of one attribute, ready to be compared, and kept as two values of a database."""

    def matches(self, condition: Filter) -> Bools: ...

    def stored(self) -> tuple[bytes, str]: ...

    def different(self) -> list[str | int | float]: ...


class NumberColumn:
    """Numbers of all items; nan where there is none.

    >>> NumberColumn.of([1990, None, 2001.5]).matches(Filter(0, ">=", 1995.0)).tolist()
    [False, False, True]
    """

    def __init__(self, values: Floats) -> None:
        self.values = values  # (n,)

    @classmethod
    def of(cls, values: Iterable[Value]) -> NumberColumn:
        numbers = array("d", (math.nan if value is None else float(value) for value in values))
        return cls(np.frombuffer(numbers, dtype=np.float64))

    @classmethod
    def read(cls, numbers: bytes, words: str, n: int) -> NumberColumn:
        """What `stored` gave, of n items; TypeError or ValueError where it is damaged."""
        return cls(_whole(numbers, "<f8", n))

    def stored(self) -> tuple[bytes, str]:
        return self.values.astype("<f8").tobytes(), ""

    def different(self) -> list[str | int | float]:
        """The different numbers, ascending; whole ones without a decimal point."""
        found = np.unique(self.values[~np.isnan(self.values)]).tolist()
        return [int(number) if number.is_integer() and abs(number) < _EXACT else number for number in found]

    def matches(self, condition: Filter) -> Bools:
        if condition.value is None:
            return np.isnan(self.values)
        compare = {"=": np.equal, ">=": np.greater_equal, "<=": np.less_equal}[condition.sign]
        return np.asarray(compare(self.values, float(condition.value)))


class TextColumn:
    """Texts of all items, each different one kept once: a filter looks at these, and then at whole numbers.

    >>> TextColumn.of(["Red", None, "dark red"]).matches(Filter(0, "~", "RED")).tolist()
    [True, False, True]
    """

    def __init__(self, codes: Int32s, words: list[Value]) -> None:
        self.codes = codes  # (n,) places in words
        self.words = words
        self.places = {word: place for place, word in enumerate(words)}

    @classmethod
    def of(cls, values: Iterable[Value]) -> TextColumn:
        places: dict[Value, int] = {}
        codes = array("i", (places.setdefault(value, len(places)) for value in values))
        return cls(np.frombuffer(codes, dtype=np.int32), list(places))

    @classmethod
    def read(cls, codes: bytes, words: str, n: int) -> TextColumn:
        """What `stored` gave, of n items; TypeError or ValueError where it is damaged."""
        places, known = _whole(codes, "<i4", n), json.loads(words)
        if not isinstance(known, list) or not all(value is None or isinstance(value, str) for value in known):
            raise ValueError("its words must be a list of texts")
        if n and not 0 <= places.min() <= places.max() < len(known):
            raise ValueError(f"its places must be those of {len(known)} words")
        return cls(places, known)

    def stored(self) -> tuple[bytes, str]:
        return self.codes.astype("<i4").tobytes(), json.dumps(self.words, ensure_ascii=False)

    def different(self) -> list[str | int | float]:
        """The different texts, by alphabet."""
        return sorted(str(word) for word in self.words if word is not None)

    def matches(self, condition: Filter) -> Bools:
        if condition.sign == "=":
            return np.asarray(self.codes == self.places.get(condition.value, -1))
        part = str(condition.value).casefold()
        good = [word is not None and part in str(word).casefold() for word in self.words]
        return np.array(good, dtype=np.bool_)[self.codes]


def _whole(content: bytes, kind: str, n: int) -> Array:
    """The n numbers of a column."""
    found = np.frombuffer(content, dtype=kind)
    if len(found) != n:
        raise ValueError(f"it must hold {n} numbers, got {len(found)}")
    return found
