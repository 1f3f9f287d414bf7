"""Every loss under every regulariser, against cvxpy on the triplets written out."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest

from cghash.learning import master
from cghash.learning.cpu.columns import Columns
from cghash.learning.losses import LOSSES, Hinge
from cghash.learning.master import CuttingPlaneMaster, LinearProgramMaster, SmoothMaster, master_for
from cghash.learning.regularizers import regularizer_of
from cghash.learning.triplets import from_lists, from_rows, join

pytestmark = [
    pytest.mark.core,
    pytest.mark.portable,
    pytest.mark.native,
    pytest.mark.filterwarnings("ignore:Solution may be inaccurate"),  # cvxpy's, at 1e-8
]


class Huberized:
    """A user's smooth loss: the hinge with its corner rounded off between 0.5 and 1."""

    def value(self, margin):
        slack = np.maximum(1.0 - margin, 0.0)
        return np.where(slack < 0.5, slack**2, slack - 0.25)

    def derivative(self, margin):
        return -np.clip(2.0 * (1.0 - margin), 0.0, 1.0)

    def conjugate(self, slope):
        return np.where((slope <= 0) & (slope >= -1), slope + slope**2 / 4, np.inf)


class Kinked:
    """A user's non-smooth loss: max(0, 1 − ρ, 2 − 3ρ), less `floor`."""

    smooth = False

    def __init__(self, floor=0.0):
        self.floor = floor

    def value(self, margin):
        return np.maximum(np.maximum(0.0, 1.0 - margin), 2.0 - 3.0 * margin) - self.floor

    def derivative(self, margin):
        return np.where(margin < 0.5, -3.0, np.where(margin < 1.0, -1.0, 0.0))

    def conjugate(self, slope):
        inside = (slope <= 0) & (slope >= -3)
        return np.where(inside, np.where(slope >= -1, slope, 0.5 * slope - 0.5), np.inf) + self.floor


class Sunk(Huberized):
    """A smooth loss that falls below zero."""

    def value(self, margin):
        return super().value(margin) - 2.0

    def conjugate(self, slope):
        return super().conjugate(slope) + 2.0


def kinked(margin):
    return cp.maximum(0, 1 - margin, 2 - 3 * margin)


def huberized(margin):
    return cp.huber(cp.pos(1 - margin), 0.5)


CASES = {
    "squared_hinge": (LOSSES["squared_hinge"], lambda margin: cp.square(cp.pos(1 - margin))),
    "hinge": (LOSSES["hinge"], lambda margin: cp.pos(1 - margin)),
    "logistic": (LOSSES["logistic"], lambda margin: cp.logistic(-margin)),
    "exponential": (LOSSES["exponential"], lambda margin: cp.exp(-margin)),
    "smooth of a user": (Huberized(), huberized),
    "kinked of a user": (Kinked(), kinked),
    "smooth below zero": (Sunk(), lambda margin: huberized(margin) - 2),
    "kinked below zero": (Kinked(3.0), lambda margin: kinked(margin) - 3),
}
LOSS = pytest.mark.parametrize("name", CASES)
REGULARIZERS = {"l1": ("l1", 0.01, False), "linf": ("linf", 0.2, False)} | {
    "l1 with duplets": ("l1", 0.05, True),
    "linf with duplets": ("linf", 0.3, True),
}
N_ITEMS, N_COLUMNS = 30, 7


def triplet_set(X, rng):
    """Blocks of different sizes, and weighted triplets among which are repeated and contradictory ones."""
    D = ((X[:, None] - X) ** 2).sum(axis=2)
    order = np.argsort(D[:10], axis=1)
    near, far = order[:, 1:5].copy(), order[:, 12:16].copy()
    near[::3, 2:], far[1::3, 1:] = -1, -1
    rows = np.array([rng.permutation(N_ITEMS)[:3] for _ in range(70)])
    wrong = D[rows[:, 0], rows[:, 1]] > D[rows[:, 0], rows[:, 2]]
    rows[wrong] = rows[wrong][:, [0, 2, 1]]
    rows = np.concatenate([rows, rows[:20], rows[20:30, [0, 2, 1]]])
    return join([from_lists(near, far, N_ITEMS), from_rows(rows, N_ITEMS, rng.random(100))])


def test_every_loss_is_held_to_the_contract():
    assert set(LOSSES) <= set(CASES), "give a new loss its formula in cvxpy in CASES"


