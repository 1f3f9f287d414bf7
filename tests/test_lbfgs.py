"""L-BFGS, one evaluation at a time, against SciPy's L-BFGS-B."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize, rosen, rosen_der

from cghash.learning.lbfgs import Descent, LineSearch, Memory, descend

pytestmark = pytest.mark.core


class Counted:
    """A function with its gradient; how often it was asked."""

    def __init__(self, function):
        self.function, self.n = function, 0

    def __call__(self, x):
        self.n += 1
        return self.function(x)

    def all(self, points):
        return [self(x) for x in points]


def relaxed_gain(seed):
    """tᵀAt of t = tanh(Zx): not convex; and a start."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(5, 100)), int(rng.integers(1, 30))
    Z, A = rng.standard_normal((n, d)), rng.standard_normal((n, n))
    A += A.T

    def function(x):
        t = np.tanh(Z @ x)
        return float(t @ A @ t) / n**2, 2.0 * Z.T @ ((A @ t) * (1.0 - t * t)) / n**2

    return Counted(function), rng.standard_normal(d)


def rosenbrock(x):
    return float(rosen(x)), rosen_der(x)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from([1, 2, 5, 12]))
def test_the_steps_are_those_of_lbfgsb_without_bounds(seed, max_iter):
    function, start = relaxed_gain(seed)
    known = minimize(function, start, jac=True, method="L-BFGS-B", options={"maxiter": max_iter, "maxcor": 10})
    asked, function.n = function.n, 0
    [end] = descend(function.all, [start], max_iter)
    np.testing.assert_allclose(end, known.x, rtol=1e-5, atol=1e-5 * np.abs(known.x).max())
    assert function.n == asked


@pytest.mark.parametrize("start", [[-1.2, 1.0], [5.0, -3.0, 2.0, 8.0], [1.0, 1.0]])
def test_a_curved_valley_is_followed_to_its_end(start):
    [end] = descend(Counted(rosenbrock).all, [np.array(start)], 1000)
    known = minimize(rosenbrock, start, jac=True, method="L-BFGS-B", options={"maxiter": 1000}).x
    np.testing.assert_allclose(end, known, atol=1e-4)
    np.testing.assert_allclose(end, 1.0, atol=1e-3)


def test_descents_together_are_those_alone_and_end_when_they_will():
    function, start = relaxed_gain(5)
    starts, rounds = [start, 0.1 * start, np.zeros_like(start)], []

    def together(points):
        rounds.append(len(points))
        return function.all(points)

    ends = descend(together, starts, 30)
    for start, end in zip(starts, ends, strict=True):
        np.testing.assert_array_equal(end, descend(function.all, [start], 30)[0])
    assert rounds[0] == 3
    assert rounds[-1] < 3
    assert rounds == sorted(rounds, reverse=True)
    np.testing.assert_array_equal(ends[2], 0.0)  # flat: the descent never begins


def test_starts_stay_as_they_were_and_no_iteration_goes_nowhere():
    function, start = relaxed_gain(1)
    before = start.copy()
    [end] = descend(function.all, [start], 0)
    np.testing.assert_array_equal(end, before)
    descend(function.all, [start], 5)
    np.testing.assert_array_equal(start, before)


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf])
def test_where_values_are_not_finite_the_best_point_stays(wrong):
    def cliff(x):
        return (float(x @ x), 2.0 * x) if x[0] > 0.5 else (wrong, np.full(1, np.nan))

    [end] = descend(Counted(cliff).all, [np.array([2.0])], 50)
    assert end[0] == pytest.approx(1.0)  # the first step, of length one; every further line leads over the cliff
    assert descend(Counted(cliff).all, [np.array([0.2])], 50)[0] == 0.2


@pytest.mark.parametrize("seed", range(200))
def test_holes_are_never_the_end(seed):
    """Between two points that are finite there may be one that is not."""
    rng = np.random.default_rng(seed)
    a, f, p = rng.uniform(0.1, 3.0, (3, 4))
    holes, seen = rng.uniform(-6.0, 6.0, 12), []

    def line(x):
        if np.any(np.abs(holes - x[0]) < 0.15):
            return np.nan, np.full(1, np.nan)
        seen.append(float(np.sum(a * np.cos(f * x[0] + p)) + x[0] ** 2 / 50))
        return seen[-1], np.array([np.sum(-a * f * np.sin(f * x[0] + p)) + x[0] / 25])

    start = rng.uniform(-5.0, 5.0, 1)
    [end] = descend(Counted(line).all, [start], 20)
    if np.isfinite(line(start)[0]):
        assert line(end)[0] <= line(start)[0]


@pytest.mark.parametrize("size", [1, 2, 3, 10])
def test_what_is_remembered_is_that_of_the_two_loops(size):
    """H·g of the last steps, by the recursion of Nocedal (1980), through forgetting and beginning again."""
    rng = np.random.default_rng(size)
    B = rng.standard_normal((15, 15))
    B = B @ B.T + np.eye(15)
    memory, steps = Memory(size, 15), []
    for number in range(60):
        if number == 37:
            memory.clear()
            steps = []
        s = rng.standard_normal(15)
        steps = [*steps, (s, B @ s)][-size:]
        memory.append(s, B @ s, float(s @ B @ s))
        g = rng.standard_normal(15)
        np.testing.assert_allclose(memory.times(g), two_loops(steps, g), rtol=1e-8, atol=1e-8)
        assert len(memory) == len(steps)


def two_loops(steps, g):
    q, shares = g.copy(), []
    for s, y in reversed(steps):
        shares.append(s @ q / (s @ y))
        q -= shares[-1] * y
    s, y = steps[-1]
    q *= s @ y / (y @ y)
    for (s, y), share in zip(steps, reversed(shares), strict=True):
        q += (share - y @ q / (s @ y)) * s
    return q


def test_a_gradient_that_points_the_wrong_way_ends_where_it_began():
    descent = Descent(np.array([1.0]), 10)
    descent.tell(1.0, np.array([-1.0]))
    for _ in range(100):
        if descent.done:
            break
        descent.tell(float(descent.x[0]) ** 2, np.array([-1.0]))
    assert descent.done
    np.testing.assert_array_equal(descent.x, 1.0)


def test_a_line_search_goes_on_until_the_slope_is_small_too():
    search = LineSearch(9.0, -6.0, 1e-3)  # of (s - 3)²
    while not search.tell((search.step - 3.0) ** 2, 2.0 * (search.step - 3.0)):
        pass
    assert abs(2.0 * (search.step - 3.0)) <= 0.9 * 6.0


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.floats(1e-4, 1e4))
def test_a_line_search_ends_soon_and_lower_than_it_began(seed, step):
    """φ(s) = Σ a_k·cos(f_k·s + p_k) + s²/50: many minima, all of them bounded."""
    a, f, p = np.random.default_rng(seed).uniform(0.1, 3.0, (3, 4))

    def line(s):
        return float(np.sum(a * np.cos(f * s + p)) + s * s / 50), float(np.sum(-a * f * np.sin(f * s + p)) + s / 25)

    value, slope = line(0.0)
    if slope >= -1e-3:
        return
    search = LineSearch(value, slope, step)
    now, trials = line(search.step), 1
    while not search.tell(*now):
        now, trials = line(search.step), trials + 1
        assert trials <= 30
    assert now[0] <= value + 1e-3 * slope * search.step
