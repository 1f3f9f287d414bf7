"""What every benchmark needs: data sets, splits, and results with the circumstances under which they were measured."""

from __future__ import annotations

import json
import multiprocessing
import os
import platform
import subprocess
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from cghash.lab.experiments.machine import processor

RESULTS = Path(__file__).parent / "results"
FILES = {
    "usps": "usps",
    "isolet": "isolet",
    "mnist": "mnist",
    "scene15": "scene15_gist512",
    "cifar10": "cifar10_gist512",
    "newsgroups": "newsgroups20_minilm384",
}


def load(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Items and labels of a data set in the folder that CGHASH_DATA names."""
    folder = os.environ.get("CGHASH_DATA")
    if not folder:
        raise SystemExit("set CGHASH_DATA to the folder with the data sets")
    with np.load(Path(folder) / f"{FILES[name]}.npz") as arrays:
        return arrays["X"].astype(np.float32), arrays["y"].astype(np.int64)


def split(X: np.ndarray, y: np.ndarray, n_train: int, n_test: int, seed: int) -> tuple[np.ndarray, ...]:
    """Stratified random split: X_train, y_train, X_test, y_test."""
    from sklearn.model_selection import train_test_split

    train, test = train_test_split(
        np.arange(len(y)), train_size=n_train, test_size=n_test, stratify=y, random_state=seed
    )
    return X[train], y[train], X[test], y[test]


def commit() -> str:
    """The one that is checked out, "" where there is none."""
    found = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    return found.stdout.strip()


def circumstances(packages: tuple[str, ...] = ()) -> dict[str, Any]:
    """Commit, versions, of further packages too, and processor."""
    packages = ("cghash", "numpy", "scipy", "scikit-learn", "highspy", *packages)
    return {
        "commit": commit(),
        "versions": {name: version(name) for name in packages} | {"python": platform.python_version()},
        "cpu": processor(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
    }


def write(name: str, command: str, rows: Any, packages: tuple[str, ...] = ()) -> None:
    """Keep results as small JSON in benchmarks/results."""
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{name}.json"
    path.write_text(json.dumps({"command": command, **circumstances(packages), "rows": rows}, indent=1) + "\n")
    print(f"wrote {path.relative_to(Path.cwd())}" if path.is_relative_to(Path.cwd()) else f"wrote {path}")


def write_rows(name: str, command: str, rows: list[dict[str, Any]], keys: tuple[str, ...]) -> None:
    """Keep rows beside those that were kept before, in the place of rows with the same keys."""
    path = RESULTS / f"{name}.json"
    known = json.loads(path.read_text())["rows"] if path.exists() else []
    by_key = {tuple(row[key] for key in keys): row for row in (*known, *rows)}
    write(name, command, list(by_key.values()))


def alone(work: Callable[..., dict[str, object]], *arguments: object) -> dict[str, object]:
    """work(*arguments) in a process of its own, so that the peak of memory is this work's."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        return pool.submit(work, *arguments).result()
