"""The concept pages name what is there: identifiers of the sources, equations of the paper, numbers of the results."""

from __future__ import annotations

import ast
import importlib.util
import inspect
import json
import re
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from cghash.codes import weighted_hamming
from cghash.hasher import DEFAULT_C, UNLABELLED_C, CGHash
from cghash.learning.families.rbf import N_LANDMARKS, WIDTH

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "cghash"
CONCEPTS = ROOT / "docs" / "concepts"
RESULTS = ROOT / "benchmarks" / "results"


def rows_of(page, heading):
    """Cells of the first table behind a heading."""
    text = (CONCEPTS / page).read_text("utf-8").partition(f"\n## {heading}\n")[2]
    lines = re.search(r"(?:^\|.*\n)+", text, re.M)[0].splitlines()[2:]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]


def defined_in(path):
    """Names that a file defines: classes, functions, parameters, attributes, and `Class.name` of what is in classes."""
    names = set()
    tree = ast.parse(path.read_text("utf-8"))
    for node in ast.walk(tree):
        match node:
            case ast.ClassDef() | ast.FunctionDef():
                names.add(node.name)
            case ast.arg():
                names.add(node.arg)
            case ast.Name(ctx=ast.Store()):
                names.add(node.id)
            case ast.Attribute(ctx=ast.Store()):
                names.add(node.attr)
    for owner in (node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)):
        names |= {f"{owner.name}.{inner}" for inner in members(owner)}
    return names


def members(owner):
    """Methods and fields of a class, and what its methods store on it."""
    for node in ast.walk(owner):
        match node:
            case ast.FunctionDef():
                yield node.name
            case ast.AnnAssign(target=ast.Name(id=name)):
                yield name
            case ast.Attribute(value=ast.Name(id="self"), attr=name, ctx=ast.Store()):
                yield name


@pytest.fixture(scope="module")
def defined():
    return set().union(*map(defined_in, SOURCE.rglob("*.py")))


def test_every_identifier_beside_a_symbol_is_defined_in_the_sources(defined):
    rows = rows_of("method.md", "Symbols and names")
    assert len(rows) > 20
    for symbol, names, *_ in rows:
        found = re.findall(r"`([^`]+)`", names)
        assert found, symbol
        assert set(found) - {"X"} <= defined, f"{symbol}: {set(found) - defined} is nowhere"


def test_identifiers_are_looked_for_where_they_are_defined(tmp_path):
    path = tmp_path / "one.py"
    path.write_text("class A:\n    b: int\n    def c(self, d):\n        self.e = 1\n        return g\nf = 2\n")
    assert defined_in(path) == {"A", "b", "c", "self", "d", "e", "f", "A.b", "A.c", "A.e"}


def test_every_equation_of_the_paper_has_its_place():
    numbers = set()
    for equations, _, names, file in rows_of("method.md", "Where each equation is"):
        path = SOURCE / "learning" / file.strip("` |")
        assert set(re.findall(r"`([^`]+)`", names)) <= defined_in(path), file
        for first, last in re.findall(r"\((\d+)\)(?:–\((\d+)\))?", equations):
            numbers |= set(range(int(first), int(last or first) + 1))
    assert numbers == set(range(1, 18))


def test_every_equation_is_named_in_the_text():
    text = (CONCEPTS / "method.md").read_text("utf-8").partition("## Where each equation is")[0]
    assert {int(n) for n in re.findall(r"\((\d{1,2})\)", text)} >= set(range(1, 18))


def test_times_of_search_are_those_of_the_results():
    rows = json.loads((RESULTS / "search.json").read_text("utf-8"))["rows"]
    wanted = {"n": 10**7, "k": 10, "queries": "single", "threads": 1}
    cells = {(r["codes"], r["bits"]): r for r in rows if wanted.items() <= r.items() and "isa" not in r}
    shown = rows_of("exact_search.md", "What it comes to")
    assert len(shown) == 6
    for codes, bits, *numbers in shown:
        cell = cells[codes, int(bits)]
        read, scan, faiss = cell["read_ms"], cell["ms"]["cghash, scan alone"], cell["ms"]["FAISS fast-scan + refine"]
        ours = cell["ms"]["cghash"]
        expected = [read, scan, scan / read, ours, faiss, faiss / ours]
        assert [float(n.strip("| ")) for n in numbers] == pytest.approx(expected, rel=6e-3)


