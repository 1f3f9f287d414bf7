"""The master problem under the hinge loss as a linear program: its dual (section 2.1), kept warm."""

from __future__ import annotations

import highspy
import numpy as np
from numpy.typing import NDArray

from .._arrays import Floats, Ints
from .master import MasterSolution, feasible_share


class HingeDual:
    """Multipliers y_i = p_i·u_i in [0, p_i] that maximise Σ y − upper·Σ q, Σ_i y_i·a_ij − q_j ≤ cost_j.

    Each column is a row of the program; its dual value is its weight. q ≥ 0 is there only if upper is finite.

    Parameters
    ----------
    p : (t,) what each triplet weighs, ≥ 0.
    near_slot, far_slot : (t,) the slots of each triplet's two pairs.
    n_slots : how many slots there are.
    upper : largest weight a column may get.

    >>> dual = HingeDual(np.array([0.5, 0.5]), np.array([0, 0]), np.array([1, 2]), n_slots=3)
    >>> dual.add_column(np.array([1, 1]), cost=0.1)
    >>> dual.solve().w
    array([1.])
    """

    def __init__(self, p: Floats, near_slot: Ints, far_slot: Ints, n_slots: int, *, upper: float = np.inf) -> None:
        self._p, self._near_slot, self._far_slot, self._n_slots = p, near_slot, far_slot, n_slots
        self._upper = upper
        self._cost: list[float] = []
        self._columns = np.zeros((0, p.size), dtype=np.int8)  # (capacity, t)
        self._scale = 1.0 / max(float(np.max(p, initial=0.0)), np.finfo(float).tiny)  # p_i ~ 1/t: near tolerances
        self._program = new_program()
        self._program.addVars(p.size, np.zeros(p.size), p * self._scale)
        self._program.changeColsCost(p.size, np.arange(p.size, dtype=np.int32), -np.ones(p.size))

    @property
    def n_columns(self) -> int:
        return len(self._cost)

    def add_column(self, a: NDArray[np.integer], cost: float) -> None:
        """Append a column: a (t,) in {-1, 0, 1}, and what one unit of its weight costs."""
        self._remember(a)
        index = np.flatnonzero(a).astype(np.int32)
        value = a[index].astype(np.float64)
        if np.isfinite(self._upper):
            self._program.addCol(self._upper, 0.0, highspy.kHighsInf, 0, [], [])  # q_j
            index, value = np.append(index, np.int32(self._program.numVariables - 1)), np.append(value, -1.0)
        self._program.addRow(-highspy.kHighsInf, cost * self._scale, index.size, index, value)
        self._cost.append(float(cost))

    def solve(self) -> MasterSolution:
        """Weights and multipliers at the optimum over the columns so far."""
        optimal, n_steps = run_program(self._program)
        answer = self._program.getSolution()
        w = np.clip(-np.array(answer.row_dual, dtype=np.float64), 0.0, self._upper)  # (m,)
        y = np.array(answer.col_value[: self._p.size], dtype=np.float64) / self._scale
        y, bound = self._feasible(np.clip(y, 0.0, self._p))
        return MasterSolution(w, self._objective(w), bound, self._slopes(y), n_steps, optimal)

    def _slopes(self, y: Floats) -> Floats:
        slopes = np.zeros(self._n_slots)
        np.add.at(slopes, self._near_slot, y)
        np.subtract.at(slopes, self._far_slot, y)
        return slopes

    def _feasible(self, y: Floats) -> tuple[Floats, float]:
        """Multipliers that meet every constraint, and the bound they prove."""
        cost = np.array(self._cost)
        gain = np.array([column.astype(np.float64) @ y for column in self._columns[: self.n_columns]])  # (m,)
        if np.isfinite(self._upper):
            return y, float(y.sum() - self._upper * np.maximum(gain - cost, 0.0).sum())
        y = y * feasible_share(gain, cost)
        return y, float(y.sum())

    def _objective(self, w: Floats) -> float:
        margin = np.zeros(self._p.size)
        for j in np.flatnonzero(w):
            margin += w[j] * self._columns[j]
        return float(self._p @ np.maximum(1.0 - margin, 0.0) + np.array(self._cost) @ w)

    def _remember(self, a: NDArray[np.integer]) -> None:
        if self.n_columns == len(self._columns):
            wider = np.zeros((max(8, 2 * self.n_columns), self._p.size), dtype=np.int8)
            wider[: self.n_columns] = self._columns
            self._columns = wider
        self._columns[self.n_columns] = a


def new_program() -> highspy.Highs:
    """An empty program, solved quietly, in one thread, as exactly as HiGHS offers."""
    program = highspy.Highs()
    program.setOptionValue("output_flag", False)
    program.setOptionValue("parallel", "off")  # not `threads`, which all programs of a process share
    program.setOptionValue("solver", "simplex")
    program.setOptionValue("presolve", "off")  # it would forget the basis
    program.setOptionValue("primal_feasibility_tolerance", 1e-10)
    program.setOptionValue("dual_feasibility_tolerance", 1e-10)
    return program


def run_program(program: highspy.Highs) -> tuple[bool, int]:
    """Solve, once more from nothing if the warm basis fails; whether it is optimal, and the simplex steps."""
    n_steps = 0
    for again in (False, True):
        if again:
            program.clearSolver()
        program.run()
        n_steps += program.getInfo().simplex_iteration_count
        if program.getModelStatus() == highspy.HighsModelStatus.kOptimal:
            return True, n_steps
    return False, n_steps
