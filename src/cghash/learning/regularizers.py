"""Regularisers as what the master problem sees: a cost per unit of weight, and an upper bound of the weights.

| regulariser   | cost of column j | upper bound | paper                              |
|---------------|------------------|-------------|------------------------------------|
| l1            | C                | ∞           | eq. 7                              |
| l1 + duplets  | C·s_j            | ∞           | "Extension": a weighted l1         |
| linf          | 0                | C′          | eq. 15                             |
| linf + duplets| s_j              | C′          |                                    |

s_j is the share of duplets whose two items get different bits j, so Σ s_j w_j is their mean distance.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._arrays import Bools, Ints
from .._validation import check_choice
from ..exceptions import InvalidInputError

REGULARIZERS = ("l1", "linf")


@dataclass(frozen=True)
class Regularizer:
    """cost_j = flat + duplet·s_j for each unit of w_j, and 0 ≤ w_j ≤ upper."""

    flat: float
    duplet: float
    upper: float
    duplets: Ints  # (k, 2) row numbers

    def spread(self, bits: Bools) -> float:
        """s_j: the share of duplets that a hash function's bits (n,) tear apart."""
        if not len(self.duplets):
            return 0.0
        return float(np.mean(bits[self.duplets[:, 0]] != bits[self.duplets[:, 1]]))

    def cost(self, bits: Bools) -> float:
        """What one unit of this hash function's weight costs."""
        return self.flat + self.duplet * self.spread(bits)

    @property
    def bounded(self) -> bool:
        return bool(np.isfinite(self.upper))


def regularizer_of(name: str, C: float, duplets: Ints | None) -> Regularizer:
    """The regulariser that the parameters mean; C is C′ under linf."""
    check_choice(name, REGULARIZERS, "regularizer")
    if not (np.isfinite(C) and C > 0):
        raise InvalidInputError(f"C must be a positive number, got {C!r}")
    pairs = np.zeros((0, 2), dtype=np.int64) if duplets is None else duplets
    joined = len(pairs) > 0
    if name == "l1":
        return Regularizer(0.0 if joined else C, C if joined else 0.0, np.inf, pairs)
    return Regularizer(0.0, 1.0 if joined else 0.0, C, pairs)
