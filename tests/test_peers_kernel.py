"""SDH, KSH and FastHash: each step against brute force or an independent solver, and the objectives."""

import itertools
import os
from pathlib import Path

import numpy as np
import pytest
import scipy.linalg
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import approx_fprime
from sklearn.linear_model import Ridge
from sklearn.model_selection import train_test_split

from cghash.criteria import evaluate
from cghash.peers import fasthash, graph_cuts, ksh, sdh
from cghash.peers.anchors import draw_anchors, kernel
from cghash.peers.fasthash import FastHash
from cghash.peers.ksh import KSH
from cghash.peers.labels import LabelGroups, Residue, signs_of_similarity
from cghash.peers.sdh import SDH

pytestmark = pytest.mark.portable

FOLDER = os.environ.get("CGHASH_DATA")
seeds = st.integers(0, 2**32 - 1)


def signs(rng, *shape):
    return np.where(rng.random(shape) < 0.5, 1.0, -1.0)


# Kernels to anchors


def test_anchors_are_items_and_the_width_is_their_mean_squared_distance():
    X = np.random.default_rng(0).normal(3.0, 2.0, (30, 4))
    anchors, gamma = draw_anchors(X, 7, None, np.random.default_rng(1))
    assert len(np.unique(anchors, axis=0)) == 7
    assert all(any(np.array_equal(anchor, x) for x in X) for anchor in anchors)
    square = np.array([[sum((x - a) ** 2) for a in anchors] for x in X])
    assert gamma == pytest.approx(1 / square.mean())
    np.testing.assert_allclose(kernel(X, anchors, 0.3), np.exp(-0.3 * square), atol=1e-12)


# SDH


def loss_of_codes(B, W, Q):
    return np.sum((B @ W) ** 2) - 2 * np.sum(B * Q)


@settings(max_examples=50, deadline=None)
@given(seed=seeds)
def test_bit_step_of_discrete_descent_is_the_best_of_all_values_of_the_bit(seed):
    rng = np.random.default_rng(seed)
    n, bits, n_labels = 3, 1, 2
    B, W, Q = signs(rng, n, bits), rng.normal(size=(bits, n_labels)), rng.normal(size=(n, bits))
    best = min(loss_of_codes(np.reshape(z, (n, 1)), W, Q) for z in itertools.product((-1.0, 1.0), repeat=n))
    assert loss_of_codes(sdh.discrete_descent(B, W, Q), W, Q) == pytest.approx(best)


@settings(max_examples=50, deadline=None)
@given(seed=seeds)
def test_discrete_descent_ends_where_no_bit_of_any_item_can_be_turned_to_gain(seed):
    rng = np.random.default_rng(seed)
    B, W, Q = signs(rng, 4, 3), rng.normal(size=(3, 2)), rng.normal(size=(4, 3))
    found = sdh.discrete_descent(B, W, Q)
    least = loss_of_codes(found, W, Q)
    assert least <= loss_of_codes(B, W, Q) + 1e-9
    for i, j in itertools.product(range(4), range(3)):
        turned = found.copy()
        turned[i, j] *= -1
        assert loss_of_codes(turned, W, Q) >= least - 1e-9


def test_bit_without_pull_stays_as_it_is():
    B = np.array([[1.0], [-1.0]])
    np.testing.assert_array_equal(sdh.discrete_descent(B, np.zeros((1, 1)), np.zeros((2, 1))), B)


def test_classifier_of_codes_is_ridge_regression():
    rng = np.random.default_rng(0)
    B, Y = signs(rng, 30, 5), rng.random((30, 3))
    expected = Ridge(alpha=0.7, fit_intercept=False).fit(B, Y).coef_.T
    np.testing.assert_allclose(sdh.classifier(B, Y, 0.7), expected, atol=1e-10)


@settings(max_examples=30, deadline=None)
@given(seed=seeds, lam=st.sampled_from([0.1, 1.0, 30.0]), nu=st.sampled_from([1e-5, 0.1, 10.0]))
def test_objective_of_discrete_hashing_never_rises(seed, lam, nu):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(40, 3)), rng.integers(4, size=40)
    objectives = (
        SDH(6, lam=lam, nu=nu, n_iter=8, random_state=seed % 1000).fit(X, np.append(y[:-2], [0, 1])).objectives_
    )
    assert np.all(np.diff(objectives) <= 1e-9 * objectives[:-1])


