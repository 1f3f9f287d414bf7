"""What every hash family must do: honest gains, the same bits on every road, parameters that survive a file."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_digits
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier

from cghash import CGHash
from cghash.exceptions import FormatError, InvalidInputError
from cghash.learning.cpu import features as feature_module
from cghash.learning.cpu.features import Features, fit_scaler, standardized
from cghash.learning.cpu.item_sums import CpuItemSums
from cghash.learning.cpu.pairs import SignedPairs, signs
from cghash.learning.families import FAMILIES, family_of, functions_class
from cghash.learning.families.linear import LinearFamily
from cghash.learning.families.minorize import minorize_maximize, relaxed_gain
from cghash.learning.families.projection import RelaxedGain
from cghash.learning.families.rbf import cluster_centres, drawn_items
from cghash.learning.families.stump import StumpFunctions
from cghash.learning.families.tree import TreeFamily, TreeFunctions
from cghash.learning.supervision import from_labels
from cghash.learning.triplets import from_rows

pytestmark = [pytest.mark.core, pytest.mark.portable, pytest.mark.native]
KINDS = {name: (name, True) for name in FAMILIES} | {  # as `family_of` takes them
    "linear as in the paper": ("linear", False),
    "DecisionTreeClassifier": (DecisionTreeClassifier(max_depth=2, criterion="entropy"), True),
    "LogisticRegression": (LogisticRegression(), True),
}
FAMILY = pytest.mark.parametrize("kind", KINDS)
SAVED = pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "LogisticRegression"])


def pairs_of(first, second, weights, n_items):
    pairs = SignedPairs(first, second, n_items)
    pairs.set_weights(np.asarray(weights, dtype=np.float64))
    return pairs


def prepared(kind, X):
    family = family_of(*KINDS[kind])
    family.prepare(X, np.random.default_rng(0), 1)
    return family


def items(n=60, seed=0):
    """Items of three overlapping classes, exact in float32."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 3
    return (rng.normal(size=(n, 4)) + 2 * np.eye(3, 4)[y]).astype(np.float32).astype(np.float64), y


class Pricing:
    """A pricing problem twice: as signed pairs, and as triplets written out with multipliers u."""

    def __init__(self, X, y, seed=1):
        rng = np.random.default_rng(seed)
        triplets = from_labels(X, y, "classes", 3, rng, 1)
        near, far, p = triplets.triplet_slots()
        self.rows = triplets.to_rows()
        self.pu = p * rng.random(len(p)) * (self.rows[:, 0] >= 5)  # the first items anchor dead triplets only
        weights = np.zeros(triplets.n_slots)
        np.add.at(weights, far, self.pu)
        np.subtract.at(weights, near, self.pu)
        self.pairs = pairs_of(*triplets.slots(), weights, len(X))

    def gain(self, bits):
        anchors, near, far = self.rows.T
        return float(self.pu @ ((bits[anchors] != bits[far]).astype(float) - (bits[anchors] != bits[near])))


def priced(kind, seed=0):
    X, y = items()
    problem, family = Pricing(X, y), prepared(kind, X)
    return X, problem, family, family.price(problem.pairs, np.random.default_rng(seed), None)


def joined(kind):
    """Up to three candidates of a family as one set of functions, with the items."""
    X, _, _, found = priced(kind)
    more = priced(kind, seed=1)[3].candidates
    candidates = [*found.candidates[:2], *more[:1]]
    functions = candidates[0]
    for candidate in candidates[1:]:
        functions = functions.joined(candidate)
    return X, functions, candidates


@FAMILY
def test_candidates_come_by_falling_gain_with_the_bits_that_they_have(kind):
    X, problem, family, found = priced(kind)
    gains = [problem.gain(bits) for bits in found.bits]
    assert gains[0] > 0
    assert np.all(np.diff(gains) <= 1e-12)
    for function, bits, gain in zip(found.candidates, found.bits, gains, strict=True):
        assert len(function) == 1
        assert bits.shape == (len(X),)
        assert bits.dtype == bool
        np.testing.assert_array_equal(family.training_bits(function), bits)
        np.testing.assert_array_equal(function.bits(X)[:, 0], bits)
        assert problem.pairs.gain(bits) == pytest.approx(gain, rel=1e-9, abs=1e-12)
    if found.max_gain is not None:
        assert found.max_gain == pytest.approx(gains[0])


