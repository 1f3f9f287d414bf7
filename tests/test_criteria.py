from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from itertools import permutations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from cghash.codes import weighted_hamming
from cghash.exceptions import InvalidInputError
from cghash.lab import criteria
from cghash.lab.criteria import (
    average_precision,
    evaluate,
    evaluate_vectors,
    knn_error,
    mean_over_queries,
    ndcg,
    precision_at,
    precision_recall,
    recall_at,
)

# --- The oracle: every order of the tied items, one by one. ---


def orders(distances):
    """All orders of the items by distance, each tie broken in every way."""
    groups = [np.flatnonzero(distances == value).tolist() for value in np.unique(distances)]
    for parts in product(*(permutations(group) for group in groups)):
        yield [item for part in parts for item in part]


def expected(distances, value):
    values = [value(order) for order in orders(distances)]
    return sum(values) / len(values)


def plain_average_precision(order, relevant):
    places = [i for i, item in enumerate(order) if relevant[item]]
    return sum(Fraction(n + 1, i + 1) for n, i in enumerate(places)) / len(places)


def plain_precision(order, relevant, k):
    return Fraction(sum(int(relevant[item]) for item in order[:k]), k)


def plain_error(order, labels, label, k):
    votes = [labels[item] for item in order[:k]]
    count = Counter(votes)
    most = max(count.values())
    return int(next(v for v in votes if count[v] == most) != label)


def plain_dcg(order, gains, k):
    return sum(gains[item] / math.log2(i + 2) for i, item in enumerate(order[:k]))


@st.composite
def tied(draw, values, most_items=6, n_values=3):
    """One query: few items at few distances, a value for each, and a cut."""
    n = draw(st.integers(1, most_items))
    distances = draw(hnp.arrays(np.float64, n, elements=st.integers(0, n_values - 1)))
    return distances, draw(hnp.arrays(np.int64, n, elements=values)), draw(st.integers(1, n))


flags = st.integers(0, 1)


@given(tied(flags))
def test_average_precision_is_the_mean_over_all_orders(case):
    distances, relevant, _ = case
    (value,) = average_precision(distances[None], relevant[None])
    if relevant.any():
        exact = expected(distances, lambda order: plain_average_precision(order, relevant))
        assert value == pytest.approx(float(exact), abs=1e-13)
    else:
        assert math.isnan(value)


@given(tied(flags))
def test_precision_and_recall_are_the_means_over_all_orders(case):
    distances, relevant, k = case
    exact = float(expected(distances, lambda order: plain_precision(order, relevant, k)))
    assert precision_at(distances[None], relevant[None], k)[0] == pytest.approx(exact, abs=1e-13)
    if relevant.any():
        neighbors = np.flatnonzero(relevant)[None]
        recall = exact * k / relevant.sum()
        assert recall_at(distances[None], neighbors, k)[0] == pytest.approx(recall, abs=1e-13)
        retrieved, precisions, recalls = precision_recall(distances[None], relevant[None])
        at = retrieved.tolist().index(k)
        assert (precisions[at], recalls[at]) == pytest.approx((exact, recall), abs=1e-13)


@given(tied(st.integers(0, 4)))
def test_ndcg_is_the_mean_over_all_orders(case):
    distances, gains, k = case
    (value,) = ndcg(distances[None], gains[None], k)
    best = plain_dcg(np.argsort(-gains), gains, k)
    if best:
        exact = expected(distances, lambda order: plain_dcg(order, gains, k) / best)
        assert value == pytest.approx(exact, abs=1e-12)
    else:
        assert math.isnan(value)


@settings(max_examples=400)
@given(tied(st.integers(0, 3), most_items=7), st.integers(0, 4))
def test_knn_error_is_the_mean_over_all_orders(case, label):
    distances, labels, k = case
    exact = expected(distances, lambda order: Fraction(plain_error(order, labels, label, k)))
    assert knn_error(distances[None], labels, [label], k)[0] == pytest.approx(float(exact), abs=1e-13)


def test_knn_error_of_many_votes_agrees_with_drawing_orders():
    rng = np.random.default_rng(8)
    distances, labels = rng.integers(0, 4, 60), rng.integers(0, 3, 60)
    draws = 5_000
    keys = distances + rng.random((draws, 60))  # a random order within each distance
    nearest = labels[np.argsort(keys, axis=1)]
    for k, own in (9, 1), (10, 0), (25, 2):
        errors = [plain_error(range(k), row, own, k) for row in nearest]
        value = knn_error(distances[None], labels, [own], k)[0]
        assert 0.02 < value < 0.98
        assert value == pytest.approx(np.mean(errors), abs=4 * np.std(errors) / math.sqrt(draws))


