"""Algorithm 1 on families small enough to be written out whole."""

from __future__ import annotations

from dataclasses import dataclass, replace

import cvxpy as cp
import numpy as np
import pytest

from cghash.exceptions import NothingToLearnError
from cghash.learning import column_generation
from cghash.learning.column_generation import ColumnGeneration, Problem, State
from cghash.learning.cpu.backend import CpuBackend
from cghash.learning.families import family_of
from cghash.learning.losses import LOSSES
from cghash.learning.regularizers import regularizer_of
from cghash.learning.supervision import from_labels
from cghash.learning.triplets import TripletSet, from_rows

pytestmark = [
    pytest.mark.core,
    pytest.mark.portable,
    pytest.mark.native,
    pytest.mark.filterwarnings("ignore:Solution may be inaccurate"),  # cvxpy's, at 1e-8
]
ORACLES = {
    "squared_hinge": lambda margin: cp.square(cp.pos(1 - margin)),
    "hinge": lambda margin: cp.pos(1 - margin),
    "logistic": lambda margin: cp.logistic(-margin),
    "exponential": lambda margin: cp.exp(-margin),
    "kinked": lambda margin: cp.maximum(0, 1 - margin, 2 - 3 * margin),
}
LOSS = pytest.mark.parametrize("loss", LOSSES)
REGULARIZERS = {
    "l1": ("l1", 0.005, False),
    "linf": ("linf", 0.1, False),
    "l1 with duplets": ("l1", 0.1, True),
    "linf with duplets": ("linf", 0.1, True),
}
REGULARIZER = pytest.mark.parametrize("regularizer", REGULARIZERS)


def items(seed=0, n=30):
    """Items of three noisy classes, with few values in each feature, and some label noise."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 3
    X = np.round(2 * (rng.normal(size=(n, 3)) + 1.5 * np.eye(3)[y])) / 2
    return X, np.where(rng.random(n) < 0.1, (y + 1) % 3, y), rng


@dataclass(frozen=True)
class Task(Problem):
    """A problem, and the triplets that it is to be solved on."""

    triplets: TripletSet


def problem_of(loss="squared_hinge", regularizer="l1", C=None, family="stump", seed=0):
    X, y, rng = items(seed)
    triplets = from_labels(X, y, "classes", 3, rng, 1)
    name, default, joined = REGULARIZERS[regularizer]
    pairs = np.stack(np.triu_indices(len(X), 1), axis=1)
    closest = np.argsort(((X[pairs[:, 0]] - X[pairs[:, 1]]) ** 2).sum(axis=1), kind="stable")[:10]
    duplets = pairs[closest] if joined else None
    family = family_of(family, refined=True)
    family.prepare(X, np.random.default_rng(0), 1)
    return Task(LOSSES[loss], regularizer_of(name, C or default, duplets), family, triplets)


def whole_family(problem):
    """Bits (n, m) of every stump: all features × all gaps between their values."""
    X = problem.family.X
    return np.stack([X[:, f] > t for f in range(X.shape[1]) for t in np.unique(X[:, f])[:-1]], axis=1)


def optimum(problem, loss, bits):
    """cvxpy on every column at once."""
    anchors, near, far = problem.triplets.to_rows().T
    A = (bits[anchors] != bits[far]).astype(float) - (bits[anchors] != bits[near])
    cost = np.array([problem.regularizer.cost(column) for column in bits.T])
    w = cp.Variable(bits.shape[1], nonneg=True)
    bounds = [w <= problem.regularizer.upper] if problem.regularizer.bounded else []
    p = problem.triplets.triplet_slots()[2]
    return cp.Problem(cp.Minimize(p @ ORACLES[loss](A @ w) + cost @ w), bounds).solve(solver=cp.CLARABEL)


def generation_of(problem, n_bits, **options):
    return ColumnGeneration(problem, *CpuBackend().sums(problem.triplets, problem, n_bits), n_bits, **options)


def run(problem, n_bits=200, **options):
    state = State()
    return generation_of(problem, n_bits, **options).run(state), state


@LOSS
@REGULARIZER
@pytest.mark.parametrize("seed", [0, 1, 2])  # with 0 and 2, features share columns
def test_exact_pricing_reaches_the_optimum_of_the_whole_family_and_proves_it(loss, regularizer, seed):
    problem = problem_of(loss, regularizer, seed=seed)
    best = optimum(problem, loss, whole_family(problem))
    result, state = run(problem, tol=1e-7)
    history = result.history
    assert result.status == "optimal"
    assert result.exact
    assert result.objective == pytest.approx(best, rel=1e-5)
    assert result.final_violation <= 1e-7
    assert 3 <= len(state.functions) <= whole_family(problem).shape[1]
    assert np.all(history["bound"] <= best * (1 + 1e-7))
    assert np.all(np.diff(history["bound"]) >= -1e-12)
    assert np.all(np.diff(history["objective"]) <= 1e-5 * history["objective"][:-1])  # each to a gap of 1e-5
    assert np.all(history["violation"] > 1e-7)
    assert result.gap <= 1e-4


class Kinked:
    """A loss of the user's, with corners at ½ and 1: max(0, 1 − ρ, 2 − 3ρ)."""

    smooth = False

    def value(self, margin):
        return np.maximum(np.maximum(0.0, 1.0 - margin), 2.0 - 3.0 * margin)

    def derivative(self, margin):
        return np.where(margin < 0.5, -3.0, np.where(margin < 1.0, -1.0, 0.0))

    def conjugate(self, slope):
        return np.where((slope <= 0) & (slope >= -3), np.where(slope >= -1, slope, 0.5 * slope - 0.5), np.inf)