class Master:
    """A master problem twice: as the library sees it, and as written-out triplets A (t, m), p (t,)."""

    def __init__(self, name, regularizer, seed=0):
        rng = np.random.default_rng(seed)
        self.loss, self.oracle = CASES[name]
        X = rng.normal(size=(N_ITEMS, 2))
        self.triplets = triplet_set(X, rng)
        kind, C, joined = REGULARIZERS[regularizer]
        nearest = np.argsort(((X[:, None] - X) ** 2).sum(axis=2), axis=1)[:, :2]
        duplets = nearest[nearest[:, 0] < nearest[:, 1]] if joined else None
        self.regularizer = regularizer_of(kind, C, duplets)
        anchors, near, far = self.triplets.to_rows().T
        planes = X @ rng.normal(size=(2, N_COLUMNS)) + rng.uniform(-1, 1, N_COLUMNS)
        self.bits = [plane > 0 for plane in planes.T]
        self.A = np.stack([(b[anchors] != b[far]).astype(float) - (b[anchors] != b[near]) for b in self.bits], axis=1)
        self.p = self.triplets.triplet_slots()[2]
        self.cost = np.array([self.regularizer.cost(b) for b in self.bits])
        self.upper = self.regularizer.upper
        self.columns = Columns(self.triplets, self.loss)

    def solve(self):
        master = master_for(self.columns, self.upper)
        master.tol = 1e-8
        for bits, cost in zip(self.bits, self.cost, strict=True):
            self.columns.append(bits)
            master.added(bits, cost)
        return master.solve(self.cost, np.zeros(len(self.cost)))

    def objective(self, w):
        return float(self.p @ self.loss.value(self.A @ w) + self.cost @ w)

    def optimum(self):
        w = cp.Variable(self.A.shape[1], nonneg=True)
        bounds = [w <= self.upper] if np.isfinite(self.upper) else []
        problem = cp.Problem(cp.Minimize(self.p @ self.oracle(self.A @ w) + self.cost @ w), bounds)
        return problem.solve(solver=cp.CLARABEL)


@LOSS
@pytest.mark.parametrize("regularizer", REGULARIZERS)
def test_optimum_bound_and_optimality_conditions(name, regularizer):
    problem = Master(name, regularizer)
    solution = problem.solve()
    optimum = problem.optimum()
    w, cost, upper = solution.w, problem.cost, problem.upper
    assert np.all((w >= 0) & (w <= upper))
    assert np.any(w > 0.01)  # else there was nothing to solve
    assert solution.objective == pytest.approx(problem.objective(w), rel=1e-12)
    assert solution.objective == pytest.approx(optimum, rel=1e-6)
    assert solution.bound <= optimum + 1e-7
    assert solution.gap <= 1e-6

    gain = -problem.columns.adjoint(solution.slopes)
    slack = cost - gain  # KKT: 0 between the bounds, ≥ 0 at weight 0, ≤ 0 at the upper one
    assert np.all(np.abs(slack[(w > 1e-3) & (w < upper - 1e-3)]) < 2e-4)
    assert np.all(slack[w < 1e-6] > -2e-4)
    assert np.all(slack[w > upper - 1e-6] < 2e-4)


@LOSS
def test_slopes_are_the_multipliers_summed_over_slots(name):
    problem = Master(name, "l1")
    solution = problem.solve()
    gain = -problem.columns.adjoint(solution.slopes)
    if not getattr(problem.loss, "smooth", True):  # multipliers between the slopes at a kink: any that prove the bound
        near, far, _ = problem.triplets.triplet_slots()
        assert np.all(solution.slopes[near] >= -1e-12)
        assert np.all(solution.slopes[far] <= 1e-12)
        assert np.all(gain <= problem.cost + 1e-9)
        return
    u = -problem.loss.derivative(problem.A @ solution.w)
    np.testing.assert_allclose(gain, (problem.p * u) @ problem.A, rtol=1e-10, atol=1e-13)


@LOSS
@pytest.mark.parametrize("scale", [1.0, 0.7, 1e-3, 0.0])
def test_dual_value_is_the_sum_of_conjugates(name, scale):
    problem = Master(name, "l1")
    for bits in problem.bits:
        problem.columns.append(bits)
    w = np.random.default_rng(1).random(N_COLUMNS)
    u = -problem.loss.derivative(problem.A @ w)
    expected = -float(problem.p @ problem.loss.conjugate(-scale * u))
    assert problem.columns.dual_value(w, scale) == pytest.approx(expected, rel=1e-11, abs=1e-14)


