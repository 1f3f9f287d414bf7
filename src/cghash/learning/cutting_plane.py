"""The master problem under any convex loss, smooth or not: a level bundle method on the weights.

Every evaluation at a point w_k is a cut: F(w) ≥ F(w_k) + g_kᵀ(w − w_k) = b_k + g_kᵀw. The cuts so far, and
F ≥ 0, make a lower model: its minimum, a small linear program, is the bound; its dual values λ_k mix the
multipliers of the cuts into dual feasible ones. The next point is the one nearest to the best so far at which
the model promises a share of the gap (the proximal level method: Lemaréchal, Nemirovskii and Nesterov 1995,
Kiwiel 1995); this keeps it from the far corners where the model is wrong.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.optimize import nnls

from .._arrays import Floats
from ..exceptions import InvalidInputError
from .backend import ColumnSums
from .hinge_lp import new_program, run_program
from .master import MasterSolution, feasible_share, relative_gap

_LEVEL = 0.7  # of the gap, above the bound: on digits and MNIST 0.6 … 0.8 need fewest evaluations
_TOO_HIGH = 1e6  # times the best objective: a cut there would only spoil the numbers of the linear program


class CuttingPlane:
    """Weights to a proven gap, from evaluations of F alone.

    After columns were appended, a solve starts where the last one ended: from its weights, and from the one
    cut that its multipliers are (adjoint gives the coefficients of new columns; evaluating single cuts anew
    costs more than it saves). The columns before, and their triplets, must be the same.

    Parameters
    ----------
    tol : relative gap, (objective − bound) / objective, to reach.
    least : inf F over all weights, 0 for most losses: the method sees F − least ≥ 0.
    max_evaluations : in one solve; past them the solution says that it did not converge.
    """

    def __init__(self, *, tol: float = 1e-4, least: float = 0.0, max_evaluations: int = 5000) -> None:
        self.tol, self.least = tol, least
        self.max_evaluations = max_evaluations
        self._w = np.zeros(0)
        self._mixture: tuple[float, Floats] | None = None  # Σ λ_k b_k, Σ λ_k q_k: a cut, whatever the columns

    def solve(self, columns: ColumnSums, cost: Floats, upper: float = np.inf) -> MasterSolution:
        """Minimise F(w) + Σ cost·w over 0 ≤ w ≤ upper; cost is (m,), ≥ 0."""
        search = _Search(columns, cost, upper, self.least)
        if self._mixture is not None:
            search.add_mixture(*self._mixture)
        search.visit(np.minimum(np.pad(self._w, (0, columns.n_columns - self._w.size)), upper))
        while search.gap() > self.tol and search.n_evaluations < self.max_evaluations:
            search.visit(search.next_point())
        return self._remember(search)

    def _remember(self, search: _Search) -> MasterSolution:
        intercept, slopes = search.mixture()
        self._w, self._mixture = search.w, (intercept, slopes)
        converged = relative_gap(search.objective, search.bound) <= self.tol
        found = search.objective + self.least, search.bound + self.least
        return MasterSolution(search.w, *found, slopes, search.n_evaluations, converged)


class _Search:
    """One solve: the model, the best point, and the shares λ of the cuts in the best bound."""

    def __init__(self, columns: ColumnSums, cost: Floats, upper: float, least: float) -> None:
        self.columns, self.cost, self.upper, self.least = columns, cost, upper, least
        self.model = _Model(cost, upper)
        self.sources: list[Callable[[], Floats]] = []  # of each cut's slopes
        self.w, self.objective = np.zeros(cost.size), np.inf
        self.bound, self.share = -np.inf, np.zeros(0)
        self.height = _LEVEL  # of the level: halved while the model keeps its promises
        self.n_evaluations = 0

    def add_mixture(self, intercept: float, slopes: Floats) -> None:
        """A cut that an earlier solve mixed: its slopes fit any columns."""
        self.model.add(intercept, self.columns.adjoint(slopes))
        self.sources.append(lambda: slopes)

    def visit(self, w: Floats) -> None:
        """Evaluate at w, or nearer to the best point if the loss explodes there, and add the cut."""
        value, gradient = self.columns.evaluate(w)
        value -= self.least
        self.n_evaluations += 1
        if not value <= _TOO_HIGH * max(1.0, self.objective):
            return self._visit_nearer(w)
        self.model.add(value - float(gradient @ w), gradient)
        self.sources.append(lambda: self.columns.slopes(w)[1])
        objective = value + float(self.cost @ w)
        reached = objective <= self.bound + self.height * (self.objective - self.bound)
        self.height = 0.5 * self.height if reached else _LEVEL
        if objective < self.objective:
            self.w, self.objective = w, objective

    def _visit_nearer(self, w: Floats) -> None:
        nearer = 0.5 * (w + self.w)
        if np.allclose(nearer, self.w, rtol=1e-9, atol=1e-12):
            raise InvalidInputError(f"loss must be finite and convex, got a jump beside the weights {self.w}")
        self.visit(nearer)

    def gap(self) -> float:
        """Minimise the model; the relative gap to the best bound so far."""
        share = self.model.minimise()
        bound, share = self._proven(share)
        if bound > self.bound:
            self.bound, self.share = bound, share
        return relative_gap(self.objective, self.bound)

    def _proven(self, share: Floats) -> tuple[float, Floats]:
        """The bound that these shares prove by weak duality, whatever the solver rounded; Σ λ ≤ 1."""
        share = share / max(1.0, share.sum())
        gain = -(share @ self.model.gradients)  # (m,)
        if np.isfinite(self.upper):
            excess = np.maximum(gain - self.cost, 0.0).sum()
            return float(share @ self.model.intercepts - self.upper * excess), share
        share = share * feasible_share(gain, self.cost)
        return float(share @ self.model.intercepts), share

    def next_point(self) -> Floats:
        """The point nearest to the best one where the model lies below the level."""
        level = self.bound + self.height * (self.objective - self.bound)
        G = np.vstack([self.model.gradients + self.cost, self.cost])  # the last row is F ≥ 0
        h = level - np.append(self.model.intercepts, 0.0)
        w = _project(self.w, G, h, self.upper, self.model.w)
        return 0.5 * (self.w + self.model.w) if w is None else w

    def mixture(self) -> tuple[float, Floats]:
        """Σ λ_k b_k and Σ λ_k q(w_k) over the cuts that carry the bound."""
        active = np.flatnonzero(self.share)
        if not active.size:
            return 0.0, np.zeros_like(self.columns.slopes(self.w)[1])
        slopes = self.share[active[0]] * self.sources[active[0]]()  # (n_slots,)
        for k in active[1:]:
            slopes += self.share[k] * self.sources[k]()
        return float(self.share @ self.model.intercepts[: self.share.size]), slopes


class _Model:
    """max(0, max_k b_k + g_kᵀw) + costᵀw over 0 ≤ w ≤ upper, as a linear program kept warm."""

    def __init__(self, cost: Floats, upper: float) -> None:
        m = cost.size
        self._upper = upper
        self._program = new_program()
        self._program.addVars(m + 1, np.zeros(m + 1), np.append(np.inf, np.full(m, upper)))  # F, then w
        self._program.changeColsCost(m + 1, np.arange(m + 1, dtype=np.int32), np.append(1.0, cost))
        self.intercepts = np.zeros(0)  # (k,)
        self.gradients = np.zeros((0, m))  # (k, m)
        self.w = np.zeros(m)  # where the model is least

    def add(self, intercept: float, gradient: Floats) -> None:
        self.intercepts = np.append(self.intercepts, intercept)
        self.gradients = np.vstack([self.gradients, gradient])
        index = np.arange(gradient.size + 1, dtype=np.int32)
        self._program.addRow(intercept, np.inf, index.size, index, np.append(1.0, -gradient))

    def minimise(self) -> Floats:
        """Move `w` to the minimum; the cuts' dual values λ (k,) there."""
        run_program(self._program)
        answer = self._program.getSolution()
        self.w = np.clip(np.array(answer.col_value[1:], dtype=np.float64), 0.0, self._upper)
        share = np.maximum(np.array(answer.row_dual, dtype=np.float64), 0.0)
        share[share < 1e-12] = 0.0
        return share


