"""VectorIndex: a shortlist by codes and its order by vectors, against brute force; changes, folders, damage."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cghash import VectorIndex
from cghash.codes import unpack, weighted_hamming
from cghash.exceptions import FormatError, InUseError, InvalidInputError
from cghash.peers import ITQ, LSH

pytestmark = pytest.mark.core

KINDS, METRICS = ["float32", "float16", "int8"], ["cosine", "euclidean", "inner"]


def vectors(rng, n, d=12):
    centres = rng.normal(size=(8, d))
    return (centres[rng.integers(0, 8, n)] + 0.5 * rng.normal(size=(n, d))).astype(np.float32)


@pytest.fixture(scope="module")
def model():
    return ITQ(12, random_state=0).fit(vectors(np.random.default_rng(0), 300))


def distances_of(query, X, metric):
    """In float64, (n,)."""
    q, X = query.astype(np.float64), X.astype(np.float64)
    if metric == "euclidean":
        return np.sqrt(((X - q) ** 2).sum(axis=1))
    if metric == "inner":
        return -X @ q
    return 1 - X @ q / (np.linalg.norm(X, axis=1) * np.linalg.norm(q))


def shortlist_of(index, model, query, n_candidates):
    """Ids of the nearest codes under the query's weights, in the order in which their vectors were added."""
    ids = index.ids
    asked = model.query(query[None])
    bits = model.transform(index.reconstruct(ids))  # of the vectors as they are kept: the same for float32
    distances = weighted_hamming(unpack(asked.codes, model.n_bits_), bits, asked.weights[0])[0]
    return ids[np.lexsort((np.arange(len(ids)), distances))[:n_candidates]]


@settings(max_examples=25)
@given(data=st.data())
def test_search_ranks_the_nearest_codes_by_their_vectors(model, data):
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    metric, n = data.draw(st.sampled_from(METRICS)), data.draw(st.integers(1, 200))
    index = VectorIndex(model, metric=metric, vectors="float32", candidates=data.draw(st.integers(1, 60)))
    index.add(vectors(rng, n), data.draw(st.sampled_from([None, rng.permutation(500)[:n]])))
    queries, k = vectors(rng, 4), data.draw(st.integers(1, 80))
    distances, ids = index.search(queries, k)
    for row, query in enumerate(queries):
        short = shortlist_of(index, model, query, max(k, index.candidates))
        right = distances_of(query, index.reconstruct(short), metric)
        order = np.argsort(right, kind="stable")[:k]
        m = len(order)
        np.testing.assert_allclose(distances[row, :m], right[order], rtol=1e-4, atol=1e-5)
        assert set(ids[row, :m]) <= set(short)
        assert len(set(ids[row, :m])) == m
        assert np.all(ids[row, m:] == -1)
        assert np.all(np.isinf(distances[row, m:]))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("metric", METRICS)