@FAMILY
def test_a_split_that_satisfies_every_triplet_is_found(kind):
    rng = np.random.default_rng(2)
    X, y = rng.normal(size=(40, 3)), np.arange(40) % 2
    X[:, 1] += 10 * y
    problem, family = Pricing(X, y), prepared(kind, X)
    found = family.price(problem.pairs, rng, None)
    live = problem.pairs.items
    assert problem.gain(found.bits[0]) == pytest.approx(problem.pu.sum())
    split = found.bits[0][live] ^ found.bits[0][live[0]]
    np.testing.assert_array_equal(split, y[live] != y[live[0]])


@FAMILY
def test_the_same_random_numbers_give_the_same_functions_and_items_stay_as_they_were(kind):
    X, _ = items()
    first, second = priced(kind), priced(kind)
    for one, other in zip(first[3].bits, second[3].bits, strict=True):
        np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(first[0], X)


@FAMILY
def test_three_items_and_constant_features(kind):
    for X in (np.array([[0.0], [0.1], [5.0]]), np.array([[0.0, 7.0], [0.1, 7.0], [5.0, 7.0]])):
        pairs = pairs_of(np.array([0, 0]), np.array([1, 2]), np.array([-1.0, 1.0]), 3)
        found = prepared(kind, X).price(pairs, np.random.default_rng(0), None)
        for function, bits in zip(found.candidates, found.bits, strict=True):
            np.testing.assert_array_equal(function.bits(X)[:, 0], bits)
    X = np.ones((3, 2))
    found = prepared(kind, X).price(pairs, np.random.default_rng(0), None)
    assert all(pairs.gain(bits) == 0.0 for bits in found.bits)  # nothing tells the items apart


@FAMILY
def test_functions_are_cut_and_joined_in_order(kind):
    X, functions, candidates = joined(kind)
    alone = np.column_stack([candidate.bits(X)[:, 0] for candidate in candidates])
    np.testing.assert_array_equal(functions.bits(X), alone)
    assert len(functions) == len(candidates)
    for m in range(1, len(candidates) + 1):
        np.testing.assert_array_equal(functions.head(m).bits(X), alone[:, :m])
        np.testing.assert_array_equal(functions.one(m - 1).bits(X), alone[:, m - 1 : m])


@FAMILY
def test_bits_do_not_depend_on_type_layout_or_company(kind):
    X, functions, _ = joined(kind)
    expected = functions.bits(X)
    np.testing.assert_array_equal(functions.bits(X.astype(np.float32)), expected)
    np.testing.assert_array_equal(functions.bits(np.asfortranarray(X)), expected)
    np.testing.assert_array_equal(functions.bits(np.repeat(X, 2, axis=1)[:, ::2]), expected)
    np.testing.assert_array_equal(np.concatenate([functions.bits(X[i : i + 1]) for i in range(len(X))]), expected)


def test_more_items_than_are_taken_at_a_time():
    X, functions, _ = joined("linear")
    many = np.tile(X, (300, 1))
    np.testing.assert_array_equal(functions.bits(many), np.tile(functions.bits(X), (300, 1)))


@SAVED
def test_arrays_hold_everything(kind):
    X, functions, _ = joined(kind)
    assert functions.bits(X[:0]).shape == (0, len(functions))
    again = functions_class(functions.family).from_arrays(functions.arrays())
    assert type(again) is type(functions)
    np.testing.assert_array_equal(again.bits(X), functions.bits(X))
    np.testing.assert_array_equal(again.joined(functions).bits(X), np.tile(functions.bits(X), (1, 2)))


