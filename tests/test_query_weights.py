"""Search under weights of each query's own: WeightedHammingIndex against a full comparison."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cghash import WeightedHammingIndex
from cghash.codes import pack, unpack, weighted_hamming
from cghash.exceptions import InvalidInputError
from cghash.index import pruning

pytestmark = pytest.mark.core

WEIGHTS = {
    "random": lambda rng, shape: rng.random(shape),
    "zeros": lambda rng, shape: rng.random(shape) * (rng.random(shape) < 0.3),
    "none": lambda rng, shape: np.zeros(shape),
    "equal": lambda rng, shape: np.full(shape, 0.1),
    "whole": lambda rng, shape: rng.integers(0, 3, shape),
    "wide": lambda rng, shape: 10.0 ** rng.uniform(-12, 0, shape),
    "huge": lambda rng, shape: rng.random(shape) * 1e304,
    "tiny": lambda rng, shape: rng.random(shape) * 1e-318,
}


def some_codes(rng, n, n_bits, n_centres=20):
    """Packed codes around a few centres, so that distances tie and tables pay."""
    centres = rng.integers(0, 2, (n_centres, n_bits))
    return pack(centres[rng.integers(0, n_centres, n)] ^ (rng.random((n, n_bits)) < 0.1))


def ranked(index, query, weights, keep=None):
    """All distances of one query, by (distance, id)."""
    ids = index.ids if keep is None else np.asarray(keep)
    bits = unpack(index.reconstruct(ids), index.n_bits)
    distances = weighted_hamming(unpack(query[None], index.n_bits), bits, weights)[0]
    order = np.lexsort((ids, distances))
    return distances[order], ids[order]


def assert_ranked(index, queries, weights, k, **options):
    """The answer is the full comparison's, whichever way the queries are asked."""
    distances, found = index.search(queries, k, weights=weights, **options)
    rows = np.broadcast_to(weights, (len(queries), index.n_bits))
    for row, query in enumerate(queries):
        right, ids = ranked(index, query, rows[row], options.get("filter"))
        n = min(k, len(ids))
        np.testing.assert_array_equal(found[row, :n], ids[:n])
        np.testing.assert_array_equal(distances[row, :n], right[:n])
        assert np.all(np.isinf(distances[row, n:]))
        assert np.all(found[row, n:] == -1)
        alone = index.search(query, k, weights=rows[row], **options)
        np.testing.assert_array_equal(alone, (distances[row], found[row]))


@settings(max_examples=60)
@given(st.data())
def test_search_is_a_full_comparison_under_each_querys_weights(data):
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    n_bits = data.draw(st.sampled_from([1, 5, 8, 13, 32, 64, 100, 129, 1024, 1537, 4096]))
    n_queries = data.draw(st.integers(0, 5))
    index = WeightedHammingIndex(n_bits, data.draw(st.sampled_from([None, rng.random(n_bits)])))
    index.add(some_codes(rng, data.draw(st.integers(0, 200)), n_bits))
    queries = some_codes(rng, n_queries, n_bits)
    kind = data.draw(st.sampled_from(sorted(WEIGHTS)))
    shape = data.draw(st.sampled_from([(n_queries, n_bits), (n_bits,)]))
    assert_ranked(index, queries, WEIGHTS[kind](rng, shape), data.draw(st.integers(1, 220)))


@pytest.mark.parametrize("kind", ["random", "zeros", "wide"])
@pytest.mark.parametrize("n_bits", [32, 64])
def test_tables_of_the_index_serve_queries_with_their_own_weights(n_bits, kind):
    rng = np.random.default_rng(n_bits)
    index = WeightedHammingIndex(n_bits, rng.random(n_bits), n_jobs=2)
    index.add(some_codes(rng, 200_000, n_bits, 400))
    index.prepare()
    assert index.info()["prune_bytes"] > 0
    queries = some_codes(rng, 12, n_bits, 400)
    assert_ranked(index, queries, WEIGHTS[kind](rng, (12, n_bits)), 10)


def test_filters_and_removed_items():
    rng = np.random.default_rng(0)
    index = WeightedHammingIndex(40)
    index.add(some_codes(rng, 3000, 40), rng.permutation(9000)[:3000])
    index.remove(index.ids[::7])
    queries, weights = some_codes(rng, 4, 40), rng.random((4, 40))
    assert_ranked(index, queries, weights, 30)
    for n in (5, 2000):
        assert_ranked(index, queries, weights, 30, filter=rng.permutation(index.ids)[:n])
    mask = rng.random(len(index)) < 0.5
    by_ids = index.search(queries, 30, weights=weights, filter=index.ids[mask])
    np.testing.assert_array_equal(index.search(queries, 30, weights=weights, filter=mask), by_ids)


