"""From labels and from neighbours to triplets."""

from __future__ import annotations

from collections import Counter
from itertools import combinations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from cghash.exceptions import InvalidInputError, NothingToLearnError
from cghash.learning.supervision import SAMPLINGS, draw, draw_distinct, from_labels, from_neighbors, relevance_of

pytestmark = [pytest.mark.core, pytest.mark.portable, pytest.mark.native]
SAMPLING = pytest.mark.parametrize("sampling", SAMPLINGS)


def relevant(relevance):
    """(n, n) whether two items are relevant to each other, by definition."""
    dense = relevance.toarray() if sp.issparse(relevance) else np.asarray(relevance)
    shared = dense[:, None] == dense[None, :] if dense.ndim == 1 else (dense[:, None] & dense[None, :]).any(axis=2)
    return shared & ~np.eye(len(dense), dtype=bool)


def lists(triplets):
    """{anchor: (near items, far items)} of a set with one block an anchor."""
    blocks = range(len(triplets.anchors))
    return {
        int(triplets.anchors[b]): (
            triplets.near[triplets.near_ptr[b] : triplets.near_ptr[b + 1]].tolist(),
            triplets.far[triplets.far_ptr[b] : triplets.far_ptr[b + 1]].tolist(),
        )
        for b in blocks
    }


def made(X, y, sampling, k, seed=0):
    return from_labels(X, relevance_of(y), sampling, k, np.random.default_rng(seed), 1)


def brute_force(X, i, wanted, k):
    """The k nearest of the wanted items to item i."""
    wanted = np.flatnonzero(wanted)
    return set(wanted[np.argsort(((X[wanted] - X[i]) ** 2).sum(axis=1), kind="stable")[:k]].tolist())


def check_labelled(X, y, sampling, k):
    together = relevant(relevance_of(y))
    rest = ~together & ~np.eye(len(X), dtype=bool)
    triplets = made(X, y, sampling, k)
    anchors, near, far = triplets.to_rows().T
    assert np.all(together[anchors, near])
    assert np.all(rest[anchors, far])
    assert triplets.triplet_slots()[2].sum() == pytest.approx(1.0)
    n_near, n_far = (np.minimum(side.sum(axis=1), k) for side in (together, rest))
    useful = np.flatnonzero((n_near > 0) & (n_far > 0))
    copies = 2 if sampling == "mixed" else 1
    np.testing.assert_array_equal(triplets.anchors, np.tile(useful, copies))
    np.testing.assert_array_equal(np.diff(triplets.near_ptr), np.tile(n_near[useful], copies))
    np.testing.assert_array_equal(np.diff(triplets.far_ptr), np.tile(n_far[useful], copies))
    blocks = zip(triplets.near_ptr[:-1], triplets.near_ptr[1:], strict=True)
    assert all(len(set(triplets.near[a:b])) == b - a for a, b in blocks)  # no item twice in a list
    return triplets


@st.composite
def labelled(draw):
    n = draw(st.integers(3, 14))
    y = np.array(draw(st.lists(st.integers(0, 3), min_size=n, max_size=n)))
    return np.random.default_rng(draw(st.integers(0, 99))).normal(size=(n, 2)), y, draw(st.integers(1, 6))


@SAMPLING
@settings(max_examples=40, deadline=None)
@given(case=labelled())
def test_near_items_share_the_label_and_far_items_do_not(sampling, case):
    X, y, k = case
    sizes = np.bincount(y)
    if np.count_nonzero(sizes) < 2 or sizes.max() < 2:
        with pytest.raises(NothingToLearnError):
            made(X, y, sampling, k)
    else:
        check_labelled(X, y, sampling, k)


def test_neighbors_are_the_nearest_relevant_and_irrelevant_items():
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(40, 3)), rng.integers(0, 3, 40)
    together = relevant(y)
    for i, (near, far) in lists(made(X, y, "neighbors", 4)).items():
        assert set(near) == brute_force(X, i, together[i], 4)
        assert set(far) == brute_force(X, i, y != y[i], 4)


