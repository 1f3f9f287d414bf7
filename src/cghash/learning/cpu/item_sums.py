"""Sums over items in memory: what the search for a hyperplane asks of them."""

from __future__ import annotations

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from ... import _kernels
from ..._arrays import Array, Floats, Singles
from ..backend import LEAST_RIDGE, Direction, Moments, Pull, Solver
from .features import Features
from .pairs import SignedPairs, signs


class CpuItemSums:
    """Sums over features in memory."""

    def __init__(self, Z: Features, pairs: SignedPairs) -> None:
        self.Z, self.pairs = Z, pairs
        self.live = Z.take(pairs.items)
        self.n_items, self.n_features = Z.shape
        self.n_bytes = self.live.n_bytes
        self.scale = pairs.scale
        self._near_weight: Singles | None = None
        self._labelled: dict[bytes, tuple[Singles, Singles]] = {}

    def draw_gains(self, V: Singles, b: Singles) -> Array:
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
        h, target = self._labels(direction) if signed else self._with_laplacian(self._values(direction))
        if shift:
            target = target + np.float32(2.0 * shift) * self._near() * h
        total, absolute = target.sum(dtype=np.float64), np.abs(target).sum(dtype=np.float64)
        return Pull(self.live.tdots(target[None])[0], float(total), float(absolute))

    def sign_gain(self, direction: Direction) -> float:
        return _inner(*self._labels(direction)) / 4.0

    def moments(self, V: Singles) -> Moments:
        weight = self._near().astype(np.float64)
        values = self.live.dot(V).astype(np.float64)
        return Moments(float(weight.sum()), weight @ values, weight @ values**2)

    def cut_gains(self, V: Singles, cuts: Floats) -> Floats:
        """A stump on each projection, whose ranks are places among the cuts."""
        values = np.ascontiguousarray(self.live.dot(V).T)  # (m, n_live)
        places = np.array([places_among(*both) for both in zip(cuts.astype(np.float32), values, strict=True)])
        ranks = _kernels.StumpRanks(values.shape[1])
        ranks.append(places, np.full(len(cuts), cuts.shape[1] + 1))
        return np.reshape(ranks.gains(*self.pairs.live_slots(), self.pairs.n_threads), cuts.shape)

    def ridge(self, share: float) -> Solver:
        return ridge_solver(self.Z.gram(), share)

    def _labels(self, direction: Direction) -> tuple[Singles, Singles]:
        """h = sign(Z·v + b) (n_live,), and L·h; those of two directions are kept: a climb comes back to them."""
        v, b = direction
        name = v.tobytes() + np.float64(b).tobytes()
        found = self._labelled.pop(name, None) or self._with_laplacian(signs(self._values(direction)))
        while len(self._labelled) > 1:
            del self._labelled[next(iter(self._labelled))]  # asked for longest ago
        self._labelled[name] = found
        return found

    def _with_laplacian(self, h: Singles) -> tuple[Singles, Singles]:
        return h, self.pairs.laplacian(h)

    def _near(self) -> Singles:
        if self._near_weight is None:
            self._near_weight = self.pairs.near_weight()
        return self._near_weight

    def _values(self, direction: Direction) -> Singles:
        v, b = direction
        return np.asarray(self.live.dots(v[None].astype(np.float32))[0] + np.float32(b))


def places_among(cuts: Singles, values: Singles) -> NDArray[np.uint8]:
    """How many of the cuts (T ≤ 255,), which rise in even steps, lie below each value, as `np.searchsorted` finds.

    By arithmetic: rounding moves a place by one at most, which is put right. Where it is not so, all are searched for.
    """
    last = len(cuts) - 1
    with np.errstate(all="ignore"):
        guess = (values - cuts[0]) * (np.float32(last) / (cuts[last] - cuts[0]))
    if not np.all(np.isfinite(guess)):  # all cuts are the same, or a value is far away
        return np.asarray(np.searchsorted(cuts, values), dtype=np.uint8)
    places: NDArray[np.intp] = np.clip(guess + 1.0, 0.0, last + 1.0).astype(np.intp)
    fences = np.concatenate([[-np.inf], cuts, [np.inf]]).astype(np.float32)
    places -= fences[places] >= values
    places += fences[places + 1] < values
    if np.any((fences[places] >= values) | (fences[places + 1] < values)):
        return np.asarray(np.searchsorted(cuts, values), dtype=np.uint8)
    return places.astype(np.uint8)


def ridge_solver(gram: Floats, share: float) -> Solver:
    """As `ItemSums.ridge`, from ZᵀZ (d, d), which is overwritten.

    By the inverse, which λ keeps far from singular: a product reads half of it, two solutions read the factor twice.
    """
    gram[np.diag_indices_from(gram)] += share * np.trace(gram) / len(gram) + LEAST_RIDGE
    factor, _ = scipy.linalg.cho_factor(gram.T, lower=True, overwrite_a=True)  # as LAPACK has it: no copy
    inverse, _ = scipy.linalg.lapack.dpotri(factor, lower=True, overwrite_c=True)
    return lambda right: np.asarray(scipy.linalg.blas.dsymv(1.0, inverse, right, lower=True))


def _inner(a: Singles, b: Singles) -> float:
    """aᵀb, in doubles."""
    return float(a.astype(np.float64) @ b.astype(np.float64))