@SAVED
def test_arrays_that_do_not_fit_together_are_refused(kind):
    _, functions, _ = joined(kind)
    good = functions.arrays()
    make = functions_class(functions.family).from_arrays
    for name, array in good.items():
        bad = [array[:-1], array[..., None], np.zeros((), array.dtype)]
        if array.dtype.kind == "f":
            bad += [np.full_like(array, np.nan), np.full_like(array, np.inf)]
        for wrong in bad:
            with pytest.raises(FormatError):
                make(good | {name: wrong})
        with pytest.raises(FormatError, match=name):
            make({other: array for other, array in good.items() if other != name})


@pytest.mark.parametrize("kind", ["stump", "tree"])
@pytest.mark.parametrize("wrong", [lambda a: a - 100, lambda a: a.astype(float), lambda a: a + 0.5])
def test_features_must_be_whole_numbers_from_zero(kind, wrong):
    _, functions, _ = joined(kind)
    arrays = functions.arrays()
    with pytest.raises(FormatError):
        functions.from_arrays(arrays | {"feature": wrong(arrays["feature"])})


def test_classifiers_are_not_saved():
    _, functions, _ = joined("LogisticRegression")
    with pytest.raises(InvalidInputError, match="skops"):
        functions.arrays()
    with pytest.raises(InvalidInputError, match="skops"):
        type(functions).from_arrays({})


@pytest.mark.parametrize(
    "wrong", ["stumps", "", None, 3, LogisticRegression, LinearRegression(), KNeighborsClassifier()], ids=repr
)
def test_what_is_no_family_is_refused(wrong):
    with pytest.raises(InvalidInputError, match="hash_function"):
        family_of(wrong, True)
    with pytest.raises(InvalidInputError, match="family"):
        functions_class("none")


# The gain as a quadratic form


@st.composite
def signed_pairs(draw):
    n, m = draw(st.integers(2, 12)), draw(st.integers(1, 20))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    first, second = rng.integers(0, n, (2, m))  # repeated pairs, both ways round, and items with themselves
    weights = rng.integers(-3, 4, m) / 4.0
    return first, second, weights, rng.integers(0, 2, n).astype(bool)


@settings(max_examples=100, deadline=None)
@given(signed_pairs())
def test_gain_is_a_quarter_of_the_laplacian_form(case):
    first, second, weights, bits = case
    pairs = pairs_of(first, second, weights, len(bits))
    expected = sum(s for a, b, s in zip(first, second, weights, strict=True) if bits[a] != bits[b])
    assert pairs.gain(bits) == pytest.approx(expected)
    h = np.where(bits[pairs.items], 1.0, -1.0)
    assert h @ pairs.laplacian(h) / 4 == pytest.approx(expected, abs=1e-5)
    assert relaxed_gain(pairs, h.astype(np.float32)) == pytest.approx(expected, abs=1e-5)
    live = np.unique(np.concatenate([first[weights != 0], second[weights != 0]]))
    nearly_all = len(live) >= 0.8 * len(bits)
    np.testing.assert_array_equal(pairs.items, np.arange(len(bits)) if nearly_all else live)
    near = [
        sum(-s for a, b, s in zip(first, second, weights, strict=True) if s < 0 and i in (a, b)) for i in pairs.items
    ]
    loops = [
        sum(-s for a, b, s in zip(first, second, weights, strict=True) if s < 0 and i == a == b) for i in pairs.items
    ]
    np.testing.assert_allclose(pairs.near_weight(), np.add(near, loops), atol=1e-6)  # a loop counts at both its ends
    assert pairs.scale >= abs(expected)


@settings(max_examples=40, deadline=None)
@given(signed_pairs(), st.integers(0, 2**32 - 1))
def test_minorize_maximize_never_loses_gain(case, seed):
    """Even with a learner that answers at random."""
    first, second, weights, bits = case
    pairs, rng = pairs_of(first, second, weights, len(bits)), np.random.default_rng(seed)
    n = len(pairs.items)
    start = signs(rng.standard_normal(n))

    def at_random(labels, weights):
        assert labels.shape == weights.shape == (n,)
        assert np.all(weights >= 0)
        answer = signs(rng.standard_normal(n))
        return tuple(answer), answer

    gains = [relaxed_gain(pairs, h) for _, h in minorize_maximize(pairs, start, at_random)]
    assert all(after > before for before, after in pairwise(gains))