def test_chances_of_all_labels_sum_to_one():
    rng = np.random.default_rng(6)
    distances, labels = rng.integers(0, 5, (1, 3000)), rng.integers(0, 40, 3000)
    for k in (1, 2, 3, 10, 25):
        errors = knn_error(np.repeat(distances, 40, axis=0), labels, np.arange(40), k)
        assert (1 - errors).sum() == pytest.approx(1, abs=1e-11)
        assert errors.min() >= 0
        assert errors.max() <= 1


def test_most_votes_that_are_allowed_stay_finite():
    # an odd vote of two labels, each as likely
    assert knn_error(np.zeros((1, 2000)), np.arange(2000) % 2, [0], 151)[0] == pytest.approx(0.5, abs=1e-10)
    assert knn_error(np.zeros((1, 9999)), np.zeros(9999), [0], 500)[0] == pytest.approx(0, abs=1e-10)


# --- Worked by hand. ---


def test_average_precision_without_ties():
    # relevant at 1st and 4th: (1/1 + 2/4) / 2
    assert average_precision([[1, 2, 3, 4]], [[1, 0, 0, 1]]).tolist() == [0.75]


def test_average_precision_of_one_relevant_item_among_m_tied_is_the_mean_of_1_over_i():
    value = average_precision(np.zeros((1, 4)), [[0, 0, 1, 0]])[0]
    assert value == pytest.approx((1 + 1 / 2 + 1 / 3 + 1 / 4) / 4)


def test_tied_pair_behind_a_miss():
    # b and c tie at 2nd and 3rd, one of them relevant: 1/2 or 1/3
    assert average_precision([[0, 1, 1]], [[0, 1, 0]])[0] == pytest.approx(5 / 12)


def test_a_tie_in_the_vote_goes_to_the_nearest_of_the_tied_labels():
    distances = [[0, 1, 2, 3, 4]]
    assert knn_error(distances, ["c", "b", "a", "a", "b"], ["b"], k=5)[0] == pytest.approx(0)
    assert knn_error(distances, ["c", "b", "a", "a", "b"], ["c"], k=5)[0] == pytest.approx(1)


def test_three_distinct_labels_tied_win_a_third_each():
    for label in "abc":
        assert knn_error([[7, 7, 7]], list("abc"), [label], k=3)[0] == pytest.approx(2 / 3)


def test_vote_of_one_among_tied_items_is_their_share():
    assert knn_error([[1, 1, 1, 1, 2]], [0, 0, 0, 1, 2], [0], k=1)[0] == pytest.approx(1 / 4)


def test_ndcg_by_hand():
    # the order is 0, 3, 1: (0 + 3/log2(3)) / (3 + 1/log2(3)) at k = 2
    value = ndcg([[1, 2, 3]], [[0, 3, 1]], k=2)[0]
    assert value == pytest.approx(3 / math.log2(3) / (3 + 1 / math.log2(3)))


def test_precision_recall_averages_over_queries_with_relevant_items():
    distances = [[1, 2, 3], [1, 2, 3], [1, 2, 3]]
    retrieved, precision, recall = precision_recall(distances, [[1, 0, 0], [0, 1, 1], [0, 0, 0]])
    assert retrieved.tolist() == [1, 2, 3]
    np.testing.assert_allclose(precision, [1 / 2, 1 / 2, 1 / 2])
    np.testing.assert_allclose(recall, [1 / 2, 3 / 4, 1])


def test_n_points_bounds_the_grid_and_keeps_its_ends():
    rng = np.random.default_rng(0)
    retrieved, *_ = precision_recall(rng.random((2, 1000)), rng.integers(0, 2, (2, 1000)), n_points=10)
    assert (retrieved[0], retrieved[-1], len(retrieved)) == (1, 1000, 10)


def test_precision_recall_is_nan_where_no_query_has_relevant_items():
    _, precision, recall = precision_recall([[1, 2]], [[0, 0]])
    assert np.isnan(precision).all()
    assert np.isnan(recall).all()


def test_mean_leaves_undefined_queries_out():
    assert mean_over_queries(average_precision([[1, 2], [1, 2]], [[0, 1], [0, 0]])) == 0.5
    assert math.isnan(mean_over_queries([math.nan]))
    assert math.isnan(mean_over_queries([]))


