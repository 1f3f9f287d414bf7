"""LSH, LSI, LCH, SPH, ITQ, PCAH and sign bits: what defines each of them, against NumPy's and SciPy's own solutions."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy.linalg
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from cghash.exceptions import FewerBitsWarning, InvalidInputError, NothingToLearnError
from cghash.peers import ITQ, LCH, LSH, LSI, PCAH, SPH, SignBits
from cghash.peers.itq import canonical_directions
from cghash.peers.projections import leading_directions, median_cuts, principal_components

pytestmark = pytest.mark.portable

RNG = np.random.default_rng(0)
BLOBS = RNG.normal(size=(120, 6)) @ RNG.normal(size=(6, 6)) + 3.0
CLASSES = np.arange(120) % 3


def same_bits(bits, others):
    """Whether columns agree, where a column's sign is free."""
    pairs = zip(np.asarray(bits, dtype=bool).T, np.asarray(others, dtype=bool).T, strict=True)
    return all(np.array_equal(b, o) or np.array_equal(b, ~o) for b, o in pairs)


# Projections


@pytest.mark.parametrize("shape", [(30, 8), (8, 30), (9, 9)])
def test_leading_directions_are_the_right_singular_vectors(shape):
    A = np.random.default_rng(1).normal(size=shape)
    _, lengths, vectors = np.linalg.svd(A)
    directions, squares = leading_directions(A, 5)
    np.testing.assert_allclose(squares, lengths[:5] ** 2, rtol=1e-10)
    np.testing.assert_allclose(np.abs(np.sum(directions * vectors[:5], axis=1)), 1, rtol=1e-10)
    np.testing.assert_array_equal(leading_directions(A, 2)[0], directions[:2])


@pytest.mark.parametrize("scale", [1e-200, 1.0, 1e140])
def test_directions_do_not_depend_on_the_size_of_numbers(scale):
    X = np.random.default_rng(1).normal(size=(20, 3))
    directions = principal_components(X * scale, 3)[1]
    np.testing.assert_allclose(directions, principal_components(X, 3)[1], atol=1e-12)


def test_directions_of_nothing_are_refused():
    with pytest.raises(NothingToLearnError, match="items that differ"):
        principal_components(np.ones((5, 2)), 1)


