"""Algorithm 1's view of triplets that lie in shares on many workers: only v, w and sums travel."""

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
from .frames import Frame, Planes
from .team import Team


@dataclass(frozen=True)
class Slopes:
    """The slopes at some weights, which stay with the shares; their adjoint."""

    w: Floats
    adjoint: Floats
    scale: float
    n_live: int


@dataclass(frozen=True)
class Told:
    """The bits of a plane, which stay with the shares, told apart by a key."""

    plane: Planes
    key: bytes


class PartedColumns:
    """`ColumnSums` over shares."""

    def __init__(self, team: Team, loss: Loss, n_triplets: int, n_slots: int) -> None:
        self.team, self.loss = team, loss
        self.triplets = None  # in memory
        self.n_triplets, self.n_slots = n_triplets, n_slots
        self.n_columns = self.n_evaluations = 0

    def append(self, bits: Told) -> None:
        before = self.team.history.planes
        planes = bits.plane if before is None else before.joined(bits.plane)
        self.team.change(replace(self.team.history, planes=planes, weights=None), "append", bits.plane)
        self.n_columns += 1

    def key(self, bits: Told) -> bytes:
        return bits.key

    def evaluate(self, w: Floats) -> tuple[float, Floats]:
        self.n_evaluations += 1
        value, gradient = self.team.total("evaluate", w)
        return value, gradient

    def slopes(self, w: Floats) -> tuple[float, Slopes]:
        value, adjoint, scale, n_live = self.team.change(replace(self.team.history, weights=w), "slopes", w)
        return value, Slopes(w, adjoint, scale, n_live)

    def adjoint(self, slopes: Slopes) -> Floats:
        return slopes.adjoint

    def counts(self, w: Floats) -> tuple[float, int]:
        share, live = self.team.total("counts", w)
        return min(share, 1.0), live

    def dual_value(self, w: Floats, scale: float) -> float:
        return float(self.team.total("dual_value", w, scale)[0])


class PartedPairs:
    """`PairWeights` over shares, and the `ItemSums` that a search makes over their live items."""

    def __init__(self, team: Team, columns: PartedColumns, n_items: int, n_features: int) -> None:
        self.team, self.columns = team, columns
        self.n_items, self.n_features = n_items, n_features
        self.scale, self.n_live, self.n_bytes = 0.0, 0, 0

    def set_slopes(self, slopes: Slopes, duplet: float) -> None:
        """The shares know them: a new column begins."""
        self.team.rebalance()
        if self.team.history.weights is not slopes.w:
            _, slopes = self.columns.slopes(slopes.w)
        self.scale, self.n_live = slopes.scale, slopes.n_live
        self.n_bytes = 4 * self.n_live * self.n_features

    def draw_gains(self, V: Singles, b: Singles) -> Array:
        return self.team.total("draw_gains", V, b)[0]  # type: ignore[no-any-return]

    def relaxed(self, points: Floats) -> tuple[Floats, Floats]:
        values, gradients = self.team.total("relaxed", points)
        return values, gradients

    def pull(self, direction: Direction, shift: float, signed: bool) -> Pull:
        return Pull(*self.team.total("pull", direction, shift, signed))

    def sign_gain(self, direction: Direction) -> float:
        return float(self.team.total("sign_gain", direction)[0])

    def moments(self, V: Singles) -> Moments:
        return Moments(*self.team.total("moments", V))

    def cut_gains(self, V: Singles, cuts: Floats) -> Floats:
        return self.team.total("cut_gains", V, cuts)[0]  # type: ignore[no-any-return]

    def ridge(self, share: float) -> Solver:
        return ridge_solver(self.team.total("gram")[0], share)


class PartedFamily(HyperplaneFamily):
    """Functions over a frame, searched by sums over shares."""

    def __init__(self, team: Team, frame: Frame, refined: bool) -> None:
        self.team, self.frame = team, frame
        self.pricing = frame.pricing(refined)

    def prepare(self, X: Any, rng: np.random.Generator, n_threads: int) -> None:
        """The frame was made already, from all shares."""

    def item_sums(self, pairs: PartedPairs) -> PartedPairs:
        return pairs

    def candidates(self, directions: list[Direction], pairs: PartedPairs) -> list[Candidate]:
        planes = [self.frame.plane(direction) for direction in directions]
        gains, told = self._told(planes)
        functions = [self.frame.functions(plane) for plane in planes]
        return [Candidate(*one) for one in zip(functions, told, gains.tolist(), strict=True)]

    def training_bits(self, function: Any) -> Any:
        return self._told([Planes(function.coef, function.intercept)])[1][0]

    def _told(self, planes: list[Planes]) -> tuple[Floats, list[Any]]:
        """The true gains of planes, and their bits."""
        together = Planes(*(np.concatenate(parts) for parts in zip(*planes, strict=True)))
        gains, numbers = self.team.total("candidates", together)
        keys = [(min(pair) % 2**128).to_bytes(16) for pair in numbers.tolist()]
        return gains, [Told(plane, key) for plane, key in zip(planes, keys, strict=True)]
