"""HashNeighbors and HashNeighborsClassifier: rules of scikit-learn, a full comparison, votes by hand."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pytest
from sklearn.base import BaseEstimator, clone
from sklearn.datasets import load_digits
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from cghash import CGHash, HashNeighbors, HashNeighborsClassifier
from cghash.codes import pack, weighted_hamming
from cghash.exceptions import FewerBitsWarning, InvalidInputError

pytestmark = [pytest.mark.core, pytest.mark.portable]

DIGITS, LABELS = load_digits(return_X_y=True)
X, Y = DIGITS[:150], LABELS[:150]
NEW = DIGITS[150:250]


def cghash(n_bits=8, **changes):
    return CGHash(n_bits, **({"C": 1e-3, "n_neighbors": 3, "random_state": 0} | changes))


class Signs(BaseEstimator):
    """A hasher without weights: bit j is 1 where feature j is positive."""

    def fit(self, X, y=None):
        self.n_bits_ = np.shape(X)[1]
        return self

    def encode(self, X):
        return pack(np.asarray(X) > 0)


class WeightedSigns(Signs):
    def fit(self, X, y=None):
        self.weights_ = np.arange(1.0, np.shape(X)[1] + 1)
        return super().fit(X, y)


# scikit-learn's own checks


def checks(estimators):
    mark = parametrize_with_checks(estimators)
    kept = [(e, check) for e, check in mark.args[1] if "array_api" not in getattr(check, "func", check).__name__]
    return pytest.mark.parametrize(("estimator", "check"), kept, ids=mark.kwargs["ids"])


@pytest.mark.lengthy
@checks(
    [
        HashNeighbors(CGHash(2, n_neighbors=2, random_state=0), n_neighbors=2),
        HashNeighborsClassifier(CGHash(16, n_neighbors=2, random_state=0), n_neighbors=4),
        HashNeighborsClassifier(CGHash(16, n_neighbors=2, hash_function="rbf", random_state=0), weights="distance"),
    ]
)
def test_estimators_keep_the_rules_of_scikit_learn(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FewerBitsWarning)
        check(estimator)


def test_grid_search_through_a_pipeline_reaches_the_hasher():
    pipeline = make_pipeline(StandardScaler(), HashNeighborsClassifier(cghash(), 3))
    grid = {"hashneighborsclassifier__hasher__n_bits": [1, 16]}
    search = GridSearchCV(pipeline, grid, cv=2).fit(DIGITS[:300], LABELS[:300])
    assert search.best_params_ == {"hashneighborsclassifier__hasher__n_bits": 16}
    assert search.score(DIGITS[300:], LABELS[300:]) > 0.75


@pytest.mark.filterwarnings("ignore::cghash.exceptions.FewerBitsWarning")
def test_default_hasher_is_cghash():
    neighbors = HashNeighbors().fit(X, Y)
    assert type(neighbors.hasher_) is CGHash
    assert neighbors.hasher_.get_params() == CGHash().get_params()


# Which hasher is fitted


def test_hasher_is_cloned_and_the_given_one_is_left_alone():
    given = cghash()
    neighbors = HashNeighbors(given).fit(X, Y)
    assert not hasattr(given, "weights_")
    np.testing.assert_array_equal(neighbors.hasher_.encode(NEW), cghash().fit(X, Y).encode(NEW))


def test_frozen_hasher_is_not_fitted_again():
    frozen = FrozenEstimator(cghash().fit(X, Y))
    neighbors = clone(HashNeighbors(frozen, 3)).fit(NEW)  # other items than it learned from, and no labels
    expected = np.argsort(full_comparison(frozen, DIGITS[300:320], NEW), axis=1, kind="stable")[:, :3]
    np.testing.assert_array_equal(neighbors.kneighbors(DIGITS[300:320], return_distance=False), expected)


def test_hasher_without_encode_is_an_error():
    with pytest.raises(InvalidInputError, match=r"hasher must be an estimator with fit and encode, got StandardScaler"):
        HashNeighbors(StandardScaler()).fit(X)


# Neighbours


def full_comparison(hasher, queries, items):
    return weighted_hamming(hasher.transform(queries), hasher.transform(items), hasher.weights_)


def test_neighbors_are_those_of_a_full_comparison():
    neighbors = HashNeighbors(cghash(), 4).fit(X, Y)
    D = full_comparison(neighbors.hasher_, NEW, X)
    order = np.argsort(D, axis=1, kind="stable")  # equal distances by row number
    for k in (1, 4, 150):
        distances, rows = neighbors.kneighbors(NEW, k)
        np.testing.assert_array_equal(rows, order[:, :k])
        np.testing.assert_array_equal(distances, np.take_along_axis(D, order[:, :k], axis=1))
    np.testing.assert_array_equal(neighbors.kneighbors(NEW, return_distance=False), order[:, :4])


@pytest.mark.parametrize("n_bits", [2, 16])  # 2 bits: many equal codes, an item is not always among its own nearest
def test_training_items_are_not_their_own_neighbors(n_bits):
    neighbors = HashNeighbors(cghash(n_bits), 4).fit(X, Y)
    D = full_comparison(neighbors.hasher_, X, X)
    np.fill_diagonal(D, np.inf)
    order = np.argsort(D, axis=1, kind="stable")[:, :4]
    distances, rows = neighbors.kneighbors()
    np.testing.assert_array_equal(rows, order)
    np.testing.assert_array_equal(distances, np.take_along_axis(D, order, axis=1))


def test_graph_holds_the_neighbors_of_each_row():
    neighbors = HashNeighbors(cghash(), 3).fit(X, Y)
    distances, rows = neighbors.kneighbors(NEW)
    expected = np.zeros((100, 150))
    np.put_along_axis(expected, rows, 1.0, axis=1)
    np.testing.assert_array_equal(neighbors.kneighbors_graph(NEW).toarray(), expected)
    np.put_along_axis(expected, rows, distances, axis=1)
    np.testing.assert_array_equal(neighbors.kneighbors_graph(NEW, mode="distance").toarray(), expected)
    assert neighbors.kneighbors_graph().diagonal().sum() == 0
    with pytest.raises(InvalidInputError, match=r"mode must be one of \['connectivity', 'distance'\], got 'near'"):
        neighbors.kneighbors_graph(NEW, mode="near")


def test_radius_takes_all_within_it():
    neighbors = HashNeighbors(cghash()).fit(X, Y)
    D = full_comparison(neighbors.hasher_, X, X)
    radius = float(np.median(D))
    distances, rows = neighbors.radius_neighbors(X[:20], radius)
    assert [set(r) for r in rows] == [set(np.flatnonzero(d <= radius)) for d in D[:20]]
    assert all(np.array_equal(d, D[i, r]) for i, (d, r) in enumerate(zip(distances, rows, strict=True)))
    without = neighbors.radius_neighbors(radius=radius, return_distance=False)
    assert [set(r) for r in without] == [set(np.flatnonzero(d <= radius)) - {i} for i, d in enumerate(D)]


def test_more_neighbors_than_items_is_an_error():
    neighbors = HashNeighbors(cghash()).fit(X, Y)
    with pytest.raises(InvalidInputError, match="n_neighbors must be at most 150, the items to be found, got 151"):
        neighbors.kneighbors(NEW, 151)
    with pytest.raises(InvalidInputError, match="n_neighbors must be at most 149"):
        neighbors.kneighbors(n_neighbors=150)


def test_weights_of_the_hasher_decide_where_it_has_any():
    items = np.array([[1, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]])
    query = np.zeros((1, 4))
    distances, rows = HashNeighbors(Signs(), 3).fit(items).kneighbors(query)
    assert (distances.tolist(), rows.tolist()) == ([[1, 1, 2]], [[1, 2, 0]])
    distances, rows = HashNeighbors(WeightedSigns(), 3).fit(items).kneighbors(query)
    assert (distances.tolist(), rows.tolist()) == ([[3, 3, 4]], [[0, 1, 2]])


def test_a_pickled_model_answers_the_same():
    model = HashNeighborsClassifier(cghash(), n_jobs=1).fit(X, Y)
    again = pickle.loads(pickle.dumps(model))  # noqa: S301
    np.testing.assert_array_equal(again.predict_proba(NEW), model.predict_proba(NEW))
    assert again.index_.n_jobs == 1


# The vote. Items are at distances 1, 2, 3, … from the query: the weights of WeightedSigns

LINE = np.eye(6)
ORIGIN = np.zeros((1, 6))


def classifier(k, labels, **changes):
    return HashNeighborsClassifier(WeightedSigns(), k, **changes).fit(LINE[: len(labels)], np.array(labels))


@pytest.mark.parametrize(
    ("k", "labels", "winner"),
    [
        (1, "baaaa", "b"),
        (3, "baaaa", "a"),  # two to one
        (2, "baaaa", "b"),  # one to one: b is nearer
        (4, "caabbb", "a"),  # two to one to one: the nearest label is not enough
        (5, "caabbb", "a"),  # a and b have two each, a's first is nearer
        (5, "cbabaa", "b"),  # likewise b
        (3, "cbaaaa", "c"),  # one each
    ],
)
def test_most_votes_win_and_the_nearest_label_wins_ties(k, labels, winner):
    assert classifier(k, list(labels)).predict(ORIGIN).tolist() == [winner]


def test_votes_by_inverse_distance():
    model = classifier(4, list("abbb"), weights="distance")  # a: 1; b: 1/2 + 1/3 + 1/4 = 13/12
    assert model.predict(ORIGIN).tolist() == ["b"]
    np.testing.assert_allclose(model.predict_proba(ORIGIN), [[12 / 25, 13 / 25]])
    assert classifier(3, list("abb"), weights="distance").predict(ORIGIN).tolist() == ["a"]  # 1 against 5/6
    assert classifier(3, list("abb")).predict(ORIGIN).tolist() == ["b"]


def test_items_at_distance_zero_vote_alone():
    items = np.vstack([ORIGIN, LINE[:2]])
    model = HashNeighborsClassifier(WeightedSigns(), 3, weights="distance").fit(items, [7, 8, 8])
    assert model.predict_proba(ORIGIN).tolist() == [[1.0, 0.0]]


def test_probabilities_are_shares_and_the_largest_is_the_prediction():
    model = classifier(4, list("baab"))
    assert model.classes_.tolist() == ["a", "b"]
    shares = model.predict_proba(ORIGIN)
    np.testing.assert_allclose(shares, [[0.5, 0.5]], rtol=1e-15)
    assert shares[0, 1] > shares[0, 0]  # b won the tie
    digits = HashNeighborsClassifier(cghash(4), 4).fit(X, Y)
    np.testing.assert_array_equal(digits.classes_[digits.predict_proba(NEW).argmax(axis=1)], digits.predict(NEW))


def test_score_is_the_share_of_right_labels():
    model = HashNeighborsClassifier(cghash(16), 3).fit(X, Y)
    assert model.score(NEW, LABELS[150:250]) == np.mean(model.predict(NEW) == LABELS[150:250])
    assert model.score(NEW, LABELS[150:250]) > 0.7


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"weights": "near"}, r"weights must be one of \['uniform', 'distance'\], got 'near'"),
        ({"n_neighbors": 0}, "n_neighbors must be a whole number of at least 1, got 0"),
        ({"n_jobs": 0}, "n_jobs must be None or a whole number other than 0, got 0"),
    ],
)
def test_wrong_parameter_is_named(changes, words):
    with pytest.raises(InvalidInputError, match=words):
        HashNeighborsClassifier(Signs()).set_params(**changes).fit(X, Y)