def full_shift(pairs):
    """2·Σ|s| over the negative pairs of each live item."""
    shift = np.zeros(pairs.n_items)
    for a, b, s in zip(pairs.first, pairs.second, pairs.weights, strict=True):
        shift[[a, b]] += 2 * max(-s, 0.0) * (1 if a != b else 2)
    return shift[pairs.items]


@settings(max_examples=60, deadline=None)
@given(signed_pairs(), st.integers(0, 2**32 - 1))
def test_a_learner_without_error_ends_where_no_tangent_improves(case, seed):
    """At full shift the tangent is a lower bound of the gain, so its best labels gain at least as much."""
    first, second, weights, bits = case
    pairs = pairs_of(first, second, weights, len(bits))
    start = signs(np.random.default_rng(seed).standard_normal(len(pairs.items)))

    def perfect(labels, weights):
        return None, signs(labels - 0.5)

    for h in [start, *(h for _, h in minorize_maximize(pairs, start, perfect, max_steps=1000)[-1:])]:
        tangent = pairs.laplacian(h) + full_shift(pairs) * h
        after = relaxed_gain(pairs, np.where(tangent == 0, h, signs(tangent)))
        assert after >= relaxed_gain(pairs, h) - 1e-5
    if h is not start and np.any(tangent):
        assert relaxed_gain(pairs, signs(tangent)) <= relaxed_gain(pairs, h) + 1e-5


@pytest.mark.parametrize("make", [np.asarray, sp.csr_matrix], ids=["dense", "sparse"])
def test_gradient_of_the_relaxed_gain_agrees_with_finite_differences(make):
    X, y = items()
    X = np.where(np.abs(X) > 1.0, X, 0.0) + 3.0 * (np.arange(4) == 3)  # sparse, and not centred
    pairs = Pricing(X, y).pairs
    Z = standardized(make(X), fit_scaler(make(X)))
    relaxed = RelaxedGain(CpuItemSums(Z, pairs))
    x = np.random.default_rng(3).normal(size=5)
    [(value, gradient)] = relaxed([x])
    dense = (X - X.mean(axis=0)) / np.ptp(X, axis=0)
    dense /= np.sqrt(np.mean(np.sum(dense**2, axis=1)))  # items of length one on average
    distance = (dense[pairs.items] @ x[:-1] + x[-1]) / np.linalg.norm(x[:-1])
    t = np.tanh(12.0 * distance)
    assert -value == pytest.approx(t @ pairs.laplacian(t) / (4 * pairs.scale), rel=1e-4)
    step = 3e-3  # in float32
    beside = [value for value, _ in relaxed([*(x + step * np.eye(5)), *(x - step * np.eye(5))])]
    differences = np.subtract(beside[:5], beside[5:]) / (2 * step)
    assert (relaxed.n_evaluations, relaxed.n_rounds) == (11, 2)
    np.testing.assert_allclose(gradient, differences, atol=2e-4)
    assert np.abs(gradient).max() > 1e-2
    [(longer, less)] = relaxed([7.0 * x])  # the hyperplane is the same
    assert longer == pytest.approx(value, rel=1e-5)
    np.testing.assert_allclose(7.0 * less, gradient, atol=1e-5)


def test_features_in_bytes_are_the_same_matrix(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 256, (60, 4)).astype(np.float64)
    X[:, 2] = 5.0  # constant

    def features_of(X):
        family = LinearFamily(refined=False)
        family.prepare(X, rng, 1)
        return family.features

    assert features_of(X).matrix.dtype == np.float32  # too few to pay
    monkeypatch.setattr(feature_module, "LEAST_BYTES", X.size)
    far = 252 + X % 4  # of three digits, two are alike
    for other in (X[1:], X + 0.5, X + 1e9, X - 1e-3, X * 2, -X, far):
        assert features_of(other).matrix.dtype == np.float32
    assert sp.issparse(features_of(sp.csr_matrix(X)).matrix)
    features = features_of(X)
    assert features.matrix.dtype == np.uint8
    assert features.n_bytes == X.size
    Z = standardized(X, fit_scaler(X)).matrix.astype(np.float64)
    v, r = rng.normal(size=(4, 2)).astype(np.float32), rng.normal(size=60).astype(np.float32)
    np.testing.assert_allclose(features.dot(v), Z @ v, atol=1e-6)
    np.testing.assert_allclose(features.dots(v.T), (Z @ v).T, atol=1e-6)
    np.testing.assert_allclose(features.tdots(np.stack([r, -r])), np.stack([Z.T @ r, -Z.T @ r]), atol=1e-5)
    np.testing.assert_allclose(features.gram(), Z.T @ Z, atol=1e-5)
    rows = np.array([3, 1, 50])
    np.testing.assert_allclose(features.take(rows).dot(v), Z[rows] @ v, atol=1e-6)
    assert features.take(np.arange(60)) is features


