"""`cghash workspace COMMAND`: folders of items, for the page."""

from __future__ import annotations

import click

from .._group import CommandLine

COMMANDS = {
    "new": ("cghash.cli.workspace.new:new", "Make a workspace of pictures, texts or vectors."),
    "info": ("cghash.cli.workspace.info:info", "Show what a workspace holds."),
    "export": ("cghash.cli.workspace.export:export", "Write answers, codes and the model to a folder."),
    "import": ("cghash.cli.workspace.import_:import_", "Take in answers and models."),
}


@click.group(cls=CommandLine, commands_at=COMMANDS, invoke_without_command=True)
@click.pass_context
def workspace(context: click.Context) -> None:
    """Make workspaces, which 'cghash serve' opens in a browser, and move answers and models in and out.

    A workspace is a folder that holds everything: items, vectors, answers, models.

    \b
    Examples:
      cghash workspace new birds --items photos/
      cghash workspace new news --items articles.csv --labels topic
      cghash workspace info birds
      cghash workspace export birds out/birds
      cghash workspace import birds answers.csv model.cghash
    """
    if context.invoked_subcommand is None:
        click.echo(context.get_help())
