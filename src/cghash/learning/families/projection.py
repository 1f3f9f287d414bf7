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

from ..pricing import SignedPairs
from .features import Features
from .minorize import Signs, minorize_maximize, signs
from .ranks import dense_ranks

_WIDEST = 4096  # features, up to which their Gram matrix is worth its d² numbers

Direction = tuple[NDArray[np.float64], float]  # v (d,), b


@dataclass
class RelaxedGain:
    """¼·tᵀLt with t = tanh(Zv + b), as a fraction of Σ|s|, to be maximised; counts its evaluations."""

    Z: Features
    pairs: SignedPairs
    n_evaluations: int = 0

    def __call__(self, x: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        """Value and gradient, negated for a minimiser; x is v with b behind."""
        self.n_evaluations += 1
        t = np.tanh(self.Z.dot(x[:-1].astype(np.float32)) + np.float32(x[-1]))
        Lt = self.pairs.laplacian(t)
        slope = Lt * (1.0 - t * t)  # ½·∂/∂z
        gradient = np.append(self.Z.tdot(slope), slope.sum()).astype(np.float64)
        unit = 4.0 * self.pairs.scale
        return -float(t @ Lt) / unit, -2.0 * gradient / unit


@dataclass
class ProjectionPricing:
    """Searches hyperplanes over features; `refined` adds what came after the paper."""

    Z: Features
    refined: bool
    n_draws: int = 16
    max_iter: int = 30
    ridge: float = 1.0  # of the mean eigenvalue of ZᵀZ
    n_starts: int = 1
    n_power: int = 8
    n_threads: int = 1

    def __post_init__(self) -> None:
        self._factor: Any = None

    def search(self, pairs: SignedPairs, rng: np.random.Generator) -> tuple[list[Direction], int, int]:
        """Directions worth a look, the number of evaluations, and the bytes of features that they read."""
        live = self.Z.take(pairs.items)
        relaxed = RelaxedGain(live, pairs)
        draws = self._draw(rng)
        found = [self._climb(relaxed, self._best(live, pairs, draws))]
        if self.refined and live.shape[1] > _WIDEST:
            found.append(self._climb(relaxed, self._best(live, pairs, self._draw(rng))))
        elif self.refined:
            leading = [self._leading(relaxed, rng) for _ in range(self.n_starts)]
            found.append(self._climb(relaxed, leading[0]))
            for start in leading + found:
                found = found + self._polish(relaxed, self._signs(live, start))
        if self.refined:
            found = self._best_thresholds(live, pairs, found, draws[0][:, :4])
        return found, relaxed.n_evaluations, 2 * relaxed.n_evaluations * live.n_bytes

    def _draw(self, rng: np.random.Generator) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Random hyperplanes: v ~ N(0, 1) (d, draws), b ~ U(-1, 1) (draws,)."""
        V = rng.standard_normal((self.Z.shape[1], self.n_draws)).astype(np.float32)
        return V, rng.uniform(-1.0, 1.0, self.n_draws).astype(np.float32)

    def _best(self, live: Features, pairs: SignedPairs, draws: tuple[Any, Any]) -> Direction:
        """The draw with the largest relaxed gain."""
        V, b = draws
        t = np.tanh(live.dot(V) + b)
        best = int(np.argmax([column @ pairs.laplacian(column) for column in t.T]))
        return V[:, best].astype(np.float64), float(b[best])

    def _best_thresholds(
        self, live: Features, pairs: SignedPairs, found: list[Direction], more: NDArray[np.float32]
    ) -> list[Direction]:
        """Each direction with the threshold of the largest true gain along it, exactly: a stump on its projection."""
        V = np.column_stack([*(v for v, _ in found), more]).astype(np.float32)  # (d, m)
        ranks = dense_ranks(np.ascontiguousarray(live.dot(V)))
        none = np.zeros(0, dtype=np.int64)
        _, rank, _ = ranks.kernel.sweep(*pairs.live_slots(), none, none, self.n_threads)
        cut = np.flatnonzero(rank >= 0).tolist()
        return found + [(V[:, m].astype(np.float64), -ranks.threshold(m, int(rank[m]))) for m in cut]

    def _climb(self, relaxed: RelaxedGain, start: Direction) -> Direction:
        """L-BFGS on the relaxed gain (eq. 13)."""
        options = {"maxiter": self.max_iter, "maxcor": 10}
        x = minimize(relaxed, np.append(*start), jac=True, method="L-BFGS-B", options=options).x
        return x[:-1], float(x[-1])

    def _leading(self, relaxed: RelaxedGain, rng: np.random.Generator) -> Direction:
        """The leading generalised eigenvector of (ZᵀLZ, ZᵀZ), by power steps from a random one; values of size one."""
        v, b = rng.standard_normal(self.Z.shape[1]), 0.0
        shift = 2.0 * relaxed.pairs.near_weight()  # makes L convex, so that the largest eigenvalue leads
        for _ in range(self.n_power):
            values = self._values(relaxed.Z, (v, b))
            v, b = self._regress(relaxed, relaxed.pairs.laplacian(values) + shift * values)
        size = float(np.sqrt(np.mean(self._values(relaxed.Z, (v, b)) ** 2))) or 1.0
        return v / size, b / size

    def _polish(self, relaxed: RelaxedGain, start: Signs) -> list[Direction]:
        """Minorise–maximise on the true gain, each step a ridge regression."""

        def train(labels: NDArray[np.bool_], weights: NDArray[np.float64]) -> tuple[Direction, Signs]:
            direction = self._regress(relaxed, np.where(labels, weights, -weights).astype(np.float32))
            return direction, self._signs(relaxed.Z, direction)

        return [direction for direction, _ in minorize_maximize(relaxed.pairs, start, train)[-1:]]

    @staticmethod
    def _values(Z: Features, direction: Direction) -> NDArray[np.float32]:
        return Z.dot(direction[0].astype(np.float32)) + np.float32(direction[1])

    def _signs(self, Z: Features, direction: Direction) -> Signs:
        return signs(self._values(Z, direction))

    def _regress(self, relaxed: RelaxedGain, target: NDArray[np.float32]) -> Direction:
        """The hyperplane that fits a target (n_live,) best, other items having the target 0; Z is centred."""
        relaxed.n_evaluations += 1
        right = relaxed.Z.tdot(target).astype(np.float32, copy=False)
        scale = float(np.abs(target).mean()) or 1.0
        v = scipy.linalg.cho_solve(self._gram_factor(), right, check_finite=False).astype(np.float64) / scale
        return v, float(target.sum()) / (self.Z.shape[0] * scale)

    def _gram_factor(self) -> Any:
        """Of ZᵀZ + λI, in the precision of the features: a step of the search, whose gain is computed exactly."""
        if self._factor is None:
            gram = self.Z.gram()
            gram[np.diag_indices_from(gram)] += self.ridge * np.trace(gram) / len(gram) + 1e-12
            factor, lower = scipy.linalg.cho_factor(gram, overwrite_a=True)
            self._factor = factor.astype(np.float32), lower
        return self._factor
