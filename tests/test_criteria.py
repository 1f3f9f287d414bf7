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
from cghash.criteria import (
    average_precision,
    euclidean_neighbors,
    evaluate,
    evaluate_vectors,
    knn_error,
    mean_over_queries,
    ndcg,
    precision_at,
    precision_recall,
    ranking,
    recall_at,
    recall_by_codes,
    recall_by_distances,
    retrieve_by_codes,
    retrieve_by_distances,
    retrieve_by_vectors,
    vote,
)
from cghash.exceptions import InvalidInputError

pytestmark = [pytest.mark.core, pytest.mark.portable]

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


def plain_set_error(order, sets, own, k):
    """The same vote by label sets: wrong when the elected set shares no label with the query's."""
    votes = [tuple(sets[item]) for item in order[:k]]
    count = Counter(votes)
    most = max(count.values())
    return int(not np.dot(next(v for v in votes if count[v] == most), own))


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


@settings(max_examples=200)
@given(tied(st.integers(0, 7), most_items=6), st.integers(0, 7))
def test_vote_of_label_sets_is_the_mean_over_all_orders(case, own):
    distances, numbers, k = case
    sets, query = (numbers[:, None] >> np.arange(3)) & 1, (own >> np.arange(3)) & 1
    exact = expected(distances, lambda order: Fraction(plain_set_error(order, sets, query, k)))
    assert knn_error(distances[None], sets, query[None], k)[0] == pytest.approx(float(exact), abs=1e-13)


@settings(max_examples=100)
@given(tied(st.integers(0, 7), most_items=6), st.integers(0, 7), st.data())
def test_all_criteria_at_once_are_the_means_over_all_orders(case, own, data):
    distances, numbers, k = case
    top = data.draw(st.integers(1, len(distances)))
    sets, query = (numbers[:, None] >> np.arange(3)) & 1, (own >> np.arange(3)) & 1
    gains = sets @ query
    relevant = gains > 0
    found = retrieve_by_distances(lambda rows: distances[None][rows], query[None], sets, top=top, k=k)
    assert found.retrieved.tolist() == list(range(1, len(distances) + 1))
    at_top = expected(distances, lambda order: plain_precision(order, relevant, top))
    error = expected(distances, lambda order: Fraction(plain_set_error(order, sets, query, k)))
    assert (found.top, found.knn_error) == pytest.approx((float(at_top), float(error)), abs=1e-13)
    if not relevant.any():
        assert all(np.isnan(value).all() for value in (found.map, found.ndcg, found.precision, found.recall))
        return
    best = plain_dcg(np.argsort(-gains), gains, top)
    ap = expected(distances, lambda order: plain_average_precision(order, relevant))
    gain = expected(distances, lambda order: plain_dcg(order, gains, top) / best)
    assert (found.map, found.ndcg) == pytest.approx((float(ap), gain), abs=1e-12)
    for r, precision, recall in zip(found.retrieved, found.precision, found.recall, strict=True):
        exact = expected(distances, lambda order, r=r: plain_precision(order, relevant, r))
        assert (precision, recall) == pytest.approx((float(exact), float(exact * r) / relevant.sum()), abs=1e-13)


@given(tied(flags))
def test_recall_of_several_cuts_is_the_mean_over_all_orders(case):
    distances, relevant, k = case
    neighbors = np.flatnonzero(relevant)[None]
    if not relevant.any():
        return
    cuts = [len(distances) + 5, k, 1]
    found = recall_by_distances(neighbors, lambda rows: distances[None][rows], len(distances), retrieved=cuts)
    for r, value in zip(np.minimum(cuts, len(distances)), found, strict=True):
        exact = expected(distances, lambda order, r=r: plain_precision(order, relevant, r) * int(r))
        assert value == pytest.approx(float(exact) / relevant.sum(), abs=1e-13)


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


@pytest.mark.parametrize(
    ("distances", "relevant", "value"),
    [
        ([1, 2, 3, 4], [1, 0, 0, 1], (1 / 1 + 2 / 4) / 2),  # no ties: relevant at 1st and 4th
        ([0, 0, 0, 0], [0, 0, 1, 0], (1 + 1 / 2 + 1 / 3 + 1 / 4) / 4),  # one among four tied: the mean of 1 / i
        ([0, 1, 1], [0, 1, 0], 5 / 12),  # tied at 2nd and 3rd, one of them relevant: 1/2 or 1/3
    ],
)
def test_average_precision_by_hand(distances, relevant, value):
    assert average_precision([distances], [relevant])[0] == pytest.approx(value)