def test_bytes_that_are_kept_so_have_nearly_the_digits_of_floats():
    rng = np.random.default_rng(0)
    v = rng.normal(size=(784, 3)).astype(np.float32)
    for low, width in ((0, 256), (0, 2), (200, 56), (100, 30)):
        X = (low + rng.integers(0, width, (300, 784))).astype(np.float64)
        scaler = fit_scaler(X)
        exact = (X - scaler.mean) / scaler.scale @ v.astype(np.float64)
        assert feature_module.bytes_pay(10**9, scaler)
        assert np.abs(feature_module.in_bytes(X, scaler).dot(v) - exact).max() < 2e-5


def test_a_fit_in_bytes_is_as_good_as_one_in_floats(monkeypatch):
    X, y = load_digits(return_X_y=True)
    objectives = []
    for least in (1, X.size + 1):
        monkeypatch.setattr(feature_module, "LEAST_BYTES", least)
        model = CGHash(6, method="paper", random_state=0).fit(X, y)
        objectives.append([column.objective for column in model.result_.columns])
    assert objectives[0] == pytest.approx(objectives[1], rel=0.05)  # rounding may lead a climb elsewhere


def test_sparse_and_dense_features_are_the_same_matrix():
    X, _ = items()
    X[np.abs(X) < 1] = 0
    X[:, 2] = 5.0  # constant
    dense = standardized(X, fit_scaler(X))
    sparse = standardized(sp.csr_matrix(X), fit_scaler(sp.csr_matrix(X)))
    Z = dense.matrix
    assert np.all(Z[:, 2] == 0)
    np.testing.assert_allclose(Z.mean(axis=0), 0, atol=1e-6)
    v, r = np.random.default_rng(4).normal(size=(4, 2)).astype(np.float32), np.arange(60, dtype=np.float32) / 60
    for features in (dense, sparse):
        np.testing.assert_allclose(features.dot(v), Z @ v, atol=1e-5)
        np.testing.assert_allclose(features.dots(v.T), (Z @ v).T, atol=1e-5)
        np.testing.assert_allclose(features.tdots(np.stack([r, -r])), np.stack([Z.T @ r, -Z.T @ r]), atol=1e-4)
        np.testing.assert_allclose(features.gram(), Z.T.astype(float) @ Z, atol=1e-4)
        np.testing.assert_allclose(features.take(np.arange(7)).dot(v), Z[:7] @ v, atol=1e-5)
    assert isinstance(sparse, Features)


def test_linear_functions_of_sparse_items_are_those_of_dense_ones():
    X, y = items()
    X[np.abs(X) < 0.7] = 0
    problem = Pricing(X, y)
    found = prepared("linear", sp.csr_matrix(X)).price(problem.pairs, np.random.default_rng(0), None)
    for function, bits in zip(found.candidates, found.bits, strict=True):
        np.testing.assert_array_equal(function.bits(X)[:, 0], bits)
        np.testing.assert_array_equal(function.bits(sp.csr_matrix(X))[:, 0], bits)


# Stumps


@st.composite
def stump_problems(draw):
    n, d = draw(st.integers(2, 10)), draw(st.integers(1, 4))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    X = rng.integers(0, draw(st.integers(1, 6)), (n, d)).astype(draw(st.sampled_from([np.float32, np.float64])))
    m = draw(st.integers(1, 20))
    return X, pairs_of(*rng.integers(0, n, (2, m)), rng.integers(-3, 4, m) / 4.0, n)


