"""The workflows of the public host run the code that was looked at: a tag can be moved, a commit cannot."""

import re
from pathlib import Path

import pytest

WORKFLOWS = sorted((Path(__file__).parents[1] / ".github" / "workflows").glob("*.yml"))
USES = re.compile(r"^\s*(?:- )?uses:\s*(.+)$", re.MULTILINE)


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_actions_are_named_by_a_commit_and_say_which_version_it_is(path):
    named = re.compile(r"[\w.-]+/[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+")
    used = USES.findall(path.read_text())
    assert used
    assert not [action for action in used if not named.fullmatch(action)]


def test_an_action_has_one_commit_in_all_workflows():
    used = {action for path in WORKFLOWS for action in USES.findall(path.read_text())}
    assert len({action.partition("@")[0] for action in used}) == len(used) == 5


def test_no_workflow_may_do_more_than_read_unless_it_says_so():
    for path in WORKFLOWS:
        assert "\npermissions:\n  contents: read\n" in path.read_text(), path.name
