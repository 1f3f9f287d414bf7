"""A workspace of a stranger: its sentence model, its databases and its links run, show and overwrite nothing."""

import contextlib
import json
import os
import sqlite3
import struct
import subprocess
import sys
import threading
from datetime import timedelta

import httpx
import numpy as np
import pytest

from cghash.exceptions import FormatError, MissingDependencyError
from cghash.web.thumbnails import thumbnail
from cghash.workspace import Workspace, create_workspace, jobs
from cghash.workspace.untrusted import check_journal
from cghash.workspace.versions import Versions
from cghash.workspace.worker import is_working, job_folder, work

# does what versions before 6 do with a model's folder: imports what its modules.json names
PACKAGE = """
import importlib, json, os, sys
__version__ = "5.2.3"

class SentenceTransformer:
    def __init__(self, name, **options):
        with open(os.path.join(name, "modules.json")) as file:
            module, _, kind = json.load(file)[0]["type"].rpartition(".")
        sys.path.insert(0, name)
        self.model = getattr(importlib.import_module(module), kind)()

    def encode(self, texts, **options):
        return [[1.0, 0.0]] * len(texts)
"""


@pytest.fixture
def stranger(tmp_path):
    """The folder of a workspace, the file that its model would make, and an environment with the package."""
    (tmp_path / "items.csv").write_text("id,text\n" + "".join(f"{i},red boat{i % 7} sea{i % 5}\n" for i in range(40)))
    create_workspace(tmp_path / "their.ws", tmp_path / "items.csv").close()
    model, marker = tmp_path / "their.ws" / "model", tmp_path / "marker"
    model.mkdir()
    (model / "modules.json").write_text(json.dumps([{"idx": 0, "name": "0", "path": "", "type": "theirs.Model"}]))
    (model / "theirs.py").write_text(f"open({os.fspath(marker)!r}, 'w').close()\nclass Model: pass\n")
    about = json.loads((tmp_path / "their.ws" / "workspace.json").read_text())
    about["vectors"] = {"source": "sentences", "model": os.fspath(model)}
    (tmp_path / "their.ws" / "workspace.json").write_text(json.dumps(about))
    package = tmp_path / "packages" / "sentence_transformers"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(PACKAGE)
    path = os.pathsep.join([os.fspath(package.parent), *filter(None, [os.environ.get("PYTHONPATH")])])
    return tmp_path / "their.ws", marker, {"PYTHONPATH": path}


@pytest.fixture
def workspace(digits):
    with Workspace.open(digits) as opened:
        yield opened


def test_the_package_here_would_run_their_code(stranger):
    folder, marker, environment = stranger
    load = f"import sentence_transformers as s; s.SentenceTransformer({os.fspath(folder / 'model')!r})"
    subprocess.run([sys.executable, "-c", load], check=True, env=os.environ | environment)
    assert marker.exists()


def test_a_page_over_their_workspace_loads_no_model(stranger, start_server):
    folder, marker, environment = stranger
    with start_server(folder, **environment) as server:
        about = httpx.get(f"{server.url}/api/workspace").json()
        assert about["queries"] == {"image": False, "text": False}
        refused = httpx.post(f"{server.url}/api/search", json={"text": "boat", "k": 3})
        assert refused.status_code == 409
        assert "only by a model that 'cghash serve --sentence-model' names" in refused.json()["error"]
        assert len(httpx.post(f"{server.url}/api/search", json={"item": 0, "k": 3}).json()["results"]) == 3
        assert "texts cannot be searched for without --sentence-model" in server.log.read_text()
    assert not marker.exists()


@pytest.mark.parametrize("arguments", [["info"], ["info", "--json"], ["export", "out"], ["import", "answers.csv"]])
def test_commands_over_their_workspace_load_no_model(arguments, stranger, tmp_path):
    folder, marker, environment = stranger
    (tmp_path / "answers.csv").write_text("anchor,near,far\n0,1,2\n")
    command = [sys.executable, "-m", "cghash", "workspace", arguments[0], folder, *arguments[1:]]
    subprocess.run(command, check=True, cwd=tmp_path, env=os.environ | environment, capture_output=True)
    assert not marker.exists()


