"""Items from a table: which column is what, and the items one after another."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from ..exceptions import InvalidInputError
from ..reading.text_files import is_missing, shortened
from .item_filters import NUMBER, TEXT, Value
from .item_sources import Table
from .pictures import ENDINGS

__all__ = ["ImportPlan", "NamedColumns", "SourceItem", "plan_import"]

LONG = 30  # characters: a column whose texts are longer on average is what the items say
FEW_NUMBERS = 20  # columns of numbers that make the vectors are attributes too, unless there are more
IDS, TEXTS, IMAGES = ("id", "ids"), "text", ("image", "file")

_NUMBER = re.compile(r"[+-]?(0|[1-9][0-9]*|(0|[1-9][0-9]*)?\.[0-9]+|(0|[1-9][0-9]*)\.)([eE][+-]?[0-9]{1,3})?")
_LARGEST = 1 << 63


@dataclass(frozen=True)
class NamedColumns:
    """Which columns the user named."""

    id: str | None = None
    text: str | None = None
    labels: str | None = None

    @property
    def names(self) -> tuple[str, ...]:
        asked = [name for name in (self.id, self.text, self.labels) if name is not None]
        return (*asked, *IDS, TEXTS, *IMAGES)


@dataclass(frozen=True)
class SourceItem:
    """An item as the source has it; `picture` is a file of the user's."""

    place: str
    id: str
    values: list[Value]
    text: str | None
    picture: Path | None


@dataclass
class _Survey:
    """What all cells of a column have in common."""

    name: str
    n: int = 0  # cells that are not missing
    numbers: bool = True
    any_number: bool = False
    characters: int = 0
    first: str = ""

    def see(self, cell: Any) -> None:
        if _missing(cell):
            return
        text = str(cell)
        number = self.numbers and _as_number(cell) is not None
        self.any_number = self.any_number or number
        self.numbers = self.numbers and (number or is_missing(text))  # NA among numbers is no text
        self.first = self.first or text
        self.characters += len(text)
        self.n += 1

    @property
    def kind(self) -> str:
        return NUMBER if self.numbers and self.any_number else TEXT

    @property
    def mean_length(self) -> float:
        return self.characters / max(1, self.n)


@dataclass(frozen=True)
class ImportPlan:
    """What each column of a table is."""

    table: Table
    n: int  # rows
    id: str | None
    text: str | None
    image: str | None
    attributes: list[tuple[str, str]]  # name, kind
    numbers: list[str]  # columns of numbers that are not id, labels, text or picture
    notes: list[str] = field(default_factory=list)

    @property
    def kind(self) -> str:
        return "images" if self.image else "texts" if self.text else "vectors"

    def items(self) -> Iterator[SourceItem]:
        """The items, row after row."""
        places = {name: i for i, name in enumerate(self.table.columns)}
        for row, (place, cells) in enumerate(self.table.rows()):
            yield SourceItem(
                place,
                str(row) if self.id is None else _id(cells[places[self.id]], place, self.id),
                [_value(cells[places[name]], kind) for name, kind in self.attributes],
                None if self.text is None else _text(cells[places[self.text]]),
                None if self.image is None else self._picture(cells[places[self.image]], place),
            )

    def number_rows(self) -> Iterator[tuple[str, list[float]]]:
        """The numbers of the columns that make vectors."""
        places = [self.table.columns.index(name) for name in self.numbers]
        for place, cells in self.table.rows():
            found = [_as_number(cells[i]) for i in places]
            if None in found:
                at = found.index(None)
                wanted = "must be a finite number, since this column is part of the vectors"
                raise InvalidInputError(
                    f"{place}, column {self.numbers[at]!r}: {wanted}, got {cells[places[at]]!r:.40}"
                )
            yield place, [float(number) for number in found if number is not None]

    def _picture(self, cell: Any, place: str) -> Path | None:
        return None if _missing(cell) else self.table.picture(str(cell).strip(), place)