@settings(max_examples=80, deadline=None)
@given(stump_problems())
def test_stump_pricing_finds_what_trying_every_stump_finds(case):
    X, pairs = case
    family = prepared("stump", X)
    every = [(f, t) for f in range(X.shape[1]) for t in np.unique(X[:, f])[:-1]]
    gains = {(f, t): pairs.gain(X[:, f] > t) for f, t in every}
    taken = None
    for _ in range(len(every)):  # bar the best, again and again
        found = family.price(pairs, np.random.default_rng(0), taken)
        assert found.max_gain == pytest.approx(max(gains.values()))
        assert found.positive_gains == pytest.approx(sum(max(pairs.gain(X[:, f] > t), 0.0) for f, t in every))
        assert pairs.gain(found.bits[0]) == pytest.approx(found.max_gain)
        (stump,) = found.candidates
        f, threshold = int(stump.feature[0]), stump.threshold[0]
        del gains[f, max(t for g, t in every if g == f and t <= threshold)]
        taken = stump if taken is None else taken.joined(stump)
    left = family.price(pairs, np.random.default_rng(0), taken)
    assert left.candidates == left.bits == []
    assert left.max_gain == 0.0


# Trees


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 8), st.sampled_from([np.float32, np.float64]))
def test_tree_bits_are_what_scikit_learn_predicts(seed, depth, dtype):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(50, 3)).astype(dtype)
    labels, weights = rng.random(50) < 0.5, rng.random(50)
    if labels.all() or not labels.any():
        return
    family = TreeFamily(DecisionTreeClassifier(max_depth=depth, max_leaf_nodes=9 if seed % 2 else None))
    family.prepare(X, rng, 1)
    functions = family.fit_one(family.X, labels, weights, seed=7)
    tree = DecisionTreeClassifier(**family.classifier.get_params()).set_params(random_state=7)
    tree.fit(family.X, labels.astype(np.int8), sample_weight=weights)  # family.X are the items X, scaled
    np.testing.assert_array_equal(functions.bits(X)[:, 0], tree.predict(family.X) == 1)
    functions.check()


def tree(**changes):
    """Root 0 over the leaves 1 and 2, as arrays of one function."""
    nodes = {"feature": [0, 0, 0], "threshold": [0.5, 0.0, 0.0], "left": [1, 1, 2], "right": [2, 1, 2]}
    nodes |= {"answer": [0, 0, 1]}
    kinds = {"threshold": np.float64, "answer": np.uint8}
    return {name: np.array([values], dtype=kinds.get(name, np.int32)) for name, values in (nodes | changes).items()}


def test_a_tree_by_hand():
    bits = TreeFunctions.from_arrays(tree()).bits(np.array([[0.5], [0.6]]))
    np.testing.assert_array_equal(bits, [[False], [True]])


@pytest.mark.parametrize(
    "changes",
    [
        {"left": [1, 0, 2], "right": [2, 0, 2]},  # a node that leads back to the root
        {"left": [0, 1, 2]},
        {"left": [1, 2, 1], "right": [2, 2, 1]},
        {"left": [1, 1, 0], "right": [2, 1, 0]},
        {"left": [1, 1, 2], "right": [2, 2, 2]},
        {"left": [3, 1, 2]},
        {"right": [-1, 1, 2]},
        {"feature": [-1, 0, 0]},
    ],
)
def test_a_tree_that_never_ends_is_refused(changes):
    with pytest.raises(FormatError):
        TreeFunctions.from_arrays(tree(**changes))


@st.composite
def any_tree(draw):
    nodes = draw(st.integers(0, 5))

    def column(low, high):
        return draw(st.lists(st.integers(low, high), min_size=nodes, max_size=nodes))

    return tree(
        feature=column(0, 1),
        threshold=[value / 2 for value in column(-1, 3)],
        left=column(0, nodes),
        right=column(0, nodes),
        answer=column(0, 1),
    )


