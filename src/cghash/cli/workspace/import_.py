"""`cghash workspace import`: answers and models from elsewhere."""

from __future__ import annotations

import click

from .._data import say
from .._options import quiet_option
from ._options import database_option


@click.command("import")
@click.argument("folder", metavar="DIR")
@click.argument("files", metavar="FILE...", nargs=-1, required=True)
@click.option("--use", is_flag=True, help="Use the model from now on.")
@database_option
@quiet_option
def import_(folder: str, files: tuple[str, ...], use: bool, database: str | None, quiet: bool) -> None:
    """Take answers and models into the workspace in DIR.

    FILE holds triplets as .csv, .jsonl or .parquet with the ids anchor, near, far, or row numbers as .npy; or answers
    that could not tell, with the ids anchor, left, right; or it is a model file, which becomes a version; or a folder
    that 'cghash workspace export' wrote. The same file twice adds its answers once.

    \b
    Examples:
      cghash workspace import birds answers.csv
      cghash workspace import birds model.cghash --use
      cghash workspace import birds out/birds
    """
    from ...workspace import Workspace
    from ...workspace.exchange import import_files

    with Workspace.open(folder, database) as workspace:
        found = import_files(workspace, files, use=use)
    for note in found.notes:
        say(note, quiet)
    known = f", {found.known} were there already" if found.known else ""
    models = "".join(f", model version {version}" for version in found.versions)
    say(f"{found.answers} answers imported{known}{models}", quiet)