@REGULARIZER
def test_a_loss_of_the_user_is_brought_to_the_optimum_too(regularizer):
    problem = replace(problem_of("hinge", regularizer), loss=Kinked())
    best = optimum(problem, "kinked", whole_family(problem))
    result, _ = run(problem)
    assert result.status == "optimal"
    assert result.objective == pytest.approx(best, rel=2e-4)  # cutting planes end at a gap of 1e-4
    assert np.all(result.history["bound"] <= best * (1 + 1e-7))


@LOSS
@REGULARIZER
def test_bounds_on_the_way_lie_below_the_optimum_however_few_bits(loss, regularizer):
    problem = problem_of(loss, regularizer, seed=2)
    best = optimum(problem, loss, whole_family(problem))
    for n_bits in (1, 2, 4):
        result, _ = run(problem, n_bits)
        assert result.status == "n_bits"
        assert result.bound <= best * (1 + 1e-7)
        assert best <= result.objective * (1 + 1e-6)
        assert result.final_violation > 0


@pytest.mark.parametrize("family", ["linear", "tree", "rbf"])
@REGULARIZER
def test_bounds_of_a_family_searched_by_heuristics_never_exceed_the_objective(family, regularizer):
    result, state = run(problem_of(regularizer=regularizer, family=family), 5)
    history = result.history
    assert not result.exact
    assert np.all(history["bound"] <= history["objective"])
    assert np.all(history["gap"] >= 0)
    assert len(state.functions) == len(state.weights) == len(state.records)


def test_copies_of_a_feature_do_not_stop_the_search():
    """Under l∞ a copied feature is a second function with its own weight; under l1 it is never needed."""
    X, y, rng = items()
    X = np.column_stack([X, X[:, :1], -X[:, 1]])
    triplets = from_labels(X, y, "classes", 3, rng, 1)
    for regularizer in ("l1", "linf"):
        family = family_of("stump", refined=True)
        family.prepare(X, rng, 1)
        C = REGULARIZERS[regularizer][1]
        problem = Task(LOSSES["squared_hinge"], regularizer_of(regularizer, C, None), family, triplets)
        result, _ = run(problem)
        assert result.status == "optimal"
        assert result.objective == pytest.approx(optimum(problem, "squared_hinge", whole_family(problem)), rel=1e-5)


def test_first_column_by_hand():
    """One feature 0, 0, 1, 1: the stump between them satisfies both triplets, f = (1 − w)², 2(1 − w) = C."""
    family = family_of("stump", refined=True)
    family.prepare(np.array([[0.0], [0.0], [1.0], [1.0]]), np.random.default_rng(0), 1)
    triplets = from_rows([[0, 1, 2], [3, 2, 1]], 4)
    problem = Task(LOSSES["squared_hinge"], regularizer_of("l1", 0.5, None), family, triplets)
    result, state = run(problem)
    assert result.status == "optimal"
    assert state.functions.threshold.tolist() == [0.5]
    np.testing.assert_allclose(state.weights[0], [0.75], atol=1e-5)
    record = result.columns[0]
    assert record.gain == pytest.approx(2.0)  # u = 2(1 − 0) on every triplet
    assert record.violation == pytest.approx(1.5)
    assert record.objective == pytest.approx(0.0625 + 0.375)
    assert record.satisfied == 1.0
    assert record.live_triplets == 2
    assert result.final_violation == pytest.approx(0.0, abs=1e-5)


@REGULARIZER
def test_record_of_a_column_gives_its_gain_by_definition(regularizer):
    problem = problem_of("logistic", regularizer)
    result, state = run(problem, 4)
    anchors, near, far = problem.triplets.to_rows().T
    p = problem.triplets.triplet_slots()[2]
    bits = state.functions.bits(problem.family.X)
    A = (bits[anchors] != bits[far]).astype(float) - (bits[anchors] != bits[near])
    for j, record in enumerate(result.columns):
        before = A[:, :j] @ state.weights[j - 1] if j else np.zeros(len(p))
        gain = float(p / (1 + np.exp(before)) @ A[:, j])
        assert record.gain == pytest.approx(gain, rel=1e-9)
        assert record.violation == pytest.approx(gain - problem.regularizer.cost(bits[:, j]), rel=1e-6, abs=1e-9)
        assert record.satisfied == pytest.approx(float(p @ (A[:, : j + 1] @ state.weights[j] > 0)))


def test_weights_path_has_a_weight_for_every_column_so_far():
    _, state = run(problem_of(), 6)
    assert [w.shape for w in state.weights] == [(j,) for j in range(1, 7)]