def _project(centre: Floats, G: Floats, h: Floats, upper: float, inside: Floats) -> Floats | None:
    """Nearest point to `centre` with G w ≤ h, 0 ≤ w ≤ upper, given one inside; None where rounding wins.

    Least distance programming (Lawson and Hanson 1974, chapter 23): min |z| subject to E z ≥ f is a problem
    of non-negative least squares.
    """
    m = centre.size
    radius = float(np.linalg.norm(inside - centre))  # z = (w − centre) / radius has length ≤ 1
    E, f = [-G, np.eye(m)], [G @ centre - h, -centre]
    if np.isfinite(upper):
        E, f = [*E, -np.eye(m)], [*f, centre - upper]
    rows = np.column_stack([np.vstack(E) * radius, np.concatenate(f)])  # (rows, m + 1)
    rows /= np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), np.finfo(float).tiny)
    target = np.append(np.zeros(m), 1.0)
    try:
        residual = rows.T @ nnls(rows.T, target)[0] - target  # (m + 1,)
    except RuntimeError:  # too many steps
        return None
    if residual[m] > -1e-8:  # at least 1/(1 + |z|²) in size, if exact
        return None
    nearest: Floats = np.clip(centre - radius * residual[:m] / residual[m], 0.0, upper)
    return nearest
