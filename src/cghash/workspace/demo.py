"""A workspace to try: scikit-learn's 1797 handwritten digits, as pictures."""

from __future__ import annotations

import csv
import os
import tempfile
from pathlib import Path

import numpy as np

from .._arrays import Array
from .creation import build_workspace, check_new_folder
from .embedders import Digits
from .import_plan import NamedColumns, plan_import
from .item_sources import open_table
from .item_vectors import Progress, VectorSource
from .pictures import DIGIT, INK
from .workspace import Workspace

__all__ = ["demo_workspace"]

TITLE = "1797 handwritten digits"
SCALE = 8  # pixels of a picture for each of a digit


def demo_workspace(folder: str | os.PathLike[str], progress: Progress | None = None) -> Workspace:
    """Make a workspace of the digits.

    Their vectors are the 8 × 8 grey levels, their labels the attribute `digit`; the attribute `ink` is the mean level.

    Parameters
    ----------
    folder : where; it must not exist yet, or be empty
    progress : is called with (what is done, how many are, of how many)
    """
    from sklearn.datasets import load_digits

    target = check_new_folder(folder)
    X, y = load_digits(return_X_y=True)
    with tempfile.TemporaryDirectory(prefix="cghash-") as aside:
        table = open_table(_write_pictures(Path(aside), X, y))
        plan = plan_import(table, NamedColumns(labels="digit"), as_numbers=False)
        return build_workspace(target, plan, VectorSource(X, embedder=Digits()), "digit", TITLE, progress)


def _write_pictures(folder: Path, X: Array, y: Array) -> Path:
    """A picture a digit, dark ink on white paper, and a table that names them."""
    from PIL import Image

    paper = (255 - np.round(X * 255 / INK)).astype(np.uint8).reshape(-1, DIGIT, DIGIT)
    with open(folder / "items.csv", "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "image", "digit", "ink"])
        for row, (grey, digit, ink) in enumerate(zip(paper, y.tolist(), X.mean(axis=1), strict=True)):
            name = f"{row:04d}.png"
            Image.fromarray(grey.repeat(SCALE, axis=0).repeat(SCALE, axis=1)).save(folder / name, compress_level=1)
            writer.writerow([f"digit-{row:04d}", name, digit, round(float(ink), 2)])
    return folder / "items.csv"