@settings(max_examples=200, deadline=None)
@given(any_tree())
def test_whatever_arrays_come_trees_are_refused_or_end(arrays):
    try:
        functions = TreeFunctions.from_arrays(arrays)
    except FormatError:
        return
    here = np.arange(functions.left.shape[1])
    for child in (functions.left[0], functions.right[0]):
        assert np.all((child > here) | (child == here))
    functions.bits(np.array([[0.0, 1.0], [1.0, 0.0]]))


def test_joined_trees_of_different_sizes_survive_a_file():
    small = TreeFunctions.from_arrays(tree())
    X = np.random.default_rng(5).normal(size=(30, 2))
    family = TreeFamily(DecisionTreeClassifier())
    family.prepare(X, np.random.default_rng(0), 1)
    large = family.fit_one(family.X, X[:, 0] * X[:, 1] > 0, np.ones(30), 0)
    for both in (small.joined(large), large.joined(small)):
        again = TreeFunctions.from_arrays(both.arrays())
        np.testing.assert_array_equal(again.bits(X), both.bits(X))
    np.testing.assert_array_equal(small.joined(large).bits(X)[:, 0], X[:, 0].astype(np.float32) > 0.5)


def test_stump_thresholds_are_between_values():
    X = np.array([[1.0], [2.0], [4.0]])
    triplets = from_rows([[0, 1, 2]], 3)
    pairs = pairs_of(*triplets.slots(), np.array([-1.0, 1.0]), 3)
    (stump,) = prepared("stump", X).price(pairs, np.random.default_rng(0), None).candidates
    assert isinstance(stump, StumpFunctions)
    assert stump.threshold.tolist() == [3.0]


def clusters(n=600, k=5):
    """Items tightly around k corners, ten times as many around the first as around any other."""
    rng = np.random.default_rng(0)
    share = np.r_[10.0, np.ones(k - 1)] / (k + 9)
    which = rng.choice(k, n, p=share)
    corners = 10.0 * np.eye(k)
    return corners[which] + 0.01 * rng.normal(size=(n, k)), corners


def test_k_means_landmarks_lie_nearer_to_the_items_than_drawn_ones():
    X, corners = clusters()
    centres = cluster_centres(X, 30, np.random.default_rng(1))
    assert centres.shape == (30, 5)
    for corner in corners:
        assert np.linalg.norm(centres - corner, axis=1).min() < 0.02
    drawn = drawn_items(X, 30, np.random.default_rng(1))
    to_centres, to_drawn = (np.linalg.norm(X[:, None] - L, axis=2).min(axis=1).mean() for L in (centres, drawn))
    assert to_centres < to_drawn


@pytest.mark.parametrize(("factor", "offset"), [(1e148, 0.0), (1e-150, 0.0), (1.0, 1e9)])
def test_k_means_landmarks_follow_the_scale_of_the_items(factor, offset):
    X, _ = clusters()
    plain, changed = (cluster_centres(items, 30, np.random.default_rng(1)) for items in (X, X * factor + offset))
    np.testing.assert_allclose((changed - offset) / factor, plain, atol=0.01)


def test_k_means_landmarks_repeat_with_the_generator_and_leave_the_items_alone():
    X, _ = clusters()
    before = X.copy()
    first, second = (cluster_centres(X, 30, np.random.default_rng(2)) for _ in range(2))
    assert np.array_equal(first, second)
    assert not np.array_equal(first, cluster_centres(X, 30, np.random.default_rng(3)))
    assert np.array_equal(X, before)


def test_k_means_landmarks_are_all_items_when_there_are_no_more():
    X, _ = items(n=12)
    assert np.array_equal(cluster_centres(X, 1000, np.random.default_rng(0)), X)


def test_rbf_kmeans_learns_over_centres_and_rbf_over_items():
    X, _ = clusters(n=2400)
    landmarks = {}
    for name in ("rbf", "rbf-kmeans"):
        family = family_of(name, True)
        family.prepare(X, np.random.default_rng(0), 1)
        landmarks[name] = {tuple(row) for row in family.landmarks}
        assert len(family.landmarks) == 2000
    own = {tuple(row) for row in X}
    assert landmarks["rbf"] <= own
    assert not landmarks["rbf-kmeans"] <= own
