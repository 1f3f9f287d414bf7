"""SPLH, KLSH and LDAHash: what defines each of them, against plain programs and SciPy's eigenvectors."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics.pairwise import chi2_kernel, rbf_kernel

from cghash.exceptions import InvalidInputError, NothingToLearnError
from cghash.peers import KLSH, SPLH, LDAHash
from cghash.peers.ldahash import Pairs
from cghash.peers.splh import leading_eigenvector

pytestmark = pytest.mark.portable

RNG = np.random.default_rng(0)
ITEMS = RNG.normal(size=(60, 5)) * [3.0, 2.0, 1.5, 1.0, 0.5] + RNG.normal(size=5)
CLASSES = (ITEMS[:, 1] + ITEMS[:, 3] > 0) + 2 * (ITEMS[:, 2] > 1.0)
SEVERAL = (RNG.random((60, 4)) < 0.3).astype(int)


def parallel(rows, others, rtol=1e-4):
    cosines = np.sum(rows * others, axis=1) / np.linalg.norm(rows, axis=1) / np.linalg.norm(others, axis=1)
    np.testing.assert_allclose(np.abs(cosines), 1, rtol=rtol)


# SPLH


def plain_splh(X, y, m, eta, alpha):
    """The paper's algorithm, with whole matrices in the items' own coordinates, (features, items)."""
    X = (X - X.mean(axis=0)).T
    X = X / np.sqrt(np.mean(np.sum(X**2, axis=0)))
    labelled, S = X.copy(), np.where(y[:, None] == y, 1.0, -1.0)
    n, W = X.shape[1], []
    for _ in range(m):
        M = labelled @ S @ labelled.T / n**2 + eta * X @ X.T / n
        w = np.linalg.eigh(M)[1][:, -1]
        approximate = labelled.T @ np.outer(w, w) @ labelled
        S = S - alpha * np.where(np.sign(approximate * S) < 0, approximate, 0)
        X = X - np.outer(w, w) @ X
        W.append(w)
    return np.array(W)


@pytest.mark.parametrize(("eta", "alpha"), [(0.1, 1.0), (1.0, 0.0), (0.5, 20.0)])
def test_splh_directions_are_those_of_the_plain_algorithm(eta, alpha):
    model = SPLH(7, eta=eta, alpha=alpha, random_state=0).fit(ITEMS, CLASSES)
    parallel(model.directions_, plain_splh(ITEMS, CLASSES, 7, eta, alpha), rtol=1e-3)


def test_first_direction_is_the_leading_eigenvector_of_the_adjusted_covariance():
    model = SPLH(1, eta=0.2, random_state=0).fit(ITEMS, CLASSES)
    X = ITEMS - ITEMS.mean(axis=0)
    X /= np.sqrt(np.mean(np.sum(X**2, axis=1)))
    S = np.where(CLASSES[:, None] == CLASSES, 1, -1)
    M = X.T @ S @ X / 60**2 + 0.2 * X.T @ X / 60
    w = model.directions_[0]
    assert w @ M @ w == pytest.approx(np.linalg.eigvalsh(M)[-1], rel=1e-5)


def test_without_pairs_the_directions_are_principal_components():
    """With η far above the pairs' weight, and residuals, M is the covariance less the components so far."""
    model = SPLH(4, eta=1e6, alpha=0.0, random_state=0).fit(ITEMS, CLASSES)
    parallel(model.directions_, np.linalg.eigh(np.cov(ITEMS.T))[1].T[:0:-1])


def test_many_features_are_solved_by_iteration_to_the_same_eigenvector():
    rng = np.random.default_rng(3)
    Z = (rng.normal(size=(50, 150)) * np.linspace(3, 0.1, 150)).astype(np.float32)
    S = np.where(np.arange(50)[:, None] % 3 == np.arange(50) % 3, 1, -1).astype(np.float32)
    C = np.diag(np.linspace(1, 0, 150)).astype(np.float32)
    M = Z.T.astype(float) @ S @ Z / 50**2 + C
    w = leading_eigenvector(Z, S, C, rng.normal(size=150))
    parallel(w[None], np.linalg.eigh(M)[1][:, -1:].T)


# KLSH


KERNELS = {"rbf": lambda A, B: rbf_kernel(A, B, gamma=0.1), "linear": lambda A, B: A @ B.T}


@pytest.mark.parametrize("kernel", KERNELS)
def test_projections_over_random_draws_have_the_covariance_of_the_centred_kernel(kernel):
    """Over draws of t of p landmarks the covariance is (1 − t/p) K, and the mean 0, by hand from that of e_S."""
    model = KLSH(40_000, kernel=kernel, gamma=0.1, n_landmarks=20, n_drawn=5, random_state=0).fit(ITEMS[:20])
    H = np.eye(20) - 1 / 20
    K = H @ KERNELS[kernel](model.landmarks_, model.landmarks_) @ H
    P = KERNELS[kernel](model.landmarks_, model.landmarks_) @ model.coefficients_.T - model.thresholds_  # (20, draws)
    np.testing.assert_allclose(P @ P.T / 40_000, 0.75 * K, atol=0.03 * np.abs(K).max())
    np.testing.assert_allclose(P.mean(axis=1), 0, atol=0.03 * np.sqrt(np.abs(K).max()))


