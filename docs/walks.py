"""Pictures of the files that a fit, a search and an answer on the page walk through.

    python docs/walks.py            # writes docs/walks/*.svg, which docs/architecture.md shows

A line is a file and what its docstring says first, below the file that called it first. What is only imported is left
out.
"""

from __future__ import annotations

import ast
import os
import sys
import tempfile
import threading
import warnings
from collections.abc import Callable
from html import escape
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
from sklearn.datasets import load_digits

import cghash
from cghash import CGHash

SOURCE = Path(cghash.__file__).parent
PREFIX = f"{SOURCE}{os.sep}"
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
ROW, INDENT, TEXT, WIDTH = 24, 18, 360, 1120  # of a picture, in pixels
COLOURS = ("#4c72b0", "#55a868", "#c44e52", "#8172b3", "#937860", "#da8bc3", "#8c8c8c", "#ccb974", "#64b5cd")


def calls_of(work: Callable[[], object]) -> dict[str, str]:
    """The files of the package whose functions some work calls, each with the file that called it first."""
    callers: dict[str, str] = {}

    def note(frame: FrameType, event: str, argument: Any) -> None:
        file = name_of(frame)
        if event != "call" or not file or frame.f_code.co_name == "<module>" or file in callers:
            return
        back = frame.f_back
        while back is not None and name_of(back) in ("", file):
            back = back.f_back
        callers[file] = "" if back is None else name_of(back)

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return callers


def name_of(frame: FrameType) -> str:
    """The file of a frame below the package; empty for others."""
    path = frame.f_code.co_filename
    return path.removeprefix(PREFIX) if path.startswith(PREFIX) else ""


def walked(name: str) -> dict[str, str]:
    """The files that a walk leads through, with their callers; of an answer's those that a fit alone does not reach."""
    with tempfile.TemporaryDirectory() as folder:
        work = WALKS[name](Path(folder))
        work()  # what is imported on the way is not a part of it
        callers = calls_of(work)
    known = walked("fit") if name == "answer" else {}
    return {file: caller for file, caller in callers.items() if file not in known}


def tree(callers: dict[str, str]) -> list[tuple[str, int]]:
    """Files with their depth, each below the file that called it first."""
    lines: list[tuple[str, int]] = []

    def visit(file: str, depth: int) -> None:
        lines.append((file, depth))
        for called in (one for one, caller in callers.items() if caller == file):
            visit(called, depth + 1)

    for file, caller in callers.items():
        if caller not in callers:
            visit(file, 0)
    return lines


def picture(name: str) -> str:
    """An SVG: a line a file, indented below the file that called it first, coloured by its room."""
    lines = tree(walked(name))
    rooms = list(dict.fromkeys(room_of(file) for file, _ in lines))
    colours = {room: COLOURS[i % len(COLOURS)] for i, room in enumerate(rooms)}
    height = ROW * (len(lines) + 1)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-size="13" role="img">',
        f"<title>{len(lines)} files, each below the one that called it first</title>",
        '<rect width="100%" height="100%" fill="white"/>',
    ]
    above: dict[int, int] = {}  # the row of the last file at each depth
    for row, (file, depth) in enumerate(lines):
        x, y = 14 + INDENT * depth, ROW * (row + 1)
        above[depth] = y
        if depth:
            parts.append(f'<path d="M{x - INDENT + 4} {above[depth - 1] + 6}V{y}H{x - 2}" fill="none" stroke="#bbb"/>')
        parts.append(f'<circle cx="{x + 4}" cy="{y}" r="5" fill="{colours[room_of(file)]}"/>')
        parts.append(f'<text x="{x + 14}" y="{y + 4}" font-family="monospace">{file}</text>')
        parts.append(f'<text x="{TEXT}" y="{y + 4}" font-family="sans-serif" fill="#444">{words_of(file)}</text>')
    return "\n".join([*parts, "</svg>", ""])


def room_of(file: str) -> str:
    """The folder of a file; files at the top have one room."""
    return str(Path(file).parent)


def words_of(file: str, most: int = 110) -> str:
    """What a file's docstring says first, cut at a space where it is long."""
    words = " ".join((ast.get_docstring(ast.parse((SOURCE / file).read_text("utf-8"))) or "").split("\n\n")[0].split())
    words = words.replace("eq. ", "eq.\N{NO-BREAK SPACE}").partition(". ")[0].removesuffix(".")
    short = words if len(words) <= most else words[:most].rpartition(" ")[0].rstrip(",;:") + " …"
    return escape(short, quote=False)


if __name__ == "__main__":
    PAGES.mkdir(exist_ok=True)
    for name in WALKS:
        (PAGES / f"{name}.svg").write_text(picture(name), "utf-8")
        print(f"wrote docs/walks/{name}.svg")
