"""Answers and models that leave a workspace and come back, by library and by command."""

from __future__ import annotations

import contextlib
import csv
import json
import os
import shutil
from types import SimpleNamespace

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_digits

from cghash import CGHash
from cghash.cli import main
from cghash.exceptions import InvalidInputError
from cghash.peers import LSH
from cghash.reading import read_triplets
from cghash.workspace import Workspace, create_workspace, exchange
from cghash.workspace.exchange import export_workspace, import_files, write_triplets
from cghash.workspace.records import Answer, open_records
from cghash.workspace.versions import Versions

X, y = load_digits(return_X_y=True)
X, y = X[:120], y[:120]
IDS = [f'<i>{i},"{i}"</i>' if i % 2 else f"item {i}" for i in range(len(X))]


@pytest.fixture(scope="module")
def new_workspace(tmp_path_factory):
    """new_workspace() opens a copy of a workspace of 120 digits without answers; it is closed at the end."""
    template, opened = tmp_path_factory.mktemp("template"), contextlib.ExitStack()
    with open(template / "items.csv", "w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([["id", "kind"], *zip(IDS, y.tolist(), strict=True)])
    create_workspace(template / "ws", template / "items.csv", vectors=X, labels="kind").close()

    def new_one():
        folder = shutil.copytree(template / "ws", tmp_path_factory.mktemp("copy") / "ws")
        return opened.enter_context(Workspace.open(folder))

    with opened:
        yield new_one


@pytest.fixture
def workspace(new_workspace):
    return new_workspace()


def answered(workspace):
    """Five answers, of which three tell something: (0, 1, 2) by hand, (3, 5, 4) kept apart, (6, 7, 8) from a list."""
    answers = [
        Answer("k0", 0, 1, 2, "left", "active"),
        Answer("k1", 3, 4, 5, "right", "test", seconds=1.5),
        Answer("k2", 0, 1, 3, "unsure", "active"),
        Answer("k3", 6, 7, 8, "left", "list"),
        Answer("k4", 9, 10, 11, "left", "active"),
    ]
    stored = workspace.records.add_answers(answers)
    workspace.records.undo(stored[-1].id)
    return [(0, 1, 2), (3, 5, 4), (6, 7, 8)]


def told(workspace):
    return [(a.triplet, a.source, a.created, a.key) for a in workspace.records.answers() if a.triplet is not None]


def lsh(path, seed=0, columns=slice(None)):
    """A file of a model."""
    LSH(8, random_state=seed).fit(X[:, columns]).save(path)
    return path


def run(*args, code=0):
    result = CliRunner().invoke(main, [str(arg) for arg in args])
    assert result.exit_code == code, result.output
    assert result.exception is None or isinstance(result.exception, SystemExit)
    return result


# Triplets


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_triplets_name_items_by_id_and_come_back_by_row(workspace, new_workspace, tmp_path, kind):
    wanted = answered(workspace)
    path = tmp_path / f"t.{kind}"
    assert write_triplets(workspace, path) == 3
    rows, weights = read_triplets(path, len(IDS), np.array(IDS))
    assert [tuple(row) for row in rows.tolist()] == wanted
    assert weights is None
    other = new_workspace()
    found = import_files(other, [path])
    assert (found.answers, found.known) == (3, 0)
    assert told(other) == told(workspace)
    assert other.records.triplets() == [(0, 1, 2), (6, 7, 8)]  # the test answer stays apart
    again = import_files(other, [path])
    assert (again.answers, again.known) == (0, 3)
    assert import_files(workspace, [path]).answers == 0


def test_the_csv_holds_what_it_says(workspace, tmp_path):
    wanted = answered(workspace)
    write_triplets(workspace, tmp_path / "t.csv")
    with open(tmp_path / "t.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["anchor"], row["near"], row["far"]) for row in rows] == [tuple(IDS[i] for i in t) for t in wanted]
    assert [row["source"] for row in rows] == ["active", "test", "list"]
    assert all(row["created"].endswith("+00:00") for row in rows)


def test_triplets_of_other_programs_come_in_as_imported(workspace, tmp_path):
    (tmp_path / "plain.csv").write_text(
        "anchor,positive,negative,weight\nitem 0,item 2,item 4,2\nitem 0,item 2,item 4,1\n"
    )
    (tmp_path / "lists.jsonl").write_text('["item 0", "item 2", "item 8"]\n')
    np.save(tmp_path / "rows.npy", np.array([[1, 2, 3]]))
    found = import_files(workspace, [tmp_path / name for name in ("plain.csv", "lists.jsonl", "rows.npy")])
    assert found.answers == 4
    assert found.notes == ["plain.csv: weights are not kept, every answer counts once"]
    assert workspace.records.triplets() == [(0, 2, 4), (0, 2, 4), (0, 2, 8), (1, 2, 3)]
    assert {a.source for a in workspace.records.answers()} == {"import"}


@pytest.mark.parametrize("stopped", [KeyboardInterrupt, OSError])
def test_an_import_that_is_stopped_in_the_middle_stores_nothing(workspace, tmp_path, monkeypatch, stopped):
    monkeypatch.setattr(exchange, "_BATCH", 2)
    np.save(tmp_path / "rows.npy", np.array([[1, 2, 3], [2, 3, 4], [3, 4, 5], [4, 5, 6], [5, 6, 7]]))
    add, batches = workspace.records.add_answers, []

    def stopping(answers):
        batches.append(answers)
        if len(batches) == 2:
            raise stopped
        return add(answers)

    monkeypatch.setattr(workspace.records, "add_answers", stopping)
    with pytest.raises(stopped):
        import_files(workspace, [tmp_path / "rows.npy"])
    monkeypatch.undo()
    assert workspace.records.count_answers() == (0, 0)
    assert import_files(workspace, [tmp_path / "rows.npy"]).answers == 5


def test_odd_sources_times_and_keys_of_a_file_are_not_trusted(workspace, tmp_path):
    lines = [
        {"anchor": "item 0", "near": "item 2", "far": "item 4", "source": "evil", "created": "long ago", "key": None},
        {"anchor": "item 0", "near": "item 2", "far": "item 6", "source": ["list"], "created": 7, "key": "k" * 500},
    ]
    (tmp_path / "t.jsonl").write_text("\n".join(map(json.dumps, lines)))
    import_files(workspace, [tmp_path / "t.jsonl"])
    first, second = workspace.records.answers()
    assert (first.source, second.source) == ("import", "import")
    assert first.key.startswith("import-")
    assert len(second.key) == 200
    assert min(first.created, second.created) > "2020"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("anchor,near,far\nitem 0,item 2,nobody\n", "line 2: no item has the id 'nobody'"),
        ("anchor,near,far\nitem 0,item 2,item 2\n", "line 2: must name 3 different items"),
        ("anchor,near,far\n", "at least one row"),
        ("id,text\na,b\n", "anchor, near, far"),
        ("anchor,left,right\nitem 0,item 2,item 4\nitem 0,item 2,nobody\n", "line 3: no item has the id 'nobody'"),
        ("anchor,left,right\nitem 0,item 2,item 2\n", "line 2: must name 3 different items"),
        ("anchor,left,right,choice\nitem 0,item 2,item 4,left\n", "line 2: choice must be 'unsure', got 'left'"),
    ],
)
def test_a_defective_file_adds_no_answer(workspace, tmp_path, content, words):
    (tmp_path / "t.csv").write_text(content)
    with pytest.raises(InvalidInputError, match=words):
        import_files(workspace, [tmp_path / "t.csv"])
    assert workspace.records.count_answers() == (0, 0)


