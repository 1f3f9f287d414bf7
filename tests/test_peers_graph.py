"""STH and AGH: eigenvectors of neighbour graphs against dense eigen solvers, and what they give for new items."""

import numpy as np
import pytest
import scipy.linalg
import scipy.optimize
from hypothesis import given, settings
from hypothesis import strategies as st

from cghash import exceptions
from cghash.peers.agh import AGH, _similarities, graph_projection, second_thresholds
from cghash.peers.sth import STH, eigenmap, median_bits, neighbor_graph

pytestmark = pytest.mark.portable


def blobs(seed, n, d=5, centres=4):
    rng = np.random.default_rng(seed)
    return rng.normal(0, 3, (centres, d))[rng.integers(centres, size=n)] + rng.normal(size=(n, d))


def box(seed, n, d=2):
    """Items without gaps: their graphs are connected, and their eigenvalues differ."""
    return np.random.default_rng(seed).random((n, d)) * np.arange(1, d + 1)


def same_up_to_sign(A, B):
    return np.allclose(np.abs(A / np.linalg.norm(A, axis=0)), np.abs(B / np.linalg.norm(B, axis=0)), atol=1e-6)


# STH


def brute_force_graph(X, k, weights):
    n = len(X)
    square = ((X[:, None] - X[None]) ** 2).sum(axis=2)
    length = np.linalg.norm(X, axis=1)
    cosine = np.divide(X @ X.T, np.outer(length, length), where=np.outer(length, length) > 0, out=np.full((n, n), -2.0))
    far = -cosine if weights == "cosine" else square
    edge = np.zeros((n, n), dtype=bool)
    for i in range(n):
        others = sorted((far[i, j], j) for j in range(n) if j != i)
        edge[i, [j for _, j in others[:k]]] = True
    similarity = np.maximum(cosine, 0) if weights == "cosine" else np.exp(-square / square[edge].mean())
    return np.where(edge | edge.T, similarity, 0.0)


@pytest.mark.parametrize("weights", ["cosine", "heat"])
def test_graph_joins_items_of_which_either_is_near_the_other(weights):
    X = blobs(0, 40)
    assert np.allclose(neighbor_graph(X, 3, weights).toarray(), brute_force_graph(X, 3, weights))


def test_neighbours_by_cosine_do_not_depend_on_the_lengths_of_items():
    X, lengths = blobs(0, 40), np.random.default_rng(1).choice([1e-30, 1.0, 1e30], (40, 1))
    expected = brute_force_graph(X, 3, "cosine")
    assert not np.allclose(expected > 0, brute_force_graph(X, 3, "heat") > 0)
    assert np.allclose(neighbor_graph(X * lengths, 3, "cosine").toarray(), expected)


@pytest.mark.parametrize("n_zero", [5, 39, 40])
def test_items_of_zeros_have_no_cosine_and_take_no_neighbours_place(n_zero):
    X = blobs(0, 40, d=30)  # most angles are wide: nearer to zero than to each other
    X[:n_zero] = 0
    W = neighbor_graph(X, 3, "cosine").toarray()
    assert np.allclose(W, brute_force_graph(X, 3, "cosine"))
    assert not W[:n_zero].any()
    assert STH(4, n_neighbors=3).fit(X).transform(X).shape == (40, 4)


@pytest.mark.parametrize("n", [60, 700])  # all eigenvectors, and the leading ones by Lanczos's method
def test_eigenmap_solves_the_generalised_eigenproblem(n):
    X = np.random.default_rng(1).random((n, 3))
    W = neighbor_graph(X, 12, "heat")
    D = np.diag(W.toarray().sum(axis=1))
    values, vectors = scipy.linalg.eigh(D - W.toarray(), D)
    assert values[1] > 1e-6  # connected, so that only the first is constant
    assert same_up_to_sign(eigenmap(W, 6), vectors[:, 1:7])


