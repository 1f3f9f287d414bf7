"""Products over few axes, which bound those over all features."""

from __future__ import annotations

import numpy as np

from ..._arrays import Floats, Singles
from .bounds import DOUBLE, SINGLE
from .workers import Workers

LEADING_FROM = 12000, 192  # items and features from which leading axes can pay
LEADING_MOST = 1 / 3  # of the features that they may be
_LEADING, _MORE = 0.9, 0.98  # of the variance that the leading axes must hold, and these with the further ones
_ROWS = 2048  # items at a time


class LeadingAxes:
    """Few axes, and more of them, whose products bound the products of whole items from above.

    With V (d, p) orthonormal and r_x the length of what Vᵀx leaves of x, |x - y|² ≥ |Vᵀx - Vᵀy|² + (r_x - r_y)². So
    z_x = (Vᵀx, r_x) has the length of x, and x·y ≤ z_x·z_y. `axes` are z of the leading axes; their r is `rest`, and
    in its place `more` has the further axes, and what these leave. A last axis √c·|x| adds c|x||y|, which covers
    all rounding, for p axes together:

    - float64, and axes not quite orthonormal (by what float64 finds, and p·d·unit that it may miss), change |Vᵀx|² and
      so r_x² by at most ε|x|², hence r_x by √ε|x|;
    - rounding z to float32 and the former change z by η|x|, η = 2·unit + √ε, and a product by (2η + η²)|x||y|;
    - float32 products over the leading and over the further axes err by γ|x||y| together, γ = q·unit / (1 - q·unit)
      with q = p + 16 in any order of summation; of the 16, 12 are for rest·rest taken out and further axes put in.

    c is twice their sum. `low` is |y|²/2 and `extra` is added to a threshold such that their rounding, and that of
    the difference, are covered too: each by 4·unit times the squared length, where less than 3 is needed.
    """

    def __init__(self, X: Singles, squares: Floats, V: Floats, n_leading: int, workers: Workers) -> None:
        d, p = V.shape
        skew = float(np.linalg.norm(V.T @ V - np.eye(p)))
        epsilon = (4 * (1 + np.sqrt(p)) * (d + p) + 2 * p * d) * DOUBLE + 2 * skew
        eta = 2 * SINGLE + np.sqrt(epsilon)
        gamma = (p + 16) * SINGLE / (1 - (p + 16) * SINGLE)
        c = 2 * (2 * eta + eta**2 + gamma)
        self.axes = np.empty((len(X), n_leading + 2), dtype=np.float32)
        self.more = np.empty((len(X), p - n_leading + 1), dtype=np.float32)

        def project(first: int) -> None:
            rows = slice(first, first + _ROWS)
            along = X[rows].astype(np.float64) @ V
            self.axes[rows, :n_leading], self.more[rows, :-1] = along[:, :n_leading], along[:, n_leading:]
            for out, some in ((self.axes[rows, n_leading], along[:, :n_leading]), (self.more[rows, -1], along)):
                out[:] = np.sqrt(np.maximum(squares[rows] - np.einsum("ij,ij->i", some, some), 0.0))

        workers.each(project, range(0, len(X), _ROWS))
        self.rest = self.axes[:, n_leading].copy()  # (n,)
        self.axes[:, -1] = np.sqrt(c * squares) * (1 + 4 * SINGLE)
        self.low = (squares / 2 - 4 * SINGLE * squares).astype(np.float32)  # (n,)
        self.extra = (4 * SINGLE * squares + (d + 1) * 2.0**-100).astype(np.float32)  # (n,)

    @property
    def bounds(self) -> dict[str, Singles]:
        """What finishes products of `axes`, as the kernel takes it."""
        return {"low": self.low, "extra": self.extra, "rest": self.rest, "more": self.more}

    @classmethod
    def of(cls, X: Singles, squares: Floats, workers: Workers) -> LeadingAxes | None:
        """Principal axes of some items, or None where they would not pay."""
        (n, d), (n_least, d_least) = X.shape, LEADING_FROM
        if n < n_least or d < d_least or d > 4096:
            return None
        some = X[:: max(1, n // 4096)].astype(np.float64)
        variances, V = np.linalg.eigh(some.T @ some)
        held = np.cumsum(variances[::-1])
        n_leading, p = (32 * (int(np.searchsorted(held, share * held[-1])) // 32 + 1) for share in (_LEADING, _MORE))
        if n_leading > LEADING_MOST * d:
            return None
        p = min(max(p - 1, n_leading), d)  # what is left of an item makes the columns of `more` a multiple of 32
        return cls(X, squares, np.ascontiguousarray(V[:, ::-1][:, :p]), n_leading, workers)