rows = st.lists(st.permutations(range(6)).map(lambda order: order[:3]), min_size=1, max_size=12)


@settings(max_examples=6)
@given(rows, st.sampled_from(["csv", "jsonl", "parquet"]))
def test_any_answers_survive_the_round(new_workspace, tmp_path_factory, triplets, kind):
    path = tmp_path_factory.mktemp("round") / f"t.{kind}"
    first, second = new_workspace(), new_workspace()
    first.records.add_answers([Answer(f"k{i}", *row, "left", "active") for i, row in enumerate(triplets)])
    write_triplets(first, path)
    import_files(second, [path])
    assert told(second) == told(first)
    assert second.records.triplets() == [tuple(row) for row in triplets]


# Models and whole folders


def test_an_exported_folder_holds_model_codes_and_answers(workspace, new_workspace, tmp_path):
    answered(workspace)
    model = CGHash(12, random_state=0, n_jobs=1).fit(X, y)
    model.save(tmp_path / "mine.cghash")
    found = import_files(workspace, [tmp_path / "mine.cghash"], use=True)
    assert found.versions == [1]
    assert workspace.records.current == 1
    assert workspace.records.version(1).name == "mine (imported)"
    words = export_workspace(workspace, tmp_path / "out")
    assert "120 codes of 12 bits" in " ".join(words)
    codes = np.load(tmp_path / "out" / "codes.npy")
    np.testing.assert_array_equal(codes, model.encode(np.float32(X)))
    with open(tmp_path / "out" / "ids.csv", newline="") as file:
        assert [row["id"] for row in csv.DictReader(file)] == IDS
    np.testing.assert_array_equal(CGHash.load(tmp_path / "out" / "model.cghash").encode(np.float32(X)), codes)
    other = new_workspace()
    back = import_files(other, [tmp_path / "out"], use=True)
    assert (back.answers, back.versions) == (4, [1])  # one of them could not tell
    assert told(other) == told(workspace)