def test_objective_is_that_of_the_paper_with_the_ridge_term():
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(25, 3)), rng.integers(3, size=25)
    K, Y, B = kernel(X, X[:9], 0.2), np.eye(3)[y], signs(rng, 25, 4)
    P, objectives = sdh.alternate(K, Y, B, 0.5, 0.01, 0.3, 1)
    W = Ridge(alpha=0.5, fit_intercept=False).fit(B, Y).coef_.T
    first = Ridge(alpha=0.3, fit_intercept=False).fit(K, B).coef_.T
    by_hand = sum(np.sum((Y[i] - B[i] @ W) ** 2) + 0.01 * np.sum((B[i] - K[i] @ first) ** 2) for i in range(25))
    by_hand += 0.5 * np.sum(W**2) + 0.01 * 0.3 * np.sum(first**2)
    assert objectives[0] == pytest.approx(by_hand)
    assert P.shape == (9, 4)


def test_items_that_share_all_labels_get_one_code_where_the_kernel_tells_them_apart():
    X = np.repeat(np.eye(4) * 10, 5, axis=0) + 0.01 * np.random.default_rng(0).normal(size=(20, 4))
    labels = np.repeat([[1, 0, 0], [1, 1, 0], [0, 1, 1], [0, 0, 1]], 5, axis=0)
    codes = SDH(8, random_state=0).fit(X, labels).transform(X)
    assert np.array_equal(codes, np.repeat(codes[::5], 5, axis=0))
    assert len(np.unique(codes, axis=0)) == 4


# KSH


def labels_of_both_kinds(rng, n):
    return rng.integers(3, size=n), (rng.random((n, 4)) < 0.4).astype(np.int8)


def similarity(labels):
    """S by its definition, item by item; an item without labels is like none, nor like itself."""
    rows = labels if labels.ndim == 2 else np.eye(labels.max() + 1)[labels]
    alike = [[bool(np.any((a > 0) & (b > 0))) for b in rows] for a in rows]
    return np.where(alike, 1.0, -1.0)


@settings(max_examples=30, deadline=None)
@given(seed=seeds)
def test_similarity_through_groups_is_that_of_every_pair(seed):
    rng = np.random.default_rng(seed)
    for labels in labels_of_both_kinds(rng, 12):
        A = rng.normal(size=(12, 3))
        np.testing.assert_allclose(LabelGroups.of(labels).times(A), similarity(labels) @ A, atol=1e-12)


@settings(max_examples=30, deadline=None)
@given(seed=seeds, k=st.integers(0, 4))
def test_residue_is_what_the_bits_leave_of_the_similarity(seed, k):
    rng = np.random.default_rng(seed)
    for labels in labels_of_both_kinds(rng, 9):
        H, b = signs(rng, 9, k), rng.normal(size=9)
        R = (k + 1) * similarity(labels) - sum((np.outer(h, h) for h in H.T), np.zeros((9, 9)))
        residue = Residue(LabelGroups.of(labels), H)
        np.testing.assert_allclose(residue.times(b), R @ b, atol=1e-12)
        assert residue.gain(b) == pytest.approx(b @ R @ b)


@settings(max_examples=20, deadline=None)
@given(seed=seeds)
def test_gradient_of_the_smoothed_objective_agrees_with_finite_differences(seed):
    rng = np.random.default_rng(seed)
    K, a = rng.normal(size=(15, 4)), rng.normal(size=4)
    residue = Residue(LabelGroups.of(rng.integers(3, size=15)), signs(rng, 15, 2))
    gradient = ksh.smoothed_objective(a, K, residue)[1]
    numeric = approx_fprime(a, lambda v: ksh.smoothed_objective(v, K, residue)[0], 1e-6)
    np.testing.assert_allclose(gradient, numeric, atol=1e-5)


def test_smoothed_objective_of_large_coefficients_is_that_of_the_signs():
    rng = np.random.default_rng(4)
    K, a, labels, H = rng.normal(size=(15, 4)), rng.normal(size=4), rng.integers(3, size=15), signs(rng, 15, 2)
    R, h = 3 * similarity(labels) - H @ H.T, np.sign(K @ a)
    value = ksh.smoothed_objective(1e6 * a, K, Residue(LabelGroups.of(labels), H))[0]
    assert value * 15**2 == pytest.approx(-h @ R @ h)


