"""Pricing of h(x) = [φ(x)·v + b > 0] over standardised features φ.

The paper: h is relaxed to tanh (eq. 13) and the relaxed gain is climbed by L-BFGS from the best of random draws
v ~ N(0, 1), b ~ U(-1, 1). The hyperplane does not depend on the length of v, but the tanh does: left free, v grows in
the climb until the tanh is a sign, and the climb stalls beside the draw. So the tanh is of the distance from the
hyperplane there; draws are compared as they are.

Refined: also from the leading generalised eigenvector, and each result is polished on its true gain by
minorise–maximise steps, whose inner problem is a ridge regression with one factorisation for all columns
(design §3.6), and by the best threshold along its direction.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..._arrays import Array, Floats, Singles
from ..backend import MOST_CUTS, Direction, ItemSums, Pull, Solver
from ..lbfgs import descend
from .base import Candidate, Family, Functions, Priced, ranked
from .minorize import climb

_WIDEST = 4096  # features, up to which their Gram matrix is worth its d² numbers
_STEEPNESS = 12.0  # of the tanh, over a distance as long as an item of mean length
_SHORTEST = 1e-100  # length of v
_REACH = 3.0  # deviations to both sides of the mean, within which a threshold is looked for


@dataclass
class RelaxedGain:
    """¼·tᵀLt as a fraction of Σ|s|, to be maximised, with t = tanh(12·(Zv + b)/|v|): v may be of any length.

    Counts evaluations, and passes for them.
    """

    sums: ItemSums
    n_evaluations: int = 0
    n_rounds: int = 0  # each two passes over the features, for several evaluations

    def __call__(self, points: list[Floats]) -> list[tuple[float, Floats]]:
        """Values and gradients at points (d + 1,), v with b behind; negated, for a descent."""
        self.count(len(points))
        unit = 4.0 * self.sums.scale
        at = np.array(points)
        lengths = np.maximum(np.linalg.norm(at[:, :-1], axis=1, keepdims=True), _SHORTEST)
        stretch = _STEEPNESS / lengths
        values, gradients = self.sums.relaxed(at * stretch)
        gradients = gradients * stretch * (-2.0 / unit)
        # the function is the same for any length of (v, b), so that nothing is gained along it
        gradients[:, :-1] -= np.sum(gradients * at, axis=1, keepdims=True) * at[:, :-1] / lengths**2
        return [(-value / unit, gradient) for value, gradient in zip(values, gradients, strict=True)]

    def count(self, n_evaluations: int = 1) -> None:
        self.n_evaluations += n_evaluations
        self.n_rounds += 1


@dataclass
class ProjectionPricing:
    """Searches hyperplanes over features; `refined` adds what came after the paper."""

    refined: bool
    n_draws: int = 16
    max_iter: int = 30
    ridge: float = 1.0  # of the mean eigenvalue of ZᵀZ
    n_starts: int = 1
    n_power: int = 8

    def __post_init__(self) -> None:
        self._solve: Solver | None = None

    def search(self, sums: ItemSums, rng: np.random.Generator) -> tuple[list[Direction], int, int]:
        """Directions worth a look, the number of evaluations, and the bytes of features that they read."""
        relaxed = RelaxedGain(sums)
        draws = self._draw(sums, rng)
        starts, leading = [self._best(sums, draws)], []
        if self.refined and sums.n_features > _WIDEST:
            starts.append(self._best(sums, self._draw(sums, rng)))
        elif self.refined:
            leading = [self._leading(relaxed, rng) for _ in range(self.n_starts)]
            starts.append(leading[0])
        found = self._climb(relaxed, starts)
        if leading:
            for start in leading + found:
                found = found + self._polish(relaxed, start)
        if self.refined:
            found = found + self._cut(sums, np.column_stack([*(v for v, _ in found), draws[0][:, :4]]))
        return found, relaxed.n_evaluations, 2 * relaxed.n_rounds * sums.n_bytes

    def _draw(self, sums: ItemSums, rng: np.random.Generator) -> tuple[Singles, Singles]:
        """Random hyperplanes: v ~ N(0, 1) (d, draws), b ~ U(-1, 1) (draws,)."""
        V = rng.standard_normal((sums.n_features, self.n_draws)).astype(np.float32)
        return V, rng.uniform(-1.0, 1.0, self.n_draws).astype(np.float32)

    def _best(self, sums: ItemSums, draws: tuple[Any, Any]) -> Direction:
        """The draw with the largest relaxed gain."""
        V, b = draws
        best = int(np.argmax(sums.draw_gains(V, b)))
        return V[:, best].astype(np.float64), float(b[best])

    def _climb(self, relaxed: RelaxedGain, starts: list[Direction]) -> list[Direction]:
        """L-BFGS on the relaxed gain (eq. 13), from all starts at once, with v as long as the first step is: one."""
        ends = descend(relaxed, [np.append(v, b) / (np.linalg.norm(v) or 1.0) for v, b in starts], self.max_iter)
        return [_rounded(x[:-1], float(x[-1])) for x in ends]

    def _leading(self, relaxed: RelaxedGain, rng: np.random.Generator) -> Direction:
        """The leading generalised eigenvector of (ZᵀLZ, ZᵀZ), by power steps from a random one; values of size one."""
        sums = relaxed.sums
        direction: Direction = (rng.standard_normal(sums.n_features), 0.0)
        for _ in range(self.n_power):
            direction = self._regress(relaxed, sums.pull(direction, 1.0, signed=False))
        v, b = direction
        weight, first, second = sums.moments(v[:, None].astype(np.float32))
        square = (second[0] + 2.0 * b * first[0]) / weight + b * b if weight else 1.0
        size = float(np.sqrt(max(square, 0.0))) or 1.0
        return _rounded(v / size, b / size)

    def _polish(self, relaxed: RelaxedGain, start: Direction) -> list[Direction]:
        """Minorise–maximise on the true gain, each step a ridge regression."""

        def step(direction: Direction, shift: float) -> tuple[Direction, float] | None:
            pull = relaxed.sums.pull(direction, shift, signed=True)
            if not pull.absolute:
                return None
            new = self._regress(relaxed, pull)
            return new, relaxed.sums.sign_gain(new)

        return climb(start, step)[-1:]

    def _regress(self, relaxed: RelaxedGain, pull: Pull) -> Direction:
        """The hyperplane that fits a target (n_live,) best, other items having the target 0; Z is centred."""
        relaxed.count()
        sums = relaxed.sums
        scale = pull.absolute / sums.n_items or 1.0
        if self._solve is None:
            self._solve = sums.ridge(self.ridge)
        v = self._solve(pull.right) / scale
        return _rounded(v, pull.total / (sums.n_items * scale))

    def _cut(self, sums: ItemSums, V: Array) -> list[Direction]:
        """Each direction (d, m) with a threshold of large true gain: the best of many, then of many beside it."""
        V = V.astype(np.float32)
        weight, first, second = sums.moments(V)
        if not weight:
            return []
        middle, lines = first / weight, np.arange(V.shape[1])
        width = _REACH * np.sqrt(np.maximum(second / weight - middle**2, 0.0))
        for _ in range(2):
            cuts = middle[:, None] + width[:, None] * np.linspace(-1.0, 1.0, MOST_CUTS)  # (m, T)
            best = np.argmax(sums.cut_gains(V, cuts), axis=1)
            middle, width = cuts[lines, best], width * (2.0 / (MOST_CUTS - 1))
        return [(V[:, m].astype(np.float64), -float(middle[m])) for m in lines.tolist()]


class HyperplaneFamily(Family):
    """Hyperplanes over features of items, searched by sums over these, wherever they are."""

    pricing: ProjectionPricing

    def price(self, pairs: Any, rng: np.random.Generator, taken: Functions | None) -> Priced:
        directions, n_evaluations, n_bytes = self.pricing.search(self.item_sums(pairs), rng)
        candidates = self.candidates(directions, pairs)
        return ranked(candidates, n_evaluations=n_evaluations, bytes_read=n_bytes)

    @abstractmethod
    def item_sums(self, pairs: Any) -> ItemSums:
        """Sums over the items that are live in these pairs."""

    @abstractmethod
    def candidates(self, directions: list[Direction], pairs: Any) -> list[Candidate]:
        """The hash functions of directions, their bits and their true gains."""


def _rounded(v: Floats, b: float) -> Direction:
    """A direction to 12 binary digits: what sums in another order changed at the last place goes no further.

    A search amplifies such changes from step to step, and would end at another function.
    """
    fraction, exponent = np.frexp(np.append(v, b))
    both = np.ldexp(np.round(fraction * 4096.0), exponent - 12)
    return both[:-1], float(both[-1])
