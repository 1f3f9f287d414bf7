"""PQ and RaBitQ: distances against reconstructions, FAISS's own indexes and the truth; sizes of codes."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from sklearn.metrics.pairwise import euclidean_distances

from cghash.exceptions import FewerBitsWarning, InvalidInputError, MissingDependencyError
from cghash.peers import PQ, RaBitQ

pytestmark = pytest.mark.portable

faiss = pytest.importorskip("faiss")

RNG = np.random.default_rng(0)
ITEMS = (RNG.normal(size=(600, 40)) @ RNG.normal(size=(40, 40))).astype(np.float32)
QUERIES, DATABASE = ITEMS[:20], ITEMS[20:]


# PQ


@pytest.mark.parametrize(("n_bits", "groups", "bits"), [(32, 4, 8), (16, 2, 8), (24, 3, 8), (12, 2, 6), (5, 1, 5)])
def test_pq_distance_is_that_to_the_reconstruction(n_bits, groups, bits):
    model = PQ(n_bits, random_state=0).fit(DATABASE)
    assert model.centroids_.shape == (groups, 2**bits, -(-40 // groups))
    assert model.n_bits_ == groups * bits
    codes = model.encode(DATABASE)
    assert codes.shape == (580, -(-n_bits // 8))
    parts = np.array_split(np.arange(40), groups)
    numbers = model.transform(DATABASE).reshape(580, groups, bits) @ (1 << np.arange(bits))
    reconstructed = np.hstack([model.centroids_[m][numbers[:, m], : len(part)] for m, part in enumerate(parts)])
    expected = euclidean_distances(QUERIES.astype(float), reconstructed, squared=True)
    np.testing.assert_allclose(model.distances(QUERIES, codes), expected, rtol=1e-4)


def test_pq_names_the_nearest_centroids():
    model = PQ(24, random_state=0).fit(DATABASE)
    numbers = model.transform(QUERIES).reshape(20, 3, 8) @ (1 << np.arange(8))
    for m, part in enumerate(np.array_split(np.arange(40), 3)):
        D = euclidean_distances(QUERIES[:, part], model.centroids_[m][:, : len(part)])
        np.testing.assert_allclose(D[np.arange(20), numbers[:, m]], D.min(axis=1), rtol=1e-4)


def test_pq_distances_are_those_of_the_index_of_faiss():
    model = PQ(32, random_state=0).fit(DATABASE)
    index = faiss.IndexPQ(40, 4, 8)
    faiss.copy_array_to_vector(model.centroids_.ravel(), index.pq.centroids)
    index.is_trained = True
    index.add(DATABASE)
    D, found = index.search(QUERIES, 10)
    ours = model.distances(QUERIES, model.encode(DATABASE))
    np.testing.assert_allclose(np.take_along_axis(ours, found, axis=1), D, rtol=1e-4)


def test_few_items_have_few_centroids_and_bits_that_do_not_divide_are_left_over():
    with pytest.warns(FewerBitsWarning, match="learned 12 of the 32 bits"):
        model = PQ(32, random_state=0).fit(ITEMS[:10])
    assert model.centroids_.shape == (4, 8, 10)
    with pytest.warns(FewerBitsWarning, match="equal numbers of bits"):
        assert PQ(60, random_state=0).fit(ITEMS).n_bits_ == 56
    with pytest.warns(FewerBitsWarning):
        assert PQ(64, random_state=0).fit(ITEMS[:, :3]).n_bits_ == 24


# RaBitQ


@pytest.mark.parametrize(("n_bits", "size", "dimensions"), [(72, 9, 8), (96, 12, 32), (104, 13, 40), (100, 12, 32)])
def test_codes_of_rabitq_stay_within_their_bytes(n_bits, size, dimensions):
    model = RaBitQ(n_bits, random_state=0)
    if n_bits % 8:
        with pytest.warns(FewerBitsWarning, match="whole bytes"):
            model.fit(DATABASE)
    else:
        model.fit(DATABASE)
    assert model.encode(QUERIES).shape == (20, size)
    assert size <= n_bits / 8
    assert model.directions_.shape == (dimensions, 40)
    np.testing.assert_allclose(model.directions_ @ model.directions_.T, np.eye(dimensions), atol=1e-9)


def test_rabitq_says_the_least_number_of_bits():
    with pytest.raises(InvalidInputError, match="n_bits must be at least 72 for RaBitQ, got 64"):
        RaBitQ(64).fit(DATABASE)


def test_bits_of_rabitq_are_the_signs_of_turned_items():
    model = RaBitQ(96, random_state=0).fit(DATABASE)
    turned = (QUERIES - model.mean_) @ model.directions_.T
    np.testing.assert_array_equal(model.transform(QUERIES)[:, :32], turned > 0)


def test_rabitq_distances_are_those_of_the_index_of_faiss():
    model = RaBitQ(104, random_state=0).fit(DATABASE)
    turned = [((items - model.mean_) @ model.directions_.T).astype(np.float32) for items in (QUERIES, DATABASE)]
    index = faiss.IndexRaBitQ(40, faiss.METRIC_L2)
    index.train(np.vstack([turned[1], -turned[1]]))  # its centroid is then 0
    index.add(turned[1])
    index.qb = 0  # queries are not rounded
    D, found = index.search(turned[0], 580)
    ours = model.distances(QUERIES, model.encode(DATABASE))
    np.testing.assert_allclose(np.take_along_axis(ours, found, axis=1), D, rtol=1e-3, atol=1e-3 * D.max())


def test_estimate_of_rabitq_is_unbiased_over_rotations():
    true = euclidean_distances(QUERIES.astype(float), DATABASE[:5].astype(float), squared=True)
    estimates = []
    for seed in range(200):
        model = RaBitQ(104, random_state=seed).fit(DATABASE[:200])
        estimates.append(model.distances(QUERIES, model.encode(DATABASE[:5])))
    error = np.mean(estimates, axis=0) - true
    spread = np.std(estimates, axis=0) / np.sqrt(200)
    assert np.mean(np.abs(error) < 3 * spread + 1e-6 * true) > 0.95


def test_estimate_of_rabitq_is_close_in_many_dimensions():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1200, 256))
    model = RaBitQ(64 + 256, random_state=0).fit(X)
    D = model.distances(X[:20], model.encode(X[100:]))
    true = euclidean_distances(X[:20], X[100:], squared=True)
    assert np.mean(np.abs(D / true - 1)) < 0.06


# Both


@pytest.mark.parametrize("method", [PQ, RaBitQ])
def test_missing_faiss_says_how_to_install_it(method, monkeypatch):
    monkeypatch.setitem(sys.modules, "faiss", None)
    with pytest.raises(MissingDependencyError, match=r"pip install .*cghash\[faiss\]"):
        method().fit(DATABASE)


@pytest.mark.parametrize("method", [PQ, RaBitQ])
def test_numbers_past_single_precision_are_refused(method):
    with pytest.raises(InvalidInputError, match=r"at most 1e\+15 for FAISS"):
        method().fit(DATABASE.astype(float) * 1e30)
