"""`cghash lab collect`: the results of a folder as one file."""

from __future__ import annotations

import click

from .._data import say
from .._options import output_path, quiet_option


@click.command()
@click.argument("folder")
@click.option("-o", "--output", required=True, metavar="FILE", callback=output_path, help="The .jsonl file to write.")
@quiet_option
def collect(folder: str, output: str, quiet: bool) -> None:
    """Put all results of FOLDER into one file, a line each, which 'cghash lab report' reads as well.

    \b
    Examples:
      cghash lab collect out/lab/paper -o paper.jsonl
    """
    from ...lab.experiments.results import collect as collect_all

    say(f"{collect_all(folder, output)} results, wrote {output}", quiet)