def test_what_could_not_be_told_goes_out_and_comes_back_beside_the_triplets(workspace, new_workspace, tmp_path):
    answered(workspace)
    taken_back = workspace.records.add_answers([Answer("k5", 1, 2, 3, "unsure", "test")])[0]
    workspace.records.add_answers([Answer("k6", 5, 3, 4, "unsure", "test")])
    workspace.records.undo(taken_back.id)
    words = export_workspace(workspace, tmp_path / "out")
    assert words[1] == '2 "can\'t tell" as unsure.csv, .jsonl'
    for kind in ("csv", "jsonl", "parquet"):
        assert len(read_triplets(tmp_path / "out" / f"triplets.{kind}", len(IDS), np.array(IDS))[0]) == 3

    def unsure(one):
        return [(a.key, a.anchor, a.left, a.right, a.source, a.created) for a in one.records.answers()
                if a.choice == "unsure" and a.undone is None]  # fmt: skip

    assert [row[:5] for row in unsure(workspace)] == [("k2", 0, 1, 3, "active"), ("k6", 5, 3, 4, "test")]
    for source in ("out", "out/unsure.csv", "out/unsure.jsonl"):
        other = new_workspace()
        found = import_files(other, [tmp_path / source])
        assert found.answers == (5 if source == "out" else 2)
        assert unsure(other) == unsure(workspace)
        assert other.records.triplets() == ([(0, 1, 2), (6, 7, 8)] if source == "out" else [])
        again = import_files(other, [tmp_path / source])
        assert (again.answers, again.known) == (0, found.answers)


def test_without_a_model_there_are_answers_alone(workspace, new_workspace, tmp_path):
    words = export_workspace(workspace, tmp_path / "out")
    assert "no model yet" in words[-1]
    assert not (tmp_path / "out" / "codes.npy").exists()
    assert import_files(new_workspace(), [tmp_path / "out"]).answers == 0


def test_an_imported_model_is_used_only_when_it_is_asked_for(workspace, tmp_path):
    assert import_files(workspace, [lsh(tmp_path / "lsh.cghash")]).versions == [1]
    assert workspace.records.current is None
    assert workspace.records.version(1).method == "LSH"


