"""WeightedHammingIndex: what it holds, what it finds, against a full comparison."""

from __future__ import annotations

import copy
import pickle
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression

from cghash import CGHash, WeightedHammingIndex, _kernels
from cghash.codes import pack, unpack, weighted_hamming
from cghash.exceptions import InvalidInputError
from cghash.index import pruning
from cghash.stores.origin import origin_of

pytestmark = pytest.mark.core


def random_codes(rng, n, n_bits, n_distinct=None):
    bits = rng.integers(0, 2, (n if n_distinct is None else n_distinct, n_bits))
    return pack(bits if n_distinct is None else bits[rng.integers(0, n_distinct, n)])


def full_comparison(index, queries, k, keep=None):
    """All distances by `weighted_hamming`, sorted by (distance, id)."""
    ids = index.ids if keep is None else keep
    weights = np.ones(index.n_bits) if index.weights is None else index.weights
    D = weighted_hamming(unpack(queries, index.n_bits), unpack(index.reconstruct(ids), index.n_bits), weights)
    distances, found = np.full((len(queries), k), np.inf), np.full((len(queries), k), -1)
    for row, d in enumerate(D):
        order = np.lexsort((ids, d))[:k]
        distances[row, : len(order)], found[row, : len(order)] = d[order], ids[order]
    return distances, found


def assert_same(answer, expected):
    np.testing.assert_array_equal(answer[1], expected[1])
    np.testing.assert_array_equal(answer[0], expected[0])


@settings(max_examples=60)
@given(st.data())
def test_search_is_a_full_comparison(data):
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    n_bits = data.draw(st.sampled_from([1, 5, 8, 13, 32, 60, 64, 100, 128, 129, 300, 1024]))
    n = data.draw(st.integers(0, 300))
    weights = data.draw(st.sampled_from([None, "random", "zeros", "equal", "wide"]))
    w = {
        None: None,
        "random": rng.random(n_bits),
        "zeros": rng.random(n_bits) * (rng.random(n_bits) < 0.3),
        "equal": np.full(n_bits, 0.1),
        "wide": 10.0 ** rng.uniform(-12, 0, n_bits),
    }[weights]
    index = WeightedHammingIndex(n_bits, w)
    index.add(random_codes(rng, n, n_bits, data.draw(st.sampled_from([None, 3]))))
    queries = random_codes(rng, data.draw(st.integers(1, 5)), n_bits)
    k = data.draw(st.integers(1, 350))
    assert_same(index.search(queries, k), full_comparison(index, queries, k))


class Model:
    """The same as a dictionary of codes: what the index must do, in the plainest way."""

    def __init__(self):
        self.codes = {}
        self.next_id = 0

    def add(self, codes, ids):
        ids = range(self.next_id, self.next_id + len(codes)) if ids is None else ids
        self.codes |= dict(zip(map(int, ids), map(bytes, codes), strict=True))
        self.next_id = max([self.next_id, *(int(i) + 1 for i in ids)])


@settings(max_examples=50)
@given(st.data())
def test_any_order_of_changes_leaves_what_a_dictionary_would_hold(data):
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    n_bits = data.draw(st.sampled_from([3, 16, 70]))
    index, model = WeightedHammingIndex(n_bits, rng.random(n_bits)), Model()
    for _ in range(data.draw(st.integers(1, 12))):
        change = data.draw(st.sampled_from(["add", "add", "add_ids", "remove", "update", "reweight"]))
        present = np.array(sorted(model.codes), dtype=np.int64)
        some = present[rng.random(len(present)) < 0.3]
        rng.shuffle(some)
        if change == "add":
            codes = random_codes(rng, rng.integers(0, 90), n_bits)
            index.add(codes)
            model.add(codes, None)
        elif change == "add_ids":
            free = np.setdiff1d(rng.integers(0, 1000, 20), present)
            rng.shuffle(free)
            codes = random_codes(rng, len(free), n_bits)
            index.add(codes, free)
            model.add(codes, free)
        elif change == "remove":
            index.remove(some)
            for i in some:
                del model.codes[int(i)]
        elif change == "update":
            codes = random_codes(rng, len(some), n_bits)
            index.update(codes, some)
            model.codes |= dict(zip(some.tolist(), map(bytes, codes), strict=True))
        else:
            index.reweight(rng.random(n_bits))
        assert len(index) == len(model.codes)
        held = np.array(sorted(model.codes), dtype=np.int64)
        assert sorted(index.ids.tolist()) == held.tolist()
        assert [bytes(code) for code in index.reconstruct(held)] == [model.codes[int(i)] for i in held]
        queries = random_codes(rng, 2, n_bits)
        assert_same(index.search(queries, 7), full_comparison(index, queries, 7))