@pytest.mark.parametrize(
    ("distances", "labels", "own", "k", "error"),
    [
        ([0, 1, 2, 3, 4], list("cbaab"), "b", 5, 0),  # two votes each for a and b: b is nearer
        ([0, 1, 2, 3, 4], list("cbaab"), "c", 5, 1),
        *(([7, 7, 7], list("abc"), label, 3, 2 / 3) for label in "abc"),  # three labels tied win a third each
        ([1, 1, 1, 1, 2], list("aaabc"), "a", 1, 1 / 4),  # one vote among tied items is their share
    ],
)
def test_error_of_the_vote_by_hand(distances, labels, own, k, error):
    assert knn_error([distances], labels, [own], k)[0] == pytest.approx(error)


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
        lambda D, p: retrieve_by_distances(lambda rows: D[rows], own, labels[p], top=7).recall,
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
    monkeypatch.setattr(ranking, "_COMPUTED", 7 * 200)
    monkeypatch.setattr(ranking, "_MOST_QUERIES", 5)
    monkeypatch.setattr(ranking, "_GAINS", 3 * 200)
    monkeypatch.setattr(vote, "_BLOCK", 40)
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
    assert evaluate(query_bits, bits, w, one_hot[own], one_hot[labels]) == pytest.approx(single, abs=1e-13)
    both = evaluate([[0]], [[0], [1], [1]], [1], [[1, 1, 0]], [[0, 0, 1], [0, 1, 1], [1, 0, 0]], top=1, k=1)
    assert both["map"] == pytest.approx((1 / 2 + 2 / 3) / 2)


def test_items_without_labels_are_relevant_to_nobody():
    found = evaluate([[0]], [[0], [1]], [1], np.zeros((1, 2)), np.zeros((2, 2)), top=1, k=1)
    assert math.isnan(found["map"])
    assert (found["top"], found["knn_error"]) == (0, 1)


def test_one_pass_gives_what_the_criteria_give_one_by_one():
    query_bits, bits, w, own, labels = blobs()
    own[:2] = 9  # no such item
    D, relevant = weighted_hamming(query_bits, bits, w), own[:, None] == labels
    found = retrieve_by_codes(query_bits, bits, w, own, labels, top=20, k=5, n_points=30)
    assert found.map == pytest.approx(np.nanmean(average_precision(D, relevant)))
    assert found.ndcg == pytest.approx(np.nanmean(ndcg(D, relevant, 20)))
    assert found.knn_error == pytest.approx(knn_error(D, labels, own, 5).mean())
    for one, other in zip(
        precision_recall(D, relevant, 30), (found.retrieved, found.precision, found.recall), strict=True
    ):
        np.testing.assert_allclose(one, other)


@pytest.mark.parametrize("n_jobs", [1, 2, 5])
def test_threads_do_not_change_a_bit(n_jobs):
    query_bits, bits, w, own, labels = blobs()
    neighbors = euclidean_neighbors(query_bits, bits, n_jobs=n_jobs)
    np.testing.assert_array_equal(neighbors, euclidean_neighbors(query_bits, bits, n_jobs=1))
    codes = query_bits, bits, w
    one, other = (retrieve_by_codes(*codes, own, labels, n_jobs=n) for n in (1, n_jobs))
    assert (one.map, one.top, one.knn_error, one.ndcg) == (other.map, other.top, other.knn_error, other.ndcg)
    one, other = (recall_by_codes(neighbors, *codes, n_jobs=n) for n in (1, n_jobs))
    np.testing.assert_array_equal(one, other)


def test_recall_of_codes_is_the_mean_of_recall_at():
    query_bits, bits, w, _, _ = blobs()
    rng = np.random.default_rng(5)
    X, Q = rng.normal(size=(200, 3)), rng.normal(size=(37, 3))
    neighbors = euclidean_neighbors(Q, X, k=10)
    found = recall_by_codes(neighbors, query_bits, bits, w, retrieved=[1, 10, 100, 1000])
    D = weighted_hamming(query_bits, bits, w)
    np.testing.assert_allclose(found, [recall_at(D, neighbors, k).mean() for k in (1, 10, 100, 200)])


def test_euclidean_neighbors_are_sorted_by_distance_and_number():
    rng = np.random.default_rng(7)
    X, Q = rng.integers(0, 4, (300, 3)), rng.integers(0, 4, (9, 3))  # many vectors are equal
    D = ((Q[:, None] - X) ** 2).sum(axis=2)
    np.testing.assert_array_equal(euclidean_neighbors(Q, X, k=40), np.argsort(D, axis=1, kind="stable")[:, :40])


