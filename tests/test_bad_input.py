"""What users hand in by mistake: each mistake is named, or has a right answer."""

from __future__ import annotations

import functools
import itertools
import re

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_digits
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.neighbors import KNeighborsClassifier

from cghash import CGHash, WeightedHammingIndex
from cghash.exceptions import FewerBitsWarning, InvalidInputError, NothingToLearnError
from cghash.learning.families import FAMILIES
from cghash.learning.losses import SquaredHinge

from .command_line import refused, run

pytestmark = pytest.mark.core

DIGITS, LABELS = load_digits(return_X_y=True)
X, Y = DIGITS[:100], LABELS[:100]
ROWS = np.array([[0, 1, 2], [3, 4, 5]])


def hasher(n_bits=3, **changes):
    return CGHash(n_bits, **({"C": 1e-3, "n_neighbors": 3, "random_state": 0, "n_jobs": 1} | changes))


def with_value(value):
    spoiled = X.copy()
    spoiled[7, 20] = value
    return spoiled


# X


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize(
    ("items", "message"),
    [
        (with_value(np.nan), "contains NaN"),
        (with_value(np.inf), "contains infinity"),
        (with_value(-np.inf), "contains infinity"),
        (X[:, 0], "Expected 2D array, got 1D array"),
        (X.reshape(100, 8, 8), "dim 3"),
        (X[:0], "0 sample"),
        (X[:1], "1 sample"),
        (X[:, :0], "0 feature"),
        (X + 1j, "Complex data not supported"),
        (X.astype(str).astype(object) + "a", "could not convert"),
    ],
    ids=["nan", "inf", "-inf", "1-D", "3-D", "no item", "one item", "no feature", "complex", "words"],
)
def test_items_that_cannot_be_learned_from_are_refused(family, items, message):
    with pytest.raises(ValueError, match=message):
        hasher(hash_function=family).fit(items, Y[: len(items)])


@pytest.mark.native
@pytest.mark.parametrize("family", FAMILIES)
def test_items_that_cannot_be_encoded_are_refused(family):
    model = hasher(hash_function=family).fit(X, Y)
    for items, message in (
        (with_value(np.nan), "NaN"),
        (X[:, :10], "X has 10 features, but CGHash is expecting 64"),
        (X[0], "Expected 2D array"),
        (X[:0], "0 sample"),
    ):
        for method in (model.transform, model.encode, model.score):
            with pytest.raises(ValueError, match=message):
                method(items)
    assert model.transform(X[:1]).shape == (1, 3)


def test_model_that_was_not_fitted_says_so():
    for method in (CGHash().transform, CGHash().encode, CGHash().score):
        with pytest.raises(NotFittedError, match="not fitted"):
            method(X)
    with pytest.raises(NotFittedError, match="not fitted"):
        CGHash().truncate(1)


# y


LABELLINGS = {
    "short": (Y[:-1], InvalidInputError, "y must have one entry for each of 100 items, got 99"),
    "short matrix": (np.eye(10)[Y][:-1], InvalidInputError, "y must have one entry for each of 100 items, got 99"),
    "continuous": (np.linspace(0, 1, 100), ValueError, "y must be labels .*: Unknown label type: continuous"),
    "nan": (np.where(np.arange(100) == 3, np.nan, Y), InvalidInputError, "y must be labels .*NaN"),
    "indicator of 2": (np.eye(10)[Y] * 2, InvalidInputError, "y must be labels .*indicator matrix .* of 0 and 1"),
    "two columns of labels": (
        np.stack([Y, Y], axis=1),
        InvalidInputError,
        "y must be labels .*indicator matrix .* of 0 and 1",
    ),
    "3-D": (np.zeros((100, 2, 2)), InvalidInputError, r"y must be labels .*got shape \(100, 2, 2\)"),
    "a number": (3, InvalidInputError, r"y must be labels .*got shape \(\)"),
    "no column": (np.zeros((100, 0)), InvalidInputError, r"y must be labels .*got shape \(100, 0\)"),
    "one class": (np.zeros(100), NothingToLearnError, "y must hold at least two classes"),
    "one word": (["a"] * 100, NothingToLearnError, "y must hold at least two classes"),
    "all different": (np.arange(100), NothingToLearnError, "y must hold a class of at least two items"),
    "all share": (np.ones((100, 3)), NothingToLearnError, "no item has both a near and a far item"),
    "none share": (np.zeros((100, 3)), NothingToLearnError, "no item has both a near and a far item"),
    "all alone": (np.eye(100), NothingToLearnError, "no item has both a near and a far item"),
}


