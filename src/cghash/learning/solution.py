"""What every solver of the master problem hands back."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._arrays import Floats


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
