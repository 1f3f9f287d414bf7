"""What the search for a hyperplane asks of the items: sums over them, each from one or two passes over the features.

The search itself (projection.py) knows items only through these sums, so items may lie anywhere: here, on a device, or
in many parts whose sums are added up. Nothing the length of the items comes back.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from ..pricing import SignedPairs
from .features import Features
from .minorize import signs
from .ranks import dense_ranks

Direction = tuple[NDArray[np.float64], float]  # v (d,), b
Singles = NDArray[np.float32]


class Pull(NamedTuple):
    """Where a target r (n_live,) pulls a hyperplane over features Z."""

    right: NDArray[Any]  # Zᵀr (d,)
    total: Any  # Σ r
    absolute: Any  # Σ |r|


class Passes(Protocol):
    """Sums over the live items of one pricing problem, with L the Laplacian of its signed pairs (pricing.py)."""

    n_items: int  # all of them
    n_live: int
    n_features: int
    n_bytes: int  # of the live items' features
    scale: float  # Σ|s|: no gain is larger

    def draw_gains(self, V: Singles, b: Singles) -> NDArray[Any]:
        """tᵀLt (m,) of t = tanh(Z·V + b) for each of m hyperplanes, V (d, m)."""

    def relaxed(self, direction: Direction) -> tuple[float, NDArray[np.float64]]:
        """tᵀLt for t = tanh(Z·v + b), and half its gradient by v with b behind (d + 1,)."""

    def pull(self, direction: Direction, shift: float, signed: bool) -> Pull:
        """The pull of r = (L + shift·Λ)h, with h = Z·v + b or its signs; Λ = 2·Σ|s⁻| makes L + Λ convex."""

    def square(self, direction: Direction) -> Any:
        """Σ (Z·v + b)²."""

    def sign_gain(self, direction: Direction) -> float:
        """¼·hᵀLh for h = sign(Z·v + b)."""

    def cuts(self, V: Singles) -> list[Direction]:
        """Directions (d, m), each with the threshold of a large true gain along it."""

    def gram(self) -> NDArray[np.float64]:
        """ZᵀZ (d, d) over all items."""


class LocalPasses:
    """Sums over features in memory."""

    def __init__(self, Z: Features, pairs: SignedPairs) -> None:
        self.Z, self.pairs = Z, pairs
        self.live = Z.take(pairs.items)
        self.n_items, self.n_features = Z.shape
        self.n_live, self.n_bytes = self.live.shape[0], self.live.n_bytes
        self.scale = pairs.scale

    def draw_gains(self, V: Singles, b: Singles) -> NDArray[Any]:
        t = np.tanh(self.live.dot(V) + b)
        return np.array([column @ self.pairs.laplacian(column) for column in t.T])

    def relaxed(self, direction: Direction) -> tuple[float, NDArray[np.float64]]:
        t = np.tanh(self._values(direction))
        Lt = self.pairs.laplacian(t)
        slope = np.asarray(Lt * (1.0 - t * t), dtype=np.float32)  # ½·∂/∂z
        return float(t @ Lt), np.append(self.live.tdot(slope), slope.sum()).astype(np.float64)

    def pull(self, direction: Direction, shift: float, signed: bool) -> Pull:
        h = self._values(direction)
        h = signs(h) if signed else h
        target = self.pairs.laplacian(h)
        if shift:
            target = target + np.float32(2.0 * shift) * self.pairs.near_weight() * h
        return Pull(self.live.tdot(target), target.sum(), np.abs(target).sum())

    def square(self, direction: Direction) -> Any:
        return np.sum(self._values(direction) ** 2)

    def sign_gain(self, direction: Direction) -> float:
        h = signs(self._values(direction))
        return float(h @ self.pairs.laplacian(h)) / 4.0

    def cuts(self, V: Singles) -> list[Direction]:
        """The best threshold of all, exactly: a stump on each projection."""
        ranks = dense_ranks(np.ascontiguousarray(self.live.dot(V)))
        none = np.zeros(0, dtype=np.int64)
        _, rank, _ = ranks.kernel.sweep(*self.pairs.live_slots(), none, none, self.pairs.n_threads)
        cut = np.flatnonzero(rank >= 0).tolist()
        return [(V[:, m].astype(np.float64), -ranks.threshold(m, int(rank[m]))) for m in cut]

    def gram(self) -> NDArray[np.float64]:
        return self.Z.gram()

    def _values(self, direction: Direction) -> Singles:
        return self.live.dot(direction[0].astype(np.float32)) + np.float32(direction[1])
