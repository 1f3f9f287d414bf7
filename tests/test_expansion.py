"""Weights as repeated bits: the best counts for a budget, and what plain Hamming distance then says."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from cghash.codes import expand, expansion_of, pack, repeat_bits, unpack, weighted_hamming
from cghash.exceptions import InvalidInputError

pytestmark = [pytest.mark.core, pytest.mark.portable]

small_weights = st.lists(st.integers(0, 20), min_size=1, max_size=4)


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


def test_what_cannot_be_expanded_is_named():
    with pytest.raises(InvalidInputError, match="n_bits must be a whole number of at least 1, got 0"):
        expansion_of([1.0], 0)
    with pytest.raises(InvalidInputError, match="weights must be finite and 0 or more, got -1"):
        expansion_of([-1.0, 2.0], 8)
    with pytest.raises(InvalidInputError, match="weights must be 4 numbers, one a bit, got shape \\(2, 2\\)"):
        expansion_of(np.ones((2, 2)), 8)
    with pytest.raises(InvalidInputError, match="codes must have 2 bytes an item for n_bits=9, got 1"):
        expand(pack([[1]]), np.ones(9), 16)
    with pytest.raises(InvalidInputError, match="at most n_bits=2 in all, got 3"):
        repeat_bits(pack([[1]]), [3], 2)
    with pytest.raises(InvalidInputError, match="counts must be whole numbers"):
        repeat_bits(pack([[1]]), [0.5], 2)