@LOSS
def test_gradient_agrees_with_finite_differences(name):
    problem = Master(name, "l1")
    for bits in problem.bits:
        problem.columns.append(bits)
    w = np.random.default_rng(2).random(N_COLUMNS)  # no margin lies on a kink
    value, gradient = problem.columns.evaluate(w)
    assert value == pytest.approx(problem.objective(w) - problem.cost @ w, rel=1e-12)
    steps = 1e-6 * np.eye(N_COLUMNS)
    differences = [(problem.columns.evaluate(w + s)[0] - problem.columns.evaluate(w - s)[0]) / 2e-6 for s in steps]
    np.testing.assert_allclose(gradient, differences, atol=1e-7)


@LOSS
def test_a_problem_without_columns_costs_the_loss_at_margin_zero(name):
    problem = Master(name, "l1")
    value, slopes = problem.columns.slopes(np.zeros(0))
    assert value == pytest.approx(float(problem.loss.value(np.zeros(1))[0]))
    assert slopes.shape == (problem.triplets.n_slots,)


def test_hinge_problems_of_either_size_reach_one_optimum(monkeypatch):
    exact = Master("hinge", "l1 with duplets").solve()
    monkeypatch.setattr(master, "LP_TRIPLETS", 0)
    problem = Master("hinge", "l1 with duplets")
    planes = problem.solve()
    assert planes.objective == pytest.approx(exact.objective, rel=1e-7)
    assert isinstance(master_for(problem.columns, np.inf), CuttingPlaneMaster)


def test_each_loss_gets_the_solver_that_fits_it():
    kinds = {name: type(master_for(Master(name, "l1").columns, np.inf)) for name in CASES}
    assert kinds.pop("hinge") is LinearProgramMaster
    assert {kinds.pop("kinked of a user"), kinds.pop("kinked below zero")} == {CuttingPlaneMaster}
    assert set(kinds.values()) == {SmoothMaster}


def test_a_weight_counts_as_often_repeated_triplets():
    """Weight 3 on a triplet is the triplet three times."""
    rows, bits = np.array([[0, 1, 2], [1, 2, 0]]), np.array([True, True, False])
    solutions = []
    for triplets in (from_rows(rows, 3, [3.0, 1.0]), from_rows(rows[[0, 0, 0, 1]], 3)):
        columns = Columns(triplets, LOSSES["squared_hinge"])
        columns.append(bits)
        solutions.append(master_for(columns, np.inf).solve(np.array([0.1]), np.zeros(1)))
    # ρ = w on three quarters, −w on one: ¾·2(1 − w) − ¼·2(1 + w) = 0.1 at w = 0.45
    for solution in solutions:
        np.testing.assert_allclose(solution.w, [0.45], atol=1e-4)


def test_contradictory_triplets_leave_every_weight_at_zero():
    columns = Columns(from_rows([[0, 1, 2], [0, 2, 1]], 3), Hinge())
    master = master_for(columns, np.inf)
    bits = np.array([True, True, False])
    columns.append(bits)
    master.added(bits, 0.1)
    solution = master.solve(np.array([0.1]), np.zeros(1))
    np.testing.assert_array_equal(solution.w, [0.0])
    assert solution.objective == pytest.approx(1.0)


@pytest.mark.parametrize("name", ["squared_hinge", "hinge", "smooth of a user", "kinked of a user"])
def test_a_column_without_cost_is_used_to_the_full(name):
    """All triplets satisfied by one free column: the loss falls to its least value, at margin 1."""
    columns = Columns(from_rows([[0, 1, 2], [1, 0, 2]], 3), CASES[name][0])
    master = master_for(columns, np.inf)
    for bits, cost in ((np.array([True, False, False]), 0.01), (np.array([True, True, False]), 0.0)):
        columns.append(bits)
        master.added(bits, cost)
    solution = master.solve(np.array([0.01, 0.0]), np.zeros(2))
    assert solution.objective == pytest.approx(0.0, abs=1e-6)
    assert solution.bound <= 1e-12
    assert solution.w[1] >= 1 - 1e-3
