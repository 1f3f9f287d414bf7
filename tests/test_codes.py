"""Codes: packed and back, their weighted distance to the last bit, and weights as repeated bits."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from cghash import codes
from cghash.codes import expand, expansion_of, pack, repeat_bits, unpack, weighted_hamming, whole_weights
from cghash.exceptions import InvalidInputError

pytestmark = [pytest.mark.core, pytest.mark.portable]

small_weights = st.lists(st.integers(0, 20), min_size=1, max_size=4)
bit_matrices = hnp.arrays(np.uint8, st.tuples(st.integers(0, 5), st.integers(0, 40)), elements=st.integers(0, 1))


def exact_distances(queries, database, weights):
    """Sums of the weights of the differing bits, in rational numbers."""
    w = [Fraction(float(v)) for v in weights]
    return [
        [sum((v for v, a, b in zip(w, q, x, strict=True) if a != b), Fraction(0)) for x in database] for q in queries
    ]


@given(bit_matrices)
def test_unpack_returns_what_pack_was_given(bits):
    packed = pack(bits)
    assert packed.shape == (len(bits), -(-bits.shape[1] // 8))
    np.testing.assert_array_equal(unpack(packed, bits.shape[1]), bits)


@given(bit_matrices)
def test_bit_j_is_in_byte_j_over_8_at_place_j_mod_8(bits):
    packed = pack(bits)
    for item, code in zip(bits, packed, strict=True):
        assert [code[j // 8] >> (j % 8) & 1 for j in range(len(item))] == item.tolist()


def test_bits_past_the_last_are_zero():
    assert pack(np.ones((1, 11)))[0].tolist() == [255, 7]


@pytest.mark.parametrize("dtype", [bool, np.int64, np.float32])
def test_any_dtype_of_0_and_1_packs_alike(dtype):
    assert pack(np.array([[1, 0, 1]], dtype=dtype)).tolist() == [[5]]


@given(bit_matrices)
def test_bits_kept_column_by_column_pack_into_rows(bits):
    packed = pack(np.asfortranarray(bits))  # as stumps hand them out
    assert packed.flags.c_contiguous
    np.testing.assert_array_equal(packed, pack(bits))


def test_distance_worked_by_hand():
    d = weighted_hamming([[0, 1], [1, 1]], [[0, 1], [1, 0], [0, 0]], [3, 0.25])
    assert d.tolist() == [[0, 3.25, 0.25], [3, 0.25, 3.25]]


def test_whole_weights_give_whole_distances():
    rng = np.random.default_rng(0)
    q, x = rng.integers(0, 2, (7, 60)), rng.integers(0, 2, (11, 60))
    w = rng.integers(0, 100, 60)
    np.testing.assert_array_equal(weighted_hamming(q, x, w), (q[:, None] != x[None]) @ w)


@given(st.data())
def test_distance_is_the_exact_sum_up_to_rounding(data):
    n_bits = data.draw(st.integers(0, 12))
    shape = st.tuples(st.integers(0, 3), st.just(n_bits))
    q, x = (data.draw(hnp.arrays(np.uint8, shape, elements=st.integers(0, 1))) for _ in range(2))
    w = data.draw(hnp.arrays(np.float64, n_bits, elements=st.floats(0, 1e6)))
    d = weighted_hamming(q, x, w)
    assert d.shape == (len(q), len(x))
    for row, exact in zip(d, exact_distances(q, x, w), strict=True):
        np.testing.assert_allclose(row, [float(e) for e in exact], rtol=0, atol=n_bits * 2.0**-52 * w.sum())


@pytest.mark.parametrize("n_bits", [1, 7, 60, 128])
def test_equal_codes_get_exactly_equal_distances_wherever_they_stand(n_bits, monkeypatch):
    rng = np.random.default_rng(n_bits)
    distinct = rng.integers(0, 2, (5, n_bits))
    which = rng.integers(0, 5, 1003)
    queries, w = rng.integers(0, 2, (9, n_bits)), rng.random(n_bits)
    whole = weighted_hamming(queries, distinct[which], w)
    np.testing.assert_array_equal(whole, weighted_hamming(queries, distinct, w)[:, which])
    for row, query in zip(whole, queries, strict=True):  # other shapes, other summation order
        np.testing.assert_array_equal(row, weighted_hamming(query[None], distinct[which], w)[0])
    monkeypatch.setattr(codes, "_BLOCK", 17 * max(9, n_bits))
    np.testing.assert_array_equal(whole, weighted_hamming(queries, distinct[which], w))


def test_weights_a_trillion_times_smaller_still_order_the_codes():
    d = weighted_hamming([[0, 0, 0]], [[1, 0, 0], [1, 0, 1], [1, 1, 0]], [1.0, 2e-12, 1e-12])
    assert d[0, 0] < d[0, 1] < d[0, 2]


@given(hnp.arrays(np.float64, st.integers(1, 20), elements=st.floats(0, 1e6)))
def test_sums_of_whole_weights_are_exact(w):
    whole, unit = whole_weights(w, len(w))
    assert np.all(whole >= 0)
    assert int(whole.sum()) < 2**53
    np.testing.assert_allclose(whole * unit, w, rtol=0, atol=w.sum() * 2.0**-52)


@pytest.mark.parametrize("scale", [2.0**-1000, 1.0, 2.0**1000])
def test_scale_of_the_weights_does_not_matter(scale):
    d = weighted_hamming([[0, 0, 0]], [[1, 1, 0], [0, 0, 1]], np.array([1.0, 2.0, 3.0]) * scale)
    assert d[0, 0] == d[0, 1]
    np.testing.assert_allclose(d, 3 * scale, rtol=1e-11)


def test_weights_of_zero_give_zero():
    assert weighted_hamming([[0, 1]], [[1, 0]], [0, 0]).tolist() == [[0]]


def test_inputs_are_left_as_they_were():
    q, x, w = np.array([[0, 1]]), np.array([[1, 0]]), np.array([0.3, 0.4])
    weighted_hamming(q, x, w)
    assert (q.tolist(), x.tolist(), w.tolist()) == ([[0, 1]], [[1, 0]], [0.3, 0.4])


# Weights as repeated bits: the best counts for a budget, and what plain Hamming distance then says


def error(counts, weights):
    """Σ_j (m_j / N − w_j / Σw)², in rational numbers."""
    N, W = sum(counts), sum(weights)
    return sum((Fraction(m, N) - Fraction(w, W)) ** 2 for m, w in zip(counts, weights, strict=True))


def every_expansion(n_weights, n_bits):
    return [c for c in product(range(n_bits + 1), repeat=n_weights) if 1 <= sum(c) <= n_bits]


@given(small_weights.filter(any), st.integers(1, 7))
@example([1, 1, 1], 7)
@example([5, 1, 1, 0], 3)
def test_no_other_counts_within_the_budget_come_nearer_to_the_weights(weights, n_bits):
    counts = expansion_of(weights, n_bits).tolist()
    least = min(error(other, weights) for other in every_expansion(len(weights), n_bits))
    assert 1 <= sum(counts) <= n_bits
    assert error(counts, weights) == least
    assert sum(counts) == min(
        sum(other) for other in every_expansion(len(weights), n_bits) if error(other, weights) == least
    )


def test_error_is_that_of_distances_between_random_codes():
    """Over all pairs of codes of 4 bits: 4 times the mean squared error of the distance as a share of the largest."""
    weights, n_bits = [5.0, 2.5, 1.5, 1.0], 6
    counts = expansion_of(weights, n_bits)
    every = np.array(list(product((0, 1), repeat=4)))
    shares = weighted_hamming(every, every, weights) / 10.0
    plain = weighted_hamming(every, every, counts) / counts.sum()
    assert 4 * np.mean((shares - plain) ** 2) == pytest.approx(float(error(counts.tolist(), [10, 5, 3, 2])))


def test_weights_in_whole_ratios_are_met_exactly_by_the_fewest_bits():
    assert expansion_of([0.75, 0.5, 0.25], 256).tolist() == [3, 2, 1]
    assert expansion_of(np.full(100, 0.3), 256).tolist() == [1] * 100


def test_bits_without_weight_vanish_and_no_weight_at_all_uses_no_bit():
    assert expansion_of([0.0, 2.0, 0.0], 8).tolist() == [0, 1, 0]
    assert expansion_of([0.0, 0.0], 8).tolist() == [0, 0]
    assert expand(pack([[1, 1]]), [0.0, 0.0], 8).tolist() == [[0]]


def test_budget_below_the_number_of_bits_keeps_the_heaviest():
    assert expansion_of([1.0, 5.0, 2.0, 4.0], 2).tolist() == [0, 1, 0, 1]


@pytest.mark.parametrize("unit", [1e-300, 1e-9, 1.0, 1e9, 1e290])
def test_unit_of_the_weights_does_not_matter(unit):
    w = np.array([3.0, 1.0, 4.0, 1.0, 5.0, 9.0, 2.0, 6.0])
    np.testing.assert_array_equal(expansion_of(w * unit, 40), expansion_of(w, 40))


@given(st.integers(0, 2**32 - 1), st.integers(1, 20), st.integers(1, 90))
def test_plain_hamming_distance_of_expanded_codes_counts_each_bit_as_often_as_it_is_repeated(seed, n_weights, n_bits):
    rng = np.random.default_rng(seed)
    bits, weights = rng.integers(0, 2, (6, n_weights)), rng.exponential(size=n_weights)
    longer = expand(pack(bits), weights, n_bits)
    assert longer.shape == (6, -(-n_bits // 8))
    plain = np.bitwise_count(longer[:, None] ^ longer[None]).sum(axis=2)
    np.testing.assert_array_equal(plain, weighted_hamming(bits, bits, expansion_of(weights, n_bits)))


def test_more_codes_than_one_block(monkeypatch):
    monkeypatch.setattr("cghash.codes._BLOCK", 64)
    bits = np.random.default_rng(0).integers(0, 2, (50, 3))
    np.testing.assert_array_equal(unpack(repeat_bits(pack(bits), [2, 0, 1], 16), 16)[:, :3], bits[:, [0, 0, 2]])


def test_distances_of_a_long_expansion_rank_nearly_as_the_weighted_do():
    rng = np.random.default_rng(1)
    bits, weights = rng.integers(0, 2, (200, 32)), rng.exponential(size=32)
    exact = weighted_hamming(bits[:5], bits, weights).ravel()
    longer = unpack(expand(pack(bits), weights, 512), 512)
    assert np.corrcoef(exact, weighted_hamming(longer[:5], longer, np.ones(512)).ravel())[0, 1] > 0.999


# What is wrong


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: pack([0, 1]), r"bits must be a 2-D array of 0 and 1, got shape \(2,\)"),
        (lambda: pack([[-1, 1]]), "bits must hold only 0 and 1, got -1"),
        (lambda: pack([[0.0, np.nan]]), "bits must hold only 0 and 1, got nan"),
        (lambda: pack([["a"]]), "bits must be a 2-D array of 0 and 1"),
        (lambda: unpack(np.zeros((1, 2), np.uint8), 8), "codes must have 1 bytes an item for n_bits=8, got 2"),
        (lambda: unpack([[1]], 8), "codes must be a 2-D array of uint8, got .* int64"),
        (lambda: unpack(np.zeros((1, 0), np.uint8), -1), "n_bits must be 0 or more, got -1"),
        (lambda: weighted_hamming([[0]], [[0, 1]], [1]), "database must have as many bits as queries, 1, got 2"),
        (lambda: weighted_hamming([[0]], [[1]], [1, 2]), "weights must be 1 numbers, one a bit, got shape"),
        (lambda: weighted_hamming([[0]], [[1]], [-1]), "weights must be finite and 0 or more, got -1"),
        (lambda: weighted_hamming([[0]], [[1]], [np.nan]), "weights must be finite and 0 or more, got nan"),
        (lambda: weighted_hamming([[0, 0]], [[1, 1]], [1e308, 1e308]), "weights must have a finite sum"),
        (lambda: weighted_hamming([[0]], [[2]], [1]), "database must hold only 0 and 1, got 2"),
        (lambda: expansion_of([1.0], 0), "n_bits must be a whole number of at least 1, got 0"),
        (lambda: expansion_of([-1.0, 2.0], 8), "weights must be finite and 0 or more, got -1"),
        (lambda: expansion_of(np.ones((2, 2)), 8), r"weights must be 4 numbers, one a bit, got shape \(2, 2\)"),
        (lambda: expand(pack([[1]]), np.ones(9), 16), "codes must have 2 bytes an item for n_bits=9, got 1"),
        (lambda: repeat_bits(pack([[1]]), [3], 2), "at most n_bits=2 in all, got 3"),
        (lambda: repeat_bits(pack([[1]]), [0.5], 2), "counts must be whole numbers"),
    ],
)
def test_a_bad_argument_is_named(call, message):
    with pytest.raises(InvalidInputError, match=message):
        call()


def test_weights_that_lie_across_words_of_memory_are_taken():
    bytes_ = np.zeros(8 * 3 + 1, dtype=np.uint8)
    weights = bytes_[1:].view(np.float64)
    weights[:] = [1, 2, 0.5]
    assert not weights.flags.aligned
    whole, unit = whole_weights(weights, 3)
    assert (whole * unit).tolist() == [1.0, 2.0, 0.5]
