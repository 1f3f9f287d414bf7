"""`cghash lab report`: figures and a page from raw results."""

from __future__ import annotations

from pathlib import Path

import click

from .._data import say
from .._options import quiet_option


@click.command()
@click.argument("results", nargs=-1, required=True)
@click.option("-o", "--output", metavar="FOLDER", help="Folder of the report.  [default: report/ beside the results]")
@click.option("--title", help="Heading of the page.")
@quiet_option
def report(results: tuple[str, ...], output: str | None, title: str | None, quiet: bool) -> None:
    """Write index.html, figures (PNG, SVG) and tables (CSV) from RESULTS: folders of 'cghash lab run', or .jsonl files.

    Several are shown together. Only raw results are read: nothing is measured again.

    \b
    Examples:
      cghash lab report out/lab/paper
      cghash lab report out/lab/paper out/lab/mine -o out/both --title "Paper and mine"
      cghash lab report benchmarks/results/lab/paper.jsonl -o out/report
    """
    from ...lab.experiments.results import read_results
    from ...lab.reporting import write_report

    place = Path(results[0])
    folder = Path(output) if output else (place if place.is_dir() else place.parent) / "report"
    cells = [cell for path in results for cell in read_results(path)]
    page = write_report(cells, folder, **({} if title is None else {"title": title}))
    say(f"{len(cells)} results", quiet)
    click.echo(page)
