"""The demo on short codes: the split, the table, the report, the command."""

from __future__ import annotations

import json
import re
import sys

import numpy as np
import pytest
from click.testing import CliRunner
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from cghash.cli import main
from cghash.exceptions import MissingDependencyError
from cghash.lab.datasets import load
from cghash.lab.drawing import require_matplotlib
from cghash.lab.experiments.plan_files import read_experiment
from cghash.lab.experiments.protocol import split_items
from cghash.lab.experiments.results import read_results

METHODS = [
    "Euclidean", "Sign of PCA", "Random projections", "CGHash, as in the paper", "CGHash, linear", "CGHash, RBF",
]  # fmt: skip


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """The folder of a run with codes of 6 and 12 bits, and what it printed."""
    folder = tmp_path_factory.mktemp("demo") / "new"
    outcome = CliRunner().invoke(main, ["demo", "--output", str(folder), "--n-bits", "6", "--n-bits", "12"])
    assert outcome.exit_code == 0, outcome.output
    return folder, outcome


@pytest.fixture(scope="module")
def cells(demo):
    return {(cell["method"], cell["bits"]): cell for cell in read_results(demo[0] / "results")}


@pytest.fixture(scope="module")
def page(demo):
    return (demo[0] / "index.html").read_text()


def test_split_is_that_of_the_readme():
    X, y = load_digits(return_X_y=True)
    train, test, _, y_test = train_test_split(X, y, test_size=500, stratify=y, random_state=0)
    (spec,) = read_experiment("demo").datasets
    data = load("digits")
    split = split_items(data.y, "seen", 0, spec.train, spec.test, spec.drawn_by)
    assert np.array_equal(data.X[split.database], train)
    assert np.array_equal(data.X[split.train], train)
    assert np.array_equal(data.X[split.queries], test)
    assert np.array_equal(split.labels[split.queries], y_test)


def test_every_method_is_measured_at_every_length(cells):
    assert set(cells) == {(method, bits) for method in METHODS for bits in (6, 8, 12)}
    assert {bits for (_, bits), cell in cells.items() if "curve" in cell} == {6, 12}


def test_learned_codes_beat_unlearned_ones(cells):
    quality = {method: cells[method, 12]["criteria"]["map"] for method in METHODS}
    assert min(quality[name] for name in METHODS[3:]) > max(quality[name] for name in METHODS[1:3])


def test_fits_are_kept_of_the_longest_codes(cells):
    for (method, bits), cell in cells.items():
        assert ("fit" in cell) == (method.startswith("CGHash") and bits == 12)
        if "fit" in cell:
            numbers = [cell["fit"][key] for key in ("objective", "bound", "satisfied", "weights")]
            assert [len(values) for values in numbers] == [12] * 4
            assert np.all(np.diff(numbers[0]) <= 1e-9)
            assert len(cell["fit"].get("masks", [])) == (12 if method != "CGHash, RBF" else 0)


def test_command_prints_table_certificate_neighbours_and_path(demo, cells):
    folder, outcome = demo
    rows = re.findall(r"│ (\S.*?) +│ +(\S+) │ +(\d+) │ ([\d.]+)", outcome.stdout)
    expected = [("Euclidean", "–", "64"), *((m, str(n), str(-(-n // 8))) for m in METHODS[1:] for n in (6, 12))]
    assert [row[:3] for row in rows] == expected
    assert all(float(row[3]) == round(cells[row[0], 12 if row[1] == "–" else int(row[1])]["criteria"]["map"], 3)
               for row in rows)  # fmt: skip
    for words in ("500 digits searched among 1297", "3-NN error", "bound over", "where CGHash gains most", "of 10"):
        assert words in outcome.stdout
    assert outcome.stdout.endswith(f"{folder / 'index.html'}\n")
    assert outcome.stderr == ""
    assert {path.name for path in folder.iterdir()} == {
        "index.html", "figures", "cells.csv", "summary.csv", "results"
    }  # fmt: skip


def test_page_shows_examples_by_rule_fits_and_masks(page, outline_of):
    outline = outline_of(page)
    words = "".join(outline.words)
    assert words.count("CGHash gains most") == 3
    for part in ("objective and bound", "satisfied triplets", "weights of the bits", "Dotted: 6 bits", "learned in"):
        assert part in words
    queries = [attrs for _, attrs in outline.seen if attrs.get("class") == "query"]
    assert len(queries) in (4, 5)
    assert len(outline.all("img")) == (1 + 3 * 10) * len(queries) + 2 * 12


def test_another_seed_measures_anew_and_shows_its_own_results_alone(demo):
    folder, _ = demo
    outcome = CliRunner().invoke(main, ["demo", "--output", str(folder), "--n-bits", "4", "--seed", "7", "--quiet"])
    assert outcome.stdout == f"{folder / 'index.html'}\n"
    assert outcome.stderr == ""
    page = (folder / "index.html").read_text()
    assert "Handwritten digits in 1 bytes each" in page
    assert "Dotted" not in page
    kept = json.loads((folder / "results" / "digits" / "seen-7" / "Euclidean-4.json").read_text())
    assert (kept["split"], kept["seed"]) == (7, 7)


def test_an_output_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").touch()
    outcome = CliRunner().invoke(main, ["demo", "--output", str(tmp_path / "file" / "below"), "--quiet"])
    assert outcome.exit_code == 2
    assert "--output must be a folder that can be written" in outcome.stderr


def test_missing_matplotlib_says_how_to_install_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingDependencyError, match=r"pip install .*cghash\[lab\]"):
        require_matplotlib()
