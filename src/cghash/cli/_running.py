"""How commands are found and run, and how they end: each error is one line with an exit code."""

from __future__ import annotations

import inspect
import os
import sys
import warnings
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

import click

from ..exceptions import CGHashError, MissingDependencyError
from ._options import debug_option

FAILED, WRONG_INPUT, INTERRUPTED = 1, 2, 130

_MENDABLE = (FileNotFoundError, FileExistsError, IsADirectoryError, NotADirectoryError, PermissionError)


class CommandGroup(click.Group):
    """Commands in the order of their use, each with `--debug`; without one of them it shows its help."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(callback=_help_alone, invoke_without_command=True, **settings)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        command = super().get_command(ctx, cmd_name)
        if command is not None and not any(option.name == "debug" for option in command.params):
            debug_option(command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click's, with the command that a mistyped one is nearest to."""
        names = self.list_commands(ctx)
        if not args[0].startswith("-") and args[0] not in names:
            from .._validation import did_you_mean

            near = did_you_mean(args[0], names).removeprefix("; d")
            ctx.fail(f"No such command {args[0]!r}." + (f" D{near}" if near else ""))
        return super().resolve_command(ctx, args)


class CommandLine(CommandGroup):
    """The group of all commands, which are named by `module:attribute` with a line of help, and imported when used."""

    def __init__(self, *, commands_at: dict[str, tuple[str, str]], **settings: Any) -> None:
        super().__init__(**settings)
        self.commands_at = commands_at

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands_at)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in self.commands_at:
            module, _, attribute = self.commands_at[cmd_name][0].partition(":")
            self.commands[cmd_name] = getattr(import_module(module), attribute)
        return super().get_command(ctx, cmd_name)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """As click's, without importing the commands."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, words) for name, (_, words) in self.commands_at.items()])

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


def group(cls: type[CommandGroup] = CommandGroup, **settings: Any) -> Callable[[Callable[[], None]], CommandGroup]:
    """Make a group of commands of a function: its name and its docstring, which is the help."""

    def decorate(function: Callable[[], None]) -> CommandGroup:
        return cls(name=function.__name__, help=inspect.getdoc(function), **settings)

    return decorate


@click.pass_context
def _help_alone(context: click.Context) -> None:
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


def describe(error: Exception) -> tuple[str, int]:
    """One line about an error, and the exit code.

    >>> describe(FileNotFoundError(2, "No such file or directory", "items.npy"))
    ("no such file or directory: 'items.npy'", 2)
    """
    if isinstance(error, click.Abort):
        return "interrupted", INTERRUPTED
    if isinstance(error, click.ClickException):
        return _usage(error), WRONG_INPUT
    if isinstance(error, BrokenPipeError):  # `cghash … | head`: who reads has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return "", FAILED
    if isinstance(error, OSError):
        at = f": {str(error.filename)!r}" if error.filename is not None else ""
        at += ", and a file is needed" if isinstance(error, IsADirectoryError) else ""
        words = error.strerror or _one_line(error) or type(error).__name__
        return words[:1].lower() + words[1:] + at, _code_of(error)
    if isinstance(error, MemoryError):
        return f"out of memory {error}".strip(), FAILED
    if isinstance(error, CGHashError | ValueError):
        return _one_line(error), _code_of(error)
    return f"{type(error).__name__}: {_one_line(error)} (unexpected; --debug shows where)", FAILED


def say_warning(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
    """Show a warning as a line of talk, without the place in the code that it came from."""
    click.echo(f"cghash: warning: {_one_line(message)}", err=True)


def _code_of(error: Exception) -> int:
    if isinstance(error, MissingDependencyError):
        return FAILED
    return WRONG_INPUT if isinstance(error, (*_MENDABLE, ValueError)) else FAILED


def _usage(error: click.ClickException) -> str:
    context = getattr(error, "ctx", None)
    hint = f" (see '{context.command_path} --help')" if context is not None else ""
    return _one_line(error.format_message()) + hint


def _one_line(message: object) -> str:
    """The message in one line; scikit-learn's go on with advice in further lines, which is left out."""
    lines = str(message).strip().splitlines() or [""]
    return " ".join(lines[0].split())