@settings(max_examples=20, deadline=None)
@given(seed=seeds, n_groups=st.integers(2, 7))
def test_spectral_start_is_the_generalised_eigenvector_of_largest_value(seed, n_groups):
    rng = np.random.default_rng(seed)
    labels = rng.integers(n_groups, size=20)
    K, H, R = rng.normal(size=(20, 4)), np.empty((20, 0)), similarity(labels)
    for _ in range(3):
        values, vectors = scipy.linalg.eig(np.linalg.solve(K.T @ K, K.T @ R @ K))
        top = np.real(vectors[:, np.argmax(np.real(values))])
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(ksh, "smooth", lambda a, *_: a)
            a = ksh.greedy(K, LabelGroups.of(labels), H.shape[1] + 1, 1)[-1]
        assert a @ K.T @ K @ a == pytest.approx(20, rel=1e-4)  # the ridge is small
        if np.diff(np.sort(np.real(values)))[-1] > 1e-2 * np.abs(values).max() and np.real(values).max() > 0:
            assert np.abs(a @ top) == pytest.approx(np.linalg.norm(a) * np.linalg.norm(top), rel=1e-4)
        H = np.column_stack([H, np.where(K @ a > 0, 1.0, -1.0)])
        R = (H.shape[1] + 1) * similarity(labels) - H @ H.T


def test_bit_is_at_least_as_good_as_the_spectral_start_and_random_directions():
    rng = np.random.default_rng(5)
    X, y = rng.normal(size=(60, 3)), rng.integers(3, size=60)
    X += 2 * np.eye(3)[y]
    K = kernel(X, X[:10], 0.1)
    K -= K.mean(axis=0)
    groups, S = LabelGroups.of(y), similarity(y)
    a = ksh.greedy(K, groups, 1, 100)[0]
    start = scipy.linalg.eigh(K.T @ S @ K, K.T @ K)[1][:, -1]
    gains = [h @ S @ h for h in (np.sign(K @ v) for v in (a, start, *rng.normal(size=(200, 10))))]
    assert gains[0] == max(gains)


def test_inner_products_of_longer_codes_are_nearer_to_the_similarity():
    rng = np.random.default_rng(6)
    y = rng.integers(4, size=80)
    X = 3 * np.eye(4)[y] + rng.normal(size=(80, 4))
    codes = 2.0 * KSH(32, random_state=0).fit(X, y).transform(X) - 1
    errors = [np.mean((codes[:, :m] @ codes[:, :m].T / m - similarity(y)) ** 2) for m in (1, 4, 32)]
    assert errors == sorted(errors, reverse=True)


# FastHash


def all_signs(n):
    return [np.array(z) for z in itertools.product((-1.0, 1.0), repeat=n)]


@settings(max_examples=60, deadline=None)
@given(seed=seeds, b=st.integers(1, 7), k=st.integers(1, 5), pull=st.sampled_from([2, 8, 100]))
def test_cut_of_a_block_is_the_best_of_all_signs(seed, b, k, pull):
    rng = np.random.default_rng(seed)
    h, u = signs(rng, b, k - 1), rng.integers(-pull, pull + 1, size=b).astype(float)
    R = k - h @ h.T
    values = {tuple(z): z @ R @ z + 2 * u @ z for z in all_signs(b)}
    best = graph_cuts.best_signs(u, k, h)
    assert values[tuple(best)] == max(values.values()) == graph_cuts.block_value(best, u, k, h)


@settings(max_examples=30, deadline=None)
@given(seed=seeds)
def test_blocks_hold_items_that_share_a_label_and_leave_none_out(seed):
    rng = np.random.default_rng(seed)
    for labels in labels_of_both_kinds(rng, 250):
        blocks, S = graph_cuts.blocks_of(labels, rng), signs_of_similarity(labels, labels)
        assert set(np.concatenate(blocks)) == set(range(250))
        assert max(len(block) for block in blocks) <= 100
        assert all(np.all(S[np.ix_(block, block)] == 1) for block in blocks if len(block) > 1)


@settings(max_examples=25, deadline=None)
@given(seed=seeds, k=st.integers(0, 3))
def test_bits_of_items_end_where_no_block_can_be_given_better_signs(seed, k):
    rng = np.random.default_rng(seed)
    for labels in labels_of_both_kinds(rng, 10):
        H, z = signs(rng, 10, k), signs(rng, 10)
        R = (k + 1) * similarity(labels) - H @ H.T
        residue, blocks = Residue(LabelGroups.of(labels), H), graph_cuts.blocks_of(labels, rng)
        found = graph_cuts.improve(residue, blocks, z, 1000)
        assert found @ R @ found >= z @ R @ z
        for block in blocks:
            for new in all_signs(len(block)):
                other = found.copy()
                other[block] = new
                assert other @ R @ other <= found @ R @ found


