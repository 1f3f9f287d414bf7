"""RBF hash functions h(x) = [Σ_k coef_k·exp(−γ‖x − landmark_k‖²) + intercept > 0]."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from ..._arrays import Bools, Floats, Singles, rows_in_blocks
from ...exceptions import FormatError
from ..backend import Direction
from ..cpu.features import Features
from ..cpu.item_sums import CpuItemSums
from ..cpu.pairs import SignedPairs
from .base import ArrayFunctions, Candidate, Functions, one_by_one, weighed
from .linear import projected, projected_bits
from .projection import HyperplaneFamily, ProjectionPricing

N_LANDMARKS = 2000
WIDTH = 0.5  # of a bump, in mean squared distances
SAMPLE = 2000  # items that say how far apart they are
Landmarks = Callable[[Any, int, np.random.Generator], Floats]  # items, how many → (m, d)


@dataclass(frozen=True)
class RBFFunctions(ArrayFunctions):
    """Weighted sums of Gaussian bumps around common landmarks."""

    family: ClassVar[str] = "rbf"
    shared: ClassVar[tuple[str, ...]] = ("landmarks", "gamma", "mean")
    coef: Floats  # (ℓ, m)
    intercept: Floats  # (ℓ,)
    landmarks: Floats  # (m, d)
    gamma: Floats  # (1,)
    mean: Floats  # (m,) of the bumps over the training items, taken away from them

    def bits(self, X: Any, n_threads: int = 1) -> Bools:
        out = np.empty((X.shape[0], len(self)), dtype=bool)
        for rows in rows_in_blocks(X.shape[0]):
            out[rows] = self.bits_of(self._bumps(X[rows]), n_threads)
        return out

    def margins(self, X: Any, n_threads: int = 1) -> Floats:
        out = np.empty((X.shape[0], len(self)))
        for rows in rows_in_blocks(X.shape[0]):
            out[rows] = projected(self._bumps(X[rows]), self.coef, self.intercept, n_threads)
        return out

    def bits_of(self, features: Singles, n_threads: int) -> Bools:
        """The bits (n, ℓ) from centred bumps (n, m)."""
        return projected_bits(features, self.coef, self.intercept, n_threads)

    def _bumps(self, X: Any) -> Singles:
        return bumps(X, self.landmarks, float(self.gamma[0]), self.mean)

    def takes(self, n_features: int) -> bool:
        return bool(self.landmarks.shape[1] == n_features)

    def check(self) -> None:
        if self.coef.ndim != 2 or self.landmarks.ndim != 2 or self.coef.shape[1] != len(self.landmarks):
            raise FormatError("rbf functions must have coef (ℓ, m) for landmarks (m, d)")
        if self.intercept.ndim != 1 or self.mean.shape != (len(self.landmarks),):
            raise FormatError("rbf functions must have intercepts (ℓ,) and one mean for each landmark")
        if self.gamma.shape != (1,) or self.gamma[0] <= 0:
            raise FormatError("rbf functions must have one positive gamma")


def squared_distances(X: Any, landmarks: Floats) -> Floats:
    """‖x − landmark‖² (n, m), centred on the landmarks so that large offsets do not cancel."""
    centre = landmarks.mean(axis=0)
    A, B = X - centre, landmarks - centre
    square = (A * A).sum(axis=1)[:, None] + (B * B).sum(axis=1) - 2.0 * A @ B.T
    return np.asarray(np.maximum(square, 0.0))


def bumps(X: Any, landmarks: Floats, gamma: float, mean: Any = 0.0) -> Singles:
    """exp(−γ‖x − landmark‖²) − mean (n, m)."""
    return np.asarray(np.exp(-gamma * squared_distances(X, landmarks)) - mean, dtype=np.float32)


def gamma_for(sample: Any, landmarks: Floats, width: float) -> float:
    """γ such that 1/(2γ) is `width` times the mean squared distance of some items to the landmarks."""
    spread = float(np.mean(squared_distances(sample, landmarks)))
    return 0.5 / max(width * spread, np.finfo(np.float64).tiny)


def drawn_items(X: Any, n_landmarks: int, rng: np.random.Generator) -> Floats:
    """Some items (m, d), drawn without replacement."""
    chosen = np.sort(rng.choice(len(X), min(n_landmarks, len(X)), replace=False))
    return np.asarray(X[chosen], dtype=np.float64)


def cluster_centres(X: Any, n_landmarks: int, rng: np.random.Generator) -> Floats:
    """The centres (m, d) of k-means over the items, begun at drawn ones; all items, if there are no more."""
    from sklearn.cluster import KMeans

    begin = drawn_items(X, n_landmarks, rng)
    if len(begin) == len(X):
        return begin
    middle = begin.mean(axis=0)
    size = float(np.abs(X - middle).max()) or 1.0  # k-means squares its numbers: bring them to between -1 and 1
    placed, start = (((items - middle) / size).astype(np.float32) for items in (X, begin))
    k_means = KMeans(len(start), init=start, n_init=1, max_iter=20)
    with warnings.catch_warnings(), threadpool_limits(1):  # several threads would add up in any order
        warnings.simplefilter("ignore", ConvergenceWarning)  # fewer different items than centres: some coincide
        return np.asarray(middle + size * k_means.fit(placed).cluster_centers_.astype(np.float64))


def pricing_over_bumps(refined: bool) -> ProjectionPricing:
    """The search for functions over bumps, which are many and alike: little ridge, and one start more."""
    return ProjectionPricing(refined, ridge=1e-3, n_starts=2)


class RBFFamily(HyperplaneFamily):
    """RBF functions over `n_landmarks` points; 1/(2γ) is `width` times the mean squared distance to them."""

    def __init__(
        self, refined: bool, landmarks: Landmarks = drawn_items, n_landmarks: int = N_LANDMARKS, width: float = WIDTH
    ) -> None:
        self.refined, self.choose_landmarks = refined, landmarks
        self.n_landmarks, self.width = n_landmarks, width

    def prepare(self, X: Any, rng: np.random.Generator, n_threads: int) -> None:
        self.n_threads = n_threads
        self.landmarks = self.choose_landmarks(X, self.n_landmarks, rng)
        sample = X[np.sort(rng.choice(len(X), min(SAMPLE, len(X)), replace=False))]
        self.gamma = gamma_for(sample, self.landmarks, self.width)
        self.mean = np.zeros(len(self.landmarks))
        for rows in rows_in_blocks(len(X)):
            self.mean += bumps(X[rows], self.landmarks, self.gamma).sum(axis=0, dtype=np.float64) / len(X)
        self.bumps = np.concatenate(
            [bumps(X[rows], self.landmarks, self.gamma, self.mean) for rows in rows_in_blocks(len(X))]
        )
        self.size = float(np.sqrt(np.sum(self.bumps**2, dtype=np.float64) / len(X))) or 1.0
        self.features = Features(self.bumps / np.float32(self.size), n_threads=n_threads)
        self.pricing = pricing_over_bumps(self.refined)

    def item_sums(self, pairs: SignedPairs) -> CpuItemSums:
        return CpuItemSums(self.features, pairs)

    def candidates(self, directions: list[Direction], pairs: SignedPairs) -> list[Candidate]:
        functions = self._functions(directions)
        return weighed(pairs, one_by_one(functions, functions.bits_of(self.bumps, self.n_threads)))

    def training_bits(self, function: Functions) -> Bools:
        assert isinstance(function, RBFFunctions)
        return function.bits_of(self.bumps, self.n_threads)[:, 0]

    def _functions(self, directions: list[Direction]) -> RBFFunctions:
        coef, intercept = np.array([v for v, _ in directions]) / self.size, np.array([b for _, b in directions])
        return RBFFunctions(coef, intercept, self.landmarks, np.array([self.gamma]), self.mean)