def test_learning_in_their_workspace_loads_no_model(stranger):
    folder, marker, environment = stranger
    learning = """
import sys
from cghash.workspace import Workspace
from cghash.workspace.fitting import first_model
from cghash.workspace.records import Answer
from cghash.workspace.worker import work
with Workspace.open(sys.argv[1]) as workspace:
    first_model(workspace, bits=4, n_jobs=1)
    workspace.records.add_answers([Answer("1", 0, 7, 3, "left", "active"), Answer("2", 1, 8, 2, "left", "active")])
    print(work(workspace, workspace.records.add_job({"bits": 4}).id))
"""
    done = subprocess.run(
        [sys.executable, "-c", learning, folder], env=os.environ | environment, capture_output=True, text=True
    )
    assert done.stdout == "done\n", done.stderr
    assert not marker.exists()


def test_a_version_that_would_run_their_code_is_refused_when_the_user_names_their_model(stranger, monkeypatch):
    folder, marker, environment = stranger
    monkeypatch.syspath_prepend(environment["PYTHONPATH"].split(os.pathsep)[0])
    monkeypatch.delitem(sys.modules, "sentence_transformers", raising=False)
    with pytest.raises(MissingDependencyError, match=r"must be version 6 or later, got 5\.2\.3"):
        Workspace.open(folder, sentence_model=folder / "model")
    monkeypatch.delitem(sys.modules, "sentence_transformers", raising=False)
    assert not marker.exists()


def run(path, script):
    """Run statements in a database, as whoever made it might have done."""
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.executescript(script)


@pytest.mark.parametrize(
    ("file", "schema"),
    [
        ("answers.sqlite", "CREATE TRIGGER t AFTER INSERT ON cghash_answers BEGIN DELETE FROM cghash_models; END"),
        ("answers.sqlite", "DROP TABLE cghash_models; CREATE VIEW cghash_models AS SELECT 1 AS version"),
        ("items.sqlite", "DROP TABLE attributes; CREATE VIEW attributes AS SELECT 1 AS name"),
        ("items.sqlite", "DROP TABLE attributes; CREATE VIRTUAL TABLE attributes USING fts5(name)"),
        (
            "items.sqlite",
            "DROP TABLE attributes; CREATE VIRTUAL TABLE attributes USING fts5(name); PRAGMA writable_schema = ON;"
            "UPDATE sqlite_master SET sql = replace(sql, 'CREATE VIRTUAL', 'CREATE /**/VIRTUAL')",
        ),
        ("answers.sqlite", "ALTER TABLE cghash_answers ADD COLUMN x AS (hex(zeroblob(100000000)))"),
        ("items.sqlite", "ALTER TABLE items ADD COLUMN x DEFAULT 3"),
        ("answers.sqlite", "CREATE INDEX x ON cghash_answers (hex(zeroblob(100000000)))"),
        ("answers.sqlite", "CREATE INDEX x ON cghash_answers (token)"),
        (
            "answers.sqlite",
            "DROP INDEX cghash_answers_of; CREATE INDEX cghash_answers_of ON cghash_answers (workspace, abs(id))",
        ),
        ("answers.sqlite", "DROP TABLE cghash_current; CREATE TABLE cghash_current (version CHECK (hex(version)))"),
    ],
)
def test_a_database_that_would_do_something_when_it_is_read_or_changed_is_refused(digits, file, schema):
    run(digits / file, schema)
    with pytest.raises(FormatError, match="must keep what is ours in plain tables, got the"):
        Workspace.open(digits).records.versions()


