"""What every store of codes must do: give back what was written, find the nearest, say what is not its own."""

from __future__ import annotations

import importlib
import json
import pkgutil
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_digits

from cghash import CGHash, WeightedHammingIndex, stores
from cghash.codes import unpack, weighted_hamming
from cghash.estimator import load
from cghash.exceptions import FormatError, InvalidInputError, MissingDependencyError
from cghash.peers import ITQ, LSH
from cghash.stores import Origin, base, origin_of
from cghash.stores.duckdb import DuckDBStore
from cghash.stores.faiss import FaissStore
from cghash.stores.parquet import ParquetStore
from cghash.stores.postgres import PostgresStore

pytestmark = pytest.mark.portable


@dataclass
class Case:
    """What the contract must know of a store beside its class."""

    store: type[base.Store]
    options: dict[str, Any] = field(default_factory=dict)  # of `write`
    proven: bool = True  # whether every answer is exact
    gaps: bool = False  # whether a file has bytes that mean nothing, so that damage there goes unseen
    file: bool = True  # whether it is kept in a file of its own, at a path; else `place` must know where
    flips: int = 100  # bytes that are altered, one after another


CASES = {
    "faiss exact": Case(FaissStore, {"kind": "exact"}),
    "faiss binary": Case(FaissStore, {"kind": "binary", "n_bits": 64}, proven=False),
    "faiss hnsw": Case(FaissStore, {"kind": "hnsw", "n_bits": 64}, proven=False),
    "parquet": Case(ParquetStore, gaps=True),
    "duckdb": Case(DuckDBStore, gaps=True, flips=10),
    "postgres scan": Case(PostgresStore, {"hnsw": False}, file=False),
    "postgres hnsw": Case(PostgresStore, {"n_bits": 64}, proven=False, file=False),
}
of_files = pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.file])


def test_every_store_is_held_to_the_contract():
    for module in pkgutil.iter_modules(stores.__path__, "cghash.stores."):
        importlib.import_module(module.name)
    assert set(base.Store.__subclasses__()) == {case.store for case in CASES.values()}, "add a new store to CASES"


def random_codes(rng, n, n_bits, distinct=None):
    """Packed codes; of `distinct` different ones, so that many distances are equal."""
    rows = rng.integers(0, 2, (distinct or max(n, 1), n_bits), dtype=np.uint8)
    bits = rows[rng.integers(0, len(rows), n)]
    return np.packbits(bits, axis=1, bitorder="little")


def nearest(origin, queries, codes, ids, k):
    """Brute force: distances (q, n) of all, then order (distance, id)."""
    bits = [unpack(c, origin.n_bits) for c in (queries, codes)]
    distances = weighted_hamming(*bits, origin.weights)
    order = np.stack([np.lexsort((ids, row))[:k] for row in distances])
    return np.take_along_axis(distances, order, axis=1), ids[order]


@pytest.fixture(params=CASES)
def name(request):
    return request.param


@pytest.fixture
def place(name, tmp_path, request):
    """Where a store of a name is: the path of a file, or a URL and a table."""
    if CASES[name].file:
        return lambda path: (tmp_path / path, {})
    url = request.getfixturevalue("postgres")()
    return lambda path: (url, {"table": path})


@pytest.fixture
def file(tmp_path):
    return tmp_path / "codes.store"


@pytest.fixture
def write(name, place):
    case, opened = CASES[name], []

    def written(*arguments, path="codes.store", **more):
        where, named = place(path)
        opened.append(case.store.write(where, *arguments, **case.options, **named, **more))
        return opened[-1]

    yield written
    for store in opened:
        close(store)


def close(store):
    if hasattr(store, "close"):
        store.close()


@pytest.fixture
def reopen(name, place):
    where, named = place("codes.store")
    return partial(CASES[name].store.open, where, **named)


@given(st.integers(0, 2**32 - 1), st.sampled_from([1, 7, 8, 9, 40, 64, 100]), st.sampled_from([0, 1, 5, 60]))
@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_proven_answers_are_the_nearest_of_all_and_distances_are_those_of_the_weights(write, name, seed, n_bits, n):
    rng = np.random.default_rng(seed)
    origin = Origin(rng.exponential(size=n_bits) * rng.integers(0, 3, n_bits))
    codes = random_codes(rng, n, n_bits, distinct=rng.integers(1, 20))
    ids = rng.choice(10**6, n, replace=False).astype(np.int64)
    queries = random_codes(rng, 4, n_bits)
    k = int(rng.integers(1, 12))
    store = write(origin, codes, ids, path=f"{seed}-{n_bits}-{n}")
    found = store.search(queries, k)
    close(store)
    assert found.distances.shape == found.ids.shape == (4, k)
    assert found.exact.all() or not CASES[name].proven
    here = min(n, k)
    distances, nearest_ids = nearest(origin, queries, codes, ids, k)
    np.testing.assert_array_equal(found.distances[found.exact][:, :here], distances[found.exact])
    np.testing.assert_array_equal(found.ids[found.exact][:, :here], nearest_ids[found.exact])
    assert np.all(found.ids[:, here:] == -1)
    assert np.all(np.isinf(found.distances[:, here:]))
    for row, query in enumerate(queries):  # also of an answer that is not proven
        shown = found.ids[row][found.ids[row] >= 0]
        assert len(set(shown.tolist())) == len(shown)
        bits = unpack(query[None], n_bits), unpack(codes[[ids.tolist().index(i) for i in shown]], n_bits)
        np.testing.assert_array_equal(found.distances[row, : len(shown)], weighted_hamming(*bits, origin.weights)[0])


