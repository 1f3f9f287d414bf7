"""The demo's results on a terminal."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table
from rich.text import Text

from .demo import BEST
from .demo_results import DemoResults, Digit, Example, named

__all__ = ["print_summary"]


def print_summary(results: DemoResults, console: Console) -> None:
    """Print the table, the certificate and how one query's neighbours change."""
    console.print(_table(results))
    console.print(f"\n[bold]{BEST}[/bold]: {results.fit_of(BEST).message}.\n", highlight=False)
    for line in _neighbours(results.examples[0]):
        console.print(line)
    console.print(f"\n{results.seconds:.0f} s in all; the report:", highlight=False)


def _table(results: DemoResults) -> Table:
    best = max(results.rows, key=lambda row: row.map)
    table = Table(title=f"{results.n_queries} digits searched among {results.n_database}", title_justify="left")
    table.add_column("method")
    for name in ("bits", "bytes an item", "mAP", f"top-{results.top}", "3-NN error"):
        table.add_column(name, justify="right")
    for row in results.rows:
        numbers = [f"{value:.3f}" for value in (row.map, row.top, row.knn_error)]
        bits = "–" if row.n_bits is None else str(row.n_bits)
        table.add_row(row.method, bits, str(row.n_bytes), *numbers, style="bold" if row is best else "")
    return table


def _neighbours(example: Example) -> list[Text]:
    """The labels of the nearest items, one line a method."""
    label = example.query.label
    lines = [Text(f"{named(label).capitalize()}, where {example.why}; its nearest items, wrong ones in brackets:")]
    width = max(map(len, example.nearest))
    for method, items in example.nearest.items():
        labels = Text.assemble(*(_label(item, label) for item in items))
        lines.append(Text.assemble(f"  {method:<{width}} ", labels, f"  {example.n_right(method)} of {len(items)}"))
    return lines


def _label(item: Digit, wanted: int) -> Text:
    return Text(f" {item.label} ") if item.label == wanted else Text(f"[{item.label}]", style="red")