def test_first_bit_of_two_classes_tells_them_apart():
    labels = np.array([0] * 90 + [1] * 30)
    residue = Residue(LabelGroups.of(labels), np.empty((120, 0)))
    z = graph_cuts.infer_bits(residue, graph_cuts.blocks_of(labels, np.random.default_rng(0)), np.random.default_rng(1))
    assert np.array_equal(z * z[0], np.where(labels == 0, 1.0, -1.0))


def test_training_error_of_boosted_trees_is_within_the_bound_of_adaboost():
    rng = np.random.default_rng(7)
    A = rng.normal(size=(150, 6)).astype(np.float32)
    z = np.where(A[:, 0] * A[:, 1] + 0.3 * rng.normal(size=150) > 0, 1.0, -1.0)
    errors = []
    for n_trees in (1, 5, 40):
        boosted = fasthash.boost(A, z, n_trees, 3, 6, np.random.default_rng(0))
        errors.append(np.mean(boosted.signs != z))
        assert errors[-1] <= np.prod(1 / np.cosh(boosted.votes))  # 1/cosh α = 2 √(ε(1 − ε))
    assert errors[2] < errors[0] / 2


@pytest.mark.parametrize("z", [np.ones(20), -np.ones(20)])
def test_bit_that_all_items_share_is_learned_as_it_is(z):
    boosted = fasthash.boost(np.arange(20, dtype=np.float32)[:, None], z, 3, 2, 1, np.random.default_rng(0))
    np.testing.assert_array_equal(boosted.signs, z)


def test_bits_are_the_votes_of_trees_walked_node_by_node():
    rng = np.random.default_rng(8)
    X, y = rng.normal(size=(60, 4)) * [1, 10, 0.1, 1], rng.integers(3, size=60)
    X[:, 0] += y
    model = FastHash(3, n_trees=7, max_depth=3, random_state=0).fit(X, y)

    def answer(x, k, t):
        node = 0
        while model.left_[k, t, node] != node:
            left = x[model.feature_[k, t, node]] <= model.threshold_[k, t, node]
            node = (model.left_ if left else model.right_)[k, t, node]
        return 2.0 * model.answer_[k, t, node] - 1

    new = rng.normal(size=(20, 4)) * [1, 10, 0.1, 1]
    expected = [[sum(model.votes_[k, t] * answer(x, k, t) for t in range(7)) > 0 for k in range(3)] for x in new]
    np.testing.assert_array_equal(model.transform(new), expected)


def test_items_of_a_multi_label_problem_that_share_no_label_lie_farther_apart():
    rng = np.random.default_rng(9)
    labels = (rng.random((150, 4)) < 0.35).astype(np.int8)
    X = 3.0 * labels + rng.normal(size=(150, 4))
    codes = 2.0 * FastHash(16, n_trees=15, random_state=0).fit(X, labels).transform(X) - 1
    products, S = codes @ codes.T, signs_of_similarity(labels, labels)
    off = ~np.eye(150, dtype=bool)
    assert products[off & (S > 0)].mean() > products[off & (S < 0)].mean() + 6


# Shared data


def quality(model, name, n_train, n_test):
    with np.load(Path(FOLDER) / f"{name}.npz") as arrays:
        X, y = arrays["X"].astype(np.float32), arrays["y"]
    split = train_test_split(X, y, train_size=n_train, test_size=n_test, stratify=y, random_state=0)
    train, test, y_train, y_test = split
    model.fit(train, y_train)
    return evaluate(model.transform(test), model.transform(train), model.weights_, y_test, y_train)


SMALL = {"cifar10_gist512": (2000, 500), "usps": (1500, 500)}


@pytest.mark.slow
@pytest.mark.skipif(not FOLDER, reason="CGHASH_DATA names no folder with the data sets")
@pytest.mark.parametrize(
    ("model", "name", "least"),
    [
        (SDH(32, random_state=0), "cifar10_gist512", 0.36),
        (SDH(32, random_state=0), "usps", 0.9),
        (KSH(32, random_state=0), "cifar10_gist512", 0.26),
        (KSH(32, random_state=0), "usps", 0.82),
        (FastHash(16, n_trees=50, random_state=0), "usps", 0.9),
    ],
    ids=lambda value: type(value).__name__ if hasattr(value, "fit") else str(value),
)
def test_quality_on_real_data_is_that_of_the_literature_in_order(model, name, least):
    assert quality(model, name, *SMALL[name])["map"] > least
