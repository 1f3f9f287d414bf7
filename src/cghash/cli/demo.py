"""cghash demo: learn codes of handwritten digits, print how good they are, write a report."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from rich.console import Console

    from ..lab.demo_results import DemoResults


@click.command()
@click.option(
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("out/demo"),
    show_default=True,
    help="Folder for index.html and results.json.",
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
    from rich.console import Console

    from ..lab.demo_figures import require_matplotlib

    require_matplotlib()  # before the work, not after it
    results = _run(n_bits, seed, Console(stderr=True, quiet=quiet))
    report = _write(results, output)
    if not quiet:
        from ..lab.demo_summary import print_summary

        print_summary(results, Console())
    click.echo(report)


def _run(n_bits: tuple[int, ...], seed: int, console: Console) -> DemoResults:
    from ..lab.demo import run

    with console.status("measuring codes that learn nothing") as status:
        return run(n_bits, seed, say=status.update)


def _write(results: DemoResults, folder: Path) -> Path:
    """Write the raw results, then the report from them."""
    from ..lab.demo_page import write_report

    try:
        folder.mkdir(parents=True, exist_ok=True)
        results.save(folder / "results.json")
        write_report(results, folder / "index.html")
    except OSError as error:
        raise click.ClickException(f"--output must be a folder that can be written: {error}") from error
    return folder / "index.html"