def test_new_items_are_centred_as_the_landmarks_are():
    model = KLSH(30, gamma=0.1, n_landmarks=20, n_drawn=5, random_state=0).fit(ITEMS)
    L, new = model.landmarks_, ITEMS[:10] + 0.3
    K, k = rbf_kernel(L, gamma=0.1), rbf_kernel(new, L, gamma=0.1)
    centred = k - k.mean(axis=1)[:, None] - K.mean(axis=0) + K.mean()
    np.testing.assert_array_equal(model.transform(new), centred @ model.coefficients_.T > 0)


def test_collision_of_linear_klsh_follows_the_angle():
    """Whitened draws are close to normal ones: two items differ in θ/π of the bits, θ seen from the mean."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(300, 3))
    model = KLSH(5_000, kernel="linear", n_landmarks=300, n_drawn=30, random_state=0).fit(X)
    a, b = model.transform(X.mean(axis=0) + np.array([[1.0, 0.0, 0.0], [1.0, 1.0, 0.0]]))
    assert np.mean(a != b) == pytest.approx(0.25, abs=0.02)


def test_gamma_by_default_is_one_over_the_mean_exponent_of_the_landmarks():
    X = np.abs(ITEMS)
    for kernel, function in (("rbf", rbf_kernel), ("chi2", chi2_kernel)):
        model = KLSH(4, kernel=kernel, n_landmarks=30, random_state=0).fit(X)
        exponents = -np.log(function(model.landmarks_, model.landmarks_, gamma=1e-3)) / 1e-3
        assert model.gamma_ == pytest.approx(1 / exponents.mean())


def test_negative_items_are_refused_by_the_chi2_kernel():
    with pytest.raises(InvalidInputError, match="X must not be negative for kernel='chi2'"):
        KLSH(4, kernel="chi2").fit(ITEMS)
    model = KLSH(4, kernel="chi2").fit(np.abs(ITEMS))
    with pytest.raises(InvalidInputError, match="X must not be negative"):
        model.transform(ITEMS)


# LDAHash


def share(labels):
    return labels[:, None] == labels if labels.ndim == 1 else labels @ labels.T > 0


def pair_covariance(X, mask):
    differences = [np.outer(X[i] - X[j], X[i] - X[j]) for i, j in np.argwhere(mask) if i != j]
    return np.mean(differences, axis=0)


@pytest.mark.parametrize("labels", [CLASSES, SEVERAL], ids=["classes", "several labels"])
def test_directions_are_generalised_eigenvectors_of_the_covariances_of_pairs(labels):
    same = share(labels)
    P, N = pair_covariance(ITEMS, same), pair_covariance(ITEMS, ~same)
    ridge = 0.2 * np.trace(np.cov(ITEMS.T, bias=True)) / 5 * np.eye(5)
    model = LDAHash(4, regularization=0.2).fit(ITEMS, labels)
    parallel(model.directions_, scipy.linalg.eigh(P + ridge, N + ridge)[1].T[:4], rtol=1e-8)
    model = LDAHash(4, projection="dif", alpha=3.0).fit(ITEMS, labels)
    parallel(model.directions_, np.linalg.eigh(3.0 * P - N)[1].T[:4], rtol=1e-8)


def rates(values, same, cut):
    """True positive rate plus true negative rate over all pairs of different items."""
    equal = (values[:, None] > cut) == (values > cut)
    other = ~np.eye(len(values), dtype=bool)
    return equal[same & other].mean() + (~equal)[~same & other].mean()


@given(st.lists(st.tuples(st.integers(-6, 6), st.integers(0, 2)), min_size=4, max_size=15))
def test_threshold_is_the_best_by_brute_force(rows):
    values, labels = np.array(rows, dtype=float)[:, 0], np.array(rows)[:, 1]
    same = share(labels)
    if same.sum() == len(rows) or same.all() or np.ptp(values) == 0:
        return
    distinct = np.unique(values)
    best = max(rates(values, same, cut) for cut in (distinct[1:] + distinct[:-1]) / 2)
    cut = Pairs.of(labels).best_cut(values)
    assert cut not in values
    assert rates(values, same, cut) == pytest.approx(best)


def test_thresholds_of_several_labels_are_the_best_by_brute_force():
    model = LDAHash(3).fit(ITEMS, SEVERAL)
    values = (ITEMS - model.mean_) @ model.directions_.T
    for column, cut in zip(values.T, model.thresholds_, strict=True):
        ordered = np.sort(column)
        best = max(rates(column, share(SEVERAL), c) for c in (ordered[1:] + ordered[:-1]) / 2)
        assert rates(column, share(SEVERAL), cut) == pytest.approx(best)


def test_labels_that_all_items_share_leave_nothing_to_learn():
    with pytest.raises(NothingToLearnError, match="share none"):
        LDAHash(2).fit(ITEMS, np.ones((60, 2), dtype=int))