def test_mixed_is_neighbors_and_classes_together():
    rng = np.random.default_rng(2)
    X, y = rng.normal(size=(20, 2)), np.arange(20) % 3
    both, neighbors, classes = (made(X, y, sampling, 3) for sampling in SAMPLINGS)
    np.testing.assert_array_equal(both.to_rows(), np.concatenate([neighbors.to_rows(), classes.to_rows()]))
    assert both.weights[: len(neighbors.weights)] @ np.full(20, 9) == pytest.approx(0.5)


@pytest.mark.lengthy
@pytest.mark.parametrize("kind", ["labels", "indicator", "sparse indicator"])
def test_draws_from_classes_are_uniform(kind):
    """Each item's pair of near items, out of the 3 possible, and of far items, out of the 10 possible."""
    y = np.array([0, 0, 0, 0, 1, 1, 1, 1, 1])
    indicator = np.eye(2, dtype=int)[y]
    labels = {"labels": y, "indicator": indicator, "sparse indicator": sp.csr_matrix(indicator)}[kind]
    rng = np.random.default_rng(3)
    near_seen, far_seen = Counter(), Counter()
    for _ in range(3000):
        near, far = draw(relevance_of(labels), 2, rng)
        near_seen[tuple(sorted(near[0].tolist()))] += 1
        far_seen[tuple(sorted(far[0].tolist()))] += 1
    assert set(near_seen) == set(combinations([1, 2, 3], 2))
    assert set(far_seen) == set(combinations([4, 5, 6, 7, 8], 2))
    assert chisquare(list(near_seen.values())).pvalue > 1e-4
    assert chisquare(list(far_seen.values())).pvalue > 1e-4


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 12), st.integers(0, 15), st.integers(0, 2**32 - 1))
def test_distinct_draws_are_distinct_and_in_range(n_values, k, seed):
    picks = draw_distinct(np.random.default_rng(seed), 30, n_values, k)
    assert picks.shape == (30, min(k, n_values))
    assert all(len(set(row)) == len(row) for row in picks.tolist())
    assert np.all((picks >= 0) & (picks < n_values))


def test_more_neighbours_than_a_class_has_take_all_of_it():
    X, y = np.arange(5.0)[:, None], np.array([0, 0, 0, 1, 1])
    for sampling in ("neighbors", "classes"):
        found = lists(made(X, y, sampling, 10))
        assert {anchor: (sorted(near), sorted(far)) for anchor, (near, far) in found.items()} == {
            0: ([1, 2], [3, 4]),
            1: ([0, 2], [3, 4]),
            2: ([0, 1], [3, 4]),
            3: ([4], [0, 1, 2]),
            4: ([3], [0, 1, 2]),
        }


@SAMPLING
def test_an_item_alone_in_its_class_is_far_but_no_anchor(sampling):
    triplets = check_labelled(np.arange(5.0)[:, None], np.array([0, 0, 1, 2, 2]), sampling, 9)
    assert 2 not in triplets.anchors
    assert 2 not in triplets.near
    assert 2 in triplets.far


@SAMPLING
def test_duplicate_items_are_neighbours_but_never_their_own(sampling):
    check_labelled(np.zeros((8, 2)), np.repeat([0, 1], 4), sampling, 3)


@SAMPLING
def test_one_class_and_only_singletons_hold_nothing_to_learn(sampling):
    X = np.arange(4.0)[:, None]
    with pytest.raises(NothingToLearnError, match="two classes"):
        made(X, np.zeros(4), sampling, 2)
    with pytest.raises(NothingToLearnError, match="class of at least two items"):
        made(X, np.arange(4), sampling, 2)
    with pytest.raises(NothingToLearnError, match="both a near and a far"):
        made(X, np.eye(4, dtype=int), sampling, 2)
    with pytest.raises(NothingToLearnError, match="both a near and a far"):
        made(X, np.ones((4, 2), dtype=int), sampling, 2)


INDICATOR = np.array([[1, 0, 0], [1, 1, 0], [0, 1, 0], [0, 0, 1], [0, 0, 1], [0, 0, 0]])


