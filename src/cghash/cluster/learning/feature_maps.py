"""What all partitions must agree on before hyperplanes are searched: how items become features.

Functions of both families are hyperplanes, (coef, intercept) over the features of an item: so they travel, and
landmarks do not.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from ..._arrays import Array, Bools, Floats, Singles, rows_in_blocks
from ...learning.backend import Direction
from ...learning.cpu.features import Features, Scaler, in_bytes, standardized
from ...learning.families.linear import LinearFunctions, projected_bits
from ...learning.families.projection import ProjectionPricing
from ...learning.families.rbf import RBFFunctions, bumps, pricing_over_bumps


class Planes(NamedTuple):
    """Hyperplanes over the features of items."""

    coef: Floats  # (m, d)
    intercept: Floats  # (m,)

    def joined(self, other: Planes) -> Planes:
        return Planes(*(np.concatenate(both) for both in zip(self, other, strict=True)))

    def bits(self, matrix: Array, n_threads: int) -> Bools:
        """The bits (n, m), to the last one as the functions' own."""
        return projected_bits(matrix, self.coef, self.intercept, n_threads)


class Prepared(NamedTuple):
    """Items as a feature map gives them."""

    matrix: Array  # that planes are over
    features: Features  # that the search is over


class FeatureMap(Protocol):
    """Items to features, directions over features to planes, and planes to hash functions."""

    @property
    def n_features(self) -> int: ...
    def prepared(self, X: Array, n_threads: int) -> Prepared: ...
    def plane(self, direction: Direction) -> Planes: ...
    def functions(self, planes: Planes) -> LinearFunctions | RBFFunctions: ...
    def pricing(self, refined: bool) -> ProjectionPricing: ...


@dataclass(frozen=True)
class LinearFeatureMap:
    """Features are standardised items."""

    scaler: Scaler
    are_bytes: bool = False  # whether the items are bytes, and kept so

    @property
    def n_features(self) -> int:
        return len(self.scaler.mean)

    def prepared(self, X: Array, n_threads: int) -> Prepared:
        return Prepared(X, (in_bytes if self.are_bytes else standardized)(X, self.scaler, n_threads))

    def plane(self, direction: Direction) -> Planes:
        coef, intercept = self.scaler.to_input(*direction)
        return Planes(coef[None, :], np.array([intercept]))

    def functions(self, planes: Planes) -> LinearFunctions:
        return LinearFunctions(*planes)

    def pricing(self, refined: bool) -> ProjectionPricing:
        return ProjectionPricing(refined)


@dataclass(frozen=True)
class RBFFeatureMap:
    """Features are bumps around landmarks, of length one on average."""

    landmarks: Floats  # (m, d)
    gamma: float
    mean: Floats | float = 0.0  # (m,) of the bumps over all items
    size: float = 1.0

    @property
    def n_features(self) -> int:
        return len(self.landmarks)

    def bumps(self, X: Array) -> Singles:
        """(n, m), before they are divided by their size."""
        blocks = [bumps(X[rows], self.landmarks, self.gamma, self.mean) for rows in rows_in_blocks(len(X))]
        return np.concatenate([np.zeros((0, len(self.landmarks)), np.float32), *blocks])

    def prepared(self, X: Array, n_threads: int) -> Prepared:
        matrix = self.bumps(X)
        return Prepared(matrix, Features(matrix / np.float32(self.size), n_threads=n_threads))

    def plane(self, direction: Direction) -> Planes:
        return Planes(direction[0][None, :] / self.size, np.array([direction[1]]))

    def functions(self, planes: Planes) -> RBFFunctions:
        return RBFFunctions(*planes, self.landmarks, np.array([self.gamma]), np.asarray(self.mean))

    def pricing(self, refined: bool) -> ProjectionPricing:
        return pricing_over_bumps(refined)
