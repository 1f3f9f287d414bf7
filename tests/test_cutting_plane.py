"""Cutting planes for any convex loss, against cvxpy and the linear program."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cghash.exceptions import InvalidInputError
from cghash.learning.cutting_plane import CuttingPlane

from .master_problems import small_problems

pytestmark = [pytest.mark.core, pytest.mark.portable]


def hinge(margin):
    return np.maximum(1 - margin, 0), -1.0 * (margin < 1)


def kinked(margin):
    """max(0, 1 − ρ, 2 − 4ρ): convex, two kinks."""
    lines = np.stack([0 * margin, 1 - margin, 2 - 4 * margin])
    return lines.max(axis=0), np.array([0.0, -1.0, -4.0])[lines.argmax(axis=0)]


def exponential(margin):
    with np.errstate(over="ignore"):
        return np.exp(-margin), -np.exp(-margin)


ORACLES = {
    hinge: lambda margin: cp.pos(1 - margin),
    kinked: lambda margin: cp.maximum(0, 1 - margin, 2 - 4 * margin),
    exponential: lambda margin: cp.exp(-margin),
}


class ExplicitColumns:
    """Columns of explicit triplets: A (t, m), near slot 2i and far slot 2i + 1 of triplet i."""

    def __init__(self, A, p, loss=hinge):
        self.A, self.p, self.loss = A, p, loss
        self.n_columns = A.shape[1]

    def evaluate(self, w):
        value, q = self.slopes(w)
        return value, self.adjoint(q)

    def slopes(self, w):
        values, derivative = self.loss(self.A @ w)
        return float(self.p @ values), np.stack([-self.p * derivative, self.p * derivative], axis=1).ravel()

    def adjoint(self, q):
        return -self.A.T @ q[::2].astype(float)


def oracle(A, p, cost, upper, loss=hinge):
    w = cp.Variable(A.shape[1], nonneg=True)
    bounds = [w <= upper] if np.isfinite(upper) else []
    return cp.Problem(cp.Minimize(p @ ORACLES[loss](A @ w) + cost @ w), bounds).solve(solver=cp.CLARABEL)


def random_problem(seed, n_triplets=300, m=12):
    rng = np.random.default_rng(seed)
    A = rng.choice([-1, 0, 1], size=(n_triplets, m), p=[0.2, 0.4, 0.4])
    p = rng.uniform(0.1, 1.0, n_triplets)
    return A, p / p.sum(), rng


def check(A, p, cost, upper, solution, tol, loss=hinge):
    """Both sides are feasible, the gap is what was asked for, and the optimum lies within it."""
    assert solution.converged
    assert np.all((solution.w >= 0) & (solution.w <= upper))
    y = solution.slopes[::2]
    gain = A.T @ y
    if np.isinf(upper):
        assert np.all(gain <= cost + 1e-9)
    if loss is hinge:
        assert np.all((y >= 0) & (y <= p * (1 + 1e-9)))
        proven = y.sum() - (upper * np.maximum(gain - cost, 0).sum() if np.isfinite(upper) else 0.0)
        assert solution.bound == pytest.approx(proven, rel=1e-9, abs=1e-12)
    optimum = oracle(A, p, cost, upper, loss)
    assert solution.bound <= optimum + 1e-7 * max(1, optimum)
    assert solution.objective <= optimum + (tol + 1e-6) * optimum + 1e-7


def costs(kind, m, rng):
    weighted = rng.uniform(0, 0.05, m)
    return {
        "equal": np.full(m, 1e-2),
        "weighted": weighted,
        "zero": np.zeros(m),
        "some zero": np.where(np.arange(m) % 3 == 0, 0.0, weighted),
    }[kind]


@pytest.mark.parametrize("tol", [1e-4, 1e-7])
@pytest.mark.parametrize("upper", [np.inf, 0.2], ids=["l1", "linf"])
@pytest.mark.parametrize("kind", ["equal", "weighted", "zero", "some zero"])
def test_hinge_optimum_agrees_with_an_independent_solver(kind, upper, tol):
    A, p, rng = random_problem(3)
    cost = costs(kind, A.shape[1], rng)
    solution = CuttingPlane(tol=tol).solve(ExplicitColumns(A, p), cost, upper)
    check(A, p, cost, upper, solution, tol)


@pytest.mark.parametrize("loss", [kinked, exponential])
@pytest.mark.parametrize("upper", [np.inf, 0.2], ids=["l1", "linf"])
def test_any_convex_loss(loss, upper):
    A, p, rng = random_problem(5, m=6)
    cost = costs("weighted", 6, rng)
    solution = CuttingPlane(tol=1e-6).solve(ExplicitColumns(A, p, loss), cost, upper)
    check(A, p, cost, upper, solution, 1e-6, loss)


def test_triplets_that_all_columns_satisfy_at_no_cost_are_learned_to_zero():
    A = np.abs(random_problem(6)[0])
    A = A[A.any(axis=1)]
    solution = CuttingPlane().solve(ExplicitColumns(A, np.full(len(A), 1 / len(A))), np.zeros(A.shape[1]))
    assert solution.bound == 0.0
    assert solution.objective == pytest.approx(0.0, abs=1e-12)
    assert solution.n_evaluations < 60
    assert solution.converged
    assert not solution.slopes.any()


def test_a_column_dearer_than_its_gain_gets_no_weight():
    solution = CuttingPlane().solve(ExplicitColumns(np.ones((5, 1)), np.full(5, 0.2)), np.array([1.5]))
    np.testing.assert_array_equal(solution.w, [0.0])
    assert (solution.objective, solution.bound, solution.n_evaluations) == (1.0, 1.0, 1)


def test_no_columns():
    solution = CuttingPlane().solve(ExplicitColumns(np.zeros((5, 0)), np.full(5, 0.2)), np.zeros(0))
    assert solution.objective == pytest.approx(1.0)
    assert solution.converged


@pytest.mark.parametrize("upper", [np.inf, 0.1], ids=["l1", "linf"])
def test_appended_columns_solve_warm_to_what_they_solve_cold(upper):
    A, p, _ = random_problem(7, n_triplets=1000, m=20)
    tol = 1e-6
    warm = CuttingPlane(tol=tol)
    for m in range(1, 21):
        columns, cost = ExplicitColumns(A[:, :m], p), np.full(m, 1e-3)
        kept, new = warm.solve(columns, cost, upper), CuttingPlane(tol=tol).solve(columns, cost, upper)
        check(A[:, :m], p, cost, upper, kept, tol)
        assert kept.objective == pytest.approx(new.objective, rel=2 * tol)


def test_a_solved_problem_is_proven_again_by_one_evaluation():
    A, p, _ = random_problem(11)
    solver, columns, cost = CuttingPlane(), ExplicitColumns(A, p), np.full(12, 1e-3)
    first, second = solver.solve(columns, cost), solver.solve(columns, cost)
    assert first.n_evaluations > 10
    assert second.n_evaluations == 1
    np.testing.assert_array_equal(first.w, second.w)


def test_slopes_give_the_gain_that_the_bound_rests_on():
    A, p, _ = random_problem(8, m=30)
    cost = np.full(30, 1e-3)
    columns = ExplicitColumns(A, p)
    solution = CuttingPlane(tol=1e-8).solve(columns, cost)
    gain = -columns.adjoint(solution.slopes)
    used = solution.w > 1e-3
    assert used.any()
    np.testing.assert_allclose(gain[used], cost[used], rtol=1e-4)  # complementary slackness


def test_same_calls_give_the_same_bits():
    A, p, _ = random_problem(9, m=16)
    runs = []
    for _ in range(2):
        solver = CuttingPlane()
        runs.append([solver.solve(ExplicitColumns(A[:, :m], p), np.full(m, 1e-3)) for m in (4, 8, 16)])
    for first, second in zip(*runs, strict=True):
        np.testing.assert_array_equal(first.w, second.w)
        np.testing.assert_array_equal(first.slopes, second.slopes)


def test_too_few_evaluations_are_admitted():
    A, p, _ = random_problem(10)
    solution = CuttingPlane(max_evaluations=3).solve(ExplicitColumns(A, p), np.full(12, 1e-3))
    assert not solution.converged
    assert solution.bound <= solution.objective


def test_a_loss_that_is_not_finite_is_an_error():
    columns = ExplicitColumns(np.ones((3, 1)), np.full(3, 1 / 3), lambda r: (np.where(r > 0, np.nan, 1), -1 + 0 * r))
    with pytest.raises(InvalidInputError, match="finite"):
        CuttingPlane().solve(columns, np.array([0.1]))


@given(small_problems([0.0, 1e-5, 1e-3, 0.1, 0.7], [np.inf, 0.25, 2.0, 1e4]), st.sampled_from([hinge, kinked]))
@settings(max_examples=100, deadline=None)
def test_small_problems(problem, loss):
    A, p, cost, upper = problem
    solution = CuttingPlane(tol=1e-7).solve(ExplicitColumns(A, p, loss), cost, upper)
    check(A, p, cost, upper, solution, 1e-7, loss)
