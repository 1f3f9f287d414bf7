"""Weights rounded down to few bits: Σ_j m_j·[b_j ≠ b'_j] times a scale is never more than the distance."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .._arrays import Floats, Ints

_MOST_CANDIDATES = 64
_FAR_OUT = 4.5  # standard deviations below the mean of a distance: where the nearest of many codes lie


@dataclass(frozen=True)
class Bound:
    """Small whole weights m (ℓ,) and a scale, m·scale ≤ weights."""

    small: Ints
    scale: int

    def planes(self, n_planes: int) -> Ints:
        """Masks (n_planes, ℓ) of 0 and 1: m_j = Σ_p 2^p·mask_pj."""
        return self.small >> np.arange(n_planes)[:, None] & 1


def bound_of(weights: Ints, largest: int) -> Bound:
    """The bound of weights up to `largest` that keeps the most codes away.

    That is an exact one where there is such. Else, under independent fair bits a bound has a mean and a standard
    deviation; of the scales at hand that one is taken whose mean lies the most standard deviations above where the
    nearest of many codes lie.

    >>> bound_of(np.array([8, 8, 4, 0]), largest=7)
    Bound(small=array([2, 2, 1, 0]), scale=4)
    """
    scales = _candidates(weights, largest)
    small = np.minimum(weights[None, :] // scales[:, None], largest)  # (s, ℓ)
    bounds = small * scales[:, None].astype(np.float64)
    near = _mean(weights[None, :]) - _FAR_OUT * _deviation(weights[None, :])
    apart = (_mean(bounds) - near) / np.maximum(_deviation(bounds), np.finfo(np.float64).tiny)
    apart[(bounds == weights).all(axis=1)] = np.inf
    best = int(np.lexsort((-scales, -apart))[0])  # the largest scale among equals
    return Bound(small[best], int(scales[best]))


def _candidates(weights: Ints, largest: int) -> Ints:
    """Scales (s,) at which some weight is a small whole number of them."""
    positive = np.unique(weights[weights > 0])
    if not positive.size:
        return np.ones(1, dtype=np.int64)
    some = positive[np.unique(np.linspace(0, len(positive) - 1, _MOST_CANDIDATES).astype(int))]
    parts = np.unique(np.geomspace(1, largest, 12).round().astype(np.int64))
    return np.unique(np.maximum(some[:, None] // parts, 1))


def _mean(weights: NDArray[np.generic]) -> Floats:
    return np.asarray(weights.sum(axis=1) / 2.0)


def _deviation(weights: NDArray[np.generic]) -> Floats:
    return np.asarray(np.sqrt((weights.astype(np.float64) ** 2).sum(axis=1)) / 2.0)
