"""BRE: binary reconstructive embedding.

Kulis, Darrell: Learning to hash with binary reconstructive embeddings. NIPS 2009. The functions are
h_p(x) = [Σ_q W_pq κ(x_pq, x) > 0], x_pq some items drawn for each bit and κ the inner product of centred items, scaled
to length one. Over pairs of items, W makes Σ (d − d̃)² small, d̃ = Σ_p (h_p(x) − h_p(y))²/ℓ. With labels d is 0 for
similar items and 1 for others; without them it is ‖x − y‖²/2. W changes one number at a time: as W_pq grows, each item
changes its bit p at one value, and the objective between these values is found for all of them in one sweep.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np

from .._arrays import Bools, Floats, Ints
from ..learning.cpu.neighbors import nearest
from ..learning.supervision import draw, draw_distinct
from .base import Peer, whole
from .projections import lengths

_TINY = np.finfo(np.float64).tiny


@dataclass(eq=False, repr=False)
class BRE(Peer):
    """Binary reconstructive embedding: Hamming distances fitted to given ones, by coordinate descent.

    Parameters
    ----------
    n_bits : int, default=64
    n_landmarks : int, default=50
        Items that a hash function is made of.
    n_train : int, default=2000
        Most items to learn from, drawn at random.
    n_pairs : int, default=30
        Pairs of each such item: half with similar or near ones, half with others.
    n_sweeps : int, default=2
        Times that every number of W is set.
    random_state : int, RandomState or None, default=None

    Attributes
    ----------
    coef_ : (n_bits, d) normals of the hyperplanes Σ_q W_pq x_pq
    mean_ : (d,) the point that they go through

    Examples
    --------
    >>> X = [[0.0, 3.0], [1.0, 2.0], [8.0, -2.0], [9.0, -2.5]]
    >>> bits = BRE(1, random_state=0).fit_transform(X, ["a", "a", "b", "b"])
    >>> (bits == bits[0]).ravel().tolist()
    [True, True, False, False]
    """

    supervision = "optional"
    checks: ClassVar = {"n_landmarks": whole(1), "n_train": whole(2), "n_pairs": whole(2), "n_sweeps": whole(0)}

    n_bits: int = 64
    _: KW_ONLY
    n_landmarks: int = 50
    n_train: int = 2000
    n_pairs: int = 30
    n_sweeps: int = 2
    random_state: Any = None

    def _learn(self, X: Any, labels: Any, rng: np.random.Generator) -> int:
        self.mean_ = X.mean(axis=0, dtype=np.float64)
        rows = np.sort(rng.choice(len(X), min(self.n_train, len(X)), replace=False))
        A = _unit(X[rows] - self.mean_)  # (n, d)
        pairs, targets = draw_targets(A, None if labels is None else labels[rows], self.n_pairs // 2, rng)
        landmarks = draw_distinct(rng, self.n_bits, len(A), self.n_landmarks)  # (ℓ, s)
        W = rng.standard_normal(landmarks.shape)
        self.coef_ = np.array([w @ A[own] for w, own in zip(W, landmarks, strict=True)])
        descent = Descent(A @ self.coef_.T, pairs, targets)
        for _ in range(self.n_sweeps):
            for p, own in enumerate(landmarks):
                steps = descent.improve(p, A @ A[own].T)
                self.coef_[p] += steps @ A[own]
        return self.n_bits

    def _margins(self, X: Any) -> Floats:
        return np.asarray((X - self.mean_) @ self.coef_.T)

    def _shares(self, margins: Floats) -> Floats:
        return margins / lengths(self.coef_)[: self.n_bits_]


def _unit(A: Floats) -> Floats:
    A = A / max(float(np.abs(A).max()), _TINY)  # so that squares neither overflow nor vanish
    return np.asarray(A / np.maximum(np.linalg.norm(A, axis=1, keepdims=True), _TINY))


def draw_targets(A: Floats, labels: Any, k: int, rng: np.random.Generator) -> tuple[Ints, Floats]:
    """Pairs (p, 2), of items with k near and k other ones each, and the distances d (p,) that they should get."""
    if labels is None:
        near, _ = nearest(A, None, min(k, len(A) - 1), 0, 1)
        far = draw_distinct(rng, len(A), len(A) - 1, k)
        far = far + (far >= np.arange(len(A))[:, None])
    else:
        near, far = draw(labels, k, rng)
    lists = np.concatenate([near, far], axis=1)
    rows, columns = np.nonzero(lists >= 0)
    pairs = np.stack([rows, lists[rows, columns]], axis=1)
    if labels is None:
        return pairs, np.asarray(np.sum((A[pairs[:, 0]] - A[pairs[:, 1]]) ** 2, axis=1) / 2)
    return pairs, (columns >= near.shape[1]).astype(np.float64)


class Descent:
    """The objective as a function of single weights.

    Parameters
    ----------
    scores : (n, ℓ) Σ_q W_pq κ(x_pq, x_i), which steps change
    pairs : (p, 2)
    targets : (p,) d
    """

    def __init__(self, scores: Floats, pairs: Ints, targets: Floats) -> None:
        self.scores = scores
        self.first, self.second, self.targets = pairs[:, 0].copy(), pairs[:, 1].copy(), targets
        self.differ = np.zeros(len(pairs))  # bits in which a pair differs
        for p in range(scores.shape[1]):
            self.differ += self._apart(p)

    def objective(self) -> float:
        """Σ (d − d̃)² over the pairs."""
        return float(np.sum((self.targets - self.differ / self.scores.shape[1]) ** 2))

    def improve(self, p: int, kernel: Floats) -> Floats:
        """Set each weight of bit p in turn to its best value, by kernel (n, s): the steps (s,) that they took."""
        length = self.scores.shape[1]
        others = self.differ - self._apart(p)
        # what the objective loses when the pair differs in this bit, given the others
        gain = (self.targets - others / length) ** 2 - (self.targets - (others + 1) / length) ** 2
        steps = np.array([self._step(p, column, gain) for column in kernel.T])
        self.differ = others + self._apart(p)
        return steps

    def _step(self, p: int, kernel: Floats, gain: Floats) -> float:
        step = best_step(self.scores[:, p], kernel, self.first, self.second, gain)
        self.scores[:, p] += step * kernel
        return step

    def _apart(self, p: int) -> Bools:
        bit = self.scores[:, p] > 0
        return np.asarray(bit[self.first] != bit[self.second])


def best_step(scores: Floats, kernel: Floats, first: Ints, second: Ints, gain: Floats) -> float:
    """The step t for which Σ gain over the pairs that [scores + t·kernel > 0] tells apart is largest.

    Parameters
    ----------
    scores, kernel : (n,)
    first, second, gain : (p,)

    Examples
    --------
    >>> scores, kernel = np.array([1.0, 1.0, 1.0]), np.array([1.0, 2.0, 4.0])  # the bits change at -1, -1/2 and -1/4
    >>> best_step(scores, kernel, np.array([0, 1]), np.array([1, 2]), np.array([1.0, -1.0]))
    -0.75
    """
    moving = np.abs(kernel) > 1e-12
    turn = np.where(moving, -scores / np.where(moving, kernel, 1.0), np.inf)  # where an item's bit changes
    turn = np.where((turn == 0) & (kernel < 0), -_TINY, turn)  # a score of 0 is on the lower side already
    order = np.argsort(turn, kind="stable")
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    start = np.where(moving, kernel < 0, scores > 0)  # the bits at t = −∞
    signed = np.where(start[first] == start[second], gain, -gain)
    # after the k-th change: items that have changed with all their pairs, less twice the pairs within them
    degree = np.bincount(first, signed, len(turn)) + np.bincount(second, signed, len(turn))
    inside = np.bincount(np.maximum(rank[first], rank[second]), signed, len(turn))
    curve = np.append(0.0, np.cumsum(degree[order] - 2.0 * inside))  # k = 0 … n
    turns = turn[order][: int(moving.sum())]
    if not len(turns):
        return 0.0
    places, wide = _between(turns)
    values = np.where(wide, curve[: len(places)], -np.inf)
    best, now = int(np.argmax(values)), int(np.searchsorted(turns, 0.0, side="left"))
    return float(places[best]) if values[best] > curve[now] + 1e-12 * np.abs(gain).sum() else 0.0


def _between(turns: Floats) -> tuple[Floats, Bools]:
    """A step in each of the gaps before, between and after sorted turns, and whether the gap is more than rounding."""
    reach = float(np.abs(turns).max()) + 1.0
    ends = np.concatenate([[turns[0] - reach], turns, [turns[-1] + reach]])
    return (ends[1:] + ends[:-1]) / 2, np.diff(ends) > 1e-12 * reach
