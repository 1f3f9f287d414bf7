"""What README and the pages say is true: code runs, commands print what is shown, links lead somewhere."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import re
import shlex
import warnings
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from threadpoolctl import threadpool_limits

import cghash.hasher  # loads every BLAS, so that threadpool_limits reaches it
from cghash.cli import main
from cghash.exceptions import CGHashWarning

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")]
PAGES += sorted(page for page in (ROOT / "docs").rglob("*.md") if "_build" not in page.parts)
COMMANDS = ROOT / "docs" / "guides" / "command_line.md"


@dataclass(frozen=True)
class Block:
    """A fenced block of a page, and the comment before it, such as `not run`.

    What is marked `run elsewhere` is run by tests/test_docs_elsewhere.py.
    """

    language: str
    text: str
    mark: str
    line: int

    @property
    def runs(self):
        return self.mark not in ("not run", "run elsewhere")


def blocks(page):
    found = re.finditer(
        r"^(?:<!-- (?P<mark>.*?) -->\n)?```(?P<language>\w+)\n(?P<text>.*?)^```$", page.read_text("utf-8"), re.M | re.S
    )
    text = page.read_text("utf-8")
    return [Block(m["language"], m["text"], m["mark"] or "", text[: m.start()].count("\n") + 1) for m in found]


def alike(shown, printed):
    """Whether two lines agree: words exactly, numbers to 5 % or 0.02, as BLAS and rounding move them."""
    number = r"-?\d+(?:\.\d+)?(?:e-?\d+)?"
    if re.sub(number, "#", shown).split() != re.sub(number, "#", printed).split():
        return False
    pairs = zip(re.findall(number, shown), re.findall(number, printed), strict=True)
    return all(np.isclose(float(a), float(b), rtol=0.05, atol=0.02) for a, b in pairs)


def ids(pages):
    return [str(page.relative_to(ROOT)) for page in pages]


PYTHON = [page for page in PAGES if any(b.language == "python" and b.runs for b in blocks(page))]


@pytest.mark.parametrize("page", PYTHON, ids=ids(PYTHON))
def test_python_of_a_page_runs_and_prints_what_it_shows(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "__main__"}
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", CGHashWarning)
        for block in blocks(page):
            if block.language == "python" and block.runs:
                run_and_compare(block, page, names)


def run_and_compare(block, page, names):
    """Run a block; `print(…)  # → words` must print those words."""
    printed = io.StringIO()
    code = compile("\n" * block.line + block.text, str(page), "exec")  # errors name the page and its line
    with contextlib.redirect_stdout(printed):
        exec(code, names)
    lines = iter(printed.getvalue().splitlines())
    for line in block.text.splitlines():
        if line.startswith("print("):
            got, _, shown = next(lines), *line.partition("# → ")[1:]
            assert not shown or alike(shown, got), f"{page.name}: {line!r} printed {got!r}"


def test_commands_print_what_the_page_shows(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_photos()
    page = blocks(COMMANDS)
    following = dict(pairwise(page))
    with threadpool_limits(1):
        exec(next(b.text for b in page if b.language == "python"), {})
        for block in page:
            if block.language == "bash" and block.runs:
                after = following.get(block)
                check_command(block.text, block.mark, after.text if after and adjoins(block, after) else None)


def test_commands_of_the_readme_run_in_their_order(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shell = next(b.text for b in blocks(ROOT / "README.md") if "cghash fit" in b.text)
    words = shlex.split(shell.partition("cghash fit")[0])
    assert words[:2] == ["python", "-c"]
    with threadpool_limits(1):
        exec(words[2], {})
        for line in shell.splitlines():
            if line.startswith("cghash "):
                check_command(line)
    assert Path("codes.npy").exists()


def adjoins(block, following):
    """Whether the text right behind a command, with nothing between, shows its output."""
    return following.language == "text" and following.line == block.line + block.text.count("\n") + 3 + bool(block.mark)


def check_command(line, mark="", expected=None):
    done = CliRunner().invoke(main, shlex.split(line, comments=True)[1:])
    code = int(mark.removeprefix("fails with ")) if mark else 0
    assert done.exit_code == code, f"{line}: {done.output}"
    if expected is not None:
        got, said = (list(filter(str.strip, text.splitlines())) for text in (done.output, expected))
        wrong = [(a, b) for a, b in zip(said, got, strict=True) if not same_words(a, b)]
        assert not wrong, f"{line}: shown and printed differ: {wrong[:2]}"


def same_words(shown, printed):
    """Whether lines agree but for numbers, which move with the machine, and rules, which are as wide as numbers."""
    return re.sub(r"[\d.]+|─+", "#", shown).split() == re.sub(r"[\d.]+|─+", "#", printed).split()


def write_photos():
    """What the page says of photos.csv and answers.csv."""
    rng = np.random.default_rng(0)
    rows = [f"p{i}," + ",".join(f"{v:.3f}" for v in rng.normal(size=3) + 3 * (i == 2)) for i in range(5)]
    Path("photos.csv").write_text("\n".join(["name,red,green,blue", *rows]) + "\n")
    answers = next(b.text for b in blocks(COMMANDS) if b.text.startswith("anchor,near,far"))
    Path("answers.csv").write_text(answers)


@pytest.mark.parametrize("page", PAGES, ids=ids(PAGES))
def test_links_lead_to_files_and_headings(page):
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text("utf-8")):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, heading = target.partition("#")
        other = (page.parent / path) if path else page
        assert other.exists(), f"{page.name} links to {target}"
        if heading:
            assert heading in anchors(other), f"{page.name} links to {target}"


def anchors(page):
    """Names that a link may end in: explicit ones, and headings as Markdown names them."""
    text = page.read_text("utf-8")
    headings = [re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in re.findall(r"^#+ (.*)$", text, re.M)]
    return {*re.findall(r"^\((.*)\)=$", text, re.M), *headings}


def test_names_in_the_table_of_the_readme_exist():
    table = (ROOT / "README.md").read_text("utf-8").partition("## What is inside")[2].partition("\n## ")[0]
    names = re.findall(r"^\| `(.*?)` \|", table, re.M)
    assert len(names) > 6
    for name in names:
        if name.endswith("/"):
            assert (ROOT / name).is_dir(), name
        else:
            module, _, attribute = name.rpartition(".")
            assert hasattr(importlib.import_module(module), attribute) or importlib.import_module(name)
    methods = re.findall(r"`(\w+)`", re.search(r"^\| `cghash.CGHash`.*$", table, re.M)[0])
    assert all(callable(getattr(cghash.CGHash, method)) for method in methods)


def test_changelog_begins_with_this_version():
    text = (ROOT / "CHANGELOG.md").read_text("utf-8")
    assert re.search(r"^## \[?([\d.]+)", text, re.M)[1] == cghash.__version__


# The tables of the measurements


@pytest.fixture
def tables(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    return importlib.import_module("tables")


@pytest.mark.skipif(not (ROOT / "benchmarks" / "results").is_dir(), reason="an sdist has no results")
def test_tables_of_the_measurements_are_those_of_the_results(tables):
    for name in tables.TABLES:
        page = ROOT / "docs" / "measurements" / f"{name}.md"
        assert page.read_text("utf-8") == tables.page(name), f"{name}.md is old: run make tables"


def test_missing_measurement_says_how_to_make_it(tables, tmp_path):
    assert "python benchmarks/quality/paper.py" in tables.page("paper", tmp_path)


def test_tables_average_over_splits_and_mark_the_best(tables):
    runs = [{"set": "usps", "method": "paper", "map": mean, "knn_error": mean / 10, "bits": 60} for mean in (0.7, 0.8)]
    assert "| usps | paper | 0.750 ± 0.071 | – | 0.0750 ± 0.0071 | 60 | – | 2 |" in tables.paper(runs)
    grid = [
        {"set": s, "protocol": "seen", "family": f, "sampling": "mixed", "C": 0.01, "map": value}
        for s, f, value in (("usps", "linear", 0.8), ("usps", "rbf", 0.9), ("isolet", "linear", 0.7))
    ]
    made = tables.defaults(grid)
    assert "| linear | mixed | 0.01 | 0.800 | **0.700** | **0.750** |" in made
    assert "| rbf | mixed | 0.01 | **0.900** | – | – |" in made


def test_speed_tables_part_fits_from_the_comparison_with_a_plain_program(tables):
    a_fit = {"items": 10, "bits": 2, "triplets": 90, "seconds": 3.0, "over_floor": 1.5}
    a_fit |= {"phases": {"graph": 1.0, "pricing": 1.5, "master": 0.25, "rest": 0.25}, "floor": {"graph": 1.0, "x": 1.0}}
    a_fit |= {"learning_seconds_at_bits": {"16": 1.25}, "evaluations": [7, 5]}
    plain = {"items": 10, "bits": 2, "seconds": 2.0, "plain_seconds": 9.0, "times_faster": 4.5}
    assert "| 10 | 2 | 3.0 | 1.0 | 1.5 | 0.25 | 0.25 | 2.0 | 1.5 | – | – |" in tables.fit([a_fit, plain])
    assert "| 10 | 90 | 1.25 | 7 | 5 |" in tables.growth([a_fit, plain])
    assert tables.yardstick([a_fit, plain]).count("\n") == 3


# The tables of search: a batch cell and a single cell of 10 M codes


def a_cell(queries, threads, **ms):
    names = {
        "ours": "cghash",
        "scan": "cghash, scan alone",
        "faiss": "FAISS fast-scan + refine",
        "flat": "FAISS binary flat",
    }
    about = {"codes": "learned", "n": 10**7, "bits": 64, "k": 10, "queries": queries, "threads": threads}
    times = {names[name]: value for name, value in ms.items()}
    return about | {"factor": 2, "read_ms": 3.0, "recall": {"FAISS binary flat": 0.5}, "ms": times}


@pytest.fixture
def search_rows():
    built = {"codes": "learned", "n": 10**7, "bits": 64, "instruction_set": "avx512"}
    built |= {"million_codes_a_second": 25.0, "prepare_seconds_a_million": 2.0, "memory_scan": 1.0, "memory": 4.5}
    return [
        built,
        a_cell("batch", 1, ours=0.5, scan=1.0, faiss=8.0, flat=9.0),
        a_cell("batch", 2, ours=0.1, scan=1.0, faiss=4.0, flat=9.0),
        a_cell("single", 1, ours=0.1, scan=4.0, faiss=10.0, flat=20.0),
        a_cell("single", 2, ours=0.05, scan=4.0, faiss=12.0, flat=20.0),  # more threads do not help FAISS
    ]


def test_search_table_puts_batch_and_single_side_by_side(tables, search_rows):
    made = tables.search_tables.at_once(search_rows)
    assert "| learned | 10 M | 64 | 0.100 | 4.00 | 40.0 | 0.0500 | 10.0 | 200 | 4.00 | 3.00 |" in made
    assert "| 0.500 | 8.00 | 16.0 | 0.100 | 10.0 | 100 |" in tables.search_tables.at_once(search_rows, threads=1)


def test_search_goals_say_what_was_reached_and_what_was_not_measured(tables, search_rows):
    made = tables.search_tables.goals(search_rows)
    assert "| learned, batch: × FAISS | ≥ 50 | 40.0 | **no** |" in made
    assert "| learned, single: × FAISS | ≥ 200 | 200 | yes |" in made
    assert "| uniform, 128 bits, batch: × FAISS | ≥ 4 | – | – |" in made
    assert "| tables, seconds a million codes | ≤ 1 | 2.00 | **no** |" in made
    assert "| ours / scan alone, in all cells | ≤ 1.1 | 0.500 | yes |" in made


def test_search_tables_of_rivals_and_instruction_sets(tables, search_rows):
    made = tables.search_tables.rivals(search_rows)
    assert "| learned | 10 M | 64 | single | FAISS binary flat | 20.0 | 0.500 | – | 0.0500 |" in made
    assert made.count("binary flat") == 2
    held = a_cell("batch", 2, ours=1.0, scan=1.0, faiss=6.0) | {"isa": "avx2", "instruction_set": "avx2"}
    del held["read_ms"]
    made = tables.search_tables.instruction_sets([*search_rows, held])
    assert "| learned | 10 M | 64 | 2 | avx2 | 1.00 | 1.00 | 6.00 | 4.00 |" in made
    assert "| the same: × FAISS on AVX2 | ≥ 3 | 6.00 | yes |" in tables.search_tables.goals([*search_rows, held])


@pytest.mark.parametrize("name", ["fit", "search", "answer"])
def test_walks_of_the_architecture_are_those_of_the_code(name):
    pytest.importorskip("fastapi")
    spec = importlib.util.spec_from_file_location("walks", ROOT / "docs" / "walks.py")
    walks = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(walks)
    shown = (ROOT / "docs" / "walks" / f"{name}.svg").read_text("utf-8")
    texts = r"<text [^>]*monospace[^>]*>(.+)</text>\n<text [^>]*>(.+)</text>"
    found = {file: walks.words_of(file) for file in walks.walked(name)}
    assert dict(re.findall(texts, shown)) == found, "run make walks"
