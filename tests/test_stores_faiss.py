"""Indexes of FAISS: what its own tools read, what is proven, what is refused."""

from __future__ import annotations

import json
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cghash.codes import expand, unpack, weighted_hamming
from cghash.exceptions import FormatError, InvalidInputError
from cghash.peers import LSH, PQ
from cghash.stores import Origin
from cghash.stores import faiss as stores_faiss
from cghash.stores.faiss import FaissStore, to_faiss
from cghash.stores.faiss_indexes import centroids, check_centroids
from cghash.stores.ranking import NONE, least_distances, rank

pytestmark = pytest.mark.portable

faiss = pytest.importorskip("faiss")


@pytest.fixture
def origin():
    return Origin(np.random.default_rng(0).exponential(size=43))


@pytest.fixture
def codes():
    bits = np.random.default_rng(1).integers(0, 2, (400, 43), dtype=np.uint8)
    return np.packbits(bits, axis=1, bitorder="little")


def test_squared_distances_of_the_exact_index_are_weighted_distances_in_parts_of_a_power_of_two(origin, codes):
    """FAISS decodes a code to √w_j·bit_j, and Σ (√w_j·bit_j − √w_j·bit'_j)² is the weighted distance."""
    store = to_faiss(origin, codes)  # held: it owns the index inside
    vectors = faiss.downcast_index(store.index.index).sa_decode(codes)
    squared = ((vectors[:20, None] - vectors[None]) ** 2).sum(axis=2)
    bits = unpack(codes, 43)
    unit = 2.0 ** np.ceil(np.log2(np.sum(origin.weights)))
    np.testing.assert_allclose(squared * unit, weighted_hamming(bits[:20], bits, origin.weights), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("kind", ["exact", "binary", "hnsw"])
def test_file_is_read_by_faiss_itself_with_its_ids(tmp_path, origin, codes, kind):
    ids = np.arange(400)[::-1] * 7
    path = str(tmp_path / "codes.faiss")
    store = FaissStore.write(path, origin, codes, ids, kind=kind, n_bits=128)
    if kind == "exact":
        index = faiss.read_index(path)
        inner = faiss.downcast_index(index.index)
        _, found = index.search(inner.sa_decode(codes[:10]), 1)
    else:
        index = faiss.read_index_binary(path)
        _, found = index.search(expand(codes[:10], origin.weights, 128), 1)
    np.testing.assert_array_equal(found[:, 0], ids[:10])
    faiss.write_index(store.index, path) if kind == "exact" else faiss.write_index_binary(store.index, path)
    with pytest.raises(FormatError, match="not an index that cghash wrote"):
        FaissStore.open(path)


def test_centroids_of_other_weights_are_refused(origin, codes):
    index = to_faiss(origin, codes).index
    with pytest.raises(FormatError, match="its centroids are not those of its weights"):
        check_centroids(faiss.downcast_index(index.index), Origin(np.ones(43)))


@pytest.mark.parametrize("kind", ["binary", "hnsw"])
def test_expanded_codes_of_other_codes_are_refused(tmp_path, origin, codes, kind):
    store = to_faiss(origin, codes, kind)
    store.codes = codes[::-1]
    store.save(tmp_path / "codes.faiss")
    with pytest.raises(FormatError, match="its expanded codes are not those of its codes"):
        FaissStore.open(tmp_path / "codes.faiss")


WRONG_COUNTS = [("binary", counts) for counts in ([1], [0.5] * 43, "x", [-1] * 43, [2**40] * 43)]
WRONG_COUNTS += [("exact", [count] + [0] * 42) for count in (3 * 10**8, 10**11, 10**40, -1, 1e999)]
WRONG_COUNTS += [("exact", counts) for counts in ([2**62] * 43, "x", [[0]] * 43)]


@pytest.mark.parametrize(("kind", "counts"), WRONG_COUNTS)
def test_counts_that_do_not_fit_are_refused(tmp_path, origin, codes, kind, counts, monkeypatch):
    told = Origin.header

    def header(self, **more):
        return told(self, **more | {"counts": "here"}).replace('"here"', json.dumps(counts))

    monkeypatch.setattr(Origin, "header", header)
    to_faiss(origin, codes, kind).save(tmp_path / "codes.faiss")
    with pytest.raises(FormatError, match="parts do not fit together"):
        FaissStore.open(tmp_path / "codes.faiss")


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 4)), min_size=1, max_size=6))
def test_least_distance_beyond_an_expanded_distance_is_that_of_all_differences(pairs):
    whole, counts = (np.array(column) for column in zip(*pairs, strict=True))
    differences = np.array(list(product((0, 1), repeat=len(pairs))))
    hamming, distances = differences @ counts, differences @ whole
    expected = [distances[hamming >= h].min() for h in range(counts.sum() + 1)]
    np.testing.assert_array_equal(least_distances(whole, counts), expected)