@pytest.mark.parametrize(("labels", "kind", "message"), LABELLINGS.values(), ids=LABELLINGS)
@pytest.mark.parametrize("sampling", ["mixed", "neighbors", "classes"])
def test_labels_that_hold_no_comparison_are_refused(labels, kind, message, sampling):
    with pytest.raises(kind, match=message):
        hasher(sampling=sampling).fit(X, labels)


@pytest.mark.native
@pytest.mark.parametrize("sampling", ["mixed", "neighbors", "classes"])
def test_classes_of_one_item_do_not_stand_in_the_way(sampling):
    labels = Y.copy()
    labels[:5] = 100 + np.arange(5)
    assert hasher(8, sampling=sampling).fit(X, labels).score(X, labels) > 0.8


@pytest.mark.native
@pytest.mark.filterwarnings("ignore::cghash.exceptions.FewerBitsWarning")
def test_more_neighbours_than_items_are_all_items():
    few, labels = X[:9], Y[:9] % 2
    model = hasher(2, n_neighbors=1000).fit(few, labels)
    sizes = np.bincount(labels)
    assert model.result_.n_triplets >= sum((sizes[c] - 1) * sizes[1 - c] * sizes[c] for c in (0, 1))


# triplets, weights, duplets


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([[0, 1, 100]], r"triplets must be row numbers from 0 to 99, got \[0, 1, 100\] in row 0"),
        ([[0, 1, 2], [-1, 1, 2]], r"triplets must be row numbers from 0 to 99, got \[-1, 1, 2\] in row 1"),
        (ROWS.astype(float), "triplets must be integer row numbers, got dtype float64; they look whole: pass astype"),
        (ROWS + 0.5, "triplets must be integer row numbers, got dtype float64$"),
        (ROWS.astype(str), "triplets must be integer row numbers"),
        (ROWS > 1, "triplets must be integer row numbers, got dtype bool"),
        (ROWS[:, :2], r"triplets must have shape \(m, 3\) \(anchor, near, far\), got shape \(2, 2\)"),
        (ROWS[0], r"triplets must have shape \(m, 3\).*got shape \(3,\)"),
        (7, r"triplets must have shape \(m, 3\).*got shape \(\)"),
        (np.array(7), r"triplets must have shape \(m, 3\).*got shape \(\)"),
        (np.empty((0, 3), int), "triplets must not be empty"),
        ([], r"triplets must have shape \(m, 3\).*got shape \(0,\)"),
        ([[0, 1, 2], [0, 1]], r"triplets must have shape \(m, 3\)"),
        ([[0, 1, 2], [5, 3, 5]], r"triplets must name 3 different items in each row, got \[5, 3, 5\] in row 1"),
        ([[0, 1, 2**64]], "triplets must be"),
    ],
    ids=[
        "past the end", "negative", "whole floats", "floats", "words", "booleans", "two columns", "1-D", "a number",
        "0-D", "none", "an empty list", "ragged", "repeated item", "too large",
    ],
)  # fmt: skip
def test_triplets_that_name_no_comparison_are_refused(rows, message):
    with pytest.raises(InvalidInputError, match=message):
        hasher().fit(X, triplets=rows)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1, -1], "triplet_weights must be finite and not negative, got -1.0 in row 1"),
        ([1, np.nan], "triplet_weights must be finite and not negative, got nan in row 1"),
        ([np.inf, 1], "triplet_weights must be finite and not negative, got inf in row 0"),
        ([1, 1, 1], r"triplet_weights must have shape \(2,\), one weight a triplet, got shape \(3,\)"),
        ([[1, 1]], r"triplet_weights must have shape \(2,\)"),
        (1.0, r"triplet_weights must have shape \(2,\)"),
        ([0, 0], "triplet_weights must hold at least one positive weight, got only zeros"),
        (["a", "b"], "triplet_weights must be numbers"),
    ],
)
def test_weights_that_weigh_nothing_are_refused(weights, message):
    with pytest.raises(InvalidInputError, match=message):
        hasher().fit(X, triplets=ROWS, triplet_weights=weights)