@pytest.mark.parametrize("share", [None, 0.001, 0.5])
def test_range_search_finds_all_within_the_radius_by_each_querys_weights(share):
    rng = np.random.default_rng(1)
    index = WeightedHammingIndex(24)
    index.add(some_codes(rng, 5000, 24))
    queries, weights = some_codes(rng, 6, 24), rng.random((6, 24)) * 10.0 ** np.arange(-3, 3)[:, None]
    keep = None if share is None else rng.permutation(5000)[: int(share * 5000)]
    radius = float(np.median(ranked(index, queries[3], weights[3])[0]))
    offsets, distances, found = index.range_search(queries, radius, weights=weights, filter=keep)
    sizes = []
    for row, query in enumerate(queries):
        right, ids = ranked(index, query, weights[row], keep)
        near, here = right <= radius, slice(offsets[row], offsets[row + 1])
        np.testing.assert_array_equal(distances[here], right[near])
        np.testing.assert_array_equal(found[here], ids[near])
        sizes.append(int(near.sum()))
    assert sizes[0] == len(index if keep is None else keep)
    assert sizes[-1] < sizes[0]


def test_a_search_with_weights_of_its_own_leaves_nothing_behind(monkeypatch):
    """No tables are built for it, and the index's own weights stay what they are."""
    monkeypatch.setattr(pruning, "_BUILD_SECONDS", 0.0)
    rng = np.random.default_rng(2)
    index = WeightedHammingIndex(32, rng.random(32))
    index.add(some_codes(rng, 20_000, 32))
    queries, before = some_codes(rng, 5, 32), index.info()
    own_weights = index.weights
    index.search(queries, 10, weights=rng.random((5, 32)))
    index.range_search(queries, 1.0, weights=rng.random(32))
    assert index.info() == before
    np.testing.assert_array_equal(index.weights, own_weights)
    expected = WeightedHammingIndex(32, own_weights, prune=False)
    expected.add(index.reconstruct(index.ids))
    np.testing.assert_array_equal(index.search(queries, 10), expected.search(queries, 10))


def test_eight_threads_ask_under_different_weights_at_once():
    rng = np.random.default_rng(3)
    index = WeightedHammingIndex(64, rng.random(64), n_jobs=2)
    index.add(some_codes(rng, 50_000, 64))
    index.prepare()
    queries, weights = some_codes(rng, 8, 64), rng.random((8, 64))
    alone = [index.search(query, 20, weights=own) for query, own in zip(queries, weights, strict=True)]
    shared = index.search(queries, 20)

    def ask(i):
        for _ in range(20):
            np.testing.assert_array_equal(index.search(queries[i], 20, weights=weights[i]), alone[i])
            np.testing.assert_array_equal(index.search(queries, 20), shared)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(ask, range(8)))


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (np.ones(7), r"weights must be 8 numbers, one a bit, or a row of them for each of 3 queries, got shape \(7,\)"),
        (np.ones((2, 8)), r"a row of them for each of 3 queries, got shape \(2, 8\)"),
        (np.ones((3, 8, 1)), r"got shape \(3, 8, 1\)"),
        (np.full((3, 8), "a"), "weights must be numbers, got shape .3, 8., dtype <U1"),
        (np.full(8, -0.5), "weights must be finite and 0 or more, got -0.5"),
        ([[1] * 8, [1] * 7 + [np.nan], [1] * 8], "weights must be finite and 0 or more, got nan"),
        (np.full((3, 8), np.inf), "weights must be finite and 0 or more, got inf"),
        (np.full((3, 8), 1e308), "weights must have a finite sum, got inf"),
    ],
)
def test_invalid_weights_are_refused(weights, message):
    index = WeightedHammingIndex(8)
    index.add(np.zeros((2, 1), dtype=np.uint8))
    for ask in (
        lambda: index.search(codes3, 1, weights=weights),
        lambda: index.range_search(codes3, 1, weights=weights),
    ):
        with pytest.raises(InvalidInputError, match=message):
            ask()


codes3 = np.zeros((3, 1), dtype=np.uint8)