def test_with_all_codes_as_candidates_the_true_neighbours_are_found(model, kind, metric):
    rng = np.random.default_rng(1)
    X, queries = vectors(rng, 400), vectors(rng, 20)
    index = VectorIndex(model, metric=metric, vectors=kind, candidates=400)
    index.add(X)
    kept = index.reconstruct(np.arange(400))
    worst = {"float32": 0, "float16": 2e-3, "int8": np.abs(X).max(axis=0) / 254 + 1e-6}[kind]
    assert np.all(np.abs(kept - X) <= worst)
    distances, ids = index.search(queries, 5)
    for row, query in enumerate(queries):
        right = distances_of(query, kept, metric)
        np.testing.assert_allclose(distances[row], np.sort(right)[:5], rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(right[ids[row]], distances[row], rtol=1e-4, atol=1e-5)


def test_one_vector_gives_flat_answers_and_a_filter_holds(model):
    rng = np.random.default_rng(2)
    X = vectors(rng, 300)
    index = VectorIndex(model, candidates=20)
    index.add(X)
    distances, ids = index.search(X[7], 3)
    assert distances.shape == ids.shape == (3,)
    assert ids[0] == 7
    some = rng.permutation(300)[:30]
    assert set(index.search(X[:5], 20, filter=some)[1].ravel()) <= {*some, -1}
    mask = np.zeros(300, dtype=bool)
    mask[some] = True
    np.testing.assert_array_equal(index.search(X[:5], 9, filter=mask), index.search(X[:5], 9, filter=np.sort(some)))
    assert index.search(X[:2], 3, candidates=300)[1][:, 0].tolist() == [0, 1]


@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_any_order_of_changes_leaves_what_a_dictionary_would_hold(model, data, tmp_path_factory):
    """In memory, and in a folder that is opened again."""
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    on_disk = data.draw(st.booleans())
    index = VectorIndex(model, metric="euclidean", vectors="float32", candidates=50)
    folder = tmp_path_factory.mktemp("vectors")
    if on_disk:
        index.save(folder)
        index = VectorIndex.load(folder, writable=True)
    held = {}
    for _ in range(data.draw(st.integers(1, 8))):
        step = data.draw(st.sampled_from(["add", "add ids", "update", "remove", "compact", "again"]))
        some = rng.permutation(sorted(held))[: data.draw(st.integers(0, 5))].astype(np.int64)
        new = vectors(rng, data.draw(st.integers(0, 6)))
        if step == "add":
            first = int(index.ids.max(initial=-1)) + 1
            index.add(new)
            added = index.ids[len(held) :]
            assert added.min(initial=first) >= first
            held |= dict(zip(added.tolist(), new, strict=True))
        elif step == "add ids":
            free = rng.permutation([i for i in range(60) if i not in held])[: len(new)]
            index.add(new[: len(free)], free)
            held |= dict(zip(free.tolist(), new, strict=False))
        elif step == "update":
            new = vectors(rng, len(some))
            index.update(new, some)
            held |= dict(zip(some.tolist(), new, strict=True))
        elif step == "remove":
            index.remove(some)
            held = {i: x for i, x in held.items() if i not in some}
        elif step == "compact":
            index.compact()
        elif on_disk:
            index.close()
            index = VectorIndex.load(folder, writable=True)
        assert set(index.ids.tolist()) == set(held)
        if held:
            wanted = np.array(sorted(held))
            np.testing.assert_array_equal(index.reconstruct(wanted), np.stack([held[i] for i in wanted]))
            distances, ids = index.search(held[int(wanted[0])], 1, candidates=500)
            assert distances[0] == 0
            np.testing.assert_array_equal(held[int(ids[0])], held[int(wanted[0])])
    index.close()
    if on_disk:
        assert VectorIndex.verify(folder)["n_codes"] == len(held)
    shutil.rmtree(folder)


def test_vectors_come_as_arrays_maps_and_blocks(model, tmp_path):
    X = vectors(np.random.default_rng(3), 40_000)
    np.save(tmp_path / "x.npy", X)
    whole = VectorIndex(model, vectors="int8")
    whole.add(X)
    for some in (np.load(tmp_path / "x.npy", mmap_mode="r"), iter(np.array_split(X, 7)), X.astype(np.float64)):
        index = VectorIndex(model, vectors="float16")
        index.add(some)
        assert len(index) == 40_000
        np.testing.assert_array_equal(index.search(X[:3], 5)[1][:, 0], [0, 1, 2])
    assert whole.info()["vector_bytes"] == 40_000 * (12 + 4)


def test_tune_finds_the_least_number_of_candidates(model):
    rng = np.random.default_rng(4)
    X, queries = vectors(rng, 2000), vectors(rng, 100)
    index = VectorIndex(model, metric="euclidean", vectors="float32")
    index.add(X)
    true = np.stack([np.argsort(distances_of(query, X, "euclidean"))[:10] for query in queries])

    def recall(candidates):
        found = index.search(queries, 10, candidates=candidates)[1]
        return np.mean([np.isin(*pair).mean() for pair in zip(true, found, strict=True)])

    for wanted in (0.5, 0.9, 1.0):
        chosen = index.tune(queries, recall=wanted)
        assert index.candidates == chosen
        assert recall(chosen) >= wanted
        assert chosen == 10 or recall(chosen - 1) < wanted
    assert index.tune(queries, recall=0.001) == 10


def test_a_folder_holds_the_index_and_its_model(model, tmp_path):
    rng = np.random.default_rng(5)
    X = vectors(rng, 500)
    index = VectorIndex(model, metric="inner", vectors="int8", candidates=33)
    index.add(X)
    index.remove([3])
    index.save(tmp_path / "shop")
    loaded = VectorIndex.load(tmp_path / "shop")
    assert (loaded.metric, loaded.candidates, len(loaded)) == ("inner", 33, 499)
    np.testing.assert_array_equal(loaded.search(X[:9], 7), index.search(X[:9], 7))
    assert loaded.info()["memory"] < index.info()["memory"]
    assert "int8" in repr(loaded)
    for change in (lambda: loaded.add(X[:2]), lambda: loaded.remove([1]), lambda: loaded.update(X[:1], [1])):
        with pytest.raises(InvalidInputError, match="loaded to be read only"):
            change()
    assert len(VectorIndex.load(tmp_path / "shop")) == 499
    index.save(tmp_path / "shop")  # over itself
    np.testing.assert_array_equal(VectorIndex.load(tmp_path / "shop").search(X[:9], 7), index.search(X[:9], 7))


def test_what_was_acknowledged_is_there_after_a_kill(model, tmp_path):
    """Nothing is closed: the folder is copied as a kill would leave it, with rows that no code knows behind."""
    rng = np.random.default_rng(6)
    X = vectors(rng, 60)
    VectorIndex(model, vectors="float32").save(tmp_path / "live")
    with VectorIndex.load(tmp_path / "live", writable=True) as index:
        index.add(X[:40])
        index.update(X[40:50], np.arange(10))
        index.remove([20])
        shutil.copytree(tmp_path / "live", tmp_path / "killed")
        with pytest.raises(InUseError, match="one writer at a time"):
            VectorIndex.load(tmp_path / "live", writable=True)
    [rows] = (tmp_path / "killed").glob("vectors-*.bin")
    with open(rows, "ab") as file:
        file.write(b"half a row")
    for writable in (False, True):
        with VectorIndex.load(tmp_path / "killed", writable=writable) as again:
            assert sorted(again.ids) == [i for i in range(40) if i != 20]
            np.testing.assert_array_equal(again.reconstruct(np.arange(20)), np.concatenate([X[40:50], X[10:20]]))
    with VectorIndex.load(tmp_path / "killed", writable=True) as again:
        again.add(X[50:])
        assert again.ids.max() == 49
        again.compact()
        np.testing.assert_array_equal(again.reconstruct([45]), X[55:56])
    assert VectorIndex.verify(tmp_path / "killed")["n_codes"] == 49


def test_an_add_that_fails_leaves_what_was_there(model, tmp_path, monkeypatch):
    X = vectors(np.random.default_rng(7), 30)
    VectorIndex(model).save(tmp_path / "x")
    with VectorIndex.load(tmp_path / "x", writable=True) as index:
        index.add(X[:10])

        def full(*_):
            raise OSError(28, "No space left on device")

        with monkeypatch.context() as patch:
            patch.setattr(type(index._persistence.log), "_append", full)
            with pytest.raises(OSError, match="No space"):
                index.add(X[10:])
        assert len(index) == 10
        index.add(X[20:])
        np.testing.assert_allclose(index.reconstruct([10, 19]), X[[20, 29]], atol=2e-3)
    assert VectorIndex.verify(tmp_path / "x")["n_codes"] == 20


def damaged(folder, how):
    [rows] = folder.glob("vectors-*.bin")
    if how == "gone":
        rows.unlink()
    elif how == "shorter":
        rows.write_bytes(rows.read_bytes()[:-1])
    elif how == "altered":
        content = bytearray(rows.read_bytes())
        content[3] ^= 1
        rows.write_bytes(content)
    elif how == "no model":
        (folder / "model.cghash").unlink()
    elif how == "no about":
        (folder / "about.json").unlink()
    else:
        about = json.loads((folder / "about.json").read_text())
        (folder / "about.json").write_text(json.dumps(about | how))


@pytest.mark.parametrize(
    ("how", "error", "message"),
    [
        ("gone", FormatError, "lacks vectors-0.bin, which about.json names"),
        ({"generation": 7}, FormatError, "lacks codes-7.cghash"),
        ("shorter", FormatError, "cut short: it must hold 50 vectors of 28 bytes, 1400 bytes, got 1399"),
        ("altered", FormatError, "vector 0 does not match its checksum"),
        ("no model", FormatError, "lacks model.cghash: put it back, or name the model"),
        ("no about", FormatError, "is not the folder of a VectorIndex: it must hold about.json"),
        ({"mark": "0" * 32}, FormatError, "does not match its checksum, or is of another index"),
        ({"format": "x"}, FormatError, "format must be 'cghash-vectors'"),
        ({"version": 2}, FormatError, "version must be 1, got 2"),
        ({"dim": 13}, FormatError, "cut short"),
        ({"metric": "hamming"}, FormatError, "metric must be one of"),
        ({"scales": [1.0]}, FormatError, "scales must be those of int8"),
        ({"extra": 1}, FormatError, "unexpected keyword"),
    ],
)
def test_what_is_damaged_or_missing_is_said(model, tmp_path, how, error, message):
    index = VectorIndex(model, vectors="float16")
    index.add(vectors(np.random.default_rng(8), 50))
    index.save(tmp_path / "x")
    damaged(tmp_path / "x", how)
    with pytest.raises(error, match=message):
        VectorIndex.load(tmp_path / "x")


def test_damage_anywhere_is_found_by_verify(model, tmp_path):
    index = VectorIndex(model)
    index.add(vectors(np.random.default_rng(9), 3000))
    index.save(tmp_path / "x")
    [rows] = (tmp_path / "x").glob("vectors-*.bin")
    content = bytearray(rows.read_bytes())
    content[28 * 1234 + 5] ^= 16
    rows.write_bytes(content)
    VectorIndex.load(tmp_path / "x")  # looks at some alone
    with pytest.raises(FormatError, match="vector 1234 does not match"):
        VectorIndex.verify(tmp_path / "x")


def test_a_model_with_other_functions_is_refused(model, tmp_path):
    X = vectors(np.random.default_rng(10), 50)
    index = VectorIndex(model)
    index.add(X)
    index.save(tmp_path / "x")
    assert len(VectorIndex.load(tmp_path / "x", model=model)) == 50
    with pytest.raises(InvalidInputError, match="model must be the one that made the codes"):
        VectorIndex.load(tmp_path / "x", model=LSH(12, random_state=1).fit(X))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda i, X: VectorIndex(ITQ(4)), "model must be fitted, with encode and query"),
        (lambda i, X: VectorIndex(i.model, metric="hamming"), "metric must be one of"),
        (lambda i, X: VectorIndex(i.model, vectors="int4"), "vectors must be one of"),
        (lambda i, X: VectorIndex(i.model, candidates=0), "candidates must be a whole number of at least 1, got 0"),
        (lambda i, X: i.add(X[0]), r"X must be vectors \(n, d\), a row each, got shape \(12,\)"),
        (lambda i, X: i.add(X[:, :5]), "5 features"),
        (lambda i, X: i.add(np.full((2, 12), np.nan)), "NaN"),
        (lambda i, X: i.add(np.full((2, 12), 1e6)), "within the range of float16"),
        (lambda i, X: i.add(X[:2], [7]), "ids must be as many as the 2 vectors of X, got 1"),
        (lambda i, X: i.add(X[:2], [70, 71, 72]), "ids must be as many as the 2 vectors of X, got 3"),
        (lambda i, X: i.add(X[:2], [70, 1]), "ids must be new to the index, got 1"),
        (lambda i, X: i.update(X[:2], [1]), "ids must be as many as the 2 vectors"),
        (lambda i, X: i.update(X[:1], [99]), "ids must be in the index, got 99"),
        (lambda i, X: i.remove([99]), "ids must be in the index, got 99"),
        (lambda i, X: i.search(X[:2], 0), "k must be a whole number of at least 1, got 0"),
        (lambda i, X: i.search(X[:2], 3, candidates=0), "candidates must be a whole number"),
        (lambda i, X: i.search(X[:2, :5], 3), "5 features"),
        (lambda i, X: i.search(X[:2], 3, filter=[99]), "filter must be in the index, got 99"),
        (lambda i, X: i.tune(X[:3], recall=0), "recall must be a number above 0, at most 1, got 0"),
        (lambda i, X: i.tune(X[:0]), "tune needs vectors in the index, and queries"),
    ],
)
def test_what_is_wrong_is_said_and_nothing_changes(model, wrong, message):
    X = vectors(np.random.default_rng(11), 20)
    index = VectorIndex(model, vectors="float16")
    index.add(X)
    with pytest.raises(InvalidInputError, match=message):
        wrong(index, X)
    assert len(index) == 20
    np.testing.assert_allclose(index.reconstruct(np.arange(20)), X, atol=4e-3)


def test_an_index_without_vectors_finds_nothing(model):
    distances, ids = VectorIndex(model).search(np.ones((2, 12)), 3)
    assert np.all(np.isinf(distances))
    assert np.all(ids == -1)
