"""Products over few axes, which bound those over all features."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from .bounds import DOUBLE, SINGLE

Floats = NDArray[np.float64]
Singles = NDArray[np.float32]

LEADING_FROM = 16384, 192  # items and features from which leading axes can pay
LEADING_MOST = 1 / 3  # of the features that they may be
_SHARE = 0.93  # of the variance that they must hold
_ROWS = 2048  # items at a time


class LeadingAxes:
    """Few axes whose products bound the products of whole items from above.

    With V (d, p) orthonormal and r_x the length of what Vᵀx leaves of x, |x - y|² ≥ |Vᵀx - Vᵀy|² + (r_x - r_y)². So
    z_x = (Vᵀx, r_x) has the length of x, and x·y ≤ z_x·z_y. A last axis √c·|x| adds c|x||y|, which covers all
    rounding in it:

    - float64, and axes not quite orthonormal, change |Vᵀx|² and so r_x² by at most ε|x|², hence r_x by √ε|x|;
    - rounding z to float32 and the former change z by η|x|, η = 2·unit + √ε, and a product by (2η + η²)|x||y|;
    - the float32 product errs by γ|x||y|, γ = (p + 2)·unit / (1 - (p + 2)·unit), in any order of summation.

    c is twice their sum. `low` is |y|²/2 and `extra` is added to a threshold such that their rounding, and that of
    the difference, are covered too: each by 4·unit times the squared length, where less than 3 is needed.
    """

    def __init__(self, X: Singles, squares: Floats, V: Floats) -> None:
        d, p = V.shape
        skew = float(np.linalg.norm(V.T @ V - np.eye(p)))
        epsilon = 4 * (1 + np.sqrt(p)) * (d + p) * DOUBLE + 2 * skew
        eta = 2 * SINGLE + np.sqrt(epsilon)
        gamma = (p + 2) * SINGLE / (1 - (p + 2) * SINGLE)
        c = 2 * (2 * eta + eta**2 + gamma)
        self.axes = np.empty((len(X), p + 2), dtype=np.float32)
        for first in range(0, len(X), _ROWS):
            rows = slice(first, first + _ROWS)
            leading = X[rows].astype(np.float64) @ V
            self.axes[rows, :p] = leading
            rest = squares[rows] - np.einsum("ij,ij->i", leading, leading)
            self.axes[rows, p] = np.sqrt(np.maximum(rest, 0.0))
        self.axes[:, p + 1] = np.sqrt(c * squares) * (1 + 4 * SINGLE)
        self.low = (squares / 2 - 4 * SINGLE * squares).astype(np.float32)  # (n,)
        self.extra = (4 * SINGLE * squares + (d + 1) * 2.0**-100).astype(np.float32)  # (n,)

    @classmethod
    def of(cls, X: Singles, squares: Floats) -> LeadingAxes | None:
        """Principal axes of some items, or None where they would not pay."""
        (n, d), (n_least, d_least) = X.shape, LEADING_FROM
        if n < n_least or d < d_least or d > 4096:
            return None
        some = X[:: max(1, n // 4096)].astype(np.float64)
        gram = some.T @ some
        with threadpool_limits(1, user_api="blas"):  # threads that wait for each other cost more than they save here
            variances, V = np.linalg.eigh(gram)
        held = np.cumsum(variances[::-1])
        p = 32 * (int(np.searchsorted(held, _SHARE * held[-1])) // 32 + 1)
        return cls(X, squares, np.ascontiguousarray(V[:, ::-1][:, :p])) if p <= LEADING_MOST * d else None