def test_choices_of_c_are_those_of_the_results():
    text = (CONCEPTS / "units_of_c.md").read_text("utf-8")
    lines = map(json.loads, (RESULTS / "lab" / "paper.jsonl").read_text("utf-8").splitlines())
    cells = [r for r in lines if r["bits"] == 60 and r["method"] in ("CGHash", "CGHash tuned")]
    chosen = Counter((r["method"], r["protocol"], r["parameters"]["C"]) for r in cells)
    splits = sum(r["method"] == "CGHash" and r["protocol"] == "seen" for r in cells)
    small = chosen["CGHash", "seen", 0.01] + chosen["CGHash", "seen", 0.03]
    assert f"0.01 or 0.03 in {small} of {splits} splits" in text
    assert f"in {chosen['CGHash tuned', 'seen', 0.1]} of {splits}: try" in text
    unseen = Counter(C for _, protocol, C in chosen.elements() if protocol == "unseen")
    assert f"it took 0.001 or 0.01 in {unseen[0.001] + unseen[0.01]} of {unseen.total()} choices" in text


def test_measured_defaults_are_the_defaults():
    page = (ROOT / "docs" / "measurements.md").read_text("utf-8")
    table = dict(re.findall(r"^\| `(\w+)`(?: \(K\))? \| `?\"?([\w.]+)\"?`? \|", page, re.M))
    parameters = inspect.signature(CGHash.__init__).parameters
    for name in ("hash_function", "n_neighbors", "loss", "regularizer", "method", "n_bits"):
        assert table[name] == str(parameters[name].default), name
    assert f"under l1, with labels or comparisons | {DEFAULT_C['l1']} |" in page
    assert f"under l1, without labels | {UNLABELLED_C['l1']} |" in page
    assert f"under l∞ | {DEFAULT_C['linf']} |" in page
    assert f'landmarks of `"rbf"` | {N_LANDMARKS} |' in page
    assert WIDTH == 0.5
    assert "1/(2γ) = half the mean squared distance" in page


def test_figures_beside_the_defaults_are_those_of_the_tables():
    page = (ROOT / "docs" / "measurements.md").read_text("utf-8")
    table, rest = re.search(r"## Measured defaults\n(.*?)(?=\n## )(.*)", page, re.S).groups()
    tables = "\n".join(path.read_text("utf-8") for path in (ROOT / "docs" / "measurements").glob("*.md"))
    shown = set(re.findall(r"0\.\d{3,}", table)) - {"0.011", "0.002"}  # differences
    assert len(shown) > 20
    assert not {number for number in shown if number not in tables and number not in rest}


@pytest.fixture(scope="module")
def figures():
    spec = importlib.util.spec_from_file_location("concept_figures", CONCEPTS / "figures.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


bits_and_weights = st.integers(1, 13).flatmap(
    lambda n: st.tuples(
        hnp.arrays(np.uint8, (7, n), elements=st.integers(0, 1)), hnp.arrays(float, n, elements=st.floats(0, 10))
    )
)


@given(bits_and_weights, st.floats(1e-3, 100))
def test_drawn_bounds_never_exceed_the_distances(figures, made, limit):
    bits, weights = made
    bounds = figures.lower_bounds(bits, bits[0], weights, limit)
    distances = weighted_hamming(bits[:1], bits, weights)[0]
    assert np.all(bounds <= distances * (1 + 1e-12) + 1e-12)
    groups = -(-bits.shape[1] // 4)
    near = distances < limit
    assert np.all(bounds[near] >= distances[near] - groups * limit / 200 - 1e-9)  # each entry loses less than one step


def test_drawn_times_are_of_three_lengths(figures):
    assert {len(values) for values in figures.measured().values()} == {3}