def test_a_database_that_others_use_too_may_hold_whatever_is_theirs(digits):
    run(
        digits / "answers.sqlite",
        "CREATE TABLE items (name DEFAULT 'x' CHECK (name <> ''), long AS (length(name)));"
        "CREATE INDEX i ON items (lower(name)); CREATE VIEW v AS SELECT * FROM items;"
        "CREATE TRIGGER t AFTER INSERT ON items BEGIN DELETE FROM items; END",
    )
    with Workspace.open(digits) as workspace:
        assert [version.version for version in workspace.records.versions()] == [1]


def journal_of(database, victim):
    """A journal of a change that was never finished, and belongs to one of several files: it names `victim`."""
    name, magic = os.fsencode(victim), bytes.fromhex("d9d505f920a163d7")
    head = magic + struct.pack(">5I", 0, 0, database.stat().st_size // 4096, 512, 4096)
    return (
        head.ljust(512, b"\0")
        + struct.pack(">I", 2**30 // 4096 + 1)
        + name
        + struct.pack(">2I", len(name), sum(name))
        + magic
    )


@pytest.mark.parametrize("name", ["answers.sqlite", "items.sqlite"])
def test_a_journal_deletes_no_file_of_mine(digits, tmp_path, name):
    (tmp_path / "thesis").write_text("years of work")
    for file in digits.glob("answers.sqlite-*"):
        file.unlink()
    database = bytearray((digits / name).read_bytes())
    database[18:20] = b"\1\1"  # not of a log
    (digits / name).write_bytes(database)
    (digits / f"{name}-journal").write_bytes(journal_of(digits / name, tmp_path / "thesis"))
    if name == "answers.sqlite":
        with pytest.raises(FormatError, match=r"answers\.sqlite-journal must name no other file.*delete it$"):
            Workspace.open(digits).records.versions()
    else:
        Workspace.open(digits).close()  # it is never changed, and so its journal is not looked at
    assert (tmp_path / "thesis").exists()


def test_a_journal_that_names_no_other_file_is_played_back(digits):
    (digits / "answers.sqlite-journal").write_bytes(b"d9d505f920a163d7")
    with Workspace.open(digits) as workspace:
        assert [version.version for version in workspace.records.versions()] == [1]


def test_a_journal_that_another_writer_has_just_finished_with_is_passed_over(tmp_path):
    """Such as where several open a new database at the same moment."""
    path, ended = tmp_path / "answers.sqlite-journal", threading.Event()

    def come_and_go():
        while not ended.is_set():
            path.touch()
            path.unlink()

    writer = threading.Thread(target=come_and_go)
    writer.start()
    try:
        for _ in range(20_000):
            check_journal(tmp_path / "answers.sqlite")
    finally:
        ended.set()
        writer.join()


def learned(workspace):
    """What a worker says of job 1, as an error where it failed."""
    job = workspace.records.add_job({"bits": 4})
    if work(workspace, job.id) == "failed":
        raise FormatError(workspace.records.job(job.id).message)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (None, "must be an .npy file of plain numbers or strings: it is empty"),
        (3, "must hold answers"),
        (np.full((2, 3), 1e300), "must hold answers"),
        (np.zeros((0, 3), np.int64), "must hold answers"),
        (np.zeros((2, 4), np.int64), "must hold answers"),
        ([["a", "b", "c"]], "must hold answers"),
        ([[0, 0, 0], [1, 2, 200]], "must hold numbers of items, 0 to 199"),
        ([[0, 0, 0], [1, -1, 2]], "must hold numbers of items, 0 to 199"),
    ],
    ids=str,
)
def test_a_job_whose_answers_are_none_of_ours_fails_and_says_why(workspace, rows, message):
    path = job_folder(workspace, 1, "answers.npy")
    path.parent.mkdir(parents=True)
    path.touch() if rows is None else np.save(path, rows)
    with pytest.raises(FormatError, match=message):
        learned(workspace)


