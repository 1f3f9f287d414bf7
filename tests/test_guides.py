"""Guides that mix Python and commands: both run in their order, and commands print what is shown."""

from __future__ import annotations

import importlib.util
import sys
import warnings
from itertools import pairwise
from pathlib import Path

import pytest
from threadpoolctl import threadpool_limits

from cghash.exceptions import CGHashWarning

_SPEC = importlib.util.spec_from_file_location("pages", Path(__file__).with_name("test_docs.py"))
pages = sys.modules["pages"] = importlib.util.module_from_spec(_SPEC)  # dataclasses look for their module there
_SPEC.loader.exec_module(pages)

GUIDES = [page for page in pages.PAGES if page.parent.name == "guides" and page != pages.COMMANDS]


def commands(block):
    """The lines of a block that call cghash, unless it is marked."""
    if block.language != "bash" or not block.runs:
        return []
    return [line for line in block.text.splitlines() if line.startswith("cghash ")]


MIXED = [page for page in GUIDES if any(commands(block) for block in pages.blocks(page))]


@pytest.mark.slow
@pytest.mark.parametrize("page", MIXED, ids=pages.ids(MIXED))
def test_commands_of_a_guide_run_on_the_files_that_its_python_wrote(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "__main__"}
    found = pages.blocks(page)
    following = dict(pairwise(found))
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", CGHashWarning)
        for block in found:
            if block.language == "python" and block.runs:
                pages.run_and_compare(block, page, names)
            after = following.get(block)
            shown = after.text if after and pages.adjoins(block, after) else None
            lines = commands(block)
            for line in lines:
                pages.check_command(line, expected=shown if len(lines) == 1 else None)
