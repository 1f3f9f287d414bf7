"""Tables for people, and numbers for programs."""

from __future__ import annotations

import math
from typing import Any


def show_facts(title: str, rows: list[tuple[str, str]]) -> None:
    """Names and values, one a line."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0), title=Text(title), title_justify="left")
    table.add_column(style="bold", no_wrap=True)
    table.add_column()
    for name, value in rows:
        table.add_row(Text(name), Text(value))
    Console().print(table)


def show_table(head: list[str], rows: list[list[str]]) -> None:
    """Numbers under their names."""
    from rich.box import SIMPLE
    from rich.console import Console
    from rich.table import Table

    table = Table(box=SIMPLE)
    for name in head:
        table.add_column(name, justify="right")
    for row in rows:
        table.add_row(*row)
    Console().print(table)


def finite(value: Any) -> Any:
    """The same with None for what JSON cannot say: nan and infinities.

    >>> finite({"gap": float("nan"), "bits": [1]})
    {'gap': None, 'bits': [1]}
    """
    if isinstance(value, dict):
        return {name: finite(v) for name, v in value.items()}
    if isinstance(value, list):
        return [finite(v) for v in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