def test_answer_is_proven_only_when_all_others_are_farther():
    origin = Origin([4.0, 2.0, 1.0])
    query, codes = np.array([0], np.uint8), np.array([[1], [2]], np.uint8)  # 4 and 2 away
    unit = round(1 / origin.whole[1])
    assert rank(origin, query, codes, np.array([5, 6]), 2, 5 * unit).exact
    assert not rank(origin, query, codes, np.array([5, 6]), 2, 4 * unit).exact  # an equal one might have a smaller id
    assert not rank(origin, query, codes, np.array([5, 6]), 3, 5 * unit).exact  # one is missing
    assert rank(origin, query, codes, np.array([5, 6]), 3, NONE).ids.tolist() == [6, 5]


def test_more_candidates_prove_more_answers_of_the_binary_index(origin, codes):
    store = to_faiss(origin, codes, "binary")
    proven = [store.search(codes, 5, candidates=c).exact.mean() for c in (5, 50, 400)]
    assert proven[0] < proven[1] <= proven[2] == 1.0


def test_items_are_searched_with_as_many_candidates_as_their_codes():
    X = np.random.default_rng(0).normal(size=(400, 6))
    model = LSH(24, random_state=0).fit(X)
    store = to_faiss(model, model.encode(X), "binary", n_bits=24)
    for candidates in (5, 400):
        found = store.search_items(model, X[:50], 5, candidates=candidates)
        for got, wanted in zip(found, store.search(model.encode(X[:50]), 5, candidates=candidates), strict=True):
            np.testing.assert_array_equal(got, wanted)
    assert found.exact.all()  # all were candidates
    with pytest.raises(InvalidInputError, match="candidates must be at least k=5, got 4"):
        store.search_items(model, X[:50], 5, candidates=4)


def test_many_equal_distances_are_looked_through_to_the_least_ids():
    """1000 equal codes: any 3 of them are nearest, but the order is (distance, id)."""
    codes = np.zeros((1000, 1), dtype=np.uint8)
    ids = np.random.default_rng(0).permutation(1000)
    found = to_faiss(Origin(np.ones(8)), codes, ids=ids).search(codes[:1], 3)
    assert found.ids.tolist() == [[0, 1, 2]]
    assert found.exact.all()


def test_distances_that_single_precision_cannot_tell_apart_are_told_apart():
    """Weights 1 and 1 + 2^-40: FAISS sees a tie."""
    origin = Origin([1.0 + 2.0**-40, 1.0] + [1e-3] * 30)
    codes = np.array([[1, 0, 0, 0], [2, 0, 0, 0]], dtype=np.uint8)
    found = to_faiss(origin, codes, ids=[1, 9]).search(np.zeros((1, 4), np.uint8), 2)
    assert found.ids.tolist() == [[9, 1]]
    assert found.distances.tolist() == [[1.0, 1.0 + 2.0**-40]]


def test_info_tells_of_bits_that_the_expansion_lost():
    store = to_faiss(Origin([100.0, 1.0, 0.0]), np.zeros((1, 1), np.uint8), "binary", n_bits=8)
    about = store.info()
    assert (about["kind"], about["expanded_bits"], about["lost"]) == ("binary", 8, 1)


