"""Decision stumps h(x) = [x[feature] > threshold], priced exactly by sweeping every feature and threshold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ..._arrays import Bools, Floats, Ints
from ...exceptions import FormatError
from ..cpu.pairs import SignedPairs
from .base import ArrayFunctions, Family, Functions, Priced, ranked, weighed
from .ranks import FeatureRanks, dense_ranks


@dataclass(frozen=True)
class StumpFunctions(ArrayFunctions):
    """One feature against one threshold each."""

    family: ClassVar[str] = "stump"
    whole: ClassVar[tuple[str, ...]] = ("feature",)
    feature: Ints  # (ℓ,)
    threshold: Floats  # (ℓ,)

    def bits(self, X: Any, n_threads: int = 1) -> Bools:
        return np.asarray(X[:, self.feature] > self.threshold)

    def takes(self, n_features: int) -> bool:
        return bool(np.all(self.feature < n_features))

    def check(self) -> None:
        if self.feature.ndim != 1 or self.threshold.ndim != 1:
            raise FormatError("stump functions must have features (ℓ,) and thresholds (ℓ,)")
        if self.feature.dtype.kind not in "iu" or np.any(self.feature < 0):
            raise FormatError("the features of stump functions must be whole numbers from 0")


class StumpFamily(Family):
    """All stumps that the training items can tell apart: d features × the gaps between their distinct values."""

    exact = True

    def prepare(self, X: Any, rng: np.random.Generator, n_threads: int) -> None:
        self.X, self.n_threads = X, n_threads
        self.ranks: FeatureRanks = dense_ranks(X, n_threads)

    def price(self, pairs: SignedPairs, rng: np.random.Generator, taken: Functions | None) -> Priced:
        features, ranks = self._places(taken)
        slots = (pairs.first, pairs.second, pairs.weights)
        gain, rank, positive = self.ranks.kernel.sweep(*slots, features, ranks, self.n_threads)
        best = int(np.argmax(gain))
        total = float(np.sum(positive))
        if rank[best] < 0:  # every stump is taken, or all features are constant
            return Priced([], [], [], max_gain=0.0, positive_gains=total)
        threshold = self.ranks.threshold(best, int(rank[best]))
        function = StumpFunctions(np.array([best]), np.array([threshold]))
        told = {"max_gain": float(gain[best]), "positive_gains": total, "n_evaluations": 1}
        return ranked(weighed(pairs, [(function, self.training_bits(function))]), **told)

    def training_bits(self, function: Functions) -> Bools:
        return function.bits(self.X)[:, 0]

    def _places(self, taken: Functions | None) -> tuple[Ints, Ints]:
        """Feature and rank of stumps that must not be found again."""
        if not isinstance(taken, StumpFunctions):
            return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
        below = zip(taken.feature.tolist(), taken.threshold, strict=True)
        ranks = [np.searchsorted(self.ranks.values(f), t, side="right") - 1 for f, t in below]
        return taken.feature.astype(np.int64), np.array(ranks, dtype=np.int64)
