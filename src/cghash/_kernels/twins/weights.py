"""Weights as whole numbers: NumPy twin of native/whole_weights.hpp."""

from __future__ import annotations

import numpy as np

from ..._arrays import Floats, Ints

_FINE = 52  # weights are whole multiples of 2^-52 of the scale: sums of them are exact in float64
_LEAST_EXPONENT = -1022  # so that the unit is a number above 0


def whole_rows(weights: Floats, n_columns: int) -> tuple[Ints, Floats]:
    """Rows of weights (q, n_bits) as whole multiples of each row's unit: (q, n_columns), zeros behind, and units (q,).

    ValueError where a weight is not finite, or negative, and where a sum is not finite.
    """
    n, n_bits = weights.shape
    if n_bits > n_columns:
        raise ValueError("weights must have rows of equal length, no longer than n_columns")
    if weights.size and not (weights.min() >= 0 and weights.max() < np.inf):
        raise ValueError("weights must be finite and 0 or more")
    with np.errstate(over="ignore"):
        totals = weights.sum(axis=1)
    if not np.all(np.isfinite(totals)):
        raise ValueError("weights must have a finite sum")
    exponents = np.maximum(np.frexp(totals)[1], _LEAST_EXPONENT)  # totals < 2^exponents
    whole = np.zeros((n, n_columns), dtype=np.int64)
    # in two steps: the power alone may be too large
    whole[:, :n_bits] = np.rint(weights * np.ldexp(1.0, -exponents)[:, None] * 2.0**_FINE)
    return whole, np.ldexp(1.0, exponents - _FINE)
