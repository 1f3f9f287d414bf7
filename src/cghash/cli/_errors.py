"""Errors and warnings as one line each, and the exit codes that go with them."""

from __future__ import annotations

import os
import sys
from typing import Any

import click

from ..exceptions import CGHashError, MissingDependencyError

FAILED, WRONG_INPUT, INTERRUPTED = 1, 2, 130

_MENDABLE = (FileNotFoundError, FileExistsError, IsADirectoryError, NotADirectoryError, PermissionError)


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
