"""Candidates ranked by their vectors: the native kernel against its twin, and both against brute force in float64."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cghash._kernels import native, twins

pytestmark = [pytest.mark.core, pytest.mark.portable, pytest.mark.native]
needs_native = pytest.mark.skipif(native is None, reason="the native extension was not built")

DTYPES = ["float32", "float16", "int8"]
METRICS = ["euclidean", "inner", "cosine"]
DIMS = [1, 7, 8, 9, 31, 32, 33, 100, 384, 1000]  # values are loaded eight at a time and added to 32 sums


def vectors(rng, dtype, n, dim):
    """Vectors as they are stored, and the scale of their features."""
    if dtype == "int8":
        return rng.integers(-128, 128, (n, dim)).astype(np.int8), (rng.random(dim) + 0.1).astype(np.float32)
    return rng.standard_normal((n, dim)).astype(dtype), None


def as_rows(stored, n_behind=0):
    """Rows of bytes with some more behind, which are NaN of every type."""
    return np.pad(np.ascontiguousarray(stored).view(np.uint8), ((0, 0), (0, n_behind)), constant_values=255)


def brute_force(query, stored, scale, metric):
    X, q = stored.astype(np.float64) * (1.0 if scale is None else scale.astype(np.float64)), query.astype(np.float64)
    if metric == "euclidean":
        return np.linalg.norm(X - q, axis=1)
    norms = np.linalg.norm(X, axis=1) * np.linalg.norm(q)
    return -X @ q if metric == "inner" else 1 - X @ q / np.where(norms > 0, norms, 1)


def assert_same_bits(one, other):
    for x, y in zip(one, other, strict=True):
        np.testing.assert_array_equal(x.view(np.int64), y.view(np.int64), strict=True)


@pytest.mark.parametrize("dim", DIMS)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("metric", METRICS)
def test_nearest_are_those_of_brute_force(kernels, metric, dtype, dim):
    rng = np.random.default_rng(dim)
    stored, scale = vectors(rng, dtype, 60, dim)
    queries = rng.standard_normal((3, dim)).astype(np.float32)
    candidates = np.array([rng.permutation(np.append(np.arange(60), np.full(9, -1)))[:50] for _ in queries])
    distances, positions = kernels.rank_rows(as_rows(stored, 3), dtype, scale, queries, candidates, 7, metric, 2)
    assert (distances.dtype, positions.dtype) == (np.float64, np.int64)
    for i, query in enumerate(queries):
        there = candidates[i][candidates[i] >= 0]
        exact = brute_force(query, stored[there], scale, metric)
        np.testing.assert_allclose(distances[i], np.sort(exact)[:7], rtol=1e-12, atol=1e-12)
        place = [there.tolist().index(position) for position in positions[i]]
        np.testing.assert_allclose(distances[i], exact[place], rtol=1e-12, atol=1e-12)
        assert len(set(place)) == 7


def wild(rng, dtype, n, dim):
    """Vectors some of which are equal, zero, NaN, ∞, tiny or huge."""
    stored, scale = vectors(rng, dtype, n, dim)
    stored[rng.integers(0, n, n // 3)] = stored[0]
    stored[rng.integers(0, n, n // 8)] = 0
    if dtype == "int8":
        scale[rng.random(dim) < 0.2] = rng.choice(np.float32([0, -1, 1e-44, 3e38, np.inf, np.nan]))
    else:
        limits = np.finfo(dtype)
        odd = np.array([np.nan, np.inf, -np.inf, limits.max, limits.smallest_subnormal, -0.0], dtype)
        spoilt = rng.integers(0, n, n // 4)
        stored[spoilt, rng.integers(0, dim, spoilt.size)] = rng.choice(odd, spoilt.size)
    return stored, scale


@needs_native
@settings(max_examples=200)
@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from(DTYPES),
    st.sampled_from(METRICS),
    st.integers(1, 80),  # features
    st.sampled_from([0, 1, 2, 17, 40]),  # candidates
    st.sampled_from([1, 2, 10, 50]),  # k
)
def test_twin_and_each_instruction_set_give_the_same_bits(on_each_instruction_set, seed, dtype, metric, dim, c, k):
    rng = np.random.default_rng(seed)
    stored, scale = wild(rng, dtype, 30, dim)
    queries = rng.standard_normal((4, dim)).astype(np.float32)
    queries[1] = 0
    queries[2, rng.integers(dim)] = rng.choice(np.float32([np.nan, np.inf, -3e38]))
    rows, candidates = as_rows(stored, int(rng.integers(0, 9))), rng.integers(-1, 30, (4, c))
    right = twins.rank_rows(rows, dtype, scale, queries, candidates, k, metric, 1)
    for found in on_each_instruction_set(
        lambda: [native.rank_rows(rows, dtype, scale, queries, candidates, k, metric, threads) for threads in (1, 3)]
    ):
        assert_same_bits(found[0], right)
        assert_same_bits(found[1], right)


@needs_native
@pytest.mark.parametrize("dim", DIMS)
def test_wide_vectors_have_the_same_bits_on_each_instruction_set(on_each_instruction_set, dim):
    rng = np.random.default_rng(dim)
    queries, candidates = rng.standard_normal((5, dim)).astype(np.float32), rng.integers(0, 200, (5, 150))
    for dtype in DTYPES:
        stored, scale = vectors(rng, dtype, 200, dim)
        for metric in METRICS:
            arguments = as_rows(stored), dtype, scale, queries, candidates, 150, metric
            right = twins.rank_rows(*arguments, 1)
            for found in on_each_instruction_set(lambda arguments=arguments: native.rank_rows(*arguments, 2)):
                assert_same_bits(found, right)


@pytest.mark.parametrize("dim", [1, 8, 9])
def test_each_half_float_is_what_it_says(kernels, on_each_instruction_set, dim):
    values = np.arange(2**16, dtype=np.uint16).view(np.float16)
    stored = np.zeros((2**16, dim), dtype=np.float16)
    stored[np.arange(2**16), np.arange(2**16) % dim] = values
    arguments = as_rows(stored), "float16", None, np.ones((1, dim), np.float32), np.arange(2**16)[None], 2**16, "inner"
    answers = [kernels.rank_rows(*arguments, 1)]
    if kernels is native:
        answers += on_each_instruction_set(lambda: kernels.rank_rows(*arguments, 1))
    for distances, positions in answers:
        with np.errstate(invalid="ignore"):  # of signalling NaN
            np.testing.assert_array_equal(distances[0], -values.astype(np.float64)[positions[0]])
        np.testing.assert_array_equal(np.sort(positions[0]), np.arange(2**16))
        assert np.isnan(distances[0, -2046:]).all()
        assert not np.isnan(distances[0, :-2046]).any()


def rank(kernels, stored, queries, candidates, k, metric, scale=None):
    stored, scale = np.asarray(stored), None if scale is None else np.float32(scale)
    queries, candidates = np.atleast_2d(np.float32(queries)), np.atleast_2d(np.int64(candidates))
    return kernels.rank_rows(as_rows(stored), str(stored.dtype), scale, queries, candidates, k, metric, 1)


def test_distances_by_hand(kernels):
    stored = np.float32([[3, 4], [0, 0], [-6, 8], [1, 0]])
    for metric, query, right, order in (
        ("euclidean", [1, 0], [0, 1, np.sqrt(4 + 16), np.sqrt(49 + 64)], [3, 1, 0, 2]),
        ("inner", [2, 0], [-6, -2, 0, 12], [0, 3, 1, 2]),
        ("cosine", [2, 0], [0, 0.4, 1, 1.6], [3, 0, 1, 2]),
    ):
        distances, positions = rank(kernels, stored, query, np.arange(4), 4, metric)
        np.testing.assert_allclose(distances[0], right, rtol=1e-15)
        np.testing.assert_array_equal(positions[0], order)


def test_bytes_are_scaled_by_their_feature(kernels):
    stored, scale = np.int8([[100, -128, 5], [1, 1, 127]]), [0.5, -2, 0]  # vectors (50, 256, 0) and (0.5, -2, 0)
    distances, positions = rank(kernels, stored, [1, 1, 9], [0, 1], 2, "inner", scale)
    np.testing.assert_array_equal(distances, [[-306, 1.5]])
    distances, positions = rank(kernels, stored, [0.5, 1, 4], [0, 1], 2, "euclidean", scale)
    np.testing.assert_array_equal(positions, [[1, 0]])
    np.testing.assert_allclose(distances[0], [5, np.sqrt(49.5**2 + 255**2 + 16)], rtol=1e-15)


def test_a_vector_is_at_no_distance_from_itself_and_cosines_stay_in_range(kernels):
    stored = np.random.default_rng(0).standard_normal((50, 37)).astype(np.float32)
    for sign, cosine in ((1, 0.0), (-1, 2.0)):
        for metric, right in (("cosine", cosine), ("euclidean", 0.0)):
            distances, _ = rank(kernels, sign * stored, stored, np.arange(50)[:, None], 1, metric)
            if metric == "cosine" or sign == 1:
                np.testing.assert_array_equal(distances[:, 0], right)
    near = stored[:1] * np.linspace(0.5, 2, 500, dtype=np.float32)[:, None]
    distances, _ = rank(kernels, near, stored[0], np.arange(500), 500, "cosine")
    assert distances.min() >= 0
    assert distances.max() < 1e-13


def test_ties_come_by_position_and_nan_before_what_is_not_there(kernels):
    stored = np.float32([[1], [np.nan], [1], [np.inf], [0], [1]])
    distances, positions = rank(kernels, stored, [0], [5, -1, 3, 2, 1, 0, 4, -1], 8, "euclidean")
    np.testing.assert_array_equal(positions, [[4, 0, 2, 5, 3, 1, -1, -1]])
    np.testing.assert_array_equal(distances, [[0, 1, 1, 1, np.inf, np.nan, np.inf, np.inf]])
    distances, positions = rank(kernels, stored, [0], [5, 2, 0], 2, "euclidean")
    np.testing.assert_array_equal(positions, [[0, 2]])


def test_a_zero_vector_is_at_cosine_distance_one(kernels):
    stored = np.float16([[0, 0], [-1, 1], [1, 1]])
    np.testing.assert_array_equal(rank(kernels, stored, [1, 1], [0, 1, 2], 3, "cosine")[1], [[2, 0, 1]])
    np.testing.assert_array_equal(rank(kernels, stored, [0, 0], [2, 0, 1], 3, "cosine")[0], [[1, 1, 1]])


def test_a_candidate_that_is_given_twice_comes_twice(kernels):
    distances, positions = rank(kernels, np.float32([[2], [1]]), [0], [0, 1, 1, 0], 3, "euclidean")
    np.testing.assert_array_equal(positions, [[1, 1, 0]])
    np.testing.assert_array_equal(distances, [[1, 1, 2]])


def test_no_queries_no_candidates_no_rows(kernels):
    stored = np.ones((3, 4), np.float32)
    for rows, q, candidates in (
        (stored, 0, np.zeros((0, 5), np.int64)),
        (stored, 2, np.zeros((2, 0), np.int64)),
        (stored[:0], 2, np.full((2, 3), -1)),
    ):
        distances, positions = rank(kernels, rows, np.ones((q, 4)), candidates, 6, "cosine")
        assert distances.shape == positions.shape == (q, 6)
        assert np.isposinf(distances).all()
        assert (positions == -1).all()


def test_rows_of_a_file_are_ranked_where_they_lie(kernels, tmp_path):
    rng = np.random.default_rng(0)
    rows = as_rows(rng.standard_normal((512, 1)).astype(np.float16), 6)  # a page of the file's, to its last byte
    rows.tofile(tmp_path / "rows")
    mapped = np.memmap(tmp_path / "rows", np.uint8, "r", shape=rows.shape)
    rest = "float16", None, np.ones((1, 1), np.float32), np.arange(512)[None], 9, "euclidean", 1
    assert_same_bits(kernels.rank_rows(mapped, *rest), kernels.rank_rows(rows, *rest))


def arguments(**changed):
    given = {
        "rows": np.zeros((5, 12), np.uint8),
        "dtype": "float32",
        "scale": None,
        "queries": np.zeros((2, 3), np.float32),
        "candidates": np.zeros((2, 4), np.int64),
        "k": 2,
        "metric": "inner",
    }
    return *(given | changed).values(), 2


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"dtype": "float64"}, "dtype must be 'float32', 'float16' or 'int8', got 'float64'"),
        ({"metric": "l2"}, "metric must be 'euclidean', 'inner' or 'cosine', got 'l2'"),
        ({"k": 0}, "k must be at least 1"),
        ({"k": -(2**40)}, "k must be at least 1"),
        ({"rows": np.zeros((5, 11), np.uint8)}, "as many values as queries have columns"),
        ({"queries": np.zeros((2, 4), np.float32)}, "as many values as queries have columns"),
        ({"queries": np.zeros((2, 0), np.float32)}, "at least one column"),
        ({"queries": np.zeros((3, 3), np.float32)}, "a row for each query"),
        ({"candidates": np.zeros((0, 2**40), np.int64)}, "a row for each query"),
        ({"candidates": np.array([[0], [5]])}, "got 5 for n = 5"),
        ({"candidates": np.array([[-2], [0]])}, "got -2 for n = 5"),
        ({"candidates": np.full((2, 1), 2**63 - 1)}, "for n = 5"),
        ({"candidates": np.full((2, 1), -(2**63))}, "for n = 5"),
        ({"dtype": "int8"}, "scale must have one entry for each column of int8"),
        ({"dtype": "int8", "scale": np.ones(2, np.float32)}, "scale must have one entry for each column of int8"),
        ({"scale": np.ones(3, np.float32)}, "and none for floats"),
    ],
)
def test_wrong_calls_are_refused(kernels, changed, message):
    with pytest.raises(ValueError, match=message):
        kernels.rank_rows(*arguments(**changed))


@needs_native
@pytest.mark.parametrize(
    "changed",
    [
        {"rows": np.zeros((5, 24), np.uint8)[:, ::2]},
        {"rows": np.zeros((5, 3), np.float32)},
        {"queries": np.zeros((2, 3))},
        {"candidates": np.zeros((2, 4), np.int32)},
        {"candidates": np.zeros(4, np.int64)},
        {"dtype": "int8", "scale": np.ones(3)},
    ],
)
def test_arrays_of_another_kind_are_refused(changed):
    with pytest.raises(TypeError):
        native.rank_rows(*arguments(**changed))
