"""The version is written in pyproject.toml; everything else reads it there or agrees with it."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from click.testing import CliRunner

import cghash
from cghash.cli import main

pytestmark = [pytest.mark.core, pytest.mark.portable]

ROOT = Path(__file__).parents[1]
VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]


def text(name):
    return (ROOT / name).read_text(encoding="utf-8")


def test_the_installed_package_has_the_version_of_the_sources():
    assert cghash.__version__ == VERSION, "pyproject.toml changed since the package was installed: make setup"


def test_the_command_line_tells_it():
    assert CliRunner().invoke(main, ["--version"]).output == f"cghash {VERSION}\n"


def test_the_newest_heading_of_the_changelog_is_it():
    assert re.findall(r"^## (\S+)", text("CHANGELOG.md"), re.MULTILINE)[0] == VERSION


def test_the_citation_names_it():
    assert re.findall(r"^version: (\S+)", text("CITATION.cff"), re.MULTILINE) == [VERSION]


def test_the_documentation_reads_it_from_the_package():
    assert "release = cghash.__version__" in text("docs/conf.py")


def test_no_source_file_says_it_again():
    again = re.compile(rf"^__version__ = |['\"]{re.escape(VERSION)}['\"]", re.MULTILINE)
    sources = sorted((ROOT / "src").rglob("*.py"))
    assert sources
    assert not [path.name for path in sources if again.search(path.read_text(encoding="utf-8"))]