@pytest.mark.parametrize("n", [40, 1000])
def test_parts_without_an_edge_between_them_are_told_apart(n):
    rng = np.random.default_rng(2)
    X = np.concatenate([rng.normal(0, 1, (n // 2, 4)), rng.normal(50, 1, (n // 2, 4))])
    bit = STH(1, n_neighbors=5, weights="heat").fit_transform(X)[:, 0]
    assert len(set(bit[: n // 2])) == len(set(bit[n // 2 :])) == 1
    assert bit[0] != bit[-1]


@given(st.integers(2, 30), st.integers(0, 1000))
@settings(max_examples=25, deadline=None)
def test_median_splits_into_halves_where_values_differ(n, seed):
    values = np.random.default_rng(seed).permutation(n).astype(float)[:, None]
    assert median_bits(values).sum() == n // 2


def test_median_of_mostly_one_value_still_splits():
    assert median_bits(np.array([[0.0], [1.0], [1.0], [1.0]])).ravel().tolist() == [False, True, True, True]


def test_machines_answer_as_the_training_codes_where_these_are_separable():
    X = np.concatenate([blobs(3, 100, centres=1), 20 + blobs(3, 100, centres=1)])
    targets = median_bits(eigenmap(neighbor_graph(X, 25, "heat"), 1))
    assert np.array_equal(STH(1, weights="heat").fit_transform(X), targets)


def test_shorter_sth_is_the_beginning_of_a_longer_one_with_lanczos():
    X = blobs(4, 600, d=8)  # in parts, whose eigenvalues coincide
    long = STH(12).fit(X)
    assert np.array_equal(long.transform(X)[:, :4], STH(4).fit(X).transform(X))


def test_sth_does_not_mind_where_liblinear_passes_over_zeros():
    X = blobs(5, 200) * (np.random.default_rng(0).random((200, 5)) < 0.3)
    assert STH(4).fit(X).n_bits_ == 4


# AGH


def dense_graph(Z):
    Z = Z.toarray()
    return Z @ np.diag(1 / Z.sum(axis=0)) @ Z.T


def similarities(X, m=12, s=2):
    anchors = X[:m]
    square = ((X[:, None] - anchors[None]) ** 2).sum(axis=2)
    return _similarities(square, s, float(square.mean()))


def test_similarities_are_gaussian_over_the_nearest_anchors():
    X = blobs(6, 30)
    Z = similarities(X, 7, 3).toarray()
    square = ((X[:, None] - X[None, :7]) ** 2).sum(axis=2)
    for row, distances in zip(Z, square, strict=True):
        near = np.argsort(distances)[:3]
        expected = np.exp(-distances[near] / square.mean())
        assert np.allclose(row[near], expected / expected.sum())
        assert np.count_nonzero(row) == 3


def test_projection_gives_the_eigenvectors_of_the_anchor_graph_laplacian():
    Z = similarities(box(7, 60))
    vectors = np.linalg.eigh(np.eye(60) - dense_graph(Z))[1]
    Y = Z @ graph_projection(Z, 5)
    assert same_up_to_sign(Y, vectors[:, 1:6])
    assert np.allclose(Y.T @ Y, 60 * np.eye(5))
    assert np.allclose(Y.sum(axis=0), 0)


def test_there_are_no_more_eigenvectors_than_anchors_less_one():
    assert graph_projection(similarities(blobs(8, 60)), 50).shape[1] == 11
    with pytest.warns(exceptions.FewerBitsWarning):
        model = AGH(64, n_anchors=8, random_state=0).fit(blobs(8, 60))
    assert model.n_bits_ == 14


@given(st.integers(0, 50))
@settings(max_examples=20, deadline=None)
def test_second_thresholds_minimise_the_cut_of_the_graph(seed):
    Z = similarities(blobs(seed, 40))
    y = Z @ graph_projection(Z, 2)[:, 1]
    laplacian = np.eye(40) - dense_graph(Z)

    def f(b):
        return np.where(y > 0, y - b[1], b[0] - y)

    balanced = {"type": "eq", "fun": lambda b: f(b).sum()}
    numeric = scipy.optimize.minimize(lambda b: f(b) @ laplacian @ f(b), [0.0, 0.0], constraints=balanced, tol=1e-12)
    found = np.array(second_thresholds(Z, y))
    assert abs(f(found).sum()) < 1e-8
    assert f(found) @ laplacian @ f(found) <= numeric.fun + 1e-8


@pytest.mark.parametrize("layers", [1, 2])
def test_new_items_are_encoded_as_the_same_items_in_training(layers):
    X = box(9, 120)
    model = AGH(6, layers=layers, n_anchors=20, random_state=0).fit(X)
    square = ((X[:, None] - model.anchors_[None]) ** 2).sum(axis=2)
    Z = _similarities(square, 2, model.bandwidth_)
    vectors = np.linalg.eigh(dense_graph(Z))[1][:, ::-1][:, 1:7]  # in-sample, from the graph over all items
    first = model.transform(X)[:, ::layers]
    for bit, vector in zip(first.T, vectors.T, strict=False):
        assert np.array_equal(bit > 0, vector > 0) or np.array_equal(bit > 0, vector < 0)
    assert np.array_equal(model.transform(X[::-1]), model.transform(X)[::-1])


def test_second_layer_cuts_each_side_of_the_first():
    X = box(10, 400)
    bits = AGH(2, n_anchors=30, random_state=0).fit_transform(X)
    assert len(np.unique(bits, axis=0)) == 4


def test_layers_other_than_one_and_two_are_refused():
    with pytest.raises(exceptions.InvalidInputError, match="layers must be 1 or 2, got 3"):
        AGH(2, layers=3).fit([[0.0], [1.0]])
