"""Standardised training features that pricing multiplies by: dense float32, or sparse with its mean kept aside."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from .base import rows_in_blocks

Singles = NDArray[np.float32]


@dataclass(frozen=True)
class Scaler:
    """x ↦ (x − mean) / scale; scale is √d·deviation, so that v ~ N(0, 1) projects to values of about one."""

    mean: NDArray[np.float64]  # (d,)
    scale: NDArray[np.float64]  # (d,)

    def to_input(self, v: NDArray[Any], b: float) -> tuple[NDArray[np.float64], float]:
        """The same hyperplane in the units of the input: coefficients (d,) and intercept."""
        coef = np.asarray(v, dtype=np.float64) / self.scale
        return coef, float(b - self.mean @ coef)

    def to_input_values(self, values: NDArray[Any], feature: NDArray[Any]) -> NDArray[np.float64]:
        """Values of some features, in the units of the input; a constant feature's is its mean."""
        scale = np.where(np.isfinite(self.scale), self.scale, 0.0)
        return np.asarray(self.mean[feature] + scale[feature] * values)


def fit_scaler(X: Any) -> Scaler:
    """Mean and scale of each feature, in float64; a constant feature keeps its own scale and gets no say."""
    n, d = X.shape
    if sp.issparse(X):
        mean = np.asarray(X.mean(axis=0), dtype=np.float64).ravel()
        square = np.asarray(X.multiply(X).mean(axis=0), dtype=np.float64).ravel()
        variance = np.maximum(square - mean**2, 0.0)
    else:
        mean = np.mean(X, axis=0, dtype=np.float64)
        total = np.zeros(d)
        for rows in rows_in_blocks(n):
            total += np.sum((X[rows] - mean) ** 2, axis=0)
        variance = total / n
    deviation = np.sqrt(variance)
    noise = 1e-10 if X.dtype == np.float64 and not sp.issparse(X) else 1e-7  # of rounded items or squares
    negligible = deviation <= noise * np.abs(mean) + np.finfo(np.float64).tiny
    return Scaler(mean, np.where(negligible, np.inf, deviation * np.sqrt(d)))


class Features:
    """Standardised features Z (n, d); `dot` and `tdot` are the two passes of a pricing evaluation."""

    def __init__(self, matrix: Any, shift: Singles | None = None) -> None:
        self.matrix, self.shift = matrix, shift  # Z = matrix − 1·shiftᵀ

    @property
    def shape(self) -> tuple[int, int]:
        return self.matrix.shape  # type: ignore[no-any-return]

    @property
    def n_bytes(self) -> int:
        return int(self.matrix.data.nbytes if sp.issparse(self.matrix) else self.matrix.nbytes)

    def dot(self, v: Singles) -> Singles:
        """Z·v for v (d,) or (d, m)."""
        product = self.matrix @ v
        return np.asarray(product if self.shift is None else product - self.shift @ v)

    def tdot(self, r: Singles) -> Singles:
        """Zᵀ·r for r (n,) or (n, m)."""
        product = self.matrix.T @ r
        shifted = product if self.shift is None else product - np.multiply.outer(self.shift, r.sum(axis=0))
        return np.asarray(shifted)

    def take(self, rows: NDArray[np.int64]) -> Features:
        """The features of some items; all of them when nearly all are asked for."""
        return self if len(rows) == self.shape[0] else Features(self.matrix[rows], self.shift)

    def gram(self) -> NDArray[np.float64]:
        """ZᵀZ (d, d)."""
        product = self.matrix.T @ self.matrix
        dense = np.asarray(product.todense() if sp.issparse(product) else product, dtype=np.float64)
        if self.shift is None:
            return dense
        total = np.asarray(self.matrix.sum(axis=0), dtype=np.float64).ravel()
        cross = np.multiply.outer(total, self.shift.astype(np.float64))
        return dense - cross - cross.T + self.shape[0] * np.multiply.outer(self.shift, self.shift).astype(np.float64)


def standardized(X: Any, scaler: Scaler) -> Features:
    """Features of X under a scaler, in float32; X stays as it is."""
    if sp.issparse(X):
        inverse = (1.0 / scaler.scale).astype(np.float32)
        matrix = sp.csr_matrix(X.astype(np.float32) @ sp.diags(inverse))
        return Features(matrix, (scaler.mean / scaler.scale).astype(np.float32))
    Z = np.empty(X.shape, dtype=np.float32)
    for rows in rows_in_blocks(X.shape[0]):
        Z[rows] = (X[rows] - scaler.mean) / scaler.scale
    return Features(Z)