@pytest.mark.parametrize("unit", [1e200, 1e-200, 1e-310, 4e307])
def test_euclidean_neighbors_do_not_depend_on_the_unit(unit):
    rng = np.random.default_rng(8)
    X, Q = rng.integers(-4, 5, (300, 3)), rng.integers(-4, 5, (9, 3))
    D = ((Q[:, None] - X) ** 2).sum(axis=2)
    found = euclidean_neighbors(Q * unit, X * unit, k=300)
    np.testing.assert_array_equal(found, np.argsort(D, axis=1, kind="stable"))


@pytest.mark.parametrize("far", [1e100, 1e200, 1e300])
def test_one_item_far_away_does_not_blur_the_others(far):
    X, Q = np.array([[3.0], [far], [1.0], [-1.0], [2.0]]), np.array([[0.0], [2.5], [far]])
    assert euclidean_neighbors(Q, X, k=5)[:2].tolist() == [[2, 3, 4, 0, 1], [0, 4, 2, 3, 1]]
    assert euclidean_neighbors(Q, X, k=1)[2].tolist() == [1]


def test_no_queries_have_no_neighbours_and_no_recall():
    assert euclidean_neighbors(np.zeros((0, 2)), np.zeros((3, 2)), k=2).shape == (0, 2)
    assert np.isnan(recall_by_codes(np.zeros((0, 1), int), np.zeros((0, 2)), np.zeros((3, 2)), [1, 1])).all()


@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "int8", "uint64", "bool"])
def test_distances_of_any_type_keep_their_order_and_ties(dtype):
    values = {"f": [-np.inf, -2.5, -1.0, -0.0, 0.0, 1e-300, 1.0, np.inf], "i": [-100, -1, 0, 0, 7, 7, 8, 100],
              "u": [0, 1, 1, 2, 7, 2**63, 2**64 - 1, 5], "b": [0, 1, 1, 1, 0, 0, 1, 1]}  # fmt: skip
    D = np.array([values[np.dtype(dtype).kind]], dtype=dtype)
    ranks = np.unique(D[0], return_inverse=True)[1][None]
    relevant = [[1, 0, 1, 1, 0, 0, 1, 0]]
    assert average_precision(D, relevant)[0] == average_precision(ranks, relevant)[0]


def test_neighbouring_large_whole_numbers_do_not_tie():
    D = np.array([[2**62 + 1, 2**62]])  # equal as floats
    assert average_precision(D, [[1, 0]])[0] == 0.5


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
        (lambda: precision_recall(D, [[1, 0, 0]], n_points=1), "n_points must be a whole number from 2 .* got 1"),
        (lambda: recall_at(D, [[0, 3]], 1), "true_neighbors must lie in 0 to 2, got 0 to 3"),
        (lambda: recall_at(D, [[1, 1]], 1), "true_neighbors must not name an item twice"),
        (lambda: recall_at(D, [[0.5]], 1), "true_neighbors must be item numbers, 1 rows"),
        (lambda: ndcg(D, [[1, -1, 0]], 1), "gains must be finite and 0 or more, got -1"),
        (lambda: knn_error(D, [0, 1], [0]), "database_labels must have 3 rows"),
        (lambda: knn_error(D, [0, 1, 1], [[0]]), "database_labels must be like query_labels"),
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
        (lambda: evaluate([[1]], [[0]], [1], [0], [0], 1, 1, n_jobs=0), "n_jobs must be None or a whole number"),
        (lambda: retrieve_by_distances(lambda rows: D, [0], [0], 1, 1), r"distances must give \(1, 1\) numbers"),
        (lambda: retrieve_by_distances(lambda rows: D * np.nan, [0], [0] * 3, 1, 1), "distances must be numbers"),
        (lambda: retrieve_by_vectors([[1.0]], [[1.0]], [0], [0], 1, 2), "k must be a whole number from 1 to 1, got 2"),
        (lambda: recall_by_codes([[0]], [[1]], [[0]], [1], retrieved=[0]), "retrieved must be .* got 0"),
        (lambda: recall_by_codes([[2]], [[1]], [[0]], [1]), "true_neighbors must lie in 0 to 0"),
        (lambda: recall_by_distances([[0]], lambda rows: D, 0), "n_items must be .* got 0"),
        (lambda: euclidean_neighbors([[1.0]], [[1.0]], k=2), "k must be a whole number from 1 to 1, got 2"),
        (lambda: euclidean_neighbors([[1.0]], np.zeros((0, 1))), "database must have 1 row or more, got 0"),
        (lambda: evaluate_vectors([[1.0]], [[np.inf]], [0], [0]), "database must be finite"),
        (lambda: evaluate_vectors([[1.0]], [[1.0, 2.0]], [0], [0]), "database must have as many columns"),
    ],
)
def test_a_bad_argument_is_named(call, message):
    with pytest.raises(InvalidInputError, match=message):
        call()
