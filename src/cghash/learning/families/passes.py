"""What the search for a hyperplane asks of the items: sums over them, each from one or two passes over the features.

The search itself (projection.py) knows items only through these sums, so items may lie anywhere: here, on a device, or
in many parts whose sums are added up. Nothing the length of the items comes back. Values of items are floats, their
sums are doubles, so that a sum is the same to ten digits however the items are divided; and items without a live pair
add nothing to it, so that it does not matter whether they are looked at.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from ... import _kernels
from ..pricing import SignedPairs
from .features import Features
from .minorize import signs

Direction = tuple[NDArray[np.float64], float]  # v (d,), b
Singles = NDArray[np.float32]
Floats = NDArray[np.float64]
Solver = Callable[[Floats], Floats]  # right (d,) ↦ v (d,)

LEAST_RIDGE = 1e-12  # where all features are zero
MOST_CUTS = 255  # of a direction in one pass: places among them fit a byte


class Pull(NamedTuple):
    """Where a target r (n_live,) pulls a hyperplane over features Z."""

    right: NDArray[Any]  # Zᵀr (d,)
    total: float  # Σ r
    absolute: float  # Σ |r|


class Moments(NamedTuple):
    """Of projections Z·V (n_live, m), each item weighing what its near pairs do."""

    weight: float  # Σ λ
    first: Floats  # Σ λ z (m,)
    second: Floats  # Σ λ z² (m,)


class Passes(Protocol):
    """Sums over the live items of one pricing problem, with L the Laplacian of its signed pairs (pricing.py)."""

    n_items: int  # all of them
    n_features: int
    n_bytes: int  # of the live items' features
    scale: float  # Σ|s|: no gain is larger

    def draw_gains(self, V: Singles, b: Singles) -> NDArray[Any]:
        """tᵀLt (m,) of t = tanh(Z·V + b) for each of m hyperplanes, V (d, m)."""

    def relaxed(self, points: Floats) -> tuple[Floats, Floats]:
        """tᵀLt (m,) for t = tanh(Z·v + b) at m points (m, d + 1), v with b behind; half its gradients (m, d + 1)."""

    def pull(self, direction: Direction, shift: float, signed: bool) -> Pull:
        """The pull of r = (L + shift·Λ)h, with h = Z·v + b or its signs; Λ = 2·Σ|s⁻| makes L + Λ convex."""

    def sign_gain(self, direction: Direction) -> float:
        """¼·hᵀLh for h = sign(Z·v + b)."""

    def moments(self, V: Singles) -> Moments:
        """How the projections on V (d, m) lie."""

    def cut_gains(self, V: Singles, cuts: Floats) -> Floats:
        """The true gain (m, T) of [Z·v > cut] for each direction (d, m) and each of its T cuts (m, T), rising."""

    def ridge(self, share: float) -> Solver:
        """Of (ZᵀZ + λI)·v = right, over all items, with λ such a share of the mean eigenvalue of ZᵀZ."""


class LocalPasses:
    """Sums over features in memory."""

    def __init__(self, Z: Features, pairs: SignedPairs) -> None:
        self.Z, self.pairs = Z, pairs
        self.live = Z.take(pairs.items)
        self.n_items, self.n_features = Z.shape
        self.n_bytes = self.live.n_bytes
        self.scale = pairs.scale

    def draw_gains(self, V: Singles, b: Singles) -> NDArray[Any]:
        t = np.tanh(self.live.dot(V) + b)
        return np.array([_inner(column, self.pairs.laplacian(column)) for column in np.ascontiguousarray(t.T)])

    def relaxed(self, points: Floats) -> tuple[Floats, Floats]:
        singles = points.astype(np.float32)
        t = np.tanh(self.live.dots(singles[:, :-1]) + singles[:, -1:])  # (m, n_live)
        Lt = np.array([self.pairs.laplacian(one) for one in t])
        slope = Lt * (1.0 - t * t)  # ½·∂/∂z
        values = np.array([_inner(*both) for both in zip(t, Lt, strict=True)])
        return values, np.column_stack([self.live.tdots(slope), slope.sum(axis=1, dtype=np.float64)])

    def pull(self, direction: Direction, shift: float, signed: bool) -> Pull:
        h = self._values(direction)
        h = signs(h) if signed else h
        target = self.pairs.laplacian(h)
        if shift:
            target = target + np.float32(2.0 * shift) * self.pairs.near_weight() * h
        total, absolute = target.sum(dtype=np.float64), np.abs(target).sum(dtype=np.float64)
        return Pull(self.live.tdots(target[None])[0], float(total), float(absolute))

    def sign_gain(self, direction: Direction) -> float:
        h = signs(self._values(direction))
        return _inner(h, self.pairs.laplacian(h)) / 4.0

    def moments(self, V: Singles) -> Moments:
        weight = self.pairs.near_weight().astype(np.float64)
        values = self.live.dot(V).astype(np.float64)
        return Moments(float(weight.sum()), weight @ values, weight @ values**2)

    def cut_gains(self, V: Singles, cuts: Floats) -> Floats:
        """A stump on each projection, whose ranks are places among the cuts."""
        values = np.ascontiguousarray(self.live.dot(V).T)  # (m, n_live)
        places = np.array(
            [np.searchsorted(cut, value) for cut, value in zip(cuts.astype(np.float32), values, strict=True)]
        )
        ranks = _kernels.StumpRanks(values.shape[1])
        ranks.append(places.astype(np.uint8), np.full(len(cuts), cuts.shape[1] + 1))
        return np.reshape(ranks.gains(*self.pairs.live_slots(), self.pairs.n_threads), cuts.shape)

    def ridge(self, share: float) -> Solver:
        return ridge_solver(self.Z.gram(), share)

    def _values(self, direction: Direction) -> Singles:
        v, b = direction
        return np.asarray(self.live.dots(v[None].astype(np.float32))[0] + np.float32(b))


def ridge_solver(gram: Floats, share: float) -> Solver:
    """As `Passes.ridge`, from ZᵀZ (d, d), which is overwritten."""
    gram[np.diag_indices_from(gram)] += share * np.trace(gram) / len(gram) + LEAST_RIDGE
    factor = scipy.linalg.cho_factor(gram, overwrite_a=True)
    return lambda right: np.asarray(scipy.linalg.cho_solve(factor, right, check_finite=False))


def _inner(a: Singles, b: Singles) -> float:
    """aᵀb, in doubles."""
    return float(a.astype(np.float64) @ b.astype(np.float64))
