"""Rows of text files with their line numbers, and what tells a header from data."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any

from .._validation import is_number
from ..exceptions import FormatError, InvalidInputError
from .sources import Source

Row = tuple[int, list[str]]  # the line's number, from 1, and its cells

_ENCODING = "; save it as UTF-8 (iconv -f latin1 -t utf-8, or 'CSV UTF-8' in a spreadsheet)"
_MISSING = {"", "na", "n/a", "#n/a", "<na>", "nan", "null", "none", "nil", "missing", "?", "-", "."}


@dataclass
class TextTable:
    """The rows of a .csv file, read as they are asked for; all of one length."""

    source: Source
    header: list[str] | None
    rows: Iterator[Row]
    width: int

    @property
    def names(self) -> list[str]:
        """The columns' names, which are their numbers where the file has no header."""
        return self.header if self.header is not None else [str(i) for i in range(self.width)]


def read_rows(
    source: Source, wanted: Sequence[str] = (), features: Sequence[str] = (), counted: bool = False
) -> TextTable:
    """Open a .csv file and find out whether its first line is a header.

    Parameters
    ----------
    wanted : names of columns that make the first line a header when one of them is there; one that can be the number
        of a column does not
    features : the same; all of them together do, in a line that counts its columns
    counted : whether 0, 1, 2, … in the first line is a header, which some programs write
    """
    rows = _csv_rows(source)
    ahead = list(islice(rows, 2))
    if not ahead:
        hint = "; was something piped into it?" if source.path is None else ""
        raise InvalidInputError(f"{source.name} must hold rows, got an empty file{hint}")
    first = ahead[0][1]
    second = ahead[1][1] if len(ahead) > 1 else None
    cells = [cell.strip() for cell in first]
    named = _names_one(cells, wanted, features) or is_header(first, second, counted)
    header = cells if named else None
    return TextTable(source, header, chain(ahead[1:] if named else ahead, rows), len(first))


def is_header(first: list[str], second: list[str] | None, counted: bool = False) -> bool:
    """Whether a first line names columns: no number in it, or none but a count of the columns.

    >>> is_header(["height", "width"], ["1.5", "3"]), is_header(["1.5", "NA"], ["2", "3"])
    (True, False)
    """
    numbers = [cell.strip() for cell in first if is_number(cell)]
    words = [cell.strip() for cell in first if not is_number(cell)]
    if not numbers:
        return not all(map(is_missing, words))
    if not counted or not _is_count(numbers) or any(word and is_missing(word) for word in words):
        return False
    above = zip(first, second or [], strict=False)
    word_above_number = any(not is_number(a) and a.strip() and is_number(b) for a, b in above)
    return len(numbers) > 3 or (len(numbers) > 1 and word_above_number)


def _names_one(first: list[str], wanted: Sequence[str], features: Sequence[str]) -> bool:
    """Whether a line holds a name that was asked for, and not just the number of a column."""
    found = {name for name in (*wanted, *features) if name in first}
    if any(not name.isdecimal() or int(name) >= len(first) for name in found):
        return True
    return bool(features) and set(features) <= found and _is_count([cell for cell in first if is_number(cell)])


def _is_count(cells: list[str]) -> bool:
    return cells == [str(i) for i in range(len(cells))]


def is_missing(cell: str) -> bool:
    """Whether a cell says that there is no value."""
    return cell.strip().lower() in _MISSING


def read_objects(source: Source) -> Iterator[tuple[int, Any]]:
    """The values of a .jsonl file, one a line."""
    with source.text() as file:
        try:
            for line, text in enumerate(file, 1):
                if text.strip():
                    yield line, _parsed(source, line, text)
        except UnicodeDecodeError as error:
            raise FormatError(f"{source.name} must be text in UTF-8: {error}{_ENCODING}") from error


def _parsed(source: Source, line: int, text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise FormatError(f"{source.at(line)}: must be JSON, got {shortened(text)!r} ({error})") from error


def _csv_rows(source: Source) -> Iterator[Row]:
    width = first_line = 0
    _check_text(source)
    with source.text() as file:
        try:
            delimiter = _delimiter(file.readline())
            file.seek(0)
            reader = csv.reader(file, delimiter=delimiter)
            for cells in reader:
                if not cells or (len(cells) == 1 and not cells[0].strip()):
                    continue
                if not width:
                    width, first_line = len(cells), reader.line_num
                if len(cells) != width:
                    raise FormatError(
                        f"{source.at(reader.line_num)}: must have {width} cells, as line {first_line} has, "
                        f"got {len(cells)}"
                    )
                yield reader.line_num, cells
        except UnicodeDecodeError as error:
            raise FormatError(f"{source.name} must be text in UTF-8: {error}{_ENCODING}") from error
        except csv.Error as error:
            raise FormatError(f"{source.at(reader.line_num)}: must be comma-separated values: {error}") from error


def _check_text(source: Source) -> None:
    with source.binary() as file:
        head = file.read(256)
    if b"\0" in head or head.startswith(b"PK\3\4"):
        raise FormatError(f"{source.name} must be text in UTF-8, got binary data: a spreadsheet? Save it as CSV")


def _delimiter(line: str) -> str:
    return max(",\t;", key=line.count)


def why_no_number(cell: str) -> str:
    """What keeps a cell from being a number, as the end of a message; nothing where it is just a word.

    >>> why_no_number("0,126"), why_no_number("1.5 2.5"), why_no_number("red")
    ('; decimals have a point, not a comma', '; cells are separated by commas, tabs or semicolons, not by spaces', '')
    """
    if is_missing(cell):
        return "; fill in missing values, or leave their rows out"
    if is_number(cell.replace(",", ".", 1)):
        return "; decimals have a point, not a comma"
    if len(cell.split()) > 1 and all(map(is_number, cell.split())):
        return "; cells are separated by commas, tabs or semicolons, not by spaces"
    return ""


def shortened(text: str, most: int = 40) -> str:
    text = text.strip()
    return text if len(text) <= most else text[: most - 1] + "…"