def test_a_version_whose_index_is_of_another_model_is_refused(workspace, tmp_path):
    for seed in (0, 1):
        import_files(workspace, [lsh(tmp_path / f"{seed}.cghash", seed)])
    assert Versions(workspace).at(1).bits == 8
    shutil.copy(workspace.index_path(2), workspace.index_path(1))
    with pytest.raises(InvalidInputError, match="other hash functions"):
        Versions(workspace).at(1)


def test_models_that_do_not_fit_are_refused(workspace, tmp_path):
    lsh(tmp_path / "narrow.cghash", columns=slice(5))
    (tmp_path / "words.cghash").write_text("no model")
    (tmp_path / "folder").mkdir()
    for name, words in (("narrow.cghash", "64"), ("words.cghash", "not a cghash file"), ("folder", "export")):
        with pytest.raises(ValueError, match=words):
            import_files(workspace, [tmp_path / name])
    assert workspace.records.versions() == []


def test_an_export_replaces_nothing(workspace, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine.txt").write_text("mine")
    with pytest.raises(InvalidInputError, match="must not exist yet, or be empty"):
        export_workspace(workspace, tmp_path / "out")
    with pytest.raises(InvalidInputError, match=r"ends in \.csv, \.jsonl, \.parquet"):
        write_triplets(workspace, tmp_path / "t.xlsx")


# Commands


@pytest.fixture
def table(tmp_path):
    lines = ["id,text,year", "a,a red boat on the wide sea,1990", "b,a pie of apples,2001", "c,boats at sea,"]
    (tmp_path / "items.csv").write_text("\n".join(lines) + "\n")
    return tmp_path / "items.csv"


def test_commands_from_a_table_to_its_answers(table, tmp_path):
    folder = tmp_path / "ws"
    made = run("workspace", "new", folder, "--items", table, "--title", "Boats & <pies>")
    assert made.stdout == ""
    assert "3 items (texts)" in made.stderr
    assert "cghash serve" in made.stderr
    (tmp_path / "t.csv").write_text("anchor,near,far\na,c,b\n")
    assert "1 answers imported" in run("workspace", "import", folder, tmp_path / "t.csv").stderr
    assert "1 were there already" in run("workspace", "import", folder, tmp_path / "t.csv").stderr
    facts = json.loads(run("workspace", "info", folder, "--json").stdout)
    assert (facts["title"], facts["items"], facts["answers"]["count"]) == ("Boats & <pies>", 3, 1)
    shown = run("workspace", "info", folder).stdout
    assert "year (1990 to 2001)" in shown
    assert "Boats & <pies>" in shown
    run("workspace", "export", folder, tmp_path / "out", "--triplets", tmp_path / "x.jsonl", "-q")
    assert json.loads((tmp_path / "x.jsonl").read_text())["near"] == "c"
    assert "triplets.csv" in os.listdir(tmp_path / "out")
    assert run("workspace", "export", folder, code=2).stderr.startswith("cghash: error: name a folder")


def test_a_model_by_command_becomes_the_current_one(workspace, tmp_path):
    said = run("workspace", "import", workspace.folder, lsh(tmp_path / "lsh.cghash"), "--use").stderr
    assert "model version 1" in said
    assert "version 1 is used" in run("workspace", "info", workspace.folder).stdout


def test_answers_may_lie_in_a_database_elsewhere(table, tmp_path):
    run("workspace", "new", tmp_path / "ws", "--items", table, "-q")
    (tmp_path / "t.csv").write_text("anchor,near,far\na,c,b\n")
    run("workspace", "import", tmp_path / "ws", tmp_path / "t.csv", "--database", tmp_path / "else.sqlite")
    count = {}
    for name in ("else.sqlite", "ws/answers.sqlite"):
        facts = json.loads(run("workspace", "info", tmp_path / "ws", "--json", "--database", tmp_path / name).stdout)
        count[name] = facts["answers"]["count"]
    assert count == {"else.sqlite": 1, "ws/answers.sqlite": 0}


def everything(folder):
    return {path: (path.stat().st_mtime_ns, path.is_dir() or path.read_bytes()) for path in folder.rglob("*")}


@pytest.fixture
def read_only(monkeypatch):
    """As on a disk that is mounted so: the tests may run as root, whom permissions do not stop."""

    def begin():
        found = os.statvfs("/")
        monkeypatch.setattr(os, "access", lambda path, mode: mode != os.W_OK)
        monkeypatch.setattr(os, "statvfs", lambda path: SimpleNamespace(f_flag=found.f_flag | os.ST_RDONLY))

    return begin


def test_records_in_memory_do_not_care_for_the_disk(read_only):
    read_only()
    assert len(open_records(":memory:").add_answers([Answer("k", 1, 2, 3, "left", "active")])) == 1


@pytest.mark.parametrize("answered", [True, False])
def test_what_lies_on_a_read_only_disk_is_shown_and_exported(table, tmp_path, read_only, answered):
    folder = tmp_path / "ws"
    run("workspace", "new", folder, "--items", table, "-q")
    (tmp_path / "t.csv").write_text("anchor,near,far\na,c,b\n")
    if answered:
        run("workspace", "import", folder, tmp_path / "t.csv")
    before = everything(folder)
    read_only()
    facts = json.loads(run("workspace", "info", folder, "--json").stdout)
    assert (facts["items"], facts["answers"]["count"]) == (3, answered)
    run("workspace", "export", folder, "--triplets", tmp_path / "out.csv")
    assert len((tmp_path / "out.csv").read_text().splitlines()) == 1 + answered
    refused = run("workspace", "import", folder, tmp_path / "t.csv", code=1).stderr
    assert "answers.sqlite cannot be changed: its disk is read-only; --database names another place" in refused
    assert "cannot be changed: its disk is read-only" in run("serve", folder, "--port", 0, code=1).stderr
    assert everything(folder).items() >= before.items()  # SQLite adds files where it can, and here it can


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--items", "nothing.csv"], "no such file"),
        (["--items", "items.csv", "--labels", "colour"], "must have a column 'colour' of labels"),
        (["--items", "items.csv", "--id-column", "key"], "must have a column 'key' of ids"),
        (["--items", "items.csv", "--embed", "gist"], "needs images"),
        (["--items", "items.csv", "--vectors", "v.npy"], "must be a file or a column"),
        ([], "Missing option '--items'"),
    ],
)
def test_what_cannot_be_made_is_one_line(table, tmp_path, monkeypatch, options, words):
    monkeypatch.chdir(tmp_path)
    result = run("workspace", "new", "ws", *options, code=2)
    assert words in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert sorted(os.listdir(tmp_path)) == ["items.csv"]


def test_skipped_pictures_are_told(tmp_path):
    from PIL import Image

    (tmp_path / "p").mkdir()
    Image.new("RGB", (20, 20), "red").save(tmp_path / "p" / "good.png")
    (tmp_path / "p" / "bad.png").write_text("x")
    said = run("workspace", "new", tmp_path / "ws", "--items", tmp_path / "p").stderr
    assert "1 pictures could not be read and are left out; skipped.csv names them" in said
    assert "left out: bad.png: bad.png must be a whole picture" in said
    assert "1 items (images), vectors of 512 numbers (gist)" in said


def test_a_folder_that_is_no_workspace_is_said(tmp_path):
    for command in (["info"], ["export", "out"], ["import", "t.csv"]):
        result = run("workspace", command[0], tmp_path, *command[1:], code=2)
        assert "must be a workspace" in result.stderr


def test_a_workspace_is_opened_while_another_process_has_it(workspace):
    with Workspace.open(workspace.folder) as second:
        answered(workspace)
        assert second.records.count_answers() == (5, 1)
