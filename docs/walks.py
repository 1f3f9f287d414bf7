"""Which files a fit, a search and an answer on the page walk through, in the order in which they are first called.

    python docs/walks.py            # writes docs/walks/*.md, which docs/architecture.md shows

A line is a file and what its docstring says first. What is only imported is left out.
"""

from __future__ import annotations

import ast
import sys
import tempfile
import threading
import warnings
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
from sklearn.datasets import load_digits

import cghash
from cghash import CGHash

SOURCE = Path(cghash.__file__).parent
PAGES = Path(__file__).parent / "walks"


def fit(folder: Path) -> Callable[[], object]:
    """A fit of linear functions to labels, with the default settings."""
    X, y = load_digits(return_X_y=True)
    return lambda: CGHash(4, random_state=0, n_jobs=1).fit(X[:200], y[:200])


def search(folder: Path) -> Callable[[], object]:
    """The nearest of an index, for items through a model."""
    X, y = load_digits(return_X_y=True)
    model = CGHash(4, random_state=0, n_jobs=1).fit(X[:200], y[:200])
    index = model.build_index(X[:200])
    return lambda: index.search(model.encode(X[200:]), k=5)


def answer(folder: Path) -> Callable[[], object]:
    """A question of the page, its answer, and a model that is learned from it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a successor to httpx
        from starlette.testclient import TestClient

    from cghash.web.app import create_app
    from cghash.workspace import create_workspace
    from cghash.workspace.fitting import first_model
    from cghash.workspace.worker import work

    workspace = create_workspace(folder / "ws", np.random.default_rng(0).normal(size=(60, 4)))
    first_model(workspace, bits=4, n_jobs=1)
    client = TestClient(create_app(workspace, n_jobs=1), base_url="http://127.0.0.1:8000")

    def taught() -> None:
        [asked] = client.get("/api/questions?count=1").json()["questions"]
        told = {name: asked[name]["row"] for name in ("anchor", "left", "right")}
        said = client.post("/api/answers", json=told | {"key": asked["key"], "choice": "left"})
        assert said.status_code == 201
        job = workspace.records.add_job({"bits": 4})
        assert job is not None
        assert work(workspace, job.id) == "done"

    return taught


WALKS = {"fit": fit, "search": search, "answer": answer}


def files_of(work: Callable[[], object]) -> list[Path]:
    """The files of the package whose functions some work calls, in the order of their first calls."""
    seen: dict[str, None] = {}

    def note(frame: FrameType, event: str, argument: Any) -> None:
        if event == "call" and frame.f_code.co_name != "<module>":
            seen.setdefault(frame.f_code.co_filename)

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return [Path(name) for name in seen if Path(name).is_relative_to(SOURCE)]


def walked(name: str) -> list[str]:
    """The files that a walk leads through, below the package; of an answer's those that a fit alone does not reach."""
    with tempfile.TemporaryDirectory() as folder:
        work = WALKS[name](Path(folder))
        work()  # what is imported on the way is not a part of it
        files = [str(path.relative_to(SOURCE)) for path in files_of(work)]
    known = walked("fit") if name == "answer" else []
    return [file for file in files if file not in known]


def page(name: str) -> str:
    """A numbered list of those files, and what each is."""
    return "".join(f"{n}. `{file}`: {subject(SOURCE / file)}\n" for n, file in enumerate(walked(name), 1))


def subject(path: Path) -> str:
    """What a file's docstring says first."""
    words = " ".join((ast.get_docstring(ast.parse(path.read_text("utf-8"))) or "").split("\n\n")[0].split())
    return words.replace("eq. ", "eq.\N{NO-BREAK SPACE}").partition(". ")[0].removesuffix(".")


if __name__ == "__main__":
    PAGES.mkdir(exist_ok=True)
    for name in WALKS:
        (PAGES / f"{name}.md").write_text(page(name), "utf-8")
        print(f"wrote docs/walks/{name}.md")
