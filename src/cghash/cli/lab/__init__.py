"""`cghash lab COMMAND`: experiments that compare methods."""

from __future__ import annotations

import click

from .._group import CommandLine

COMMANDS = {
    "run": ("cghash.cli.lab.run:run", "Run an experiment; what was measured already is kept."),
    "report": ("cghash.cli.lab.report:report", "Draw the figures and write the page of an experiment's results."),
    "list": ("cghash.cli.lab.list:list_all", "Show the experiments, data sets and methods that there are."),
    "show": ("cghash.cli.lab.show:show", "Print an experiment's file, to begin one's own from."),
    "collect": ("cghash.cli.lab.collect:collect", "Put all results of a folder into one file."),
}


@click.group(cls=CommandLine, commands_at=COMMANDS, invoke_without_command=True)
@click.pass_context
def lab(context: click.Context) -> None:
    """Compare methods: which codes find what is relevant, at which length, at which cost.

    \b
    Examples:
      cghash lab run paper
      cghash lab report out/lab/paper
      cghash lab run paper --dataset isolet --splits 5 --bits 10,20,30,40,50,60
      cghash lab run paper --dataset mine.npz --method CGHash,ITQ,LSH
      cghash lab show paper > mine.toml && cghash lab run mine.toml
    """
    if context.invoked_subcommand is None:
        click.echo(context.get_help())
