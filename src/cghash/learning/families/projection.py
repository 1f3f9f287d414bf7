"""Pricing of h(x) = [φ(x)·v + b > 0] over standardised features φ.

The paper: h is relaxed to tanh (eq. 13) and the relaxed gain is climbed by L-BFGS from the best of random draws
v ~ N(0, 1), b ~ U(-1, 1). Refined: also from the leading generalised eigenvector, and each result is polished on its
true gain by minorise–maximise steps, whose inner problem is a ridge regression with one factorisation for all columns
(design §3.6), and by the best threshold along its direction.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray
from scipy.optimize import minimize

from .minorize import climb
from .passes import Direction, Passes, Pull

_WIDEST = 4096  # features, up to which their Gram matrix is worth its d² numbers


@dataclass
class RelaxedGain:
    """¼·tᵀLt with t = tanh(Zv + b), as a fraction of Σ|s|, to be maximised; counts its evaluations."""

    passes: Passes
    n_evaluations: int = 0

    def __call__(self, x: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        """Value and gradient, negated for a minimiser; x is v with b behind."""
        self.n_evaluations += 1
        value, gradient = self.passes.relaxed((x[:-1], float(x[-1])))
        unit = 4.0 * self.passes.scale
        return -value / unit, -2.0 * gradient / unit


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
        self._factor: Any = None

    def search(self, passes: Passes, rng: np.random.Generator) -> tuple[list[Direction], int, int]:
        """Directions worth a look, the number of evaluations, and the bytes of features that they read."""
        relaxed = RelaxedGain(passes)
        draws = self._draw(passes, rng)
        found = [self._climb(relaxed, self._best(passes, draws))]
        if self.refined and passes.n_features > _WIDEST:
            found.append(self._climb(relaxed, self._best(passes, self._draw(passes, rng))))
        elif self.refined:
            leading = [self._leading(relaxed, rng) for _ in range(self.n_starts)]
            found.append(self._climb(relaxed, leading[0]))
            for start in leading + found:
                found = found + self._polish(relaxed, start)
        if self.refined:
            V = np.column_stack([*(v for v, _ in found), draws[0][:, :4]]).astype(np.float32)  # (d, m)
            found = found + passes.cuts(V)
        return found, relaxed.n_evaluations, 2 * relaxed.n_evaluations * passes.n_bytes

    def _draw(self, passes: Passes, rng: np.random.Generator) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Random hyperplanes: v ~ N(0, 1) (d, draws), b ~ U(-1, 1) (draws,)."""
        V = rng.standard_normal((passes.n_features, self.n_draws)).astype(np.float32)
        return V, rng.uniform(-1.0, 1.0, self.n_draws).astype(np.float32)

    def _best(self, passes: Passes, draws: tuple[Any, Any]) -> Direction:
        """The draw with the largest relaxed gain."""
        V, b = draws
        best = int(np.argmax(passes.draw_gains(V, b)))
        return V[:, best].astype(np.float64), float(b[best])

    def _climb(self, relaxed: RelaxedGain, start: Direction) -> Direction:
        """L-BFGS on the relaxed gain (eq. 13)."""
        options = {"maxiter": self.max_iter, "maxcor": 10}
        x = minimize(relaxed, np.append(*start), jac=True, method="L-BFGS-B", options=options).x
        return x[:-1], float(x[-1])

    def _leading(self, relaxed: RelaxedGain, rng: np.random.Generator) -> Direction:
        """The leading generalised eigenvector of (ZᵀLZ, ZᵀZ), by power steps from a random one; values of size one."""
        passes = relaxed.passes
        direction: Direction = (rng.standard_normal(passes.n_features), 0.0)
        for _ in range(self.n_power):
            direction = self._regress(relaxed, passes.pull(direction, 1.0, signed=False))
        size = float(np.sqrt(passes.square(direction) / passes.n_live)) or 1.0
        return direction[0] / size, direction[1] / size

    def _polish(self, relaxed: RelaxedGain, start: Direction) -> list[Direction]:
        """Minorise–maximise on the true gain, each step a ridge regression."""

        def step(direction: Direction, shift: float) -> tuple[Direction, float] | None:
            pull = relaxed.passes.pull(direction, shift, signed=True)
            if not pull.absolute:
                return None
            new = self._regress(relaxed, pull)
            return new, relaxed.passes.sign_gain(new)

        return climb(start, step)[-1:]

    def _regress(self, relaxed: RelaxedGain, pull: Pull) -> Direction:
        """The hyperplane that fits a target (n_live,) best, other items having the target 0; Z is centred."""
        relaxed.n_evaluations += 1
        passes = relaxed.passes
        right = pull.right.astype(np.float32, copy=False)
        scale = float(pull.absolute / passes.n_live) or 1.0
        v = scipy.linalg.cho_solve(self._gram_factor(passes), right, check_finite=False).astype(np.float64) / scale
        return v, float(pull.total) / (passes.n_items * scale)

    def _gram_factor(self, passes: Passes) -> Any:
        """Of ZᵀZ + λI, in the precision of the features: a step of the search, whose gain is computed exactly."""
        if self._factor is None:
            gram = passes.gram()
            gram[np.diag_indices_from(gram)] += self.ridge * np.trace(gram) / len(gram) + 1e-12
            factor, lower = scipy.linalg.cho_factor(gram, overwrite_a=True)
            self._factor = factor.astype(np.float32), lower
        return self._factor
