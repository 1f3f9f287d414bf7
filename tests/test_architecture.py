"""How the parts stand on each other, and what must not be found in them."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

import cghash

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "cghash"

# Each part may import from its own row and from the rows below it (design, section 4).
LAYERS = [
    ("cli", "web", "client", "workspace", "lab", "cluster", "stores"),  # ways to use the library
    ("criteria", "device_codes", "estimator", "hasher", "index", "peers"),  # the public objects
    ("model_files", "checkpoints", "_progress"),  # what the estimator keeps of a fit and tells of it: know `learning`
    ("device",),  # the backend of GPUs
    ("learning",),  # the method, and the backend of the CPU
    ("storage", "codes", "reading"),  # files and codes, whatever is in them
    (
        "_arrays",
        "_file_locks",
        "_interrupts",
        "_items",
        "_kernels",
        "_parameters",
        "_tensors",
        "_unfinished",
        "_validation",
    ),
    ("exceptions",),
]
LEVEL = {part: level for level, parts in enumerate(LAYERS) for part in parts}
FILES = sorted(SOURCE.rglob("*.py"))


def part_of(path):
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def imported_parts(path):
    """The parts of cghash that a file imports, at its top or inside functions, with the line of each."""
    package = ("cghash", *path.relative_to(SOURCE).parts[:-1])
    for node in ast.walk(ast.parse(path.read_text())):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name.split(".") for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = list(package[: len(package) - node.level + 1]) if node.level else []
            stem = base + (node.module.split(".") if node.module else [])
            names = [[*stem, alias.name] for alias in node.names]
        for name in names:
            if name[0] == "cghash" and len(name) > 1:
                yield name[1], node.lineno


def imported_modules(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield node.module.split(".")[0]


def test_files_are_found():
    assert {"hasher", "learning", "storage"} <= {part_of(path) for path in FILES}


def test_every_part_has_its_place():
    parts = {part_of(path) for path in FILES} - {"__init__", "__main__"}
    assert parts <= set(LEVEL), "say in LAYERS where this part stands"


def test_imports_run_one_way():
    wrong = [
        f"{path.relative_to(ROOT)}:{line} imports {target}"
        for path in FILES
        if part_of(path) in LEVEL
        for target, line in imported_parts(path)
        if target in LEVEL and LEVEL[target] < LEVEL[part_of(path)]
    ]
    assert not wrong


def test_names_imported_from_the_top_are_only_used_by_the_top():
    """`from cghash import CGHash` hides what a part stands on: only the first row may do so."""
    names = set(cghash.__all__) - {"__version__"}
    assert not [
        f"{path.relative_to(ROOT)}:{line} imports {target}"
        for path in FILES
        if LEVEL.get(part_of(path), 0) > 0
        for target, line in imported_parts(path)
        if target in names
    ]


def test_import_rule_sees_relative_and_absolute_imports(tmp_path, monkeypatch):
    monkeypatch.setattr(sys.modules[__name__], "SOURCE", tmp_path)
    (tmp_path / "learning" / "families").mkdir(parents=True)
    path = tmp_path / "learning" / "families" / "one.py"
    path.write_text(
        "from ...lab import a\nfrom ..pricing import b\nfrom . import c\nimport cghash.web.d\nfrom ... import cli"
    )
    assert sorted(imported_parts(path)) == [("cli", 5), ("lab", 1), ("learning", 2), ("learning", 3), ("web", 4)]


def test_public_names_are_sorted_and_there():
    assert cghash.__all__ == sorted(cghash.__all__)
    assert dir(cghash) == cghash.__all__
    for name in cghash.__all__:
        assert getattr(cghash, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = cghash.nothing


def test_public_names_are_documented():
    for name in set(cghash.__all__) - {"__version__"}:
        assert getattr(cghash, name).__doc__.strip()


def test_import_alone_loads_nothing_heavy():
    code = "import sys, json, cghash; print(json.dumps(sorted(sys.modules)))"
    loaded = json.loads(subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True).stdout)
    assert "cghash" in loaded
    assert not {"sklearn", "scipy", "numpy", "pandas", "highspy", "safetensors", "matplotlib", "torch"} & set(loaded)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_nothing_unpickles(path):
    assert not {"pickle", "joblib", "dill", "cloudpickle", "shelve", "marshal"} & set(imported_modules(path))
    assert "allow_pickle=True" not in path.read_text()


def test_kernels_know_nothing_of_python():
    kernels = [path for path in (ROOT / "native" / "kernels").iterdir() if path.is_file()]
    assert kernels
    for path in kernels:
        text = path.read_text()
        for word in ("nanobind", "Python.h", "PyObject", "nb::"):
            assert word not in text, f"{path.name} mentions {word}"


def test_only_bindings_know_nanobind():
    users = {path.name for path in (ROOT / "native").glob("*.[ch]pp") if "nanobind" in path.read_text()}
    assert users
    assert all(name.startswith("bind") or name == "arrays.hpp" for name in users), users
