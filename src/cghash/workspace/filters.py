"""Filters of items by attribute: `colour=red`, `year>=1990`, `year<=2000`, `title~sea`."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ..exceptions import InvalidInputError
from ..reading.text import shortened

Value = str | int | float | None
Mask = NDArray[np.bool_]

SIGNS = (">=", "<=", "=", "~")  # a longer one before its parts
NUMBER, TEXT = "number", "text"


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
    """All values of one attribute, ready to be compared."""

    def matches(self, condition: Filter) -> Mask: ...


class NumberColumn:
    """Numbers of all items; nan where there is none.

    >>> NumberColumn([1990, None, 2001.5]).matches(Filter(0, ">=", 1995.0)).tolist()
    [False, False, True]
    """

    def __init__(self, values: Iterable[Value]) -> None:
        self.values = np.array([math.nan if value is None else value for value in values], dtype=np.float64)  # (n,)

    def matches(self, condition: Filter) -> Mask:
        if condition.value is None:
            return np.isnan(self.values)
        compare = {"=": np.equal, ">=": np.greater_equal, "<=": np.less_equal}[condition.sign]
        return np.asarray(compare(self.values, float(condition.value)))


class TextColumn:
    """Texts of all items, each different one kept once: a filter looks at these, and then at whole numbers.

    >>> TextColumn(["Red", None, "dark red"]).matches(Filter(0, "~", "RED")).tolist()
    [True, False, True]
    """

    def __init__(self, values: Iterable[Value]) -> None:
        places: dict[Value, int] = {}
        self.codes = np.array([places.setdefault(value, len(places)) for value in values], dtype=np.int32)  # (n,)
        self.places = places

    def matches(self, condition: Filter) -> Mask:
        if condition.sign == "=":
            return np.asarray(self.codes == self.places.get(condition.value, -1))
        part = str(condition.value).casefold()
        good = [value is not None and part in str(value).casefold() for value in self.places]
        return np.array(good, dtype=np.bool_)[self.codes]