@SAMPLING
@pytest.mark.parametrize("make", [np.array, sp.csr_matrix, sp.coo_array, lambda y: y.astype(bool)])
def test_items_that_share_one_of_several_labels_are_relevant(sampling, make):
    X = np.random.default_rng(4).normal(size=(6, 2))
    triplets = check_labelled(X, make(INDICATOR), sampling, 3)
    assert 5 not in triplets.anchors  # without labels: far from everyone, near to nobody
    assert 5 in triplets.far


def test_nearest_neighbours_by_indicator_are_those_of_brute_force():
    rng = np.random.default_rng(5)
    X, y = rng.normal(size=(30, 3)), (rng.random((30, 4)) < 0.3).astype(int)
    together = relevant(y)
    for i, (near, far) in lists(made(X, y, "neighbors", 3)).items():
        assert set(near) == brute_force(X, i, together[i], 3)
        assert set(far) == brute_force(X, i, ~together[i] & (np.arange(30) != i), 3)


@pytest.mark.parametrize(
    "y",
    [["b", "a", "b"], np.array(["b", "a", "b"], dtype=object), [True, False, True], [[7], [3], [7]], [2.0, -1.0, 2.0]],
    ids=["words", "objects", "bools", "column", "floats"],
)
def test_labels_of_any_kind_become_class_numbers(y):
    np.testing.assert_array_equal(relevance_of(y), [1, 0, 1])


@pytest.mark.parametrize("y", [[[0, 2], [1, 0]], [["a", "b"]], [[0.5, 0.0]], [[np.nan, 0.0]], sp.csr_matrix([[3, 0]])])
def test_a_matrix_of_other_numbers_is_no_indicator(y):
    with pytest.raises(InvalidInputError, match="indicator matrix"):
        relevance_of(y)


def test_continuous_targets_are_no_labels():
    with pytest.raises(ValueError, match="continuous"):
        relevance_of([0.5, 1.7, 2.2])


@SAMPLING
@settings(max_examples=30, deadline=None)
@given(n=st.integers(3, 15), k=st.integers(1, 9), seed=st.integers(0, 99))
def test_without_labels_the_nearest_are_near_and_all_far_items_are_farther(sampling, n, k, seed):
    X = np.random.default_rng(seed).normal(size=(n, 2))
    triplets = from_neighbors(X, sampling, k, np.random.default_rng(seed), 1)
    k = min(k, (n - 1) // 2)
    anchors, near, far = triplets.to_rows().T
    assert len(anchors) == (2 if sampling == "mixed" else 1) * n * k * k
    assert np.all((anchors != near) & (anchors != far))
    D = ((X[:, None] - X) ** 2).sum(axis=2)
    assert np.all(D[anchors, near] < D[anchors, far])
    everyone = np.ones(n, dtype=bool)
    for i in range(n):
        others = everyone & (np.arange(n) != i)
        assert set(near[anchors == i].tolist()) == brute_force(X, i, others, k)
        if sampling == "neighbors":
            assert set(far[anchors == i].tolist()) == brute_force(X, i, others, 2 * k) - brute_force(X, i, others, k)


def test_three_items_make_one_triplet_each():
    X = np.array([[0.0], [1.0], [5.0]])
    for sampling in ("neighbors", "classes"):
        rows = from_neighbors(X, sampling, 10, np.random.default_rng(0), 1).to_rows()
        np.testing.assert_array_equal(rows, [[0, 1, 2], [1, 0, 2], [2, 1, 0]])
    with pytest.raises(NothingToLearnError, match="at least 3 items to compare, got 2"):
        from_neighbors(X[:2], "mixed", 10, np.random.default_rng(0), 1)


@pytest.mark.lengthy
def test_far_items_drawn_from_the_rest_are_uniform():
    X = np.arange(7.0)[:, None]
    rng = np.random.default_rng(6)
    seen = Counter(int(from_neighbors(X, "classes", 1, rng, 1).far[0]) for _ in range(800))
    assert set(seen) == {2, 3, 4, 5, 6}  # item 0's nearest is 1
    assert chisquare(list(seen.values())).pvalue > 1e-4
