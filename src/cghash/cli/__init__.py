"""The command line: one file a command, loaded when it is called."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

import click

COMMANDS = {"demo": ".demo"}


class LazyGroup(click.Group):
    """Imports a command's module only to run it or to show its help."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = getattr(import_module(COMMANDS[cmd_name], __name__), cmd_name)
        return command

    def invoke(self, ctx: click.Context) -> Any:
        from ..exceptions import CGHashError

        try:
            return super().invoke(ctx)
        except CGHashError as error:
            click.echo(f"cghash: {error}", err=True)
            sys.exit(1)


@click.group(cls=LazyGroup)
@click.version_option(package_name="cghash")
def main() -> None:
    """Learn compact binary codes from relative comparisons, by column generation."""