def plan_import(table: Table, asked: NamedColumns, as_numbers: bool) -> ImportPlan:
    """Look through a table once and decide what each column is.

    Parameters
    ----------
    table : the items
    asked : the columns that the user named
    as_numbers : whether columns of numbers are the vectors where there is neither text nor picture
    """
    n, columns = _survey(table)
    if not n:
        raise InvalidInputError(f"{table.name} must hold items, got none")
    for name, role in ((asked.id, "ids"), (asked.text, "texts"), (asked.labels, "labels")):
        if name is not None and name not in columns:
            raise InvalidInputError(f"{table.name} must have a column {name!r} of {role}, got {listed(columns)}")
    notes: list[str] = []
    key = asked.id or _named(columns, IDS)
    image = _image_column(columns, {key, asked.text, asked.labels})
    text = asked.text or _text_column(columns, {key, image, asked.labels}, notes)
    left = [name for name in columns if name == asked.labels or name not in (key, text)]
    numbers = [name for name in left if columns[name].kind == NUMBER and name != asked.labels]
    many = as_numbers and not image and not text and len(numbers) > FEW_NUMBERS
    gone = {*(numbers if many else ()), image if key else None}  # an id is a better name than a path
    kept = [name for name in left if name not in gone]
    return ImportPlan(table, n, key, text, image, [(name, columns[name].kind) for name in kept], numbers, notes)


def _survey(table: Table) -> tuple[int, dict[str, _Survey]]:
    columns = [_Survey(name) for name in table.columns]
    n = 0
    for _, cells in table.rows():
        n += 1
        for column, cell in zip(columns, cells, strict=True):
            column.see(cell)
    return n, {column.name: column for column in columns}


def _named(columns: dict[str, _Survey], names: Iterable[str]) -> str | None:
    return next((column for name in names for column in columns if column.lower() == name), None)


def _image_column(columns: dict[str, _Survey], taken: set[str | None]) -> str | None:
    for name in columns:
        picture = columns[name].first.strip().lower().endswith(tuple(ENDINGS))
        if name.lower() in IMAGES and name not in taken and picture:
            return name
    return None


def _text_column(columns: dict[str, _Survey], taken: set[str | None], notes: list[str]) -> str | None:
    """The column called text, else the one with the longest texts if they are long."""
    free = {name: column for name, column in columns.items() if name not in taken and column.kind == TEXT and column.n}
    named = _named(free, (TEXTS,))
    if named is not None or not free:
        return named
    longest = max(free, key=lambda name: free[name].mean_length)
    length = free[longest].mean_length
    if length <= LONG:
        return None
    notes.append(f"the items' text is column {longest!r}, of {length:.0f} characters on average")
    return longest


def _missing(cell: Any) -> bool:
    if isinstance(cell, str):
        return not cell or cell.isspace()
    return cell is None or (isinstance(cell, float) and math.isnan(cell))


def _as_number(cell: Any) -> int | float | None:
    """A cell as a finite number; None where it is none. Digits after a leading 0 are a name, such as a postcode.

    >>> _as_number("1990"), _as_number(" -1.5e3 "), _as_number("007"), _as_number("inf")
    (1990, -1500.0, None, None)
    """
    if isinstance(cell, str):
        text = cell.strip()
        if _NUMBER.fullmatch(text) is None:
            return None
        cell = float(text) if any(sign in text for sign in ".eE") or len(text) > 18 else int(text)
    if isinstance(cell, bool) or not isinstance(cell, int | float) or not math.isfinite(cell):
        return None
    return cell if isinstance(cell, float) or abs(cell) < _LARGEST else float(cell)


def _value(cell: Any, kind: str) -> Value:
    """An attribute's value: a number, or text, or None."""
    if _missing(cell):
        return None
    if kind == NUMBER:
        return _as_number(cell)
    return str(cell).lower() if isinstance(cell, bool) else str(cell).strip()


def _text(cell: Any) -> str | None:
    return None if _missing(cell) else str(cell)


def _id(cell: Any, place: str, column: str) -> str:
    if _missing(cell):
        raise InvalidInputError(f"{place}, column {column!r}: must hold an id, got nothing")
    return key_of(cell)


def key_of(cell: Any) -> str:
    """An id as text: 7, 7.0 and "7" are the same.

    >>> key_of(7.0), key_of(" seven ")
    ('7', 'seven')
    """
    if isinstance(cell, float) and cell.is_integer():
        cell = int(cell)
    return str(cell).strip()


def listed(names: Iterable[str], most: int = 8) -> str:
    """Names for a message.

    >>> listed(["a", "b"]), listed([])
    ("'a', 'b'", 'none')
    """
    known = list(names)
    shown = ", ".join(repr(shortened(name)) for name in islice(known, most))
    return (shown or "none") + (f" and {len(known) - most} more" if len(known) > most else "")
