"""`cghash workspace export`: answers, codes and model for other programs."""

from __future__ import annotations

import click

from .._data import say
from .._options import output_path, quiet_option
from ._options import database_option


@click.command()
@click.argument("folder", metavar="DIR")
@click.argument("output", metavar="[OUT]", required=False)
@click.option(
    "--triplets",
    metavar="FILE",
    callback=lambda context, option, value: value and output_path(context, option, value),
    help="Write the answers alone: to a .csv, .jsonl or .parquet file.",
)
@database_option
@quiet_option
def export(folder: str, output: str | None, triplets: str | None, database: str | None, quiet: bool) -> None:
    """Write what the workspace in DIR has learned to the new folder OUT.

    triplets.csv, .jsonl and .parquet hold the answers as anchor, near, far by the items' ids, with source and time;
    unsure.csv and .jsonl those that could not tell;
    codes.npy and ids.csv the codes of the current model; model.cghash that model.

    \b
    Examples:
      cghash workspace export birds out/birds
      cghash workspace export birds --triplets answers.csv
    """
    if output is None and triplets is None:
        raise click.UsageError("name a folder to write, or a file with --triplets")
    from ...workspace import Workspace
    from ...workspace.exchange import export_workspace, write_triplets

    with Workspace.open(folder, database) as workspace:
        if triplets is not None:
            say(f"{write_triplets(workspace, triplets)} answers, wrote {triplets}", quiet)
        if output is not None:
            for words in export_workspace(workspace, output):
                say(words, quiet)
            say(f"wrote {output}", quiet)