def test_an_id_that_is_removed_and_added_again_is_found():
    index = WeightedHammingIndex(8)
    index.add(np.arange(5, dtype=np.uint8)[:, None])
    index.remove([2, 3])
    index.add(np.array([[77], [88]], dtype=np.uint8), [3, 2])
    assert index.reconstruct([2, 3, 4]).tolist() == [[88], [77], [4]]


def test_a_single_code_gives_flat_answers():
    index = WeightedHammingIndex(16)
    index.add(np.array([[1, 0], [0, 0]], dtype=np.uint8))
    distances, ids = index.search(np.array([0, 0], dtype=np.uint8), 3)
    assert distances.tolist() == [0, 1, np.inf]
    assert ids.tolist() == [1, 0, -1]


def test_range_search_finds_all_within_the_radius():
    rng = np.random.default_rng(0)
    index = WeightedHammingIndex(24, rng.random(24))
    index.add(random_codes(rng, 500, 24), rng.permutation(500))
    queries = random_codes(rng, 4, 24)
    all_distances, all_ids = full_comparison(index, queries, 500)
    for radius in (0, float(all_distances[0, 30]), 5.0, 1e300, np.inf):
        offsets, distances, ids = index.range_search(queries, radius)
        for row in range(4):
            within = all_distances[row] <= radius
            here = slice(offsets[row], offsets[row + 1])
            assert_same((distances[here], ids[here]), (all_distances[row][within], all_ids[row][within]))


@pytest.mark.parametrize("removed", [False, True])
def test_filter_by_ids_and_by_mask(removed):
    rng = np.random.default_rng(1)
    index = WeightedHammingIndex(20, rng.random(20))
    index.add(random_codes(rng, 300, 20), rng.permutation(1000)[:300])
    if removed:
        index.remove(index.ids[::3])
    queries = random_codes(rng, 3, 20)
    mask = rng.random(len(index)) < 0.2
    wanted = index.ids[mask]
    expected = full_comparison(index, queries, 80, wanted)
    assert_same(index.search(queries, 80, filter=mask), expected)
    assert_same(index.search(queries, 80, filter=rng.permutation(wanted)), expected)
    offsets, _, ids = index.range_search(queries, np.inf, filter=mask)
    assert sorted(ids[: offsets[1]].tolist()) == sorted(wanted.tolist())


def test_a_filter_that_lets_nothing_through():
    index = WeightedHammingIndex(8)
    index.add(np.zeros((3, 1), dtype=np.uint8))
    distances, ids = index.search(np.zeros(1, dtype=np.uint8), 2, filter=np.zeros(3, dtype=bool))
    assert ids.tolist() == [-1, -1]
    assert np.isinf(distances).all()
    assert index.range_search(np.zeros((1, 1), dtype=np.uint8), 1, filter=[])[0].tolist() == [0, 0]


def test_build_index_finds_what_the_model_says():
    X, y = load_digits(return_X_y=True)
    model = CGHash(12, random_state=0).fit(X[:300], y[:300])
    index = model.build_index(X[:300], ids=np.arange(300)[::-1].copy())
    assert_same(index.search(model.encode(X[300:310]), 5), full_comparison(index, model.encode(X[300:310]), 5))


def test_build_index_knows_the_hash_functions_of_a_model_of_arrays_only():
    X, y = load_digits(return_X_y=True)
    model = CGHash(4, random_state=0).fit(X[:100], y[:100])
    first, second = model.build_index(X[:9]).functions, model.truncate(3).build_index(X[:9]).functions
    assert model.build_index(X[9:20]).functions == first != second
    classifiers = CGHash(2, hash_function=LogisticRegression(), random_state=0).fit(X[:100] / 16, y[:100])
    assert classifiers.build_index(X[:9] / 16).functions is None
    with pytest.raises(InvalidInputError, match="model must have hash functions that are arrays"):
        origin_of(classifiers)


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda index: pickle.loads(pickle.dumps(index))])  # noqa: S301
def test_a_copy_answers_the_same_and_goes_its_own_way(copied):
    rng = np.random.default_rng(3)
    index = WeightedHammingIndex(20, rng.random(20), prune=False)
    index.add(random_codes(rng, 200, 20), rng.permutation(900)[:200])
    index.remove(index.ids[::7])
    second, queries = copied(index), random_codes(rng, 3, 20)
    assert (second.prune, second.next_id) == (False, index.next_id)
    assert_same(second.search(queries, 9), index.search(queries, 9))
    second.remove(second.ids)
    assert len(second) == 0
    assert len(index) == 171


