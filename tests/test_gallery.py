"""The gallery's scripts run, make their pictures, and print what its page shows."""

from __future__ import annotations

import contextlib
import io
import re
import runpy
import warnings
from pathlib import Path

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

import cghash.hasher  # noqa: F401  loads every BLAS, so that threadpool_limits reaches it

ROOT = Path(__file__).parents[1]
GALLERY = ROOT / "docs" / "gallery"
PAGE = (GALLERY / "index.md").read_text("utf-8")
SCRIPTS = sorted((ROOT / "examples").glob("*.py"))
NUMBER = r"-?\d+(?:\.\d+)?"

pytest.importorskip("matplotlib")


def alike(shown, printed):
    """Whether two texts agree: words exactly, numbers to a tenth or 0.05, as BLAS and rounding move them."""
    words = [re.sub(NUMBER, "#", text).split() for text in (shown, printed)]
    numbers = [np.array(re.findall(NUMBER, text), dtype=float) for text in (shown, printed)]
    return words[0] == words[1] and np.allclose(*numbers, rtol=0.1, atol=0.05)


@pytest.mark.slow
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_example_prints_what_the_gallery_shows_and_draws_its_picture(script, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    printed = io.StringIO()
    with threadpool_limits(1), warnings.catch_warnings(), contextlib.redirect_stdout(printed):
        runpy.run_path(str(script), run_name="__main__")
    shown = (GALLERY / f"{script.stem}.txt").read_text("utf-8")
    assert alike(shown, printed.getvalue()), (
        f"run python docs/gallery.py {script.stem}; it printed {printed.getvalue()}"
    )
    pictures = {picture.name: dimensions(picture) for picture in tmp_path.glob("*.png")}
    assert pictures == {kept.name: dimensions(kept) for kept in GALLERY.glob(f"{script.stem}.png")}


def dimensions(picture):
    from PIL import Image

    with Image.open(picture) as image:
        image.load()
        assert len(image.convert("RGB").getcolors(10**6)) > 8, "nothing is drawn"
        return image.size


def test_words_must_agree_and_numbers_nearly():
    assert alike("mAP 0.95\nbits 32", "mAP  0.93\nbits 32\n")
    assert not alike("mAP 0.95", "mAP 0.70")
    assert not alike("mAP 0.95", "top 0.95")
    assert not alike("mAP 0.95", "mAP 0.95 0.95")


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_every_example_is_on_the_page_and_short(script):
    assert f"```{{literalinclude}} ../../examples/{script.name}\n" in PAGE
    assert f"```{{literalinclude}} {script.stem}.txt\n" in PAGE
    assert (f"({script.stem}.png)" in PAGE) == ("savefig" in script.read_text("utf-8"))
    assert script.read_text("utf-8").count("\n") < 60


def test_page_shows_only_what_there_is():
    shown = re.findall(r"literalinclude\} (\S+)", PAGE) + re.findall(r"!\[.*?\]\((\S+)\)", PAGE)
    assert shown
    for name in shown:
        assert (GALLERY / name).is_file(), name
    kept = {file.name for file in GALLERY.iterdir()} - {"index.md"}
    assert kept <= set(shown), "pictures or lines that no example makes any more"


def test_pictures_are_small():
    assert sum(picture.stat().st_size for picture in GALLERY.glob("*.png")) < 500_000