def test_no_time_gives_one_column():
    result, state = run(problem_of(), time_limit=0.0)
    assert result.status == "time_limit"
    assert len(state.functions) == 1


def test_c_too_large_says_which_c_would_do():
    """At w = 0 every multiplier of the squared hinge is 2, so the largest gain is known."""
    problem = problem_of(regularizer="l1", C=100.0)
    anchors, near, far = problem.triplets.to_rows().T
    bits = whole_family(problem)
    A = (bits[anchors] != bits[far]).astype(float) - (bits[anchors] != bits[near])
    largest = 2.0 * (problem.triplets.triplet_slots()[2] @ A).max()
    with pytest.raises(NothingToLearnError, match=rf"C must be below {largest:.3g}.*got 100"):
        run(problem)
    result, _ = run(problem_of(regularizer="l1", C=0.99 * largest))
    assert len(result.columns) >= 1


def test_duplets_that_cost_more_than_any_function_gains_are_named():
    with pytest.raises(NothingToLearnError, match="duplets"):
        run(crossed_duplets(C=100.0))
    result, _ = run(crossed_duplets(C=0.5))
    assert len(result.columns) == 1


def crossed_duplets(C):
    """One stump, which splits the one duplet."""
    family = family_of("stump", refined=True)
    family.prepare(np.array([[0.0], [0.0], [1.0]]), np.random.default_rng(0), 1)
    regularizer = regularizer_of("l1", C, np.array([[0, 2]]))
    return Task(LOSSES["squared_hinge"], regularizer, family, from_rows([[0, 1, 2]], 3))


def test_items_all_alike_hold_nothing_to_learn():
    family = family_of("stump", refined=True)
    family.prepare(np.ones((3, 2)), np.random.default_rng(0), 1)
    problem = Task(LOSSES["hinge"], regularizer_of("linf", 1.0, None), family, from_rows([[0, 1, 2]], 3))
    with pytest.raises(NothingToLearnError, match="all items alike"):
        run(problem)


# Stopping by hand, and going on


def interrupt_at(call, action):
    """`action`, with a Ctrl-C at its call number `call`."""
    calls = 0

    def interrupted(*args, **options):
        nonlocal calls
        calls += 1
        if calls == call:
            raise KeyboardInterrupt
        return action(*args, **options)

    return interrupted


@pytest.mark.parametrize("place", ["after_column", "price", "master", "record"])
def test_an_interrupt_keeps_what_was_learned(place, monkeypatch):
    problem = problem_of()
    generation, state = generation_of(problem, 8), State()
    after_column = None
    with monkeypatch.context() as patch:
        if place == "after_column":
            after_column = interrupt_at(3, lambda state: None)
        elif place == "price":
            patch.setattr(problem.family, "price", interrupt_at(4, problem.family.price))
        elif place == "master":
            patch.setattr(generation.master, "solve", interrupt_at(4, generation.master.solve))
        else:
            record = interrupt_at(4, column_generation.ColumnRecord)
            patch.setattr(column_generation, "ColumnRecord", record)
        result = generation.run(state, after_column)
    assert result.status == "interrupted"
    assert len(result.columns) == len(state.functions) == len(state.weights) == 3
    _, whole = run(problem, 3)
    np.testing.assert_array_equal(state.weights[-1], whole.weights[-1])


def test_an_interrupt_does_not_report_a_violation_from_before_the_last_column():
    result = generation_of(problem_of(), 8).run(State(), interrupt_at(2, lambda state: None))
    assert result.status == "interrupted"
    assert np.isnan(result.final_violation)
    assert "stopped by hand" in result.message


def test_an_interrupt_before_the_first_column_is_passed_on(monkeypatch):
    problem = problem_of()
    monkeypatch.setattr(problem.family, "price", interrupt_at(1, problem.family.price))
    with pytest.raises(KeyboardInterrupt):
        run(problem)


@LOSS
@pytest.mark.parametrize("regularizer", ["l1", "linf"])
@pytest.mark.parametrize("family", ["stump", "linear"])
def test_a_state_goes_on_to_what_one_run_gives(loss, regularizer, family):
    whole, one = run(problem_of(loss, regularizer, family=family), 6, seed=5)
    state = State()
    for n_bits in (2, 3, 6):
        result = generation_of(problem_of(loss, regularizer, family=family), n_bits, seed=5).run(state)
    np.testing.assert_array_equal(state.weights[-1], one.weights[-1])
    for name in ("objective", "bound", "violation"):
        np.testing.assert_array_equal(result.history[name], whole.history[name])
    for name, array in one.functions.arrays().items():
        np.testing.assert_array_equal(state.functions.arrays()[name], array)


def test_random_numbers_of_a_column_depend_on_the_seed_and_its_number(monkeypatch):
    problem, drawn = problem_of(), []
    price = problem.family.price

    def spy(pairs, rng, taken):
        drawn.append(int(rng.integers(2**62)))
        return price(pairs, rng, taken)

    monkeypatch.setattr(problem.family, "price", spy)
    run(problem, 3, seed=7)
    expected = [int(np.random.default_rng([7, column]).integers(2**62)) for column in range(4)]
    assert drawn == expected  # the fourth looks for what is left
