"""`cghash lab show`: an experiment as its TOML file."""

from __future__ import annotations

import click


@click.command()
@click.argument("experiment")
def show(experiment: str) -> None:
    """Print the file of EXPERIMENT, to begin one's own from.

    \b
    Examples:
      cghash lab show paper
      cghash lab show paper > mine.toml && cghash lab run mine.toml
    """
    from ...lab.experiments.plan_files import source_of

    click.echo(source_of(experiment), nl=False)
