"""`cghash vectors` and `cghash search` of a folder: vectors in, neighbours out."""

from __future__ import annotations

import json

import numpy as np
import pytest
from sklearn.datasets import load_digits

from cghash import VectorIndex
from cghash.peers import ITQ

from .command_line import refused, run

X = load_digits(return_X_y=True)[0][:400]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder with a model, items, and a folder of 300 vectors, not to be changed."""
    folder = tmp_path_factory.mktemp("data")
    ITQ(24, random_state=0).fit(X[:300]).save(folder / "model")
    np.save(folder / "x.npy", X[:300])
    np.save(folder / "q.npy", X[300:])
    np.save(folder / "ids.npy", np.arange(300) * 2)
    how = "--metric", "euclidean", "--vectors", "float32", "--ids", folder / "ids.npy"
    said = run("vectors", "build", folder / "x.npy", "--model", folder / "model", *how, "-o", folder / "shop").stderr
    assert "300 vectors as float32, codes of 24 bits" in said
    return folder


@pytest.fixture
def shop(made, tmp_path):
    """A folder of vectors that a test may change."""
    index = VectorIndex.load(made / "shop")
    index.save(tmp_path / "shop")
    return tmp_path / "shop"


def test_search_gives_the_true_neighbours_where_all_codes_are_candidates(made):
    ask = "--queries", made / "q.npy", "-k", 3, "--candidates", 300, "--format", "jsonl"
    lines = run("search", made / "shop", *ask).stdout.splitlines()
    squares = ((X[300:, None] - X[None, :300]) ** 2).sum(axis=2)
    for line, row in zip(map(json.loads, lines), squares, strict=True):
        nearest = np.argsort(row, kind="stable")[:3]
        assert line["ids"] == (2 * nearest).tolist()
        np.testing.assert_allclose(line["distances"], np.sqrt(row[nearest]))


def test_tuned_candidates_are_kept_and_used(made, shop):
    said = run("vectors", "tune", shop, "--queries", made / "q.npy", "--recall", 0.9, "-k", 5).stderr
    index = VectorIndex.load(shop)
    assert f"{index.candidates} candidates find 0.9 of the 5 nearest" in said
    distances, ids = index.search(X[300:], 5)
    found = run("search", shop, "--queries", made / "q.npy", "-k", 5, "--format", "jsonl").stdout.splitlines()
    assert [json.loads(line)["ids"] for line in found] == ids.tolist()
    assert np.isfinite(distances).all()


def test_added_vectors_are_found_and_everything_is_verified(made, shop):
    run("vectors", "add", shop, made / "q.npy")
    assert len(VectorIndex.load(shop)) == 400
    with VectorIndex.load(shop, writable=True) as index:
        index.remove([0, 2])
    assert "398 vectors as float32 and their codes are as they were written" in run("vectors", "verify", shop).stderr
    assert "2 removed vectors dropped, 398" in run("vectors", "compact", shop).stderr
    assert "398 vectors" in run("vectors", "verify", shop).stderr


def test_what_is_wrong_is_one_line(made, shop):
    build = "vectors", "build", made / "x.npy", "--model", made / "model"
    assert "must be a new folder" in refused(*build, "-o", shop)
    assert "is not the folder of a VectorIndex" in refused("vectors", "add", made / "nowhere", made / "x.npy")
    assert "ids must be new to the index, got 0" in refused(
        "vectors", "add", shop, made / "x.npy", "--ids", made / "ids.npy"
    )
    np.save(shop.parent / "narrow.npy", X[:3, :5])
    assert "5 features" in refused("search", shop, "--queries", shop.parent / "narrow.npy")
    assert "--candidates is for a folder" in refused(
        "search", made / "model", "--queries", made / "q.npy", "--candidates", 9
    )
    assert len(VectorIndex.load(shop)) == 300