# --- Invariances. ---


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=20)
def test_order_of_the_items_and_scale_of_the_distances_do_not_matter(seed):
    rng = np.random.default_rng(seed)
    D, labels, own = rng.integers(0, 6, (3, 40)), rng.integers(0, 4, 40), rng.integers(0, 4, 3)
    shuffle = rng.permutation(40)
    relevant = own[:, None] == labels
    for value in (
        lambda D, p: average_precision(D, relevant[:, p]),
        lambda D, p: precision_at(D, relevant[:, p], 7),
        lambda D, p: knn_error(D, labels[p], own, 5),
        lambda D, p: ndcg(D, relevant[:, p], 9),
    ):
        np.testing.assert_allclose(value(D, np.arange(40)), value(np.exp(D[:, shuffle]), shuffle), atol=1e-12)


def blobs(seed=0, n=200, q=37, n_bits=6, n_labels=4):
    rng = np.random.default_rng(seed)
    labels, own = rng.integers(0, n_labels, n), rng.integers(0, n_labels, q)
    chance = rng.random((n_labels, n_bits))
    bits, query_bits = (rng.random((len(y), n_bits)) < chance[y] for y in (labels, own))
    return query_bits, bits, rng.random(n_bits), own, labels


def test_blocks_do_not_change_the_values(monkeypatch):
    query_bits, bits, w, own, labels = blobs()
    D, relevant = weighted_hamming(query_bits, bits, w), own[:, None] == labels

    def everything():
        points = precision_recall(D, relevant, n_points=9)
        error = knn_error(D, labels, own, 3)
        return evaluate(query_bits, bits, w, own, labels), average_precision(D, relevant), error, *points

    whole = everything()
    monkeypatch.setattr(criteria, "_RANKED", 3 * 200)
    monkeypatch.setattr(criteria, "_COMPUTED", 7 * 200)
    for one, other in zip(whole, everything(), strict=True):
        if isinstance(one, dict):
            assert one == pytest.approx(other, abs=1e-14)
        else:
            np.testing.assert_allclose(one, other, rtol=0, atol=1e-14)


# --- The whole evaluation. ---


def test_evaluate_is_the_mean_of_the_criteria():
    query_bits, bits, w, own, labels = blobs()
    own[:2] = 9  # no such item
    D, relevant = weighted_hamming(query_bits, bits, w), own[:, None] == labels
    assert evaluate(query_bits, bits, w, own, labels, top=20, k=5) == {
        "map": pytest.approx(np.nanmean(average_precision(D, relevant))),
        "top": pytest.approx(precision_at(D, relevant, 20).mean()),
        "knn_error": pytest.approx(knn_error(D, labels, own, 5).mean()),
    }


def test_several_labels_an_item_count_as_relevant_when_one_is_shared():
    query_bits, bits, w, own, labels = blobs()
    one_hot = np.eye(4, dtype=int)
    single = evaluate(query_bits, bits, w, own, labels)
    several = evaluate(query_bits, bits, w, one_hot[own], one_hot[labels])
    assert (several["map"], several["top"]) == (single["map"], single["top"])
    assert math.isnan(several["knn_error"])
    both = evaluate([[0]], [[0], [1], [1]], [1], [[1, 1, 0]], [[0, 0, 1], [0, 1, 1], [1, 0, 0]], top=1, k=1)
    assert both["map"] == pytest.approx((1 / 2 + 2 / 3) / 2)


def test_labels_may_be_words_or_numbers():
    query_bits, bits, w, own, labels = blobs()
    words = np.array(["ant", "bee", "cat", "dog"])
    assert evaluate(query_bits, bits, w, words[own], words[labels]) == evaluate(query_bits, bits, w, own, labels)


def test_vectors_are_ranked_by_euclidean_distance():
    rng = np.random.default_rng(1)
    X, Q = rng.normal(size=(120, 5)) + 100, rng.normal(size=(11, 5)) + 100
    labels, own = rng.integers(0, 3, 120), rng.integers(0, 3, 11)
    D = np.linalg.norm(Q[:, None] - X, axis=2)
    values = evaluate_vectors(Q, X, own, labels, top=10, k=3)
    relevant = own[:, None] == labels
    assert values["map"] == pytest.approx(average_precision(D, relevant).mean(), abs=1e-12)
    assert values["top"] == pytest.approx(precision_at(D, relevant, 10).mean(), abs=1e-12)
    assert values["knn_error"] == pytest.approx(knn_error(D, labels, own, 3).mean(), abs=1e-12)