READERS = {  # what reads or writes a file of a workspace
    "items.sqlite": lambda workspace: None,
    "vectors.npy": lambda workspace: None,
    "answers.sqlite": lambda workspace: None,
    "items": lambda workspace: workspace.picture(0),
    "models": lambda workspace: workspace.model_path(1),
    "models/0001.cghash": lambda workspace: Versions(workspace).at(1),
    "models/0002.cghash": lambda workspace: workspace.model_path(2),
    "indexes": lambda workspace: workspace.index_path(1),
    "indexes/0001.index": lambda workspace: Versions(workspace).at(1),
    "indexes/0001.index.log": lambda workspace: Versions(workspace).at(1),
    "checkpoints": lambda workspace: job_folder(workspace, 1),
    "checkpoints/job-1/lock": lambda workspace: is_working(workspace, 1),
    "checkpoints/job-1/state": lambda workspace: learned(workspace),
    "checkpoints/job-1/answers.npy": lambda workspace: learned(workspace),
    "thumbnails": lambda workspace: thumbnail(workspace, 0, 96),
    "thumbnails/96/000000/0.png": lambda workspace: thumbnail(workspace, 0, 96),
}
FOLDERS = ("items", "models", "indexes", "checkpoints", "thumbnails")


@pytest.mark.parametrize("name", READERS)
def test_a_link_out_of_a_workspace_is_neither_read_nor_written(digits, tmp_path, name):
    """Else a stranger's workspace shows what is mine, or writes a model over it."""
    mine, here = tmp_path / "mine", digits / name
    here.parent.mkdir(parents=True, exist_ok=True)
    if here.exists():
        here.rename(mine)
    here.symlink_to(mine)
    words = "must lie in the workspace, and is, or is below, a link that leads out of it"
    with pytest.raises(FormatError, match=words):
        READERS[name](Workspace.open(digits))


def test_the_lock_of_a_job_empties_no_file(workspace):
    """Not even one of the workspace that a link leads to."""
    before = workspace.model_path(1).read_bytes()
    job_folder(workspace, 1).mkdir(parents=True)
    job_folder(workspace, 1, "lock").symlink_to(workspace.model_path(1))
    with pytest.raises(FormatError, match="lock must be a file, and is a link"):
        is_working(workspace, 1)
    assert workspace.model_path(1).read_bytes() == before
    job_folder(workspace, 2, "lock").parent.mkdir()
    job_folder(workspace, 2, "lock").write_bytes(b"kept")
    assert not is_working(workspace, 2)
    assert job_folder(workspace, 2, "lock").read_bytes() == b"kept"


def test_a_job_whose_lock_is_a_link_has_failed(digits, tmp_path, monkeypatch):
    monkeypatch.setattr(jobs, "_COMING_UP", timedelta(0))
    (tmp_path / "mine").write_text("mine")
    with Workspace.open(digits) as workspace:
        number = workspace.records.add_job({"bits": 4}).id
        job_folder(workspace, number).mkdir(parents=True)
        (job_folder(workspace, number) / "lock").symlink_to(tmp_path / "mine")
        assert jobs.Jobs(workspace).look_after(number).state == "failed"
    assert (tmp_path / "mine").read_text() == "mine"


@pytest.mark.parametrize("name", [name for name in READERS if name not in FOLDERS])
@pytest.mark.timeout(60)
def test_a_pipe_in_the_place_of_a_file_is_refused_and_not_waited_for(digits, name):
    (digits / name).parent.mkdir(parents=True, exist_ok=True)
    (digits / name).unlink(missing_ok=True)
    os.mkfifo(digits / name)
    with pytest.raises(FormatError, match=r"must be a file|there is no such file"):
        READERS[name](Workspace.open(digits))


def test_a_workspace_that_is_itself_reached_by_a_link_is_opened(digits, tmp_path):
    (tmp_path / "link.ws").symlink_to(digits)
    with Workspace.open(tmp_path / "link.ws") as workspace:
        assert workspace.picture(0).is_file()
        assert workspace.model_path(1).is_file()


def test_no_schema_may_call_functions_that_reach_outside(workspace):
    assert workspace.records.database.run("PRAGMA trusted_schema") == [{"trusted_schema": 0}]
    assert workspace.items._all("PRAGMA trusted_schema") == [(0,)]
