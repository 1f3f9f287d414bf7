"""Linear hash functions h(x) = [x·coef + intercept > 0] (eq. 13 before its relaxation)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from ..._arrays import Bools, Floats, rows_in_blocks
from ..._kernels import project
from ...exceptions import FormatError
from ..backend import Direction
from ..cpu.features import Scaler, are_bytes, bytes_pay, fit_scaler, in_bytes, standardized
from ..cpu.item_sums import CpuItemSums
from ..cpu.pairs import SignedPairs
from .base import ArrayFunctions, Candidate, Functions, one_by_one, weighed
from .projection import HyperplaneFamily, ProjectionPricing


@dataclass(frozen=True)
class LinearFunctions(ArrayFunctions):
    """Hyperplanes in the units of the input."""

    family: ClassVar[str] = "linear"
    coef: Floats  # (ℓ, d)
    intercept: Floats  # (ℓ,)

    @classmethod
    def along(cls, directions: Sequence[Direction], scaler: Scaler) -> LinearFunctions:
        """The functions of hyperplanes over standardised features."""
        coef, intercept = zip(*(scaler.to_input(*direction) for direction in directions), strict=True)
        return cls(np.array(coef), np.array(intercept))

    def bits(self, X: Any, n_threads: int = 1) -> Bools:
        return projected_bits(X, self.coef, self.intercept, n_threads)

    def margins(self, X: Any, n_threads: int = 1) -> Floats:
        return projected(X, self.coef, self.intercept, n_threads)

    def takes(self, n_features: int) -> bool:
        return bool(self.coef.shape[1] == n_features)

    def check(self) -> None:
        if self.coef.ndim != 2 or self.intercept.ndim != 1:
            raise FormatError("linear functions must have coef (ℓ, d) and intercept (ℓ,)")


def projected(X: Any, coef: Floats, intercept: Floats, n_threads: int) -> Floats:
    """X·coefᵀ + intercept (n, ℓ), in the blocks of rows of `projected_bits`."""
    out = np.empty((X.shape[0], len(coef)))
    for rows in rows_in_blocks(X.shape[0]):
        out[rows] = _projected_block(X[rows], coef, intercept, n_threads)
    return out


def projected_bits(X: Any, coef: Floats, intercept: Floats, n_threads: int) -> Bools:
    """[X·coefᵀ + intercept > 0] (n, ℓ), in blocks of rows."""
    out = np.empty((X.shape[0], len(coef)), dtype=bool)
    for rows in rows_in_blocks(X.shape[0]):
        out[rows] = _projected_block(X[rows], coef, intercept, n_threads) > 0
    return out


def _projected_block(X: Any, coef: Floats, intercept: Floats, n_threads: int) -> Any:
    product = X @ coef.T if sp.issparse(X) else project(np.ascontiguousarray(X), coef, n_threads)
    return product + intercept


class LinearFamily(HyperplaneFamily):
    """All hyperplanes, searched by the tanh relaxation and, refined, by more (projection.py)."""

    def __init__(self, refined: bool) -> None:
        self.refined = refined

    def prepare(self, X: Any, rng: np.random.Generator, n_threads: int) -> None:
        self.X, self.n_threads = X, n_threads
        self.scaler = fit_scaler(X)
        as_bytes = not sp.issparse(X) and bytes_pay(X.size, self.scaler) and are_bytes(X)
        self.features = (in_bytes if as_bytes else standardized)(X, self.scaler, n_threads)
        self.pricing = ProjectionPricing(self.refined)

    def item_sums(self, pairs: SignedPairs) -> CpuItemSums:
        return CpuItemSums(self.features, pairs)

    def candidates(self, directions: list[Direction], pairs: SignedPairs) -> list[Candidate]:
        functions = LinearFunctions.along(directions, self.scaler)
        return weighed(pairs, one_by_one(functions, functions.bits(self.X, self.n_threads)))

    def training_bits(self, function: Functions) -> Bools:
        return function.bits(self.X, self.n_threads)[:, 0]
