"""The group of commands: each is imported when it is used, and every error becomes one line."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from importlib import import_module
from typing import Any

import click

from ._errors import describe, say_warning
from ._options import debug_option


class CommandLine(click.Group):
    """A group whose commands are named by `module:attribute`, each with a line of help."""

    def __init__(self, *args: Any, commands_at: dict[str, tuple[str, str]], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.commands_at = commands_at

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands_at)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.commands_at:
            return None
        module, _, attribute = self.commands_at[cmd_name][0].partition(":")
        command: click.Command = getattr(import_module(module), attribute)
        if not any(option.name == "debug" for option in command.params):
            debug_option(command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click's, with the command that a mistyped one is nearest to."""
        if not args[0].startswith("-") and args[0] not in self.commands_at:
            from .._validation import did_you_mean

            near = did_you_mean(args[0], self.commands_at).removeprefix("; d")
            ctx.fail(f"No such command {args[0]!r}." + (f" D{near}" if near else ""))
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, self.commands_at[name][1]) for name in self.list_commands(ctx)])

    def main(self, args: Sequence[str] | None = None, *rest: Any, **kwargs: Any) -> Any:
        """Run a command and exit: 0, 2 for what the user can mend, 1 for the rest, 130 when interrupted."""
        args = sys.argv[1:] if args is None else list(args)
        kwargs |= {"prog_name": "cghash", "standalone_mode": False}
        with warnings.catch_warnings():
            warnings.showwarning = say_warning
            try:
                code = super().main(args, *rest, **kwargs)
            except Exception as error:
                if "--debug" in args:
                    raise
                line, code = describe(error)
                if line:
                    click.echo(f"cghash: error: {line}", err=True)
        sys.exit(code if isinstance(code, int) else 0)
