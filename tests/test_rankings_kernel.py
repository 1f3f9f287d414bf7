"""What the criteria count in rankings: the native kernel against its twin, and both against counting by definition."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cghash._kernels import native, twins
from cghash.codes import weighted_hamming, whole_weights
from cghash.criteria.ranking import CodeDistances

pytestmark = [pytest.mark.core, pytest.mark.portable, pytest.mark.native]
needs_native = pytest.mark.skipif(native is None, reason="the native extension was not built")

SIZES = [1, 2, 24, 25, 26, 63, 300, 1000]  # up to 24 keys are compared with each other, more are spread over buckets
WEIGHTS = {
    "distinct": lambda rng, n: rng.random(n) + 0.5,
    "plain": lambda rng, n: np.ones(n),
    "few values": lambda rng, n: rng.integers(0, 3, n) * 0.5,
    "halving": lambda rng, n: 0.5 ** (np.arange(n) / 4),
    "one outweighs all": lambda rng, n: np.where(np.arange(n) == n // 2, 1e12, rng.random(n)),
    "zero": lambda rng, n: np.zeros(n),
}
KEYS = {
    "anywhere": lambda rng, shape: rng.integers(0, 2**64 - 1, shape, np.uint64, endpoint=True),
    "clusters": lambda rng, shape: (
        rng.choice(np.uint64([0, 2**40, 2**64 - 3000]), shape) + rng.integers(0, 2999, shape).astype(np.uint64)
    ),
    "few": lambda rng, shape: rng.integers(0, 4, shape).astype(np.uint64),
    "equal": lambda rng, shape: np.full(shape, 2**64 - 1, np.uint64),
    "ratios": lambda rng, shape: np.uint64(1) << rng.integers(0, 64, shape).astype(np.uint64),
}


def task(rng, q, n, n_kinds):
    """Kinds, relevance, cuts and head of random rankings."""
    kinds = np.arange(n) if n_kinds == n else rng.integers(0, n_kinds, n)
    relevant = rng.random((q, n_kinds)) < rng.choice([0.0, 0.05, 0.5, 1.0], (q, 1))
    cuts = np.sort(rng.integers(1, n + 1, rng.integers(0, 9)))
    return kinds.astype(np.int32), relevant.astype(np.uint8), cuts, int(rng.integers(0, min(n, 80) + 1))


def assert_agree(one, other):
    for x, y in zip(one, other, strict=True):
        assert (x.shape, x.dtype) == (y.shape, y.dtype)
        np.testing.assert_allclose(x, y, rtol=1e-11, atol=1e-11 if x.dtype == np.float64 else 0)


def assert_same_bits(one, other):
    for x, y in zip(one, other, strict=True):
        np.testing.assert_array_equal(x, y, strict=True)


def coded(rng, q, n, n_bits, weights):
    """Codes near a few centres, so that distances differ and some codes are equal."""
    centres = rng.random((3, n_bits)) < 0.5
    bits = [centres[rng.integers(0, 3, m)] ^ (rng.random((m, n_bits)) < 0.2) for m in (q, n)]
    return CodeDistances.of(*(b.astype(np.uint8) for b in bits), WEIGHTS[weights](rng, n_bits))


@needs_native
@settings(max_examples=150)
@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from([0, 1, 8, 9, 17]),  # threads take 8 queries at a time
    st.sampled_from(SIZES),
    st.sampled_from([1, 7, 8, 9, 32, 33, 64, 100, 1024]),
    st.sampled_from(list(WEIGHTS)),
)
def test_codes_are_ranked_as_by_the_twin(seed, q, n, n_bits, weights):
    rng = np.random.default_rng(seed)
    codes = coded(rng, q, n, n_bits, weights)
    arguments = codes.queries, codes.items, codes.weights, *task(rng, q, n, rng.choice([1, 4, n]))
    found = native.rank_codes(*arguments, 1)
    assert_agree(found, twins.rank_codes(*arguments, 1))
    assert_same_bits(found, native.rank_codes(*arguments, 3))


@needs_native
@settings(max_examples=150)
@given(st.integers(0, 2**32 - 1), st.sampled_from([0, 1, 8, 9]), st.sampled_from(SIZES), st.sampled_from(list(KEYS)))
def test_keys_are_ranked_as_by_the_twin(seed, q, n, keys):
    rng = np.random.default_rng(seed)
    arguments = KEYS[keys](rng, (q, n)), *task(rng, q, n, rng.choice([1, 4, n]))
    found = native.rank_keys(*arguments, 1)
    assert_agree(found, twins.rank_keys(*arguments, 1))
    assert_same_bits(found, native.rank_keys(*arguments, 2))


@needs_native
def test_many_items_are_spread_over_many_buckets():
    rng = np.random.default_rng(3)
    for weights in WEIGHTS:
        codes = coded(rng, 3, 70_001, 48, weights)
        relevant = (rng.random((3, 10)) < 0.2).astype(np.uint8)
        kinds = rng.integers(0, 10, 70_001).astype(np.int32)
        arguments = codes.queries, codes.items, codes.weights, kinds, relevant, np.array([1, 50, 70_001]), 50
        assert_agree(native.rank_codes(*arguments, 2), twins.rank_codes(*arguments, 1))


def test_distances_are_those_of_weighted_hamming(kernels):
    rng = np.random.default_rng(4)
    bits = rng.integers(0, 2, (60, 20)).astype(np.uint8)
    weights = rng.random(20)
    whole, _ = whole_weights(weights, 20)
    codes = CodeDistances.of(bits[:5], bits, weights)
    np.testing.assert_array_equal(codes.weights, np.append(whole, np.zeros(4)))
    none = np.zeros((5, 60), np.uint8), np.zeros(0, np.int64), 60, 1
    _, _, first, group, kind, count = kernels.rank_codes(
        codes.queries, codes.items, codes.weights, np.arange(60, dtype=np.int32), *none
    )
    D = weighted_hamming(bits[:5], bits, weights)
    for i in range(5):
        entries = slice(first[i], first[i + 1])
        rank = np.unique(D[i], return_inverse=True)[1]
        np.testing.assert_array_equal(kind[entries], np.argsort(rank, kind="stable"))
        np.testing.assert_array_equal(group[entries], np.sort(rank))
        assert (count[entries] == 1).all()


def test_head_counts_the_items_of_a_kind_and_all_ties_of_its_last(kernels):
    keys = np.array([[5, 1, 5, 9, 5, 1]], np.uint64)
    kinds, relevant = np.array([1, 0, 0, 0, 1, 0], np.int32), np.array([[1, 0]], np.uint8)
    precision, within, first, group, kind, count = kernels.rank_keys(keys, kinds, relevant, np.array([2, 3, 6]), 3, 1)
    # two relevant at 1, then one relevant of three at 5, then one relevant at 9
    third = (3 / 3 + 3 / 4 + 3 / 5) / 3
    assert precision[0] == pytest.approx((1 + 1 + third + 4 / 6) / 4)
    np.testing.assert_allclose(within, [[2, 2 + 1 / 3, 4]])
    assert (first.tolist(), group.tolist(), kind.tolist(), count.tolist()) == ([0, 3], [0, 1, 1], [0, 0, 1], [2, 1, 2])


def arguments(**changed):
    given = {
        "queries": np.zeros((2, 1), np.uint8),
        "items": np.zeros((3, 1), np.uint8),
        "weights": np.ones(8, np.int64),
        "kinds": np.zeros(3, np.int32),
        "relevant": np.zeros((2, 1), np.uint8),
        "cuts": np.array([1, 3]),
        "n_head": 3,
    }
    return *(given | changed).values(), 1


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"queries": np.zeros((1, 1), np.uint8)}, "codes must have a row"),
        ({"items": np.zeros((3, 2), np.uint8)}, "codes must have a row"),
        ({"weights": np.ones(7, np.int64)}, "codes must have a row"),
        ({"weights": np.full(8, -1)}, "weights must be 0 or more"),
        ({"weights": np.full(8, 2**51)}, "sum below 2\\^53"),
        ({"weights": np.full(8, 2**62)}, "sum below 2\\^53"),
        ({"kinds": np.array([0, 1, 0], np.int32)}, "kinds must lie"),
        ({"kinds": np.array([0, -1, 0], np.int32)}, "kinds must lie"),
        ({"kinds": np.zeros(0, np.int32), "items": np.zeros((0, 1), np.uint8)}, "there must be 1"),
        ({"relevant": np.full((2, 1), 2, np.uint8)}, "relevant must be 0 and 1"),
        ({"cuts": np.array([3, 1])}, "cuts must ascend"),
        ({"cuts": np.array([0])}, "cuts must ascend"),
        ({"cuts": np.array([4])}, "cuts must ascend"),
        ({"n_head": 4}, "n_head must lie"),
        ({"n_head": -1}, "n_head must lie"),
    ],
)
def test_what_cannot_be_ranked_is_refused(kernels, changed, message):
    with pytest.raises(ValueError, match=message):
        kernels.rank_codes(*arguments(**changed))


def test_keys_must_have_a_column_for_each_item(kernels):
    relevant, cuts = np.zeros((1, 1), np.uint8), np.zeros(0, np.int64)
    with pytest.raises(ValueError, match="keys must have a row for each query"):
        kernels.rank_keys(np.zeros((1, 2), np.uint64), np.zeros(3, np.int32), relevant, cuts, 0, 1)
