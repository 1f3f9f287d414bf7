"""Which solver serves which loss, behind one face.

| loss                          | triplets     | solver                                   |
|-------------------------------|--------------|------------------------------------------|
| smooth                        | any          | L-BFGS-B (master.py)                     |
| hinge                         | ≤ 20 000     | HiGHS on the dual (hinge_lp.py)          |
| hinge, any non-smooth loss    | any          | cutting planes (cutting_plane.py)        |
"""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol

import numpy as np

from .._arrays import Bools, Floats
from .columns import Columns, ColumnSums
from .cutting_plane import CuttingPlane
from .hinge_lp import HingeDual
from .losses import Hinge
from .master import solve_smooth
from .solution import MasterSolution

LP_TRIPLETS = 20_000  # up to which the linear program keeps pace with the cutting planes


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

    def __init__(self, columns: Columns, upper: float) -> None:
        self.tol = 1e-9
        self._items = columns.triplets.slots()
        self._near, self._far, p = columns.triplets.triplet_slots()
        self._dual = HingeDual(p, self._near, self._far, columns.triplets.n_slots, upper=upper)

    def added(self, bits: Bools, cost: float) -> None:
        differs = (bits[self._items[0]] != bits[self._items[1]]).astype(np.int8)  # (n_slots,)
        self._dual.add_column(differs[self._far] - differs[self._near], cost)

    def solve(self, cost: Floats, w0: Floats) -> MasterSolution:
        return self._dual.solve()


class _Raised:
    """Columns under a loss whose least value is not 0: the cutting planes see F − least ≥ 0."""

    def __init__(self, columns: ColumnSums, least: float) -> None:
        self.adjoint, self._columns, self._least = columns.adjoint, columns, least

    @property
    def n_columns(self) -> int:
        return self._columns.n_columns

    def evaluate(self, w: Floats) -> tuple[float, Floats]:
        value, gradient = self._columns.evaluate(w)
        return value - self._least, gradient

    def slopes(self, w: Floats) -> tuple[float, Floats]:
        value, slopes = self._columns.slopes(w)
        return value - self._least, slopes


class CuttingPlaneMaster:
    """Any convex loss over any number of triplets, from evaluations alone."""

    stateful = True

    def __init__(self, columns: ColumnSums, upper: float) -> None:
        self.upper, self.tol = upper, 1e-4
        self._least = -float(np.asarray(columns.loss.conjugate(np.zeros(1)))[0])  # inf f
        self._raised = _Raised(columns, self._least)
        self._planes = CuttingPlane()

    def added(self, bits: Bools, cost: float) -> None:
        pass

    def solve(self, cost: Floats, w0: Floats) -> MasterSolution:
        self._planes.tol = self.tol
        found = self._planes.solve(self._raised, cost, self.upper)
        return replace(found, objective=found.objective + self._least, bound=found.bound + self._least)


def master_for(columns: ColumnSums, upper: float) -> Master:
    """The solver for a loss and a number of triplets."""
    if getattr(columns.loss, "smooth", True):
        return SmoothMaster(columns, upper)
    if isinstance(columns, Columns) and type(columns.loss) is Hinge and columns.n_triplets <= LP_TRIPLETS:
        return LinearProgramMaster(columns, upper)
    return CuttingPlaneMaster(columns, upper)
