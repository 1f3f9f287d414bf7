"""Markdown tables."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


def table(header: list[str], rows: Iterable[list[str]], words: int = 1) -> str:
    """A Markdown table; the columns after the first `words` hold numbers and stand to the right."""
    lines = [header, ["---" if i < words else "---:" for i in range(len(header))], *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def bold(cell: str, wanted: bool) -> str:
    return f"**{cell}**" if wanted else cell


def shown(value: Any, digits: int | None = None) -> str:
    if value is None:
        return "–"
    if digits is not None:
        return f"{value:.{digits}f}"
    return str(round(value, 4)) if isinstance(value, float) else str(value)
