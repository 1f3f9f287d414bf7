"""Runs commands in this process, as their users would."""

from __future__ import annotations

from click.testing import CliRunner

from cghash.cli import main


def run(*args, code=0, **options):
    """Run a command, in words or as a line; its exit code must be `code`, and nothing may escape."""
    words = args[0].split() if len(args) == 1 and isinstance(args[0], str) else [str(arg) for arg in args]
    result = CliRunner().invoke(main, words, **options)
    assert result.exit_code == code, result.output
    assert result.exception is None or isinstance(result.exception, SystemExit)
    assert "Traceback" not in result.output
    return result


def refused(*args, code=2, after_talk=False, **options):
    """The one line that a command ends with, and all that it says unless there may be talk before."""
    result = run(*args, code=code, **options)
    *talk, last = result.stderr.splitlines()
    assert after_talk or not talk, talk
    assert last.startswith("cghash: error: ")
    assert result.stdout == ""
    return last.removeprefix("cghash: error: ")
