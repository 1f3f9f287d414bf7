"""The backend of a cluster: triplets lie in partitions on many workers, and only v, w and sums travel."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..._arrays import Array, Floats, Singles
from ...learning.backend import Direction, Moments, Pull, Solver
from ...learning.cpu.item_sums import ridge_solver
from ...learning.families.base import Candidate
from ...learning.families.projection import HyperplaneFamily
from ...learning.losses import Loss
from .actors import ActorPool
from .feature_maps import FeatureMap, Planes


@dataclass(frozen=True)
class Slopes:
    """The slopes at some weights, which stay with the partitions; their adjoint."""

    w: Floats
    adjoint: Floats
    scale: float
    n_live: int


@dataclass(frozen=True)
class Told:
    """The bits of a plane, which stay with the partitions, told apart by a key."""

    plane: Planes
    key: bytes


class ClusterColumns:
    """`ColumnSums` over partitions."""

    def __init__(self, pool: ActorPool, loss: Loss, n_triplets: int, n_slots: int) -> None:
        self.pool, self.loss = pool, loss
        self.triplets = None  # in memory
        self.n_triplets, self.n_slots = n_triplets, n_slots
        self.n_columns = self.n_evaluations = 0

    def append(self, bits: Told) -> None:
        before = self.pool.history.planes
        planes = bits.plane if before is None else before.joined(bits.plane)
        self.pool.change(replace(self.pool.history, planes=planes, weights=None), "append", bits.plane)
        self.n_columns += 1

    def key(self, bits: Told) -> bytes:
        return bits.key

    def evaluate(self, w: Floats) -> tuple[float, Floats]:
        self.n_evaluations += 1
        value, gradient = self.pool.total("evaluate", w)
        return value, gradient

    def slopes(self, w: Floats) -> tuple[float, Slopes]:
        value, adjoint, scale, n_live = self.pool.change(replace(self.pool.history, weights=w), "slopes", w)
        return value, Slopes(w, adjoint, scale, n_live)

    def adjoint(self, slopes: Slopes) -> Floats:
        return slopes.adjoint

    def counts(self, w: Floats) -> tuple[float, int]:
        share, live = self.pool.total("counts", w)
        return min(share, 1.0), live

    def dual_value(self, w: Floats, scale: float) -> float:
        return float(self.pool.total("dual_value", w, scale)[0])


class ClusterPairs:
    """`PairWeights` over partitions, and the `ItemSums` that a search makes over their live items."""

    def __init__(self, pool: ActorPool, columns: ClusterColumns, n_items: int, n_features: int) -> None:
        self.pool, self.columns = pool, columns
        self.n_items, self.n_features = n_items, n_features
        self.scale, self.n_live, self.n_bytes = 0.0, 0, 0

    def set_slopes(self, slopes: Slopes, duplet: float) -> None:
        """The partitions know them: a new column begins."""
        self.pool.rebalance()
        if self.pool.history.weights is not slopes.w:
            _, slopes = self.columns.slopes(slopes.w)
        self.scale, self.n_live = slopes.scale, slopes.n_live
        self.n_bytes = 4 * self.n_live * self.n_features

    def draw_gains(self, V: Singles, b: Singles) -> Array:
        return self.pool.total("draw_gains", V, b)[0]  # type: ignore[no-any-return]

    def relaxed(self, points: Floats) -> tuple[Floats, Floats]:
        values, gradients = self.pool.total("relaxed", points)
        return values, gradients

    def pull(self, direction: Direction, shift: float, signed: bool) -> Pull:
        return Pull(*self.pool.total("pull", direction, shift, signed))

    def sign_gain(self, direction: Direction) -> float:
        return float(self.pool.total("sign_gain", direction)[0])

    def moments(self, V: Singles) -> Moments:
        return Moments(*self.pool.total("moments", V))

    def cut_gains(self, V: Singles, cuts: Floats) -> Floats:
        return self.pool.total("cut_gains", V, cuts)[0]  # type: ignore[no-any-return]

    def ridge(self, share: float) -> Solver:
        return ridge_solver(self.pool.total("gram")[0], share)


class ClusterFamily(HyperplaneFamily):
    """Functions over the features of a map, searched by sums over partitions."""

    def __init__(self, pool: ActorPool, feature_map: FeatureMap, refined: bool) -> None:
        self.pool, self.feature_map = pool, feature_map
        self.pricing = feature_map.pricing(refined)

    def prepare(self, X: Any, rng: np.random.Generator, n_threads: int) -> None:
        """The feature map was made already, from all partitions."""

    def item_sums(self, pairs: ClusterPairs) -> ClusterPairs:
        return pairs

    def candidates(self, directions: list[Direction], pairs: ClusterPairs) -> list[Candidate]:
        planes = [self.feature_map.plane(direction) for direction in directions]
        gains, told = self._told(planes)
        functions = [self.feature_map.functions(plane) for plane in planes]
        return [Candidate(*one) for one in zip(functions, told, gains.tolist(), strict=True)]

    def training_bits(self, function: Any) -> Any:
        return self._told([Planes(function.coef, function.intercept)])[1][0]

    def _told(self, planes: list[Planes]) -> tuple[Floats, list[Any]]:
        """The true gains of planes, and their bits."""
        together = Planes(*(np.concatenate(parts) for parts in zip(*planes, strict=True)))
        gains, numbers = self.pool.total("candidates", together)
        keys = [(min(pair) % 2**128).to_bytes(16) for pair in numbers.tolist()]
        return gains, [Told(plane, key) for plane, key in zip(planes, keys, strict=True)]
