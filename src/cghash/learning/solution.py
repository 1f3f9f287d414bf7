"""What a master problem's solver returns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class MasterSolution:
    """Solution of a restricted master problem.

    `slopes` (n_slots,) are ∂F/∂D aggregated from the dual solution: p·u summed over the triplets of a pair, positive on
    near slots and negative on far slots. `bound` is a lower bound of this restricted problem's optimum.
    """

    w: NDArray[np.float64]
    objective: float
    bound: float
    slopes: NDArray[np.float64]
    n_evaluations: int
    converged: bool

    @property
    def gap(self) -> float:
        return max(0.0, self.objective - self.bound)
