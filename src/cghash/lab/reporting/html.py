"""Pieces of a page. Whatever comes from results is escaped here, once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

__all__ = ["Cell", "details", "document", "listed", "paragraph", "section", "table"]


@dataclass(frozen=True)
class Cell:
    """A table's cell: text, and the class that gives it its look."""

    text: str
    kind: str = ""


def document(title: str, body: str, style: str = "") -> str:
    """A whole page that refers to nothing outside itself; `style` is added to what all reports share.

    Examples
    --------
    >>> document("a < b", "<p>so</p>").splitlines()[-4:]
    ['<p>so</p>', '</main>', '</body>', '</html>']
    """
    shared = Path(__file__).with_name("report.css").read_text(encoding="utf-8")
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>\n{shared}{style}</style>\n</head>\n"
        f"<body>\n<main>\n{body}\n</main>\n</body>\n</html>\n"
    )


def paragraph(text: str, kind: str = "") -> str:
    """A paragraph of plain text.

    Examples
    --------
    >>> paragraph("a < b", "note")
    '<p class="note">a &lt; b</p>'
    """
    return f"<p{_class(kind)}>{escape(text)}</p>"


def table(heads: Sequence[str], rows: Iterable[Sequence[str | Cell]], label: str) -> str:
    """A table whose rows begin with their names; it scrolls by itself where the page is too narrow.

    Examples
    --------
    >>> "<td class=\\"best\\">1</td>" in table(["method", "rank"], [["LSH", Cell("1", "best")]], "ranks")
    True
    """
    columns = "".join(f'<th scope="col">{escape(head)}</th>' for head in heads)
    body = "\n".join(_row(row) for row in rows)
    return (
        f'<div class="card scroll" tabindex="0" role="region" aria-label="{escape(label)}">\n<table>\n'
        f"<thead><tr>{columns}</tr></thead>\n<tbody>\n{body}\n</tbody>\n</table>\n</div>"
    )


def section(name: str, heading: str, *parts: str) -> str:
    """A section with a heading that can be linked to; nothing where it would be empty.

    Examples
    --------
    >>> section("a", "A")
    ''
    """
    body = "\n".join(part for part in parts if part)
    if not body:
        return ""
    return f'<section aria-labelledby="{name}">\n<h2 id="{name}">{escape(heading)}</h2>\n{body}\n</section>'


def details(summary: str, body: str) -> str:
    """What is shown on demand."""
    return f"<details>\n<summary>{escape(summary)}</summary>\n{body}\n</details>"


def listed(items: Iterable[str]) -> str:
    """A list of plain sentences."""
    return "<ul>\n" + "\n".join(f"<li>{escape(item)}</li>" for item in items) + "\n</ul>"


def _row(row: Sequence[str | Cell]) -> str:
    cells = [cell if isinstance(cell, Cell) else Cell(cell) for cell in row]
    name, others = cells[0], cells[1:]
    return (
        f'<tr><th scope="row"{_class(name.kind)}>{escape(name.text)}</th>'
        + "".join(f"<td{_class(cell.kind)}>{escape(cell.text)}</td>" for cell in others)
        + "</tr>"
    )


def _class(kind: str) -> str:
    return f' class="{kind}"' if kind else ""
