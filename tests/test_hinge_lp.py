"""The hinge master problem as a linear program, against cvxpy."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given, settings

from cghash.learning.hinge_lp import HingeDual

from .master_problems import small_problems

pytestmark = [pytest.mark.core, pytest.mark.portable]


def oracle(A, p, cost, upper):
    """Optimal value of min Σ p·max(0, 1 − A w) + cost·w, 0 ≤ w ≤ upper; A is (t, m)."""
    w = cp.Variable(A.shape[1], nonneg=True)
    bounds = [w <= upper] if np.isfinite(upper) else []
    problem = cp.Problem(cp.Minimize(p @ cp.pos(1 - A @ w) + cost @ w), bounds)
    return problem.solve(solver=cp.CLARABEL)


def dual_of(A, p, cost, upper):
    near_slot, far_slot = 2 * np.arange(len(p)), 2 * np.arange(len(p)) + 1
    dual = HingeDual(p, near_slot, far_slot, 2 * len(p), upper=upper)
    for a, c in zip(A.T, cost, strict=True):
        dual.add_column(a, c)
    return dual


def check(A, p, cost, upper, solution):
    """Strong duality, feasibility of both sides, and the optimal value."""
    gain = A.T @ solution.slopes[::2]  # near slot i carries y_i
    assert np.all(solution.slopes[::2] >= 0)
    assert np.all(solution.slopes[::2] <= p * (1 + 1e-9))
    np.testing.assert_array_equal(solution.slopes[1::2], -solution.slopes[::2])
    assert np.all((solution.w >= 0) & (solution.w <= upper))
    if np.isinf(upper):
        assert np.all(gain <= cost + 1e-9)
    primal = p @ np.maximum(1 - A @ solution.w, 0) + cost @ solution.w
    assert solution.objective == pytest.approx(primal, rel=1e-12)
    assert solution.bound == pytest.approx(solution.objective, rel=1e-8, abs=1e-9)
    assert solution.objective == pytest.approx(oracle(A, p, cost, upper), rel=1e-6, abs=1e-7)
    assert solution.converged


def random_problem(seed, n_triplets=300, m=12):
    rng = np.random.default_rng(seed)
    A = rng.choice([-1, 0, 1], size=(n_triplets, m), p=[0.2, 0.4, 0.4])
    p = rng.uniform(0.1, 1.0, n_triplets)
    return A, p / p.sum(), rng


@pytest.mark.parametrize("upper", [np.inf, 0.2], ids=["l1", "linf"])
@pytest.mark.parametrize("kind", ["equal", "weighted", "zero", "some zero"])
def test_optimum_agrees_with_an_independent_solver(kind, upper):
    A, p, rng = random_problem(3)
    weighted = rng.uniform(0, 0.05, A.shape[1])
    cost = {
        "equal": np.full(A.shape[1], 1e-2),
        "weighted": weighted,
        "zero": np.zeros(A.shape[1]),
        "some zero": np.where(np.arange(A.shape[1]) % 3 == 0, 0.0, weighted),
    }[kind]
    check(A, p, cost, upper, dual_of(A, p, cost, upper).solve())


@pytest.mark.parametrize("upper", [np.inf, 0.3], ids=["l1", "linf"])
def test_columns_added_to_a_solved_program_give_what_a_new_program_gives(upper):
    A, p, _ = random_problem(4, n_triplets=500, m=20)
    cost = np.full(20, 1e-3)
    warm = dual_of(A[:, :1], p, cost[:1], upper)
    for m in range(1, 20):
        warm.solve()
        warm.add_column(A[:, m], cost[m])
        cold = dual_of(A[:, : m + 1], p, cost[: m + 1], upper).solve()
        assert warm.solve().objective == pytest.approx(cold.objective, rel=1e-9)


def test_one_good_column_gets_weight_one():
    solution = dual_of(np.ones((5, 1), dtype=int), np.full(5, 0.2), np.array([0.25]), np.inf).solve()
    np.testing.assert_allclose(solution.w, [1.0])  # loss 1 − w down to w = 1, for a price of 0.25 w
    assert solution.objective == pytest.approx(0.25)


def test_a_column_dearer_than_its_gain_gets_no_weight():
    solution = dual_of(np.ones((5, 1), dtype=int), np.full(5, 0.2), np.array([1.5]), np.inf).solve()
    np.testing.assert_array_equal(solution.w, [0.0])
    assert solution.objective == pytest.approx(1.0)


def test_no_columns_and_no_triplets():
    empty = np.zeros(0, dtype=np.int64)
    assert dual_of(np.zeros((4, 0), dtype=int), np.full(4, 0.25), [], np.inf).solve().objective == 1.0
    dual = HingeDual(np.zeros(0), empty, empty, 0)
    dual.add_column(empty, 0.1)
    assert dual.solve().objective == 0.0


@given(small_problems([0.0, 1e-3, 0.1, 0.7], [np.inf, 0.25, 2.0]))
@settings(max_examples=60, deadline=None)
def test_strong_duality_on_small_problems(problem):
    A, p, cost, upper = problem
    check(A, p, cost, upper, dual_of(A, p, cost, upper).solve())