@given(arrays(np.float64, st.tuples(st.integers(2, 30), st.just(1)), elements=st.integers(-4, 4)))
def test_median_cut_lies_between_values_and_parts_as_evenly_as_they_allow(values):
    (cut,) = median_cuts(values)
    if np.ptp(values) == 0:
        return
    assert cut not in values
    assert values.min() < cut < values.max()
    below = np.sum(values < cut)
    median = np.sort(values.ravel())[(len(values) - 1) // 2]
    assert below in (np.sum(values <= median), np.sum(values < median))


def test_median_cut_of_an_even_number_is_the_median():
    values = np.random.default_rng(0).normal(size=(10, 3))
    np.testing.assert_allclose(median_cuts(values), np.median(values, axis=0))


# LSH, PCAH, LSI, sign bits


def test_random_hyperplanes_part_two_items_with_probability_angle_over_pi():
    model = LSH(20_000, random_state=0).fit([[1.0, 0.0], [-1.0, 0.0]])
    first, second = model.transform([[1.0, 0.0], [1.0, 1.0]])  # 45 degrees around the mean 0
    assert np.mean(first != second) == pytest.approx(0.25, abs=0.015)


def test_uncentred_hyperplanes_go_through_the_origin():
    model = LSH(50, center=False, random_state=0).fit(BLOBS)
    np.testing.assert_array_equal(model.transform(BLOBS), model.transform(5.0 * BLOBS))


def test_sign_of_pca_is_the_sign_of_the_projections_on_leading_eigenvectors():
    X = np.random.default_rng(0).standard_normal((50, 4)) * [4.0, 3.0, 2.0, 1.0]
    _, vectors = np.linalg.eigh(np.cov(X.T))
    assert same_bits(PCAH(2).fit(X).transform(X), (X - X.mean(axis=0)) @ vectors[:, :1:-1] > 0)


@pytest.mark.parametrize("method", [PCAH, LSI])
def test_there_are_no_more_bits_than_the_rank(method):
    X = np.random.default_rng(0).standard_normal((50, 1)) @ np.ones((1, 8))
    with pytest.warns(FewerBitsWarning, match="1 of the 8 bits"):
        assert method(8).fit(X).n_bits_ == 1


def test_lsi_is_left_singular_vectors_above_their_medians():
    U = np.linalg.svd(BLOBS)[0][:, :4]
    expected = np.greater(U, np.median(U, axis=0))
    assert same_bits(LSI(4).fit(BLOBS).transform(BLOBS), expected)


def test_sign_bits_are_signs_of_coordinates():
    X = np.array([[1.0, -2.0, 0.5], [-1.0, 4.0, 1.5]])
    assert SignBits(2).fit(X).transform(X).tolist() == [[1, 0], [0, 1]]
    assert SignBits(3, center=True).fit(X).transform(X).tolist() == [[1, 0, 0], [0, 1, 1]]


# SPH


def test_eigenfunctions_of_a_uniform_box_in_the_order_of_their_eigenvalues():
    """A box of sides 1 and 0.6: frequencies k/side are 1, 1.67, 2, 3, 3.33, … by hand."""
    grid = np.array(list(itertools.product(np.linspace(0, 1, 41), np.linspace(0, 0.6, 25))))
    model = SPH(5).fit(grid)
    np.testing.assert_allclose(model.frequencies_ / np.pi, [1, 1 / 0.6, 2, 3, 2 / 0.6], rtol=1e-9)
    assert np.abs(model.directions_).argmax(axis=1).tolist() == [0, 1, 0, 0, 1]
    inner = np.random.default_rng(0).uniform([0, 0], [1, 0.6], size=(500, 2))
    waves = [(0, 1, 1.0), (1, 1, 0.6), (0, 2, 1.0), (0, 3, 1.0), (1, 2, 0.6)]
    expected = [np.sin(np.pi / 2 + k * np.pi * inner[:, axis] / side) > 0 for axis, k, side in waves]
    # a component's sign mirrors the box: odd waves change sign, even ones do not
    assert same_bits(model.transform(inner), np.array(expected).T)


def test_eigenvalues_of_the_chosen_waves_are_the_smallest_of_all():
    """Against the list of all (component, k) with the eigenvalue 1 − exp(−ε²/2 |kπ/(b − a)|²)."""
    model = SPH(9).fit(BLOBS)
    mean, components, _ = principal_components(BLOBS, 6)
    sides = np.ptp((BLOBS - mean) @ components.T, axis=0)
    all_of_them = [1 - np.exp(-0.02 * (k * np.pi / side) ** 2) for side in sides for k in range(1, 20)]
    np.testing.assert_allclose(1 - np.exp(-0.02 * model.frequencies_**2), np.sort(all_of_them)[:9], rtol=1e-9)


# ITQ


@pytest.mark.parametrize("projection", ["pca", "cca"])
@pytest.mark.parametrize("seed", range(5))
def test_quantisation_error_never_rises_and_rotation_is_orthogonal(projection, seed):
    model = ITQ(5, projection=projection, random_state=seed).fit(BLOBS, CLASSES)
    assert len(model.quantisation_errors_) == 50
    assert np.all(np.diff(model.quantisation_errors_) <= 1e-12)
    R = model.rotation_
    np.testing.assert_allclose(R @ R.T, np.eye(len(R)), atol=1e-12)
    assert R.shape == ((5, 5) if projection == "pca" else (2, 5))  # three classes: two directions


def test_quantisation_error_is_that_of_the_codes():
    model = ITQ(4, projection="pca", random_state=0).fit(BLOBS)
    VR = (BLOBS - BLOBS.mean(axis=0)) @ model.directions_.T
    VR /= np.sqrt(np.mean(np.sum(VR**2, axis=1)))
    last = np.mean(np.sum((np.where(VR > 0, 1, -1) - VR) ** 2, axis=1))
    assert last <= model.quantisation_errors_[-1] + 1e-12
    assert last == pytest.approx(model.quantisation_errors_[-1], rel=0.02)


def test_rotation_finds_the_corners_of_a_turned_square():
    corners = np.repeat([[1, 1], [1, -1], [-1, 1], [-1, -1]], 25, axis=0) @ [[0.8, 0.6], [-0.6, 0.8]]
    noisy = corners + 0.05 * np.random.default_rng(0).normal(size=(100, 2))
    codes = ITQ(2, random_state=0).fit(noisy).encode(noisy).ravel()
    assert len({*codes}) == 4
    assert all(len({*codes[i : i + 25]}) == 1 for i in range(0, 100, 25))


def test_canonical_directions_solve_the_generalised_eigenproblem():
    Y = np.eye(3)[CLASSES] - 1 / 3
    X = BLOBS - BLOBS.mean(axis=0)
    rho = 0.1 * np.trace(X.T @ X) / 6, 0.1 * np.trace(Y.T @ Y) / 3
    between = X.T @ Y @ np.linalg.inv(Y.T @ Y + rho[1] * np.eye(3)) @ Y.T @ X
    squares, vectors = scipy.linalg.eigh(between, X.T @ X + rho[0] * np.eye(6))
    _, found = canonical_directions(BLOBS, np.eye(3)[CLASSES], 2, 0.1)
    expected = (vectors[:, :-3:-1] * np.sqrt(squares[:-3:-1])).T * np.sqrt(len(X))
    np.testing.assert_allclose(np.abs(found), np.abs(expected), rtol=1e-6)


def test_labels_turn_itq_to_cca_unless_pca_is_asked_for():
    def bits(y=None, **parameters):
        return ITQ(4, random_state=0, **parameters).fit(BLOBS, y).transform(BLOBS)

    np.testing.assert_array_equal(bits(), bits(CLASSES, projection="pca"))
    np.testing.assert_array_equal(bits(CLASSES), bits(CLASSES, projection="cca"))
    assert not np.array_equal(bits(CLASSES), bits())
    with pytest.raises(InvalidInputError, match=r"projection='cca' .* requires y"):
        bits(projection="cca")


# LCH


def bipartite_eigenvectors(X):
    """Eigenvectors L f = λ D f of the graph of items and features, by rising λ: (n + d, n + d)."""
    n, d = X.shape
    A = np.block([[np.zeros((n, n)), X], [X.T, np.zeros((d, d))]])
    D = np.diag(A.sum(axis=0))
    return scipy.linalg.eigh(D - A, D)[1]


def test_lch_is_the_eigenvectors_of_the_graph_of_items_and_features():
    X = np.random.default_rng(0).uniform(size=(20, 7)) ** 3
    model = LCH(4).fit(X)
    f = bipartite_eigenvectors(X)[:, 1:5]  # without the constant one
    assert same_bits(model.transform(X), f[:20] > np.median(f[:20], axis=0))
    cosines = np.sum(model.directions_ * f[20:].T, axis=1) / np.linalg.norm(f[20:], axis=0)
    np.testing.assert_allclose(np.abs(cosines) / np.linalg.norm(model.directions_, axis=1), 1, rtol=1e-9)


def test_lch_of_a_graph_in_two_parts_tells_the_parts_first():
    """Two eigenvectors have λ = 0, and only the constant one is left out."""
    X = scipy.linalg.block_diag(1.0 + np.arange(12).reshape(4, 3) % 5, 2.0 + np.arange(12).reshape(4, 3) % 7)
    bits = LCH(1).fit(X).transform(X).ravel()
    assert bits.tolist() in ([0, 0, 0, 0, 1, 1, 1, 1], [1, 1, 1, 1, 0, 0, 0, 0])


def test_lch_shifts_only_features_that_are_negative():
    X = np.random.default_rng(0).uniform(size=(20, 4)) * [1, 1, 1, -1]
    model = LCH(2).fit(X)
    assert model.least_.tolist() == [0, 0, 0, X[:, 3].min()]
    shifted = X - model.least_
    np.testing.assert_array_equal(model.transform(X), LCH(2).fit(shifted).transform(shifted))


def test_lch_gives_an_item_without_edges_a_code():
    X = np.vstack([np.random.default_rng(0).uniform(size=(20, 4)), np.zeros((1, 4))])
    assert LCH(2).fit(X).transform(X[-1:]).shape == (1, 2)
    with pytest.raises(NothingToLearnError):
        LCH(2).fit(np.zeros((5, 3)))