def test_written_codes_are_found_again_after_opening(write, reopen):
    rng = np.random.default_rng(0)
    origin, codes = Origin(rng.exponential(size=33)), random_codes(rng, 300, 33)
    ids = rng.choice(2**62, 300, replace=False)
    store = write(origin, codes, ids)
    before = store.search(codes[:20], 5)
    close(store)
    again = reopen(origin)
    for old, new in zip(before, again.search(codes[:20], 5), strict=True):
        np.testing.assert_array_equal(old, new)
    assert (len(again), again.origin.n_bits, again.origin.fingerprint) == (300, 33, origin.fingerprint)
    np.testing.assert_array_equal(again.origin.weights, origin.weights)
    assert again.info()["fingerprint"] == origin.fingerprint
    assert "300 codes of 33 bits" in repr(again)
    close(again)


def test_answers_are_those_of_our_own_index(write, name):
    rng = np.random.default_rng(3)
    weights = rng.exponential(size=48)
    codes, queries = random_codes(rng, 2000, 48, distinct=900), random_codes(rng, 30, 48)
    index = WeightedHammingIndex(48, weights)
    index.add(codes)
    distances, ids = index.search(queries, 10)
    found = write(Origin(weights), codes).search(queries, 10)
    np.testing.assert_array_equal(found.ids[found.exact], ids[found.exact])
    np.testing.assert_array_equal(found.distances[found.exact], distances[found.exact])
    recall = np.mean([np.isin(a, b).mean() for a, b in zip(distances, found.distances, strict=True)])
    assert recall == 1.0 if CASES[name].proven else recall > 0.9


@pytest.mark.parametrize("scale", [1e-200, 1e200])
def test_unit_of_the_weights_is_kept_however_small_or_large(write, scale):
    codes = random_codes(np.random.default_rng(0), 50, 20)
    origin = Origin(np.linspace(1.0, 2.0, 20) * scale)
    found = write(origin, codes).search(codes[:5], 3)
    expected, _ = nearest(origin, codes[:5], codes, np.arange(50), 3)
    np.testing.assert_array_equal(found.distances, expected)


@pytest.fixture(scope="module")
def two_models():
    X, y = load_digits(return_X_y=True)
    return X[:150], [CGHash(8, random_state=seed).fit(X[:150], y[:150]) for seed in (0, 1)]


def test_items_are_searched_with_the_model_that_made_the_codes_and_with_no_other(write, reopen, two_models):
    X, (model, other) = two_models
    store = write(model, model.encode(X))
    found = store.search_items(model, X[:5], 1)
    assert np.all(found.distances == 0)
    with pytest.raises(InvalidInputError, match="got one with other"):
        store.search_items(other, X[:5], 1)
    close(store)
    with pytest.raises(InvalidInputError, match="model must be the one whose codes"):
        reopen(other)
    close(reopen(model))


def test_model_read_from_its_file_has_the_same_fingerprint(tmp_path, two_models):
    X, (model, _) = two_models
    for one in (model, LSH(8, random_state=0).fit(X), ITQ(4, random_state=0).fit(X)):
        one.save(tmp_path / "model.cghash")
        assert origin_of(load(tmp_path / "model.cghash")).fingerprint == origin_of(one).fingerprint


def test_fingerprints_differ_by_bits_weights_and_functions(two_models):
    X, (model, other) = two_models
    origins = [origin_of(model), origin_of(other), origin_of(model.truncate(3)), Origin(model.weights_)]
    origins += [Origin(np.ones(8)), origin_of(LSH(8, random_state=0).fit(X)), origin_of(LSH(8, random_state=1).fit(X))]
    assert len({origin.fingerprint for origin in origins}) == len(origins)


