"""The demo on a few digits: table, results file, report, command."""

from __future__ import annotations

import io
import re
import sys

import numpy as np
import pytest
from click.testing import CliRunner
from PIL import Image

from cghash import CGHash
from cghash.cli import main
from cghash.exceptions import FormatError, InvalidInputError, MissingDependencyError
from cghash.lab import demo, demo_figures, demo_page
from cghash.lab.demo_results import DemoResults
from cghash.lab.pixels import png


@pytest.fixture(scope="module")
def split():
    whole = demo.load_split()
    return demo.Split(whole.database[:400], whole.labels[:400], whole.queries[:100], whole.query_labels[:100])


@pytest.fixture(scope="module")
def results(split):
    return demo.run((8, 16), split=split)


@pytest.fixture(scope="module")
def page(results):
    return demo_page.page(results)


def test_split_gives_each_digit_its_share_on_both_sides():
    split = demo.load_split()
    assert (len(split.labels), len(split.query_labels)) == (1297, 500)
    shares = np.bincount(split.labels) / 1297 - np.bincount(split.query_labels) / 500
    assert np.abs(shares).max() < 1 / 500


def test_table_has_every_method_at_every_length(results):
    coded = (demo.PCA, demo.RANDOM, demo.PAPER, demo.LINEAR, demo.BEST)
    expected = [(demo.EUCLIDEAN, None, 64), *((name, m, m // 8) for name in coded for m in (8, 16))]
    assert [(row.method, row.n_bits, row.n_bytes) for row in results.rows] == expected


def test_numbers_are_finite_and_in_range(results):
    for row in results.rows:
        values = [row.map, row.top, row.knn_error, *row.precision, *row.recall]
        assert np.all(np.isfinite(values))
        assert min(values) >= 0
        assert max(values) <= 1 + 1e-12
    for fit in results.fits:
        assert len(fit.objective) == len(fit.bound) == len(fit.satisfied) == len(fit.weights) == 16
        assert np.all(np.diff(fit.objective) <= 1e-9)


def test_learned_codes_beat_unlearned_ones(results):
    unlearned = max(results.best(demo.PCA).map, results.best(demo.RANDOM).map)
    assert min(results.best(name).map for name in (demo.BEST, demo.LINEAR, demo.PAPER)) > unlearned


def test_truncated_model_is_the_model_learned_at_that_length(split, results):
    model = CGHash(8, random_state=0).fit(split.database, split.labels)
    own = results.fit_of(demo.LINEAR).objective[7]
    assert model.result_.objective == pytest.approx(own, rel=1e-6)


def test_quality_curve_meets_the_table(results):
    table = {(row.method, row.n_bits): row.map for row in results.rows}
    for method, curve in results.by_bits.items():
        assert [m for m, _ in curve] == [8, 16]
        assert all(table[method, m] == value for m, value in curve)


def test_first_example_is_where_the_codes_gain_most(results):
    def gain(example):
        return 2 * example.n_right(demo.BEST) - example.n_right(demo.EUCLIDEAN) - example.n_right(demo.PCA)

    gains = [gain(example) for example in results.examples]
    assert gains[0] == max(gains) > 0
    assert len({example.query.label for example in results.examples[:3]}) == 3


def test_nearest_items_are_ordered_by_distance_then_number():
    assert demo._nearest(np.array([[2.0, 1.0, 2.0, 0.0, 1.0]])).tolist() == [[3, 1, 4, 0, 2]]


def test_squared_distances_are_exact():
    split = demo.Split(np.array([[0.0, 16.0], [3.0, 4.0]]), np.array([0, 1]), np.array([[0.0, 0.0]]), np.array([0]))
    assert demo._squared_distances(split).tolist() == [[256.0, 25.0]]


def test_results_come_back_from_their_file(results, tmp_path):
    results.save(tmp_path / "results.json")
    assert DemoResults.load(tmp_path / "results.json") == results


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"rows": [{"a": 1}]}'])
def test_foreign_results_file_is_refused(tmp_path, content):
    (tmp_path / "results.json").write_text(content)
    with pytest.raises(FormatError, match=r"results\.json"):
        DemoResults.load(tmp_path / "results.json")


def test_page_is_well_formed_and_speaks(page, outline_of):
    outline = outline_of(page)
    assert all(attrs["alt"] for attrs in outline.all("img"))
    assert all(attrs["scope"] in ("col", "row") for attrs in outline.all("th"))
    ids = [attrs["id"] for _, attrs in outline.seen if "id" in attrs]
    assert len(ids) == len(set(ids))
    named = [attrs["aria-labelledby"] for _, attrs in outline.seen if "aria-labelledby" in attrs]
    assert set(named) <= set(ids)


def test_page_refers_to_nothing_outside_itself(page, outline_of):
    assert re.findall(r"(?:https?:)?//[a-z]", re.sub(r"base64,[\w+/=]+", "", page)) == []
    outline = outline_of(page)
    targets = [attrs.get(key, "") for _, attrs in outline.seen for key in ("src", "href") if key in attrs]
    assert all(target.startswith(("data:image/png;base64,", "#")) for target in targets)
    ids = {attrs.get("id") for _, attrs in outline.seen}
    assert {t[1:] for t in targets if t.startswith("#")} | set(re.findall(r"url\(#([^)]+)\)", page)) <= ids


def test_page_shows_every_image_figure_and_row(page, results, outline_of):
    outline = outline_of(page)
    assert len(outline.all("img")) == 31 * len(results.examples) + len(results.masks)
    assert len(outline.all("figure")) == 6
    assert len(outline.all("tr")) == 1 + len(results.rows)
    wrong = sum(len(items) - e.n_right(m) for e in results.examples for m, items in e.nearest.items())
    assert sum(attrs.get("class") == "wrong" for attrs in outline.all("li")) == wrong


def test_numbers_on_axes_are_plain(page):
    assert "mathdefault" not in page
    assert ">0.1</text>" in page  # of the logarithmic axis


def test_every_colour_of_the_page_has_a_light_and_a_dark_value(page):
    light, dark = page.split("prefers-color-scheme: dark", 1)
    used = set(re.findall(r"var\(--([a-z]+)\)", page)) - {"share", "colour"}
    assert all(f"--{name}:" in light and f"--{name}:" in dark for name in used)
    assert not any(colour in page.split("</style>")[1] for colour in demo_figures.NAMES)


def test_png_holds_the_pixels_it_was_given():
    image = np.arange(2 * 3 * 4, dtype=np.uint8).reshape(2, 3, 4)
    with Image.open(io.BytesIO(png(image))) as found:
        assert (found.format, found.size, found.mode) == ("PNG", (3, 2), "RGBA")
        assert np.array_equal(np.asarray(found), image)


@pytest.mark.parametrize("n_bits", [(), (0,), (8.5,)])
def test_wrong_lengths_are_named(split, n_bits):
    with pytest.raises(InvalidInputError, match="n_bits"):
        demo.run(n_bits, split=split)


def test_missing_matplotlib_says_how_to_install_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingDependencyError, match=r"pip install .*cghash\[lab\]"):
        demo_figures.require_matplotlib()


@pytest.fixture
def small_digits(monkeypatch, split):
    monkeypatch.setattr(demo, "load_split", lambda seed: split)


@pytest.mark.usefixtures("small_digits")
def test_command_prints_table_certificate_neighbours_and_path(tmp_path):
    outcome = CliRunner().invoke(main, ["demo", "--output", str(tmp_path / "new"), "--n-bits", "4"])
    assert outcome.exit_code == 0, outcome.output
    for words in ("3-NN error", demo.PAPER, "bound over", "of 10", str(tmp_path / "new" / "index.html")):
        assert words in outcome.stdout
    assert {path.name for path in (tmp_path / "new").iterdir()} == {"index.html", "results.json"}


@pytest.mark.usefixtures("small_digits")
def test_quiet_command_prints_only_the_path(tmp_path):
    outcome = CliRunner().invoke(main, ["demo", "--output", str(tmp_path), "--n-bits", "4", "--quiet"])
    assert outcome.stdout == f"{tmp_path / 'index.html'}\n"
    assert outcome.stderr == ""
