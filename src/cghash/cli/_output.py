"""What commands give out: a line of talk, tables for people, JSON and files for programs."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, BinaryIO

import click


def say(words: str, quiet: bool = False) -> None:
    """A line of talk, which standard output does not get."""
    if not quiet:
        click.echo(f"cghash: {words}", err=True)


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


def show_json(value: Any, ascii_only: bool = True) -> None:
    """JSON for programs; what it cannot say, nan and infinities, is null."""
    click.echo(json.dumps(_finite(value), indent=2, ensure_ascii=ascii_only, allow_nan=False))


def _finite(value: Any) -> Any:
    """The same with None for nan and infinities.

    >>> _finite({"gap": float("nan"), "bits": [1]})
    {'gap': None, 'bits': [1]}
    """
    if isinstance(value, dict):
        return {name: _finite(v) for name, v in value.items()}
    if isinstance(value, list):
        return [_finite(v) for v in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def refuse_npy_on_terminal(output: str, kind: str) -> None:
    """Refuse to write bytes that are no text where people read."""
    if output == "-" and kind == "npy" and sys.stdout.isatty():
        raise click.UsageError("npy is not for a terminal: name a file with -o, or redirect")


def opened(output: str) -> AbstractContextManager[BinaryIO]:
    """Standard output for `-`, else a file that is there when it is whole."""
    from ..storage import written_atomically

    if output == "-":
        return nullcontext(sys.stdout.buffer)
    return written_atomically(output)


def write_npy(file: BinaryIO, dtype: Any, shape: tuple[int, int], blocks: Iterable[Any]) -> None:
    """Write an array of a known shape, some rows at a time."""
    from numpy.lib import format as npy

    npy.write_array_header_1_0(file, {"descr": npy.dtype_to_descr(dtype), "fortran_order": False, "shape": shape})
    for block in blocks:
        file.write(block.tobytes())


def write_csv(file: BinaryIO, head: list[Any], rows: Iterable[Iterable[Any]]) -> None:
    """Write the names of columns, and their rows."""
    import csv
    import io

    text = io.TextIOWrapper(file, encoding="utf-8", newline="", write_through=True)
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(head)
    writer.writerows(rows)
    text.detach()
