"""cghash demo: learn codes of handwritten digits, print how good they are, write a report."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

EUCLIDEAN, BEST = "Euclidean", "CGHash, RBF"  # of the methods of the experiment "demo"
STEP = 8  # bits between the lengths that are measured beside those asked for
Cells = list[dict[str, Any]]


@click.command()
@click.option(
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("out/demo"),
    show_default=True,
    help="Folder for index.html, its figures and tables, and the raw results.",
)
@click.option(
    "--n-bits",
    type=click.IntRange(min=1),
    multiple=True,
    default=(32, 64),
    show_default=True,
    help="Length of the codes; may be given several times.",
)
@click.option("--seed", type=click.IntRange(0, 2**32 - 1), default=0, show_default=True, help="Of everything random.")
@click.option("--quiet", is_flag=True, help="Print only the path of the report.")
def demo(output: Path, n_bits: tuple[int, ...], seed: int, quiet: bool) -> None:
    """Learn codes of handwritten digits, print a table and write a report to look at."""
    from ..lab.drawing import require_matplotlib
    from ..lab.features.images import require_pillow

    require_matplotlib()  # before the work, not after it
    require_pillow()
    began = time.perf_counter()
    with _writing():
        (output / "results").mkdir(parents=True, exist_ok=True)
    cells = _measured(n_bits, seed, output / "results", quiet)
    with _writing():
        page = _report(cells, output)
    if not quiet:
        _print_summary(cells, time.perf_counter() - began)
    click.echo(page)


@contextmanager
def _writing() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise click.ClickException(f"--output must be a folder that can be written: {error}") from error


def _measured(n_bits: tuple[int, ...], seed: int, folder: Path, quiet: bool) -> Cells:
    """Run the experiment "demo" anew: these lengths for the table, and those between for the curves."""
    from ..lab.experiments.plan_files import part_of, read_experiment
    from ..lab.experiments.results import Store
    from ..lab.experiments.runner import run
    from .lab import tasks_done

    lengths = sorted({*range(STEP, max(n_bits), STEP), *n_bits})
    plan = part_of(read_experiment("demo"), bits=lengths)
    plan = replace(plan, shown=tuple(sorted(set(n_bits))), first_split=seed)
    with tasks_done(plan, quiet or not sys.stderr.isatty()) as progress:  # a log has the table alone
        failed = run(plan, Store(folder), fresh=True, told=progress)
    if failed:
        raise click.ClickException(f"{failed[0].task.name}: {failed[0].error}")
    return [_as_pixels(cell) for cell in Store(folder).read(plan)]


def _as_pixels(cell: dict[str, Any]) -> dict[str, Any]:
    """The vectors take a byte a pixel here, whatever the type that they were measured in."""
    return cell | {"bytes": cell["n_features"]} if cell["method"] == EUCLIDEAN else cell


def _report(cells: Cells, folder: Path) -> Path:
    from ..lab.reporting import write_report

    best, plain = (max((c for c in _shown(cells) if c["method"] == name), key=_quality) for name in (BEST, EUCLIDEAN))
    lead = (
        "CGHash learned these binary codes from comparisons such as “this 3 is nearer to that 3 than to that 8”, on "
        f"{best['n_train']} images of 8 × 8 pixels, the digits of scikit-learn. Here {best['n_queries']} images that "
        "it never saw search for their like, by the codes and by what people would use without learning "
        f"(seed {best['split']}). Sign of PCA has no more bits than the images have principal components."
    )
    numbers = {
        f"mean average precision, from {_quality(plain):.2f} by Euclidean distance": f"{_quality(best):.3f}",
        f"bytes an item, from {plain['bytes']} as pixels": best["bytes"],
        f"of the {best['top']} nearest show the right digit": f"{100 * best['criteria']['top']:.1f} %",
        "of a processor to learn the codes": f"{best['seconds_fit']:.1f} s",
    }
    title = f"Handwritten digits in {best['bytes']} bytes each"
    return write_report(cells, folder, title, lead=lead, numbers=numbers)


def _shown(cells: Cells) -> Cells:
    """The rows of the table, the vectors first and once: of codes the lengths that have curves."""
    longest = max(cell["bits"] for cell in cells)
    rows = [cell for cell in cells if "curve" in cell and (cell["method"] != EUCLIDEAN or cell["bits"] == longest)]
    return sorted(rows, key=lambda cell: _methods(cells).index(cell["method"]))


def _methods(cells: Cells) -> list[str]:
    """From the vectors to the best codes: the experiment has them the other way round."""
    return list(dict.fromkeys(cell["method"] for cell in cells))[::-1]


def _quality(cell: dict[str, Any]) -> float:
    return float(cell["criteria"]["map"])


def _print_summary(cells: Cells, seconds: float) -> None:
    """Print the table, what the best fit says of itself and how one query's neighbours change."""
    from rich.console import Console

    console = Console()
    console.print(_table(_shown(cells)))
    message = next(cell["fit"]["message"] for cell in cells if cell["method"] == BEST and "fit" in cell)
    console.print(f"\n[bold]{BEST}[/bold]: {message}.\n", highlight=False)
    for line in _neighbours(cells):
        console.print(line)
    console.print(f"\n{seconds:.0f} s in all; the report:", highlight=False)


def _table(rows: Cells) -> Table:
    from rich.table import Table

    first, best = rows[0], max(rows, key=_quality)
    title = f"{first['n_queries']} digits searched among {first['n_database']}"
    table = Table(title=title, title_justify="left")
    table.add_column("method")
    for name in ("bits", "bytes an item", "mAP", f"top-{first['top']}", f"{first['k']}-NN error"):
        table.add_column(name, justify="right")
    for cell in rows:
        size = [cell["n_bits"], cell["bytes"]]
        if cell["method"] == EUCLIDEAN:
            size[0] = "–"
        criteria = [f"{cell['criteria'][key]:.3f}" for key in ("map", "top", "knn_error")]
        table.add_row(cell["method"], *map(str, size), *criteria, style="bold" if cell is best else "")
    return table


def _neighbours(cells: Cells) -> list[Text]:
    """The labels of a query's nearest items, one line a method."""
    from rich.text import Text

    from ..lab.reporting.examples import examples_of
    from ..lab.reporting.values import Measured

    example = examples_of(Measured(cells), cells[0]["dataset"])[0]
    label = str(example.query["label"])
    article = "An" if label == "8" else "A"
    lines = [Text(f"{article} {label}, where {example.why}; its nearest items, wrong ones in brackets:")]
    methods = [method for method in _methods(cells) if method in example.nearest]
    for method in methods:
        _, items = example.nearest[method]
        labels = Text.assemble(*(_label(item) for item in items))
        n_right = sum(item["right"] for item in items)
        lines.append(Text.assemble(f"  {method:<{max(map(len, methods))}} ", labels, f"  {n_right} of {len(items)}"))
    return lines


def _label(item: dict[str, Any]) -> Text:
    from rich.text import Text

    return Text(f" {item['label']} ") if item["right"] else Text(f"[{item['label']}]", style="red")