def test_wrong_codes_ids_and_queries_are_named(write):
    codes = random_codes(np.random.default_rng(0), 5, 12)
    with pytest.raises(InvalidInputError, match=r"codes must be packed uint8 of shape \(n, 2\) for 12 bits"):
        write(Origin(np.ones(12)), codes[:, :1])
    with pytest.raises(InvalidInputError, match="codes must have 0 in the bits past n_bits=10"):
        write(Origin(np.ones(10)), np.full((1, 2), 255, dtype=np.uint8))
    with pytest.raises(InvalidInputError, match="ids must be as many as codes, 5, got 2"):
        write(Origin(np.ones(12)), codes, [1, 2])
    with pytest.raises(InvalidInputError, match="ids must be different, got 4 twice"):
        write(Origin(np.ones(12)), codes, [4, 1, 2, 3, 4])
    with pytest.raises(InvalidInputError, match="model must be a fitted estimator of codes or an Origin, got 'x'"):
        write("x", codes)
    store = write(Origin(np.ones(12)), codes)
    with pytest.raises(InvalidInputError, match="queries must be packed uint8"):
        store.search(codes[:, :1], 1)
    with pytest.raises(InvalidInputError, match="k must be a whole number of at least 1, got 0"):
        store.search(codes, 0)
    assert store.search(codes[:0], 3).ids.shape == (0, 3)


def test_failed_write_leaves_what_was_there(write, reopen):
    codes = random_codes(np.random.default_rng(0), 5, 12)
    close(write(Origin(np.ones(12)), codes))
    with pytest.raises(InvalidInputError):
        write(Origin(np.ones(12)), codes, [0, 0, 0, 0, 0])
    store = reopen()
    assert len(store) == 5
    close(store)


def test_codes_are_replaced_by_writing_again(write, reopen):
    codes = random_codes(np.random.default_rng(0), 5, 12)
    close(write(Origin(np.ones(12)), codes))
    close(write(Origin(np.full(12, 2.0)), codes[:3]))
    store = reopen()
    assert len(store) == 3
    assert store.origin.weights[0] == 2.0
    close(store)


@of_files
@pytest.mark.parametrize("content", [b"", b"PAR1", b"not one of ours" * 1000])
def test_foreign_file_is_a_format_error(file, reopen, content):
    file.write_bytes(content)
    with pytest.raises(FormatError, match=r"codes\.store"):
        reopen()


@of_files
def test_missing_file_is_what_the_system_says_and_a_folder_is_a_format_error(file, reopen):
    with pytest.raises(FileNotFoundError, match=r"codes\.store"):
        reopen()
    file.mkdir()
    with pytest.raises(FormatError, match=r"codes\.store"):
        reopen()


def changes_nothing(reopen, name, queries, expected):
    """Whether a damaged store is refused, or was damaged where nothing is."""
    try:
        opened = reopen()
        found = opened.search(queries, 3)
        close(opened)
    except FormatError as error:
        return "codes.store" in str(error)
    same = np.array_equal(found.ids, expected.ids) and np.array_equal(found.distances, expected.distances)
    return same and CASES[name].gaps


@of_files
@pytest.mark.parametrize("share", [0.1, 0.5, 0.9, 0.999])
def test_half_written_file_is_a_format_error_or_nothing_is_missing(file, write, reopen, name, share):
    codes = random_codes(np.random.default_rng(0), 4000, 64)
    store = write(Origin(np.ones(64)), codes)
    expected = store.search(codes[:5], 3)
    close(store)
    content = file.read_bytes()
    file.write_bytes(content[: int(share * len(content))])
    assert changes_nothing(reopen, name, codes[:5], expected)


@of_files
def test_altered_byte_is_a_format_error_or_changes_nothing(file, write, reopen, name):
    rng = np.random.default_rng(0)
    origin, codes = Origin(rng.exponential(size=40)), random_codes(rng, 200, 40)
    store = write(origin, codes)
    expected = store.search(codes[:5], 3)
    close(store)
    content = file.read_bytes()
    for place in rng.integers(0, len(content), CASES[name].flips):
        damaged = bytearray(content)
        damaged[place] ^= 1 << rng.integers(8)
        file.write_bytes(damaged)
        assert changes_nothing(reopen, name, codes[:5], expected), place


def test_missing_package_says_how_to_install_it():
    with pytest.raises(MissingDependencyError, match=r'pip install "cghash\[parquet\]"'):
        base.require("no_such_package", "parquet")


FIXTURES = Path(__file__).parents[1] / "fixtures"


@pytest.mark.parametrize(
    ("cls", "file"),
    [
        (ParquetStore, "codes-v1.parquet"),
        (FaissStore, "codes-v1-exact.faiss"),
        (FaissStore, "codes-v1-binary.faiss"),
    ],
)
def test_files_of_version_1_still_load_and_answer_the_same(cls, file):
    expected = json.loads((FIXTURES / "codes-v1.json").read_text())
    store = cls.open(FIXTURES / file, Origin(expected["weights"], expected["functions"]))
    assert store.origin.fingerprint == expected["fingerprint"]
    assert (store.codes.tolist(), store.ids.tolist()) == (expected["codes"], expected["ids"])
    found = store.search(np.array(expected["queries"], dtype=np.uint8), 4)
    assert (found.distances.tolist(), found.ids.tolist()) == (expected["distances"], expected["found"])