def test_what_faiss_cannot_take_is_named(origin, codes):
    with pytest.raises(InvalidInputError, match="kind must be one of"):
        to_faiss(origin, codes, "ivf")
    with pytest.raises(InvalidInputError, match="n_bits must be a multiple of 8, at most 1048576, for FAISS, got 100"):
        to_faiss(origin, codes, "binary", n_bits=100)
    with pytest.raises(InvalidInputError, match="candidates must be at least k=5, got 2"):
        to_faiss(origin, codes).search(codes, 5, candidates=2)
    for k in ("5", 2.5, None, 0):
        with pytest.raises(InvalidInputError, match="k must be"):
            to_faiss(origin, codes).search(codes, k, candidates=10)
    X = np.random.default_rng(0).normal(size=(40, 4))
    with pytest.raises(InvalidInputError, match="model must rank by Hamming distance, got PQ"):
        to_faiss(PQ(4, random_state=0).fit(X), codes)


def test_description_that_does_not_fit_the_index_is_refused(tmp_path, origin, codes, monkeypatch):
    store = to_faiss(origin, codes)
    monkeypatch.setattr(FaissStore, "__len__", lambda self: 7)
    store.save(tmp_path / "codes.faiss")
    with pytest.raises(FormatError, match="it says 7 codes, and has 400 codes and 400 ids"):
        FaissStore.open(tmp_path / "codes.faiss")


def test_index_that_faiss_cannot_read_is_a_format_error(tmp_path, origin, codes, monkeypatch):
    store = to_faiss(origin, codes)
    monkeypatch.setattr(faiss, "serialize_index", lambda index: np.zeros(100, np.uint8))
    store.save(tmp_path / "codes.faiss")
    with pytest.raises(FormatError, match="an index that FAISS cannot read"):
        stores_faiss.FaissStore.open(tmp_path / "codes.faiss")


def swapped(store, kind, inner):
    """A store whose index inside, and kind, are others; its file has a right checksum."""
    store.kept = store.index  # FAISS's, which owns what is inside
    inner.ntotal, n = 0, len(store.codes)
    index = (faiss.IndexIDMap if kind == "exact" else faiss.IndexBinaryIDMap)(inner)
    faiss.copy_array_to_vector(store.ids, index.id_map)
    inner.ntotal = index.ntotal = n
    store.index, store.kind = index, kind
    return store


def test_an_index_of_another_class_than_its_kind_is_refused(tmp_path, origin, codes):
    flat, graph = (to_faiss(origin, codes, kind, n_bits=64) for kind in ("binary", "hnsw"))
    of = {"binary": flat._inner, "hnsw": graph._inner}
    for store, kind in ((flat, "hnsw"), (graph, "binary")):
        other = "binary" if kind == "hnsw" else "hnsw"
        swapped(store, kind, of[other]).save(tmp_path / "codes.faiss")
        with pytest.raises(FormatError, match="it must have IndexBinary"):
            FaissStore.open(tmp_path / "codes.faiss")


def test_an_index_that_ranks_by_inner_products_is_refused(tmp_path, origin, codes):
    inner = faiss.IndexPQ(48, 6, 8, faiss.METRIC_INNER_PRODUCT)
    faiss.copy_array_to_vector(centroids(origin).ravel(), inner.pq.centroids)
    faiss.copy_array_to_vector(codes.ravel(), inner.codes)
    inner.is_trained = True
    swapped(to_faiss(origin, codes), "exact", inner).save(tmp_path / "codes.faiss")
    with pytest.raises(FormatError, match="search by distance"):
        FaissStore.open(tmp_path / "codes.faiss")


def test_an_index_that_names_more_than_there_can_be_is_a_format_error(tmp_path, origin, codes, monkeypatch):
    to_faiss(origin, codes).save(tmp_path / "codes.faiss")

    def bad_alloc(content):
        raise MemoryError("std::bad_alloc")

    monkeypatch.setattr(faiss, "deserialize_index", bad_alloc)
    with pytest.raises(FormatError, match="it names more than it has"):
        FaissStore.open(tmp_path / "codes.faiss")


@pytest.mark.parametrize("k", [10**7, 2**31, 2**62])
@pytest.mark.parametrize("kind", ["exact", "binary", "hnsw"])
def test_answers_of_more_than_8_gb_are_refused_before_the_search(origin, codes, kind, k, monkeypatch):
    store = to_faiss(origin, codes, kind)
    monkeypatch.setattr(store, "_search", lambda *_: pytest.fail("it was searched"))
    with pytest.raises(InvalidInputError, match=f"400 times {k} answers take more than 8 GB"):
        store.search(codes, k)
