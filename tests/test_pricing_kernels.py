"""SignedGraph and project, native and twin, against their definitions."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cghash._kernels import native

pytestmark = [pytest.mark.core, pytest.mark.portable]


def written_out(first, second, weights, t):
    """Σ_j s_ij (t_i − t_j) of every item, slot by slot."""
    out = np.zeros(len(t))
    for a, b, s in zip(first, second, weights, strict=True):
        out[a] += s * (t[a] - t[b])
        out[b] += s * (t[b] - t[a])
    return out


def graph_of(kernels, first, second, weights, n):
    graph = kernels.SignedGraph(first.astype(np.int32), second.astype(np.int32), n)
    graph.set_weights(np.asarray(weights, dtype=np.float64), 2)
    return graph


@st.composite
def graphs(draw):
    n, m = draw(st.sampled_from([1, 2, 5, 40, 5000])), draw(st.sampled_from([0, 1, 7, 9000]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    first, second = rng.integers(0, n, (2, m))
    live = rng.random(m) < draw(st.sampled_from([0.0, 0.01, 0.5, 1.0]))
    return n, first, second, np.where(live, rng.integers(-4, 5, m) / 4.0, 0.0), rng


@settings(max_examples=30, deadline=None)
@given(case=graphs())
def test_signed_graph_is_what_its_slots_say(kernels, case):
    n, first, second, weights, rng = case
    graph = graph_of(kernels, first, second, weights, n)
    live = np.unique(np.concatenate([first[weights != 0], second[weights != 0]]))
    assert set(live.tolist()) <= set(graph.items.tolist())
    assert len(graph.items) in (len(live), n)
    t = np.zeros(n, dtype=np.float32)
    t[graph.items] = rng.integers(-8, 9, len(graph.items)) / 8.0
    expected = written_out(first, second, weights, t.astype(np.float64))[graph.items]
    found = [graph.laplacian(t[graph.items], threads) for threads in (1, 3)]
    np.testing.assert_allclose(found[0], expected, atol=1e-4)
    np.testing.assert_array_equal(*found)
    bits = rng.integers(0, 2, n).astype(np.uint8)
    gains = [graph.gain(bits, threads) for threads in (1, 3)]
    assert gains[0] == gains[1] == pytest.approx(float(weights @ (bits[first] != bits[second])))


def test_weights_change_and_items_follow(kernels):
    first, second = np.array([0, 1, 2]), np.array([1, 2, 9])
    graph = graph_of(kernels, first, second, [1.0, 0.0, 0.0], 10)
    assert graph.items.tolist() == [0, 1]
    graph.set_weights(np.array([0.0, 0.0, -2.0]), 1)
    assert graph.items.tolist() == [2, 9]
    assert graph.near_weight(1).tolist() == [2.0, 2.0]
    graph.set_weights(np.zeros(3), 1)
    assert graph.items.tolist() == []


def test_malformed_graphs_are_refused(kernels):
    rows = np.array([0, 1], dtype=np.int32)
    for first, second, n in ((rows, rows[:1], 2), (rows, rows + 1, 2), (rows - 1, rows, 2)):
        with pytest.raises(ValueError, match="first and second"):
            kernels.SignedGraph(first, second, n)
    graph = kernels.SignedGraph(rows, rows[::-1].copy(), 2)
    with pytest.raises(ValueError, match="each slot"):
        graph.set_weights(np.zeros(3), 1)
    graph.set_weights(np.ones(2), 1)
    with pytest.raises(ValueError, match="each live item"):
        graph.laplacian(np.zeros(3, dtype=np.float32), 1)
    with pytest.raises(ValueError, match="each item"):
        graph.gain(np.zeros(3, dtype=np.uint8), 1)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(0, 3, 2), (1, 1, 1), (3, 7, 5), (5, 8, 4), (300, 65, 9), (513, 16, 1), (4, 5, 0)])
def test_projections_are_matrix_products(kernels, dtype, shape):
    n, d, m = shape
    rng = np.random.default_rng(0)
    X, coef = rng.standard_normal((n, d)).astype(dtype), rng.standard_normal((m, d))
    np.testing.assert_allclose(kernels.project(X, coef, 2), X.astype(np.float64) @ coef.T, rtol=1e-12, atol=1e-12)


@pytest.mark.native
def test_projections_do_not_depend_on_company_threads_or_instruction_set(on_each_instruction_set):
    rng = np.random.default_rng(0)
    X, coef = rng.standard_normal((700, 37)).astype(np.float32), rng.standard_normal((13, 37))

    def projections():
        yield from (native.project(X, coef, threads) for threads in (1, 3))
        yield np.vstack([native.project(X[i : i + 1], coef, 1) for i in range(len(X))])
        yield np.hstack([native.project(X, coef[j : j + 1], 2) for j in range(len(coef))])

    first, *others = on_each_instruction_set(lambda: [*projections()])
    for found in (first, *others):
        for one in found:
            np.testing.assert_array_equal(one, first[0])


@pytest.mark.native
@pytest.mark.parametrize("d", [1, 8, 15, 33, 784])
def test_passes_over_bytes_are_those_over_floats_on_every_instruction_set(d, on_each_instruction_set):
    rng = np.random.default_rng(d)
    Z = rng.integers(0, 256, (100, d), dtype=np.uint8)
    V, R = rng.standard_normal((2, d)).astype(np.float32), rng.standard_normal((2, 100)).astype(np.float32)
    both = Z, Z.astype(np.float32)
    seen = [*on_each_instruction_set(lambda: [(native.dot(one, V, 1), native.tdot(one, R, 1)) for one in both])]
    for dots, tdots in (pair for pairs in seen for pair in pairs):
        np.testing.assert_array_equal(dots, seen[0][0][0])
        np.testing.assert_array_equal(tdots, seen[0][0][1])


@pytest.mark.native
@pytest.mark.parametrize("d", [1, 8, 15, 33, 784])
def test_sums_of_floats_are_the_same_on_every_instruction_set(d, on_each_instruction_set):
    """One multiplies and adds in one step, another in two: products of floats are exact in doubles."""
    rng = np.random.default_rng(d)
    Z = (rng.standard_normal((100, d)) * 10.0 ** rng.uniform(-30, 3, (100, d))).astype(np.float32)
    R = (rng.standard_normal((2, 100)) * 10.0 ** rng.uniform(-15, 3, (2, 100))).astype(np.float32)
    in_order = np.zeros((2, d))
    for row, r in zip(Z.astype(np.float64), R.T.astype(np.float64), strict=True):
        in_order += np.outer(r, row)
    for found in on_each_instruction_set(lambda: native.tdot(Z, R, 1)):
        np.testing.assert_array_equal(found, in_order)


def test_projection_of_other_width_is_refused(kernels):
    with pytest.raises(ValueError, match="same number of columns"):
        kernels.project(np.zeros((2, 3)), np.zeros((1, 4)), 1)


@pytest.mark.parametrize("shape", [(0, 3), (1, 1), (7, 15), (9, 16), (2500, 37), (5, 0), (20, 33_000)])
@pytest.mark.parametrize("dtype", [np.float32, np.uint8])
def test_passes_are_products_for_any_number_of_threads_and_vectors(kernels, shape, dtype):
    rng = np.random.default_rng(0)
    Z, V, R = (rng.standard_normal(size).astype(np.float32) for size in (shape, (3, shape[1]), (3, shape[0])))
    if dtype == np.uint8:
        Z, V = rng.integers(0, 256, shape, dtype=np.uint8), V / np.float32(128)
    for threads in (1, 3):
        close = {"atol": 1e-4 + 1e-6 * shape[1]}
        np.testing.assert_allclose(kernels.dot(Z, V, threads), V @ Z.astype(np.float64).T, **close)
        np.testing.assert_allclose(kernels.tdot(Z, R, threads), R @ Z.astype(np.float64), atol=1e-3)
    for one, vectors in ((kernels.dot, V), (kernels.tdot, R)):
        together = one(Z, vectors, 1)
        assert one(Z, vectors[:0], 1).shape == (0, together.shape[1])
        np.testing.assert_array_equal(together, one(Z, vectors, 3))
        np.testing.assert_array_equal(together, np.vstack([one(Z, vectors[j : j + 1], 2) for j in range(3)]))
    with pytest.raises(ValueError, match="one column for each"):
        kernels.dot(Z, np.zeros((1, shape[1] + 1), np.float32), 1)
    with pytest.raises(ValueError, match="one column for each"):
        kernels.tdot(Z, np.zeros((1, shape[0] + 1), np.float32), 1)
