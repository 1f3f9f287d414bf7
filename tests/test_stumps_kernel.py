"""The sweep over decision stumps, against every threshold tried by definition."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cghash import _kernels
from cghash._kernels import native, twins
from cghash.learning.families.ranks import dense_ranks, midpoint

pytestmark = [pytest.mark.core, pytest.mark.portable]

NONE = np.zeros(0, np.int64)


def oracle(X, a, b, s, taken):
    """gain, rank and positive by definition: the bits of every stump, and what they cut."""
    d = X.shape[1]
    gain, rank, positive = np.full(d, -np.inf), np.full(d, -1), np.zeros(d)
    for f in range(d):
        for r, value in enumerate(np.unique(X[:, f])[:-1]):
            bits = X[:, f] > value
            here = float(np.sum(s[bits[a] != bits[b]]))
            positive[f] += max(here, 0.0)
            if here > gain[f] and (f, r) not in taken:
                gain[f], rank[f] = here, r
    return gain, rank, positive


def ranked(kernels, X, dtype):
    """`StumpRanks` of X, appended one feature first and then the others."""
    n, d = X.shape
    ranks, n_distinct = np.zeros((d, n), dtype), np.zeros(d, np.int64)
    for f in range(d):
        values = np.unique(X[:, f])
        ranks[f], n_distinct[f] = np.searchsorted(values, X[:, f]), len(values)
    kernel = kernels.StumpRanks(n)
    kernel.append(ranks[:1], n_distinct[:1])
    kernel.append(ranks[1:], n_distinct[1:])
    return kernel


def assert_same_bits(one, other):
    for x, y in zip(one, other, strict=True):
        np.testing.assert_array_equal(x, y, strict=True)


@st.composite
def problems(draw):
    n, d = draw(st.integers(0, 12)), draw(st.integers(1, 20))
    m = draw(st.integers(0, 30)) if n else 0
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    levels = draw(st.integers(1, 13))  # 1: all features constant
    X = rng.integers(0, levels, (n, d)).astype(np.float64)
    a, b = (rng.integers(0, max(n, 1), m).astype(np.int32) for _ in range(2))  # duplicates and a = b among them
    s = rng.integers(-3, 4, m) / 4  # sums are exact, ties and zeros are common
    free = [(f, r) for f in range(d) for r in range(len(np.unique(X[:, f])) - 1)]
    taken = draw(st.lists(st.sampled_from(free), max_size=2 * len(free))) if free else []
    return X, a, b, s, taken


def taken_arrays(taken):
    return np.array([f for f, _ in taken], np.int64), np.array([r for _, r in taken], np.int64)


@settings(max_examples=150, deadline=None)
@given(problems(), st.sampled_from([np.uint8, np.uint16, np.uint32]))
def test_twin_finds_what_enumeration_finds(problem, dtype):
    X, a, b, s, taken = problem
    found = ranked(twins, X, dtype).sweep(a, b, s, *taken_arrays(taken), 1)
    assert_same_bits(found, oracle(X, a, b, s, taken))


@pytest.mark.native
@settings(max_examples=150, deadline=None)
@given(problems(), st.sampled_from([np.uint8, np.uint16, np.uint32]))
def test_every_instruction_set_finds_what_enumeration_finds(on_each_instruction_set, problem, dtype):
    X, a, b, s, taken = problem
    expected = oracle(X, a, b, s, taken)
    kernel = ranked(native, X, dtype)
    for found in on_each_instruction_set(lambda: [kernel.sweep(a, b, s, *taken_arrays(taken), n) for n in (1, 3)]):
        for one in found:
            assert_same_bits(one, expected)


def wide_problem(n_items, n_levels, n_features=19, m=5000):
    rng = np.random.default_rng(0)
    X = rng.integers(0, n_levels, (n_items, n_features)).astype(np.float32)
    X[:, 1], X[:, 2] = 7.0, X[:, 0] > np.median(X[:, 0])  # one constant, one of two values
    a, b = (rng.integers(0, n_items, m).astype(np.int32) for _ in range(2))
    s = np.where(rng.random(m) < 0.3, 0.0, rng.normal(size=m))
    return X, a, b, s


@pytest.mark.native
@pytest.mark.parametrize(
    ("n_items", "n_levels"), [(5000, 256), (5000, 257), (70_000, 10**9)], ids=["8", "16", "32 bits"]
)
def test_real_weights_give_the_same_bits_everywhere(on_each_instruction_set, n_items, n_levels):
    X, a, b, s = wide_problem(n_items, n_levels)
    taken = np.array([0, 2]), np.array([5, 0])
    expected = ranked(twins, X, np.uint32).sweep(a, b, s, *taken, 1)
    assert expected[1][2] == -1  # its only threshold is taken
    kernel = ranked(native, X, np.uint32)
    for found in on_each_instruction_set(lambda: [kernel.sweep(a, b, s, *taken, n) for n in (1, 3)]):
        for one in found:
            assert_same_bits(one, expected)


def test_real_weights_agree_with_enumeration():
    X, a, b, s = wide_problem(200, 50)
    gain, rank, positive = dense_ranks(X).kernel.sweep(a, b, s, NONE, NONE, 2)
    expected = oracle(X, a, b, s, [])
    np.testing.assert_allclose(gain, expected[0], rtol=1e-10)
    np.testing.assert_array_equal(rank, expected[1])
    np.testing.assert_allclose(positive, expected[2], rtol=1e-10)


def test_barring_the_best_again_and_again_lists_all_thresholds_by_falling_gain():
    X, a, b, s = wide_problem(40, 10, n_features=4)
    ranks = dense_ranks(X)
    taken, gains = [], []
    while True:
        gain, rank, _ = ranks.kernel.sweep(a, b, s, *taken_arrays(taken), 1)
        best = int(np.argmax(gain))
        if rank[best] < 0:
            break
        taken.append((best, int(rank[best])))
        gains.append(gain[best])
    assert len(set(taken)) == np.sum(ranks.n_distinct - 1)
    assert gains == sorted(gains, reverse=True)


@pytest.mark.parametrize(
    ("ranks", "n_distinct", "message"),
    [
        (np.array([[0, 1, 2]], np.uint8), np.array([2]), "ranks"),
        (np.array([[0, 1, 2]], np.uint32), np.array([257]), "n_distinct"),
        (np.array([[0, 1, 2]], np.uint16), np.array([-1]), "n_distinct"),
        (np.array([[0, 1, 2]], np.uint16), np.array([3, 3]), "ranks"),
        (np.array([[0, 1], [0, 1]], np.uint16), np.array([2, 2]), "ranks"),
        (np.zeros((0, 4), np.uint16), NONE, "ranks"),
        (np.array([[0, 2**32 - 1, 2]], np.uint32), np.array([3]), "ranks"),
    ],
)
def test_malformed_ranks_are_refused_and_leave_no_trace(kernels, ranks, n_distinct, message):
    kernel = kernels.StumpRanks(3)
    with pytest.raises(ValueError, match=message):
        kernel.append(ranks, n_distinct)
    assert kernel.n_features == 0


GOOD = {
    "a": np.array([0, 1], np.int32),
    "b": np.array([1, 2], np.int32),
    "s": np.array([1.0, -1.0]),
    "taken_feature": np.array([0]),
    "taken_rank": np.array([1]),
    "n_threads": 1,
}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("a", np.array([0, 3], np.int32)),
        ("b", np.array([0, -1], np.int32)),
        ("b", np.array([0, 2**31 - 1], np.int32)),
        ("a", np.array([0], np.int32)),
        ("s", np.array([1.0])),
        ("s", np.array([1.0, np.nan])),
        ("s", np.array([1.0, -np.inf])),
        ("s", np.array([1e308, 1e308])),
        ("taken_feature", np.array([1])),
        ("taken_feature", np.array([-1])),
        ("taken_feature", NONE),
        ("taken_rank", np.array([2])),
        ("taken_rank", np.array([-1])),
    ],
)
def test_malformed_problems_are_refused(kernels, name, value):
    kernel = kernels.StumpRanks(3)
    kernel.append(np.array([[0, 1, 2]], np.uint16), np.array([3]))
    kernel.sweep(*GOOD.values())
    with pytest.raises(ValueError, match=name):
        kernel.sweep(*(GOOD | {name: value}).values())


def test_numbers_of_another_type_are_refused_not_wrapped(kernels):
    kernel = kernels.StumpRanks(3)
    with pytest.raises(TypeError):
        kernel.append(np.array([[0, 256, 512]]), np.array([3]))
    with pytest.raises(TypeError):
        kernel.sweep(*(GOOD | {"a": np.array([0, 2**32])}).values())
    for n_items in (-1, 2**31):
        with pytest.raises(ValueError, match="n_items"):
            kernels.StumpRanks(n_items)


def test_no_features_and_no_items(kernels):
    for n_items in (0, 1, 2):
        gain, rank, positive = kernels.StumpRanks(n_items).sweep(
            *(np.zeros(0, v.dtype) for v in list(GOOD.values())[:5]), 2
        )
        assert gain.shape == rank.shape == positive.shape == (0,)


def test_features_take_no_wider_type_than_their_ranks_need(kernels):
    kernel = kernels.StumpRanks(1000)
    few = np.tile(np.arange(1000) % 256, (16, 1)).astype(np.uint32)
    kernel.append(few, np.full(16, 256))
    assert kernel.n_bytes == few.size
    kernel.append(np.zeros((5, 1000), np.uint8), np.ones(5, np.int64))
    assert kernel.n_features == 21


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@given(data=st.data())
@settings(max_examples=100, deadline=None)
def test_thresholds_reproduce_the_ranks(dtype, data):
    width = 32 if dtype is np.float32 else 64
    value = st.floats(width=width, allow_nan=False)  # infinities, -0.0 and subnormals among them
    column = data.draw(st.lists(value, min_size=1, max_size=8))
    with np.errstate(over="ignore"):
        neighbours = [np.nextafter(dtype(x), dtype(np.inf)) for x in column]  # adjacent floats
    X = np.array(column + neighbours, dtype)[:, None]
    before = X.copy()
    ranks = dense_ranks(X)
    values = ranks.values(0)
    assert ranks.n_distinct[0] == len(values)
    for rank in range(len(values) - 1):
        t = ranks.threshold(0, rank)
        assert values[rank] <= t < values[rank + 1]
        np.testing.assert_array_equal(X[:, 0] > t, X[:, 0] > values[rank])
        np.testing.assert_array_equal(X[:, 0] > np.float64(t), X[:, 0] > values[rank])
    np.testing.assert_array_equal(X, before, strict=True)


def test_midpoint_lies_in_the_middle_where_there_is_one():
    assert midpoint(np.float64(-1.0), np.float64(3.0)) == 1.0
    assert midpoint(np.float64(1e308), np.float64(1.5e308)) == pytest.approx(1.25e308)
    assert midpoint(np.float32(-3e38), np.float32(3e38)) == 0.0


@pytest.mark.parametrize("n_threads", [1, 3])
@pytest.mark.parametrize("order", ["C", "F"])
def test_ranks_of_many_and_of_few_values_for_any_layout(n_threads, order):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(6000, 40))  # more values than are looked up one by one
    X[:, ::3] = np.round(X[:, ::3])
    ranks = dense_ranks(np.asarray(X, order=order), n_threads)
    np.testing.assert_array_equal(ranks.n_distinct, [len(np.unique(x)) for x in X.T])
    a, b = (rng.integers(0, 6000, 500).astype(np.int32) for _ in range(2))
    s = rng.normal(size=500)
    expected = ranked(_kernels, X, np.uint16).sweep(a, b, s, NONE, NONE, 1)
    assert_same_bits(ranks.kernel.sweep(a, b, s, NONE, NONE, 1), expected)


@pytest.mark.parametrize("n_items", [0, 1, 2])
def test_ranks_of_hardly_any_items(n_items):
    ranks = dense_ranks(np.arange(n_items * 3.0).reshape(n_items, 3))
    assert ranks.n_distinct.tolist() == [n_items] * 3
    assert ranks.kernel.n_items == n_items
    assert ranks.kernel.n_features == 3


@pytest.mark.parametrize("X", [np.zeros(3), np.zeros((3, 2), int), np.array([[1.0], [np.nan]])])
def test_what_cannot_be_ranked_is_refused(X):
    with pytest.raises(ValueError, match="X must"):
        dense_ranks(X)


@pytest.mark.parametrize("rank", [-1, 1])
def test_a_threshold_lies_between_two_values(rank):
    with pytest.raises(ValueError, match="rank must"):
        dense_ranks(np.array([[1.0], [2.0]])).threshold(0, rank)
