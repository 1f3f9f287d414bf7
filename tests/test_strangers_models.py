"""A workspace of a stranger whose sentence model would run code: none does, on any road."""

import json
import os
import subprocess
import sys

import httpx
import pytest

from cghash.exceptions import MissingDependencyError
from cghash.workspace import Workspace, create_workspace

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
        assert refused.status_code == 400
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
from cghash.workspace.learning import first_model
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
