"""SSC: similarity-sensitive coding by boosting.

Torralba, Fergus, Weiss: Small codes and large image databases for recognition. CVPR 2008, after Shakhnarovich, Viola,
Darrell: Fast pose estimation with parameter-sensitive hashing. ICCV 2003. GentleBoost over pairs of items, z = 1 for
similar ones and −1 for others. Round n looks for the stump h(x) = [x[feature] > threshold] and the numbers α, β for
which f_n = α·[h(x_i) = h(x_j)] + β has the least weighted squared error Σ w (z − f_n)², then w ← w·exp(−z f_n). The
stumps are the bits, the α their weights.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np

from .._arrays import Bools, Floats, Ints
from ..learning.cpu.neighbors import nearest
from ..learning.families.ranks import midpoint
from ..learning.supervision import draw
from .base import Peer, whole


@dataclass(eq=False, repr=False)
class SSC(Peer):
    """Similarity-sensitive coding: boosted stumps that tell pairs of similar items from other pairs.

    The similar pairs are items and their nearest ones of the same label, the others are drawn at random.

    Parameters
    ----------
    n_bits : int, default=64
    n_pairs : int, default=100000
        Most pairs to learn from, half of them similar.
    n_neighbors : int, default=10
        Most similar pairs, and most others, that start from an item.
    n_thresholds : int, default=64
        Most thresholds of a feature, at its quantiles; at most 255.
    max_features : int, default=1000
        Most features that a round looks at, drawn anew for each.
    random_state : int, RandomState or None, default=None

    Attributes
    ----------
    feature_ : (n_bits_,)
    threshold_ : (n_bits_,)
    alpha_ : (n_bits_,) the weights of the bits

    Examples
    --------
    >>> X = [[0.0, 3.0], [1.0, 1.0], [8.0, 2.0], [9.0, 2.5]]
    >>> model = SSC(1, random_state=0).fit(X, ["a", "a", "b", "b"])
    >>> model.feature_.tolist(), model.threshold_.tolist()
    ([0], [4.5])
    """

    supervision = "required"
    prefixes = True
    checks: ClassVar = {
        "n_pairs": whole(2),
        "n_neighbors": whole(1),
        "n_thresholds": whole(1, 255),
        "max_features": whole(1),
    }

    n_bits: int = 64
    _: KW_ONLY
    n_pairs: int = 100_000
    n_neighbors: int = 10
    n_thresholds: int = 64
    max_features: int = 1000
    random_state: Any = None

    @property
    def weights_(self) -> Floats:  # type: ignore[override]
        """(`n_bits_`,) the α of each stump."""
        return np.asarray(self.alpha_[: self.n_bits_])

    def _learn(self, X: Any, labels: Any, rng: np.random.Generator) -> int:
        similar, others = draw_pairs(X, labels, self.n_neighbors, self.n_pairs // 2, rng)
        stumps = Stumps(X, self.n_thresholds, similar, others)
        weights = np.full(len(similar) + len(others), 1.0 / max(len(similar) + len(others), 1))
        rounds: list[tuple[int, float, float]] = []
        while len(rounds) < self.n_bits:
            feature, threshold, alpha, beta = stumps.best(weights, self._draw(stumps.varying, rng))
            if rounds and alpha <= 0:
                break
            rounds.append((feature, threshold, alpha))
            weights *= np.exp(-stumps.z * (alpha * ~stumps.differ(X, feature, threshold) + beta))
            weights /= weights.sum() or 1.0
        chosen, cuts, alphas = zip(*rounds, strict=True)
        self.feature_, self.threshold_, self.alpha_ = np.array(chosen), np.array(cuts), np.array(alphas)
        return len(rounds)

    def _draw(self, features: Ints, rng: np.random.Generator) -> Ints:
        if len(features) <= self.max_features:
            return features
        return np.sort(rng.choice(features, self.max_features, replace=False))

    def _bits(self, X: Any) -> Bools:
        return np.asarray(X[:, self.feature_] > self.threshold_)


def draw_pairs(X: Any, labels: Any, k: int, most: int, rng: np.random.Generator) -> tuple[Ints, Ints]:
    """Similar pairs (p, 2), of items and their k nearest relevant ones, and other pairs (q, 2); at most `most` each."""
    near, _ = nearest(X, labels, min(k, len(X) - 1), 0, 1)
    _, far = draw(labels, k, rng)
    return _thinned(near, most, rng), _thinned(far, most, rng)


def _thinned(lists: Ints, most: int, rng: np.random.Generator) -> Ints:
    rows, columns = np.nonzero(lists >= 0)
    pairs = np.stack([rows, lists[rows, columns]], axis=1)
    return pairs[np.sort(rng.choice(len(pairs), min(most, len(pairs)), replace=False))]


class Stumps:
    """All stumps at the quantiles of features, and how the pairs fall under each."""

    def __init__(self, X: Any, n_thresholds: int, similar: Ints, others: Ints) -> None:
        self.pairs = np.concatenate([similar, others])  # (p, 2)
        self.n_similar = len(similar)
        self.z = np.repeat([1.0, -1.0], [len(similar), len(others)])
        self.n_items, d = X.shape
        self.cuts = [_cuts(X[:, f], n_thresholds) for f in range(d)]
        self.varying = np.flatnonzero([len(cuts) > 0 for cuts in self.cuts])
        self.n_bins = 1 + max(len(cuts) for cuts in self.cuts)
        self.items = np.empty((d, self.n_items), dtype=np.uint8)  # bins: thresholds below the item's value
        self.upper = np.empty((d, len(self.pairs)), dtype=np.uint8)  # the higher of the two bins of a pair
        for f, cuts in enumerate(self.cuts):
            self.items[f] = np.searchsorted(cuts, X[:, f], side="left")
            self.upper[f] = self.items[f][self.pairs].max(axis=1)

    def differ(self, X: Any, feature: int, threshold: float) -> Bools:
        """Whether a stump tells the items of a pair apart: (p,)."""
        above = X[:, feature] > threshold
        return np.asarray(above[self.pairs[:, 0]] != above[self.pairs[:, 1]])

    def best(self, weights: Floats, features: Ints) -> tuple[int, float, float, float]:
        """Feature, threshold, α ≥ 0 and β of the stump with the least weighted squared error, of some features."""
        total = np.array([weights[: self.n_similar].sum(), weights[self.n_similar :].sum()])  # similar, others
        constant = float(_mean(*total))
        if not len(features):
            return 0, 0.0, 0.0, constant
        differ = self._weights_apart(weights, features)  # (2, f, t) of the pairs that each stump tells apart
        alike = total[:, None, None] - differ
        mean_alike, mean_differ = _mean(*alike), _mean(*differ)
        # Σ w f², which the least squares take from Σ w z²; α = 0 where alike pairs are the less similar
        gain = mean_alike**2 * alike.sum(axis=0) + mean_differ**2 * differ.sum(axis=0)
        enough = 1e-12 * total.sum()  # a stump that tells all pairs apart, or none, says nothing
        both = (alike.sum(axis=0) > enough) & (differ.sum(axis=0) > enough)
        rising = (mean_alike > mean_differ) & both
        gain = np.where(rising, gain, constant**2 * total.sum())
        place, t = divmod(int(np.argmax(gain)), gain.shape[1])
        f = int(features[place])
        t = min(t, len(self.cuts[f]) - 1)  # past the last one nothing is told apart, which has no gain
        if not rising[place, t]:
            return f, float(self.cuts[f][t]), 0.0, constant
        beta = float(mean_differ[place, t])
        return f, float(self.cuts[f][t]), float(mean_alike[place, t]) - beta, beta

    def _weights_apart(self, weights: Floats, features: Ints) -> Floats:
        """The weight of the similar and of the other pairs that each stump tells apart: (2, f, t).

        It is the weight of the items below the threshold, each with all its pairs, less twice that of the pairs
        that are wholly below.
        """
        apart = np.empty((2, len(features), self.n_bins))
        for kind, part in enumerate((slice(0, self.n_similar), slice(self.n_similar, None))):
            w = weights[part]
            degree = np.bincount(self.pairs[part].ravel(), np.repeat(w, 2), minlength=self.n_items)
            for place, f in enumerate(features.tolist()):
                apart[kind, place] = np.bincount(self.items[f], degree, minlength=self.n_bins)
                apart[kind, place] -= 2.0 * np.bincount(self.upper[f, part], w, minlength=self.n_bins)
        np.cumsum(apart, axis=2, out=apart)
        return np.maximum(apart[:, :, :-1], 0.0)


def _cuts(values: Any, most: int) -> Floats:
    """Thresholds between the values of a feature: all, or at most so many at quantiles.

    Examples
    --------
    >>> _cuts(np.array([4.0, 0.0, 2.0, 2.0]), 5).tolist()
    [1.0, 3.0]
    """
    distinct, counts = np.unique(values, return_counts=True)
    below = np.cumsum(counts)[:-1]  # items below each gap
    gaps = np.arange(len(below))
    if len(below) > most:
        quantiles = len(values) * np.arange(1, most + 1) / (most + 1)
        gaps = np.unique(np.searchsorted(below, quantiles).clip(max=len(below) - 1))
    return np.array([midpoint(distinct[g], distinct[g + 1]) for g in gaps], dtype=np.float64)


def _mean(similar: Any, others: Any) -> Any:
    """The mean of z, 0 of nothing."""
    weight = similar + others
    return np.divide(similar - others, weight, out=np.zeros_like(weight), where=weight > 1e-12)
