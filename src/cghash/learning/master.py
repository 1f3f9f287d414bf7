"""The restricted master problem min_w F(w) + Σ_j cost_j w_j, 0 ≤ w ≤ upper (eq. 7, 15), and its solvers.

| loss                          | triplets     | solver                                   |
|-------------------------------|--------------|------------------------------------------|
| smooth                        | any          | L-BFGS-B (`solve_smooth`)                |
| hinge                         | ≤ 20 000     | HiGHS on the dual (hinge_lp.py)          |
| hinge, any non-smooth loss    | any          | cutting planes (cutting_plane.py)        |

`bound` of a smooth loss is the dual objective of the multipliers u at w (eq. 9, 17), made feasible: where weights are
unbounded u is scaled by θ until no column's gain exceeds its cost; −f*(−θu) is concave in θ, so it is at least the
chord between θ = 0 and θ = 1, which costs nothing. No θ > 0 mends the gain of a column without cost: there the bound
speaks of weights up to `reach(w)`; the problem being convex, an optimum inside is the optimum.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.optimize import minimize

from .._arrays import Bools, Floats
from .backend import ColumnSums
from .losses import Hinge
from .triplets import TripletSet

LP_TRIPLETS = 20_000  # up to which the linear program keeps pace with the cutting planes


@dataclass(frozen=True)
class MasterSolution:
    """Weights of the restricted master problem, with the multipliers that prove how good they are.

    Attributes
    ----------
    w : (m,) weights of the columns, 0 ≤ w ≤ upper.
    objective : Σ p f(ρ) + Σ cost·w at these weights.
    bound : no weights on these columns reach a lower objective.
    slopes : (n_slots,) Σ p u over the triplets of a near slot, −Σ p u over those of a far slot; u are the
        multipliers that prove the bound; −adjoint(slopes) is the gain of each column.
    n_evaluations : how often the loss was evaluated, or simplex steps of a linear program.
    converged : whether the gap asked for was reached.
    """

    w: Floats
    objective: float
    bound: float
    slopes: Floats
    n_evaluations: int
    converged: bool

    @property
    def gap(self) -> float:
        """(objective − bound) relative to the objective."""
        return relative_gap(self.objective, self.bound)


def relative_gap(objective: float, bound: float) -> float:
    """(objective − bound) / |objective|, and absolute near 0."""
    return (objective - bound) / max(abs(objective), 1e-12)


def feasible_share(gain: Floats, cost: Floats) -> float:
    """Largest share ≤ 1 of the multipliers whose gain exceeds no positive cost.

    It removes what a solver rounded. Columns that cost nothing are left aside: no positive share would mend
    them.

    >>> feasible_share(np.array([0.5, 2.0]), np.array([1.0, 1.0]))
    0.5
    """
    over = (gain > cost) & (cost > 0)
    return float(np.min(cost[over] / gain[over], initial=1.0))


def reach(w: Floats) -> float:
    """How large the weights of columns without cost are taken to be at most: ten times all the present ones."""
    return 10.0 * max(1.0, float(np.sum(w)))


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


class Master(Protocol):
    """Solves the restricted master problems of one run, one after another."""

    tol: float  # relative gap to which it solves
    stateful: bool  # whether an answer depends on the answers before it

    def added(self, bits: Bools, cost: float) -> None:
        """A column was appended."""

    def solve(self, cost: Floats, w0: Floats) -> MasterSolution:
        """All weights anew, from `w0` where that helps."""


class SmoothMaster:
    """Smooth losses: L-BFGS-B, each problem from the weights of the one before."""

    stateful = False

    def __init__(self, columns: ColumnSums, upper: float) -> None:
        self.columns, self.upper, self.tol = columns, upper, 1e-5

    def added(self, bits: Bools, cost: float) -> None:
        pass

    def solve(self, cost: Floats, w0: Floats) -> MasterSolution:
        return solve_smooth(self.columns, cost, self.upper, w0, self.tol)


class LinearProgramMaster:
    """The hinge loss over triplets few enough to be written out: exact, one new row a column."""

    stateful = True

    def __init__(self, triplets: TripletSet, upper: float) -> None:
        from .hinge_lp import HingeDual

        self.tol = 1e-9
        self._items = triplets.slots()
        self._near, self._far, p = triplets.triplet_slots()
        self._dual = HingeDual(p, self._near, self._far, triplets.n_slots, upper=upper)

    def added(self, bits: Bools, cost: float) -> None:
        differs = (bits[self._items[0]] != bits[self._items[1]]).astype(np.int8)  # (n_slots,)
        self._dual.add_column(differs[self._far] - differs[self._near], cost)

    def solve(self, cost: Floats, w0: Floats) -> MasterSolution:
        return self._dual.solve()


class CuttingPlaneMaster:
    """Any convex loss over any number of triplets, from evaluations alone."""

    stateful = True

    def __init__(self, columns: ColumnSums, upper: float) -> None:
        from .cutting_plane import CuttingPlane

        self.columns, self.upper, self.tol = columns, upper, 1e-4
        self._planes = CuttingPlane(least=-float(np.asarray(columns.loss.conjugate(np.zeros(1)))[0]))  # inf f

    def added(self, bits: Bools, cost: float) -> None:
        pass

    def solve(self, cost: Floats, w0: Floats) -> MasterSolution:
        self._planes.tol = self.tol
        return self._planes.solve(self.columns, cost, self.upper)


def master_for(columns: ColumnSums, upper: float) -> Master:
    """The solver for a loss and a number of triplets."""
    if getattr(columns.loss, "smooth", True):
        return SmoothMaster(columns, upper)
    triplets = columns.triplets
    if triplets is not None and type(columns.loss) is Hinge and triplets.n_triplets <= LP_TRIPLETS:
        return LinearProgramMaster(triplets, upper)
    return CuttingPlaneMaster(columns, upper)
