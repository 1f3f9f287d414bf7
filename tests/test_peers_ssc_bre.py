"""SSC and BRE: what they learn from pairs, against brute force."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cghash import exceptions
from cghash.peers.bre import BRE, Descent, best_step, draw_targets
from cghash.peers.ssc import SSC, Stumps, _cuts, draw_pairs

pytestmark = pytest.mark.portable


def labelled(seed, n=40, d=3, classes=3):
    rng = np.random.default_rng(seed)
    y = rng.integers(classes, size=n)
    return rng.normal(size=(n, d)).round(1) + rng.normal(0, 1, (classes, d))[y].round(1), y


# SSC


def least_error(above, pairs, z, w):
    """Least weighted squared error of α·[alike] + β with α ≥ 0, by a solver."""
    alike = (above[pairs[:, 0]] == above[pairs[:, 1]]).astype(float)
    A = np.stack([alike, np.ones(len(z))], axis=1) * np.sqrt(w)[:, None]
    solution = np.linalg.lstsq(A, z * np.sqrt(w), rcond=None)[0]
    if solution[0] < 0:
        solution = np.array([0.0, np.average(z, weights=w)])
    return np.sum(w * (z - solution[0] * alike - solution[1]) ** 2)


@given(st.integers(0, 1000))
@settings(max_examples=20, deadline=None)
def test_stump_found_is_the_best_of_all_features_and_thresholds(seed):
    X, y = labelled(seed, n=25)
    rng = np.random.default_rng(seed)
    stumps = Stumps(X, 255, *draw_pairs(X, y, 3, 1000, rng))
    w = rng.random(len(stumps.z)) + 0.01
    feature, threshold, alpha, beta = stumps.best(w, stumps.varying)
    found = np.sum(w * (stumps.z - alpha * ~stumps.differ(X, feature, threshold) - beta) ** 2)
    every = [least_error(X[:, f] > t, stumps.pairs, stumps.z, w) for f in range(3) for t in np.unique(X[:, f])]
    assert alpha >= 0
    assert found == pytest.approx(min(every))


def test_no_round_raises_the_weighted_squared_error_or_the_exponential_loss():
    X, y = labelled(1, n=120)
    stumps = Stumps(X, 64, *draw_pairs(X, y, 5, 1000, np.random.default_rng(0)))
    score, losses = np.zeros(len(stumps.z)), []
    for _ in range(15):
        w = np.exp(-stumps.z * score)
        losses.append(w.sum())
        feature, threshold, alpha, beta = stumps.best(w, stumps.varying)
        f = alpha * ~stumps.differ(X, feature, threshold) + beta
        assert np.sum(w * (stumps.z - f) ** 2) <= np.sum(w * stumps.z**2) + 1e-9
        score += f
    assert np.all(np.diff(losses) <= 1e-9)


def test_rounds_follow_the_reweighted_pairs():
    X, y = labelled(2, n=60)
    model = SSC(6, random_state=0).fit(X, y)
    seed = int(np.random.RandomState(0).randint(2**31 - 1))
    stumps = Stumps(X, 64, *draw_pairs(X, y, 10, 50_000, np.random.default_rng(seed)))
    score = np.zeros(len(stumps.z))
    for j in range(6):
        feature, threshold, alpha, beta = stumps.best(np.exp(-stumps.z * score), stumps.varying)
        assert (model.feature_[j], model.threshold_[j]) == (feature, threshold)
        assert model.weights_[j] == pytest.approx(alpha)
        score += alpha * ~stumps.differ(X, feature, threshold) + beta


def test_similar_pairs_are_the_nearest_of_the_same_label_and_others_of_another():
    X, y = labelled(3)
    square = ((X[:, None] - X[None]) ** 2).sum(axis=2)
    similar, others = draw_pairs(X, y, 2, 1000, np.random.default_rng(0))
    for i, j in similar:
        nearer = (y == y[i]) & (square[i] < square[i, j] - 1e-9) & (np.arange(len(y)) != i)
        assert y[i] == y[j]
        assert nearer.sum() < 2
    assert np.all(y[others[:, 0]] != y[others[:, 1]])
    assert len(similar) == len(others) == 80
    assert [len(pairs) for pairs in draw_pairs(X, y, 2, 30, np.random.default_rng(0))] == [30, 30]


def test_thresholds_are_quantiles_where_values_are_many():
    assert _cuts(np.arange(100.0), 3).tolist() == [24.5, 49.5, 74.5]
    assert _cuts(np.repeat([0.0, 1.0], [99, 1]), 3).tolist() == [0.5]
    assert _cuts(np.ones(4), 3).size == 0


def test_boosting_stops_where_no_stump_tells_anything():
    X = np.array([[0.0], [0.0], [1.0], [1.0]])
    with pytest.warns(exceptions.FewerBitsWarning, match="learned 1 of the 5 bits"):
        model = SSC(5, random_state=0).fit(np.zeros((4, 2)), [0, 0, 1, 1])
    assert model.weights_.tolist() == [0.0]
    assert SSC(3, random_state=0).fit(X, [0, 0, 1, 1]).transform(X)[:, 0].tolist() == [0, 0, 1, 1]


def test_fewer_features_a_round_and_fewer_thresholds_change_the_stumps():
    X, y = labelled(4, n=80, d=6)
    fits = [SSC(8, random_state=0, **few).fit(X, y) for few in ({}, {"max_features": 1}, {"n_thresholds": 2})]
    assert len({tuple(fit.threshold_.tolist()) for fit in fits}) == 3
    assert all(len(np.unique(fits[2].threshold_[fits[2].feature_ == f])) <= 2 for f in range(6))
    with pytest.raises(exceptions.InvalidInputError, match="n_thresholds must be at most 255, got 256"):
        SSC(8, n_thresholds=256).fit(X, y)


# BRE


def apart(bits, pairs):
    return bits[pairs[:, 0]] != bits[pairs[:, 1]]


@given(st.integers(0, 10_000), st.integers(2, 12))
@settings(max_examples=60, deadline=None)
def test_best_step_is_the_best_of_all_thresholds(seed, n):
    rng = np.random.default_rng(seed)
    scores, kernel = rng.integers(-3, 4, n) / 2, rng.integers(-2, 3, n).astype(float)  # with ties and zeros
    pairs = np.array([(i, j) for i in range(n) for j in range(n) if i != j])
    gain = rng.normal(size=len(pairs))

    def value(step):
        return gain[apart(scores + step * kernel > 0, pairs)].sum()

    turns = np.unique(-scores[kernel != 0] / kernel[kernel != 0])
    edges = np.concatenate([turns[:1] - 1, turns, turns[-1:] + 1])
    every = [value(0.0), *(value(step) for step in (edges[1:] + edges[:-1]) / 2)]
    assert value(best_step(scores, kernel, *pairs.T, gain)) == pytest.approx(max(every))


def test_no_step_raises_the_objective_and_each_is_the_best_of_its_weight():
    X, y = labelled(5, n=60, d=4)
    rng = np.random.default_rng(0)
    A = X / np.linalg.norm(X, axis=1, keepdims=True)
    pairs, d = draw_targets(A, y, 5, rng)
    descent = Descent(A @ rng.normal(size=(4, 6)), pairs, d)

    def objective(scores):
        distance = sum(apart(column > 0, pairs).astype(float) for column in scores.T) / scores.shape[1]
        return np.sum((d - distance) ** 2)

    before = descent.objective()
    for _ in range(2):
        for p in range(6):
            kernel = A @ A[:3].T
            for q in range(3):
                moved = descent.scores.copy()
                descent.improve(p, kernel[:, q : q + 1])
                after = descent.objective()
                assert after == pytest.approx(objective(descent.scores))
                assert after <= before + 1e-9
                for step in (-1.0, -0.1, 0.1, 1.0):
                    other = moved.copy()
                    other[:, p] += step * kernel[:, q]
                    assert after <= objective(other) + 1e-9
                before = after


def test_more_sweeps_fit_the_distances_better():
    X, y = labelled(6, n=200, d=6)
    same = y[:, None] == y[None]

    def misfit(n_sweeps):
        bits = BRE(16, n_sweeps=n_sweeps, random_state=0).fit(X, y).transform(X)
        return np.mean((~same - (bits[:, None] != bits[None]).mean(axis=2)) ** 2)

    assert misfit(2) < misfit(1) < misfit(0)


def test_labels_give_the_distances_0_and_1_and_items_alone_half_their_squared_distance():
    X, y = labelled(7, n=30)
    A = X / np.linalg.norm(X, axis=1, keepdims=True)
    pairs, d = draw_targets(A, y, 4, np.random.default_rng(0))
    assert np.array_equal(d, y[pairs[:, 0]] != y[pairs[:, 1]])
    pairs, d = draw_targets(A, None, 4, np.random.default_rng(0))
    assert np.allclose(d, 1 - np.sum(A[pairs[:, 0]] * A[pairs[:, 1]], axis=1))
    assert np.all(pairs[:, 0] != pairs[:, 1])
    assert len(pairs) == 30 * 8


def test_normals_lie_in_the_span_of_the_landmarks():
    """With one landmark a bit, each normal is the direction of an item seen from the mean."""
    X, y = labelled(8, n=20, d=4)
    model = BRE(5, n_landmarks=1, random_state=0).fit(X, y)
    A = X - X.mean(axis=0)
    cosine = np.abs(A @ model.coef_.T) / np.outer(np.linalg.norm(A, axis=1), np.linalg.norm(model.coef_, axis=1))
    assert np.allclose(cosine.max(axis=0), 1.0)
    assert np.array_equal(model.transform(X), A @ model.coef_.T > 0)
