"""Progress: bars on a terminal, lines in a log, or the caller's own function."""

from __future__ import annotations

import io
import sys

import pytest

from cghash._progress import Progress, counting, of_a_fit, telling


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_terminal_has_a_bar_for_each_piece_of_work(monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with Progress() as progress:
        progress("items", 1, 4)
        progress("vectors [1]", 2, 3, "objective 0.5", line="for a log")
        progress.note("failed: [x]")
    for words in ("items", "1/4", "vectors [1]", "2/3", "objective 0.5", "failed: [x]"):
        assert words in terminal.getvalue()
    assert "for a log" not in terminal.getvalue()


@pytest.mark.parametrize("of", [lambda: counting(64, "indexing", True), lambda: of_a_fit(64, 1)])
def test_terminal_has_its_bar_before_anything_is_done(monkeypatch, of):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with of():
        pass
    assert "0/64" in terminal.getvalue()


def test_terminal_shows_shares_of_bytes(monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with telling(True) as tell:
        tell("downloading", 250, 1000)
    assert "25%" in terminal.getvalue()
    assert "250" not in terminal.getvalue()


def test_log_has_a_line_for_each_tenth(capsys):
    with Progress() as progress, telling(True) as tell:
        for done in range(41):
            progress("items", done, 40)
        for done in (0, 5, 10):
            tell("unpacking", done, None)
            tell("downloading", done, 10)
    lines = capsys.readouterr().err.splitlines()
    assert lines[:3] == ["cghash: items: 0/40", "cghash: items: 4/40", "cghash: items: 8/40"]
    assert lines[10:] == [
        "cghash: items: 40/40",
        "cghash: unpacking: begun",
        "cghash: downloading: 0 %",
        "cghash: downloading: 50 %",
        "cghash: downloading: 100 %",
    ]


def test_parts_are_counted_and_told_when_a_tenth_is_passed(capsys):
    with counting(20, "encoding", shown=True) as done:
        done(0)
        done(3)
        done(1)
    with counting(0, "nothing", shown=True) as done:
        done(0)
    assert capsys.readouterr().err.splitlines() == ["cghash: encoding: 3/20", "cghash: encoding: 4/20"]


@pytest.mark.parametrize("of", [lambda: Progress(False), lambda: Progress(lines=False), lambda: telling(False)])
def test_nothing_is_said_where_nobody_wants_it(capsys, of):
    with of() as progress:
        progress("items", 1, 1)
    assert capsys.readouterr().err == ""


def test_callers_function_is_told():
    told = []
    with telling(lambda *about: told.append(about)) as tell:
        tell("items", 1, 2)
    assert told == [("items", 1, 2)]