@pytest.mark.native
@pytest.mark.filterwarnings("ignore::cghash.exceptions.FewerBitsWarning")
def test_weights_of_any_scale_mean_the_same():
    codes = hasher().fit(X, triplets=ROWS, triplet_weights=[1, 2]).encode(X)
    for scale in (1e-300, 1e300):
        weights = np.array([1, 2]) * scale
        np.testing.assert_array_equal(hasher().fit(X, triplets=ROWS, triplet_weights=weights).encode(X), codes)


def test_labels_and_triplets_together_are_refused():
    with pytest.raises(InvalidInputError, match="y and triplets must not both be given"):
        hasher().fit(X, Y, triplets=ROWS)


@pytest.mark.parametrize("labels", [None, Y])
def test_weights_without_triplets_are_refused(labels):
    with pytest.raises(InvalidInputError, match="triplet_weights must come with triplets"):
        hasher().fit(X, labels, triplet_weights=[1.0])


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([[0, 1, 2]], r"duplets must have shape \(m, 2\) \(two items\), got shape \(1, 3\)"),
        ([[0, 100]], "duplets must be row numbers from 0 to 99"),
        ([[4, 4]], "duplets must name 2 different items in each row"),
        ([[0.0, 1.0]], "duplets must be integer row numbers"),
        (np.empty((0, 2), int), "duplets must not be empty"),
    ],
)
def test_duplets_that_name_no_pair_are_refused(rows, message):
    with pytest.raises(InvalidInputError, match=message):
        hasher().fit(X, Y, duplets=rows)


# Parameters


class LacksConjugate:
    def value(self, margin):
        return np.exp(-margin)

    def derivative(self, margin):
        return -np.exp(-margin)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        *(
            ({"C": value}, re.escape(f"C must be a positive number, got {value!r}"))
            for value in (0, -1.0, "big", True, [1.0], np.nan, np.inf)
        ),
        *(
            ({name: value}, rf"{name} must be a whole number of at least 1, got {value!r}")
            for name, value in itertools.product(["n_bits", "n_neighbors"], [0, -3, 8.0, True, "8", None])
        ),
        ({"loss": "squared"}, r"loss must be one of \[.*'hinge'.*\] or a loss object, got 'squared'"),
        ({"loss": None}, "loss must be one of .* got None"),
        ({"loss": SquaredHinge}, "loss must be one of .* without being an instance"),
        ({"loss": LacksConjugate()}, "loss must be .* without conjugate"),
        ({"regularizer": "l2"}, r"regularizer must be one of \['l1', 'linf'\], got 'l2'"),
        ({"regularizer": None}, r"regularizer must be one of \['l1', 'linf'\], got None"),
        ({"regularizer": ["l1"]}, r"regularizer must be one of \['l1', 'linf'\], got \['l1'\]"),
        ({"sampling": "all"}, r"sampling must be one of \['mixed', 'neighbors', 'classes'\], got 'all'"),
        ({"sampling": np.array(["all", "mixed"])}, "sampling must be one of"),
        ({"method": "new"}, r"method must be one of \['refined', 'paper'\], got 'new'"),
        ({"hash_function": "cube"}, r"hash_function must be one of \[.*'linear'.*\] or a classifier, got 'cube'"),
        ({"hash_function": None}, "hash_function must be one of .* or a classifier object, got None"),
        ({"hash_function": LogisticRegression}, "hash_function must be .* a classifier object"),
        ({"hash_function": LinearRegression()}, "hash_function must be .* a classifier object"),
        ({"hash_function": KNeighborsClassifier()}, "hash_function must be .* whose fit takes sample_weight"),
        ({"tol": -1e-6}, "tol must be a number of at least 0, got -1e-06"),
        ({"tol": np.nan}, "tol must be a number of at least 0, got nan"),
        ({"time_limit": -1}, "time_limit must be a number of at least 0, got -1"),
        ({"time_limit": "1h"}, "time_limit must be a number of at least 0, got '1h'"),
        ({"n_jobs": 0}, "n_jobs must be None or a whole number other than 0, got 0"),
        ({"n_jobs": 1.5}, "n_jobs must be None or a whole number other than 0, got 1.5"),
        ({"n_jobs": True}, "n_jobs must be None or a whole number other than 0, got True"),
        ({"verbose": "yes"}, "verbose must be a whole number of at least 0, got 'yes'"),
        ({"verbose": -1}, "verbose must be a whole number of at least 0, got -1"),
        ({"checkpoint": 7}, "checkpoint must be a path, got 7"),
    ],
    ids=lambda value: "-".join(f"{k}={v!r}"[:30] for k, v in value.items()) if isinstance(value, dict) else "",
)
def test_parameter_that_means_nothing_is_named(changes, message):
    with pytest.raises(InvalidInputError, match=message):
        hasher(**changes).fit(X, Y)


