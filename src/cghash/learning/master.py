"""The restricted master problem min_w F(w) + Σ_j cost_j w_j, 0 ≤ w ≤ upper (eq. 7, 15), for a smooth loss.

`bound` below is the dual objective of the multipliers u at w (eq. 9, 17), made feasible: where weights are unbounded u
is scaled by θ until no column's gain exceeds its cost; −f*(−θu) is concave in θ, so it is at least the chord between
θ = 0 and θ = 1, which costs nothing. No θ > 0 mends the gain of a column without cost: there the bound speaks of
weights up to `reach(w)`; the problem being convex, an optimum inside is the optimum. Non-smooth losses are solved in
hinge_lp.py and cutting_plane.py.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize

from .._arrays import Floats
from .columns import ColumnSums
from .solution import MasterSolution, feasible_share, reach, relative_gap


class _Objective:
    """F + costᵀw with its gradient; remembers the best point and the best bound seen."""

    def __init__(self, columns: ColumnSums, cost: Floats, upper: float) -> None:
        self.columns, self.cost, self.upper = columns, cost, upper
        self.rest = float(np.asarray(columns.loss.conjugate(np.zeros(1)))[0])  # f*(0) = −inf f
        self.w, self.value, self.bound = np.zeros(len(cost)), np.inf, -np.inf

    def __call__(self, w: Floats) -> tuple[float, Floats]:
        loss, gradient = self.columns.evaluate(w)
        value = loss + float(self.cost @ w)
        self.bound = max(self.bound, self._bound(w, loss, gradient))
        if value < self.value:
            self.w, self.value = w.copy(), value
        return value, gradient + self.cost

    def _bound(self, w: Floats, loss: float, gradient: Floats) -> float:
        conjugates = loss - float(gradient @ w)  # −Σ p f*(−u), by Fenchel's equality
        if np.isfinite(self.upper):
            return conjugates - self.upper * float(np.sum(np.maximum(-gradient - self.cost, 0.0)))
        scale = feasible_share(-gradient, self.cost)
        free = float(np.sum(np.maximum(-gradient[self.cost == 0.0], 0.0)))  # gains that nothing pays for
        return scale * (conjugates - reach(w) * free) - (1.0 - scale) * self.rest

    @property
    def gap(self) -> float:
        return relative_gap(self.value, self.bound)


def solve_smooth(
    columns: ColumnSums, cost: Floats, upper: float, w0: Floats, tol: float = 1e-6, max_iter: int = 500
) -> MasterSolution:
    """All weights anew by L-BFGS-B from `w0`, until the relative gap is below `tol`."""
    objective = _Objective(columns, cost, upper)
    before = columns.n_evaluations

    def stop(intermediate_result: object) -> None:
        if objective.gap <= tol:
            raise StopIteration

    minimize(
        objective,
        np.clip(w0, 0.0, upper),
        jac=True,
        method="L-BFGS-B",
        bounds=[(0.0, upper if np.isfinite(upper) else None)] * len(cost),
        callback=stop,
        options={
            "maxiter": max_iter,
            "maxfun": 4 * max_iter,
            "maxcor": 20,
            "ftol": 0.0,
            "gtol": 0.0,
            "maxls": 40,
        },
    )
    _, slopes = columns.slopes(objective.w)
    used = columns.n_evaluations - before
    converged = objective.gap <= max(tol, 1e-7)  # closer than that L-BFGS-B may end at rounding level
    return MasterSolution(objective.w, objective.value, objective.bound, slopes, used, converged)
