"""`cghash index COMMAND`: index files."""

from __future__ import annotations

import click

from .._group import CommandLine

COMMANDS = {
    "build": ("cghash.cli.index.build:build", "Put codes, or items through a model, into a new index file."),
    "add": ("cghash.cli.index.add:add", "Add codes or items to an index file."),
    "info": ("cghash.cli.index.info:info", "Show what an index file holds."),
    "verify": ("cghash.cli.index.verify:verify", "Check every byte of an index file and its log."),
    "compact": ("cghash.cli.index.compact:compact", "Fold the log of an index file into a new file."),
}


@click.group(cls=CommandLine, commands_at=COMMANDS, invoke_without_command=True)
@click.pass_context
def index(context: click.Context) -> None:
    """Make index files, which 'cghash search' searches, and change them.

    What is added goes into a log beside the file, FILE.log, and is on the disk when the command ends. One process
    writes at a time; any number read meanwhile.

    \b
    Examples:
      cghash index build codes.npy --model model.cghash -o items.index
      cghash index build --items items.npy --model model.cghash -o items.index
      cghash index add items.index more.npy
      cghash index verify items.index
    """
    if context.invoked_subcommand is None:
        click.echo(context.get_help())