def test_random_state_that_is_none_of_them_is_refused():
    with pytest.raises(ValueError, match="'seven' cannot be used to seed"):
        hasher(random_state="seven").fit(X, Y)


@pytest.mark.native
@pytest.mark.parametrize(
    "changes", [{"n_bits": np.int32(3)}, {"C": np.float32(1e-3)}, {"verbose": False}, {"n_jobs": -1}]
)
def test_parameter_of_a_related_type_serves(changes):
    assert hasher(**changes).fit(X, Y).n_bits_ == 3


@pytest.mark.native
@pytest.mark.parametrize("family", FAMILIES)
def test_C_too_large_for_any_function_says_how_small_it_must_be(family):  # noqa: N802
    with pytest.raises(
        NothingToLearnError, match=r"C must be below [\d.]+, the largest gain that was found, got 1e\+06"
    ):
        hasher(C=1e6, hash_function=family).fit(X, Y)


# Few items, items that are alike, items on other scales


@pytest.mark.parametrize("family", FAMILIES)
def test_two_items_hold_no_comparison(family):
    with pytest.raises(NothingToLearnError, match="X must have at least 3 items"):
        hasher(hash_function=family).fit(X[:2])
    with pytest.raises(NothingToLearnError, match="y must hold a class of at least two items"):
        hasher(hash_function=family).fit(X[:2], [0, 1])


@pytest.mark.native
@pytest.mark.parametrize("family", FAMILIES)
def test_three_items_and_one_triplet_are_enough(family):
    model = hasher(1, hash_function=family).fit(X[:3], triplets=[[0, 1, 2]])
    bits = model.transform(X[:3])[:, 0]
    assert bits[0] == bits[1] != bits[2]
    assert hasher(1, hash_function=family).fit(X[:3]).n_bits_ == 1


@pytest.mark.native
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("supervision", ["labels", "neighbours"])
@pytest.mark.parametrize("value", [0.0, 1e9, 0.1])
def test_items_that_are_all_alike_are_told_so(family, supervision, value):
    items = np.full((30, 4), value)
    with pytest.raises(NothingToLearnError, match="are all items alike"):
        hasher(hash_function=family).fit(items, Y[:30] if supervision == "labels" else None)


@pytest.mark.native
@pytest.mark.parametrize("family", FAMILIES)
def test_constant_features_have_no_say(family):
    varied = X[:, X.std(axis=0) > 0]
    with_constants = np.column_stack([np.full(100, 1e8), varied, np.zeros(100), np.full(100, 0.1)])
    model = hasher(8, hash_function=family).fit(with_constants, Y)
    plain = hasher(8, hash_function=family).fit(varied, Y)
    assert model.score(with_constants, Y) == pytest.approx(plain.score(varied, Y), abs=0.05)
    moved = with_constants + np.array([0.0] * (1 + varied.shape[1]) + [0.5, 0.5])
    if not family.startswith("rbf"):
        np.testing.assert_array_equal(model.transform(moved), model.transform(with_constants))


@pytest.mark.native
@pytest.mark.parametrize("family", FAMILIES)
def test_duplicates_of_one_item_get_one_code(family):
    items = np.concatenate([np.repeat(X[:1], 20, axis=0), X[1:40]])
    labels = np.concatenate([np.repeat(Y[:1], 20), Y[1:40]])
    model = hasher(4, hash_function=family).fit(items, labels)
    assert len(np.unique(model.encode(items[:20]), axis=0)) == 1
    with pytest.raises(NothingToLearnError, match="are all items alike"):
        hasher(hash_function=family).fit(np.repeat(X[:1], 20, axis=0), np.arange(20) % 2)