def test_equal_vectors_tie():
    X = np.repeat(np.random.default_rng(2).normal(size=(1, 300)), 7, axis=0)
    values = evaluate_vectors(X[:1] + 1, X, [0], [0, 1, 1, 1, 1, 1, 1], top=1, k=1)
    assert values["top"] == pytest.approx(1 / 7)
    assert values["knn_error"] == pytest.approx(6 / 7)


def test_one_far_vector_does_not_tie_the_others():
    X = np.append(np.arange(1.0, 30.0), 1e9)[:, None]
    values = evaluate_vectors([[0.0]], X, ["near"], ["near"] * 5 + ["far"] * 25, top=5, k=1)
    assert values["map"] == 1


def test_bits_as_vectors_give_what_plain_hamming_gives():
    query_bits, bits, _, own, labels = blobs()
    plain = evaluate(query_bits, bits, np.ones(6), own, labels)
    assert evaluate_vectors(query_bits, bits, own, labels) == pytest.approx(plain, abs=1e-12)


def test_no_queries_give_no_value():
    values = evaluate(np.zeros((0, 2)), np.zeros((3, 2)), [1, 1], [], [0, 1, 1], top=1)
    assert all(math.isnan(value) for value in values.values())
    assert average_precision(np.zeros((0, 3)), np.zeros((0, 3))).shape == (0,)


D = np.array([[1.0, 2.0, 3.0]])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: average_precision([1, 2], [1, 0]), r"distances must be a 2-D array .* got shape \(2,\)"),
        (
            lambda: average_precision(np.zeros((2, 0)), np.zeros((2, 0))),
            r"distances must .* got shape \(2, 0\)",
        ),
        (lambda: average_precision([[1, np.nan]], [[1, 0]]), "distances must be numbers, got nan"),
        (lambda: average_precision(D, [[1, 0]]), r"relevant must have the shape of distances, \(1, 3\), got"),
        (lambda: average_precision(D, [[1, 0, 2]]), "relevant must hold only 0 and 1, got 2"),
        (lambda: precision_at(D, [[1, 0, 0]]), "k must be a whole number from 1 to 3, got 50"),
        (lambda: precision_at(D, [[1, 0, 0]], k=1.5), "k must be a whole number from 1 to 3, got 1.5"),
        (lambda: precision_recall(D, [[1, 0, 0]], n_points=1), "n_points must be 2 or more, got 1"),
        (lambda: recall_at(D, [[0, 3]], 1), "true_neighbors must lie in 0 to 2, got 0 to 3"),
        (lambda: recall_at(D, [[1, 1]], 1), "true_neighbors must not name an item twice"),
        (lambda: recall_at(D, [[0.5]], 1), "true_neighbors must be item numbers, 1 rows"),
        (lambda: ndcg(D, [[1, -1, 0]], 1), "gains must be finite and 0 or more, got -1"),
        (lambda: knn_error(D, [0, 1], [0]), "database_labels must have 3 rows"),
        (lambda: knn_error(D, [0, 1, 1], [[0]]), "database_labels must be like query_labels"),
        (lambda: knn_error(D, np.eye(3), np.eye(3)[:1]), "must be 1-D, one label an item"),
        (lambda: knn_error(D, [0, 1, 1], ["a"]), "database_labels must be of the type of query_labels"),
        (lambda: knn_error(D, [0, 1, np.nan], [0]), "database_labels must not be missing, got nan"),
        (lambda: knn_error(D, [0, 1, 1], [0], k=4), "k must be a whole number from 1 to 3, got 4"),
        (lambda: knn_error(np.zeros((1, 900)), np.zeros(900), [0], k=501), "k must be .* 1 to 500, got 501"),
        (lambda: evaluate([[2]], [[0]], [1], [0], [0]), "query_bits must hold only 0 and 1, got 2"),
        (
            lambda: evaluate([[1]], [[0, 1]], [1], [0], [0]),
            "database_bits must have as many bits as query_bits",
        ),
        (lambda: evaluate([[1]], [[0]], [1, 2], [0], [0]), "weights must be 1 numbers"),
        (lambda: evaluate([[1]], np.zeros((0, 1)), [1], [0], []), "database_labels must have 1 row or more"),
        (
            lambda: evaluate([[1]], [[0]], [1], [0], [0], top=2),
            "top must be a whole number from 1 to 1, got 2",
        ),
        (lambda: evaluate_vectors([[1.0]], [[np.inf]], [0], [0]), "database must be finite"),
        (lambda: evaluate_vectors([[1.0]], [[1.0, 2.0]], [0], [0]), "database must have as many columns"),
    ],
)
def test_a_bad_argument_is_named(call, message):
    with pytest.raises(InvalidInputError, match=message):
        call()
