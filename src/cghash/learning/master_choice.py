"""Which solver serves which loss."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from .columns import Columns
from .master import solve_smooth
from .solution import MasterSolution

Floats = NDArray[np.float64]


class Master(Protocol):
    """Solves the restricted master problems of one run, one after another."""

    stateful: bool  # whether an answer depends on the answers before it

    def start(self) -> MasterSolution: ...

    def added(self, bits: NDArray[np.bool_]) -> None: ...

    def solve(self, cost: Floats, upper: float, w0: Floats, tol: float) -> MasterSolution: ...

    def at(self, w: Floats, cost: Floats, upper: float) -> MasterSolution: ...


class SmoothMaster:
    """Smooth losses: L-BFGS-B, each problem from the weights of the one before."""

    stateful = False

    def __init__(self, columns: Columns) -> None:
        self.columns = columns

    def start(self) -> MasterSolution:
        return self.at(np.zeros(0), np.zeros(0), np.inf)

    def added(self, bits: NDArray[np.bool_]) -> None:
        pass

    def solve(self, cost: Floats, upper: float, w0: Floats, tol: float) -> MasterSolution:
        return solve_smooth(self.columns, cost, upper, w0, tol)

    def at(self, w: Floats, cost: Floats, upper: float) -> MasterSolution:
        value, slopes = self.columns.slopes(w)
        objective = value + float(cost @ w)
        return MasterSolution(w, objective, 0.0, slopes, 0, True)


def master_for(columns: Columns) -> Master:
    """The solver for a loss and a number of triplets."""
    return SmoothMaster(columns)