SCALES = {
    "1e9 times": lambda X: X * 1e9,
    "1e-9 times": lambda X: X * 1e-9,
    "1e6 more": lambda X: X + 1e6,
    "1e9 more": lambda X: X + 1e9,
    "each by its own": lambda X: X * 10.0 ** np.linspace(-9, 9, X.shape[1]),
    "1e148 times": lambda X: X * 1e148,
    "1e-150 times": lambda X: X * 1e-150,
}


@pytest.mark.native
@pytest.mark.parametrize(
    ("family", "scale"),
    [
        (family, scale)
        for family, scale in itertools.product(FAMILIES, SCALES)
        if not (family.startswith("rbf") and scale == "each by its own")  # it sees distances
    ],
)
def test_scale_and_offset_of_the_items_do_not_matter(family, scale):
    changed, plain = SCALES[scale](X), score_as_they_are(family)
    assert plain > 0.8
    assert hasher(4, hash_function=family, sampling="classes").fit(changed, Y).score(changed, Y) > plain - 0.03


@functools.cache
def score_as_they_are(family):
    return hasher(4, hash_function=family, sampling="classes").fit(X, Y).score(X, Y)


@pytest.mark.native
@pytest.mark.parametrize("changed", [X * 2.0**30, X / 2.0**30, X + 2.0**20], ids=["larger", "smaller", "offset"])
def test_neighbours_do_not_depend_on_scale_and_offset(changed):
    np.testing.assert_array_equal(
        hasher(4, hash_function="stump").fit(changed).encode(changed), hasher(4, hash_function="stump").fit(X).encode(X)
    )


@pytest.mark.parametrize("items", [X * 1e306, -X * 1e306, sp.csr_matrix(X * 1e306)])
def test_numbers_whose_squares_overflow_are_refused(items):
    with pytest.raises(InvalidInputError, match=r"X must hold numbers of at most 1e\+150.*got 1.6e\+307"):
        hasher().fit(items, Y)


@pytest.mark.native
@pytest.mark.filterwarnings("ignore::cghash.exceptions.FewerBitsWarning")
@pytest.mark.parametrize("family", FAMILIES)
def test_one_feature_is_enough_and_more_than_items_serve(family):
    line, halves = np.arange(30.0).reshape(-1, 1), np.arange(30) // 15
    with pytest.warns(FewerBitsWarning):
        model = hasher(64, hash_function=family).fit(line, halves)
    assert model.score(line, halves) == 1
    wide, turns = np.random.default_rng(0).standard_normal((20, 500)), np.arange(20) % 2
    assert hasher(4, hash_function=family).fit(wide, turns).score(wide, turns) > 0.9


@pytest.mark.parametrize("k", [10**7, 2**31, 2**62])
def test_answers_of_more_than_8_gb_are_refused_before_the_search(k, tmp_path):
    from cghash.stores import Origin
    from cghash.stores.parquet import ParquetStore

    codes = np.zeros((300, 2), np.uint8)
    index = WeightedHammingIndex(16)
    index.add(codes)
    store = ParquetStore(Origin(np.ones(16)), codes, np.arange(300), "here")
    for searched in (index, store):
        with pytest.raises(
            InvalidInputError, match=f"300 times {k} answers take more than 8 GB; (ask for 53|k can be)"
        ):
            searched.search(codes, k)


def test_more_answers_than_there_are_codes_are_no_matter_in_a_table(tmp_path):
    np.save(tmp_path / "codes.npy", np.zeros((30, 2), np.uint8))
    index = WeightedHammingIndex(16)
    index.add(np.zeros((30, 2), np.uint8))
    index.save(tmp_path / "x.index")
    ask = ("search", tmp_path / "x.index", "--queries", tmp_path / "codes.npy", "-k", 2**40)
    for kind in ("csv", "jsonl", "table"):
        run(*ask, "--format", kind)
    assert "answers take more than 8 GB" in refused(*ask, "-o", tmp_path / "x.npy")
    assert not (tmp_path / "x.npy").exists()
