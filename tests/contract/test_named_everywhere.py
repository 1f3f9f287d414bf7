"""What is built in is named where users look for it: the parameter's docstring, the documentation, the command line."""

from __future__ import annotations

import importlib
import pkgutil
import re
from pathlib import Path

import pytest

from cghash import CGHash, peers, stores
from cghash.cli.export import export
from cghash.learning.families import FAMILIES
from cghash.learning.losses import LOSSES

pytestmark = pytest.mark.portable

DOCS = Path(__file__).parents[2] / "docs"
PAGES = "\n".join(path.read_text() for path in sorted(DOCS.rglob("*.md")) if "_build" not in path.parts)
STORES = [name for name in re.findall(r"^\| `(\w+)`", stores.__doc__, re.MULTILINE) if name != "onnx"]


@pytest.mark.parametrize("name", [*LOSSES, *FAMILIES])
def test_loss_or_family_is_in_the_docstring_and_in_a_guide(name):
    assert f'"{name}"' in CGHash.__doc__, "the docstring of CGHash"
    assert f'"{name}"' in PAGES, "docs/guides"


@pytest.mark.parametrize("name", peers.PEERS)
def test_peer_is_in_the_reference(name):
    assert re.search(rf"autoclass:: cghash\.peers\.{name}$", PAGES, re.MULTILINE), "docs/reference.md"


def test_the_map_of_stores_names_every_module_of_one():
    for module in pkgutil.iter_modules(stores.__path__, "cghash.stores."):
        importlib.import_module(module.name)
    homes = {kind.__module__.rpartition(".")[2] for kind in stores.Store.__subclasses__()}
    assert homes == set(STORES), "the table in src/cghash/stores/__init__.py"


@pytest.mark.parametrize("name", STORES)
def test_store_is_in_the_reference_and_has_a_command(name):
    assert f"autoclass:: cghash.stores.{name}." in PAGES, "docs/reference.md"
    assert name in export.commands, "src/cghash/cli/export.py"
