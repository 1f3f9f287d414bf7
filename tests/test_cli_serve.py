"""`cghash serve`, as its users meet it: what it says, and one line where it cannot be."""

from __future__ import annotations

import signal
import socket
import sys
from pathlib import Path

import numpy as np
import pytest
import sklearn.datasets

from cghash.client import Client
from cghash.web import server
from cghash.workspace import Workspace, create_workspace

from .command_line import refused, run


@pytest.fixture
def served(monkeypatch):
    """What would be served."""
    found = {}

    def serve(workspace, listening, **options):
        found.update(options, current=workspace.records.current, items=len(workspace.items))
        found["host"], found["port"] = listening.getsockname()
        listening.close()

    monkeypatch.setattr(server, "serve", serve)
    return found


@pytest.mark.parametrize(
    ("asked", "code", "words"),
    [
        ("", 2, "give the folder of a workspace, or --demo"),
        ("nothing --port 0", 2, "must be a workspace ('cghash workspace new' makes one)"),
        ("empty --port 0", 2, "must be a workspace"),
        ("damaged --port 0", 2, "workspace.json must describe a workspace"),
        ("digits.ws --port 0 --sentence-model ours", 2, "sentence_model must be left out of "),
        ("digits.ws --port 0 --token short -q", 2, "token must have at least 16 characters, got 5"),
        ("digits.ws --port 70000", 2, "65535"),
        *(
            (f"digits.ws --host {host}", 2, f"--host {host} can be reached by others: set CGHASH_TOKEN")
            for host in ("0.0.0.0", "::", "192.0.2.1")
        ),
        (f"digits.ws --host 192.0.2.1 --token {'x' * 16}", 2, "cannot listen on 192.0.2.1"),
        (
            "digits.ws --database postgresql://127.0.0.1:1/nothing --port 0",
            1,
            "the PostgreSQL database cannot be reached",
        ),
    ],
)
def test_what_cannot_be_served_is_one_line(digits, monkeypatch, asked, code, words):
    monkeypatch.chdir(digits.parent)
    monkeypatch.delenv("CGHASH_TOKEN", raising=False)
    Path("empty").mkdir()
    Path("damaged").mkdir()
    Path("damaged/workspace.json").write_text("{")
    assert words in refused("serve", *asked.split(), code=code)


def test_a_port_in_use_is_one_line(few_digits):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        said = refused("serve", few_digits, "--port", port)
    assert f"cannot listen on 127.0.0.1, port {port}: Address already in use" in said


def test_without_its_packages_it_says_what_to_install(few_digits, monkeypatch):
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    for name in [name for name in sys.modules if name.startswith("cghash.web")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delattr(sys.modules["cghash"], "web", raising=False)
    assert refused("serve", few_digits, code=1) == 'the page needs uvicorn: pip install "cghash[web]"'


def test_options_reach_the_server(digits, served):
    result = run("serve", digits, "--port", 0, "--token", "x" * 20, "--allow-host", "photos.local", "--jobs", 1)
    assert served == served | {"token": "x" * 20, "allowed": ("photos.local",), "n_jobs": 1, "current": 1, "items": 200}
    assert served["host"] == "127.0.0.1"
    assert f"serving {digits} at http://127.0.0.1:{served['port']} (Ctrl-C stops)" in result.stderr
    assert result.stdout == ""
    assert run("serve", digits, "--port", 0, "--quiet").stderr == ""


def test_the_demo_is_made_once_and_kept(tmp_path, served, monkeypatch):
    X, y = sklearn.datasets.load_digits(return_X_y=True)
    monkeypatch.setattr(sklearn.datasets, "load_digits", lambda **_: (X[:100], y[:100]))
    first = run("serve", "--demo", tmp_path / "demo.ws", "--port", 0).stderr
    assert "making a workspace of handwritten digits" in first
    assert "learning a first model from the vectors alone" in first
    assert (served["current"], served["items"]) == (1, 100)
    again = run("serve", "--demo", tmp_path / "demo.ws", "--port", 0).stderr
    assert again.count("\n") == 1
    with Workspace.open(tmp_path / "demo.ws") as workspace:
        assert len(workspace.records.versions()) == 1


def test_a_collection_that_teaches_nothing_is_served_by_its_vectors(tmp_path, served):
    create_workspace(tmp_path / "ws", np.zeros((5, 3))).close()
    result = run("serve", tmp_path / "ws", "--port", 0)
    assert "the page searches by vectors" in result.stderr
    assert served["current"] is None


def test_ctrl_c_ends_a_server_without_a_trace(digits, start_server):
    with start_server(digits) as server:
        assert Client(server.url).health()["status"] == "ok"
        assert Client(server.url).search(item=0, k=1)["model"] == 1  # so an index is open
        server.send_signal(signal.SIGINT)
        code = server.wait(60)
        said = server.log.read_text()
    assert "Traceback" not in said
    assert "leaked" not in said
    assert code in (0, 130, -signal.SIGINT)