def test_an_add_that_runs_out_of_memory_leaves_what_was_there(monkeypatch):
    index = WeightedHammingIndex(16)
    index.add(np.arange(20, dtype=np.uint8).reshape(10, 2))

    def fail(*arguments):
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(type(index._table.ids), "append", fail)
        with pytest.raises(MemoryError):
            index.add(np.full((100, 2), 9, dtype=np.uint8), np.arange(500, 600))
    assert index.ids.tolist() == list(range(10))
    index.add(np.full((1, 2), 255, dtype=np.uint8))
    assert index.search(np.full(2, 255, dtype=np.uint8), 1)[1].tolist() == [10]
    assert index.reconstruct([10]).tolist() == [[255, 255]]


@pytest.mark.parametrize(("n", "n_bits", "n_queries"), [(100_000, 64, 40), (200_000, 1000, 1), (50_000, 64, 1)])
@pytest.mark.parametrize("explicit", [False, True])
def test_threads_may_change_and_all_answer_the_same(n, n_bits, n_queries, explicit):
    """Work enough for three threads, one query of them too, and too little for two."""
    rng = np.random.default_rng(5)
    index = WeightedHammingIndex(n_bits, rng.integers(1, 4, n_bits), n_jobs=1, prune=False)
    index.add(rng.integers(0, 256, (n, n_bits // 8), dtype=np.uint8), rng.permutation(n) if explicit else None)
    queries = rng.integers(0, 256, (n_queries, n_bits // 8), dtype=np.uint8)
    expected = index.search(queries, 20)
    index.n_jobs = 3
    assert index._table.n_threads == 3
    assert_same(index.search(queries, 20), expected)


def test_threads_are_a_whole_number():
    index = WeightedHammingIndex(8)
    with pytest.raises(InvalidInputError, match="n_jobs"):
        index.n_jobs = 0


def test_ids_end_before_the_largest_number():
    index = WeightedHammingIndex(8)
    with pytest.raises(InvalidInputError, match="ids must be at most 9223372036854775806"):
        index.add(codes8[:1], [2**63 - 1])
    index.add(codes8[:1], [2**63 - 2])
    with pytest.raises(InvalidInputError, match="ids must be given"):
        index.add(codes8[:1])
    assert 2**63 - 2 in index
    assert all(other not in index for other in (0, -1, 2**70, "a", None))


def test_nothing_added_changes_nothing():
    index = WeightedHammingIndex(8)
    index.add(codes8)
    index.add(codes8[:0], [])
    assert index._table.ids.explicit is None
    assert index.next_id == 2


def test_many_threads_look_up_ids_at_once():
    rng = np.random.default_rng(6)
    for _ in range(20):
        index = WeightedHammingIndex(16)
        ids = rng.permutation(20_000)
        index.add(random_codes(rng, len(ids), 16), ids)
        with ThreadPoolExecutor(4) as pool:
            found = list(pool.map(index.reconstruct, [ids[:50]] * 8))
        assert all(np.array_equal(one, found[0]) for one in found)


def test_tables_are_dropped_when_codes_outgrow_the_memory_that_is_allowed():
    rng = np.random.default_rng(7)
    index = WeightedHammingIndex(64, rng.random(64), max_memory=30_000_000)
    some = random_codes(rng, 500_000, 64, 400_000)
    index.add(some)
    index._table.blocks.prepare(index._table.whole, None, None, 2e7, True, 2)
    prepared = index._table.blocks.n_prepared
    assert index.info()["memory"] <= 30_000_000
    index.add(np.concatenate([some] * 6))
    assert index.info()["n_prepared"] == 0
    assert prepared in (0, 500_000)  # the NumPy twin builds no tables


def test_tables_are_built_anew_when_weights_count_what_they_lack(monkeypatch):
    monkeypatch.setattr(pruning, "_BUILD_SECONDS", 1e-9)
    rng = np.random.default_rng(9)
    codes, weights = random_codes(rng, 40_000, 64, 3000), rng.random(64)
    index = WeightedHammingIndex(64, weights * (np.arange(64) < 40))
    index.add(codes)
    index.prepare()
    prepared = index.info()["n_prepared"]
    assert prepared == (40_000 if _kernels.native is _kernels._chosen else 0)  # the NumPy twin builds no tables
    index.reweight(weights)
    plain = WeightedHammingIndex(64, weights, prune=False)
    plain.add(codes)
    assert index.info()["prune_bytes"] == 0
    for _ in range(2):  # the first pays for other tables
        assert_same(index.search(codes[:5], 10), plain.search(codes[:5], 10))
    assert index.info()["n_prepared"] == prepared


def test_searches_beside_changes_see_a_state_that_was_there(monkeypatch):
    """Tables are built and dropped all the while; each answer is that of a number of codes that there were."""
    monkeypatch.setattr(pruning, "_BUILD_SECONDS", 1e-9)
    rng = np.random.default_rng(8)
    codes = random_codes(rng, 60_000, 24, 3000)
    index = WeightedHammingIndex(24, rng.random(24), n_jobs=2)
    index.add(codes[:5000])
    query, steps = codes[0], range(5000, 60_000, 5000)
    answers = [index.search(query, 5)]
    for n in steps:
        whole = WeightedHammingIndex(24, index.weights, prune=False)
        whole.add(codes[: n + 5000])
        answers.append(whole.search(query, 5))
    with ThreadPoolExecutor(3) as pool:
        done = threading.Event()

        def ask():
            found = []
            while not done.is_set():
                found.append(index.search(query, 5))
                index.info()
            return found

        asked = [pool.submit(ask) for _ in range(3)]
        for n in steps:
            index.add(codes[n : n + 5000])
            index.prepare()
            index.update(codes[n : n + 3], np.arange(n, n + 3))
        done.set()
        for found in (answer for one in asked for answer in one.result()):
            assert any(all(np.array_equal(a, b) for a, b in zip(found, right, strict=True)) for right in answers)


codes8 = np.zeros((2, 1), dtype=np.uint8)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda i: WeightedHammingIndex(0), "n_bits must be a whole number of at least 1, got 0"),
        (lambda i: WeightedHammingIndex(4097), "n_bits must be at most 4096, got 4097"),
        (lambda i: WeightedHammingIndex(4, [1, 2]), "weights must be 4 numbers, one a bit"),
        (lambda i: WeightedHammingIndex(2, [1, -2]), "weights must be finite and 0 or more, got -2"),
        (lambda i: WeightedHammingIndex(2, n_jobs=0), "n_jobs must be None or a whole number other than 0"),
        (lambda i: i.add(np.zeros((2, 2), dtype=np.uint8)), r"codes must be packed uint8 of shape \(n, 1\) for 6 bits"),
        (lambda i: i.add(np.zeros((2, 6), dtype=np.uint8)), "bits\\? cghash.codes.pack packs them"),
        (lambda i: i.add(np.zeros((2, 1))), "got shape .2, 1., dtype float64"),
        (lambda i: i.add(codes8 + 64), "codes must have 0 in the bits past n_bits=6"),
        (lambda i: i.add(codes8, [7]), "ids must be as many as codes, 2, got 1"),
        (lambda i: i.add(codes8, [7, 7]), "ids must be different, got 7 twice"),
        (lambda i: i.add(codes8, [7, 1]), "ids must be new to the index, got 1, which is in it"),
        (lambda i: i.add(codes8, [7, -1]), "ids must be 0 or more, got -1"),
        (lambda i: i.add(codes8, [0.5, 1]), "ids must be a 1-D array of int64"),
        (lambda i: i.remove([9]), "ids must be in the index, got 9, which is not"),
        (lambda i: i.remove([1, 1]), "ids must be different, got 1 twice"),
        (lambda i: i.update(codes8, [0, 9]), "ids must be in the index, got 9, which is not"),
        (lambda i: i.reconstruct([9]), "ids must be in the index, got 9"),
        (lambda i: i.search(codes8, 0), "k must be a whole number of at least 1, got 0"),
        (lambda i: i.search(codes8, 1, filter=[9]), "filter must be in the index, got 9"),
        (lambda i: i.search(codes8, 1, filter=[True]), r"boolean mask of shape \(2,\)"),
        (lambda i: i.range_search(codes8, -1), "radius must be a number of at least 0, got -1"),
        (lambda i: i.range_search(codes8, np.nan), "radius must be a number of at least 0, got nan"),
    ],
)
def test_what_is_wrong_is_said_and_nothing_changes(wrong, message):
    index = WeightedHammingIndex(6)
    index.add(codes8)
    with pytest.raises(InvalidInputError, match=message):
        wrong(index)
    assert index.ids.tolist() == [0, 1]
    assert index.reconstruct([0, 1]).tolist() == [[0], [0]]
