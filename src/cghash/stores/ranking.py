"""From an engine's nearest to the nearest under the weights: re-rank what came, and bound what did not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .._arrays import Codes, Ints
from .origin import Origin

NONE = np.iinfo(np.int64).max  # a distance past all


def whole_distances(origin: Origin, query: Codes, codes: Codes) -> Ints:
    """Distances (n,) of one code to others (n, n_bytes), in whole units of the weights."""
    return np.asarray(origin.byte_tables[np.arange(origin.n_bytes), query ^ codes].sum(axis=1))


def least_distances(whole: Ints, counts: Ints) -> Ints:
    """The least Σ_j w_j·δ_j, δ_j ∈ {0, 1}, with Σ_j m_j·δ_j ≥ h, for h = 0 … Σ m_j: a code whose expansion is h away is
    at least so far. (A knapsack problem, solved by dynamic programming.)

    Examples
    --------
    >>> least_distances(np.array([5, 3]), np.array([2, 1])).tolist()
    [0, 3, 5, 8]
    """
    least = np.full(int(counts.sum()) + 1, NONE, dtype=np.int64)
    least[0] = 0
    for w, m in zip(whole.tolist(), counts.tolist(), strict=True):
        reached = np.arange(len(least)) - m
        before = least[np.maximum(reached, 0)]
        np.minimum(least, np.where(before == NONE, NONE, before + w), out=least)
    return least


@dataclass(frozen=True)
class Ranked:
    """The k nearest of one query, fewer where there are fewer; whether nothing outside can be among them."""

    distances: Ints  # whole
    ids: Ints
    exact: bool


def rank(origin: Origin, query: Codes, codes: Codes, ids: Ints, k: int, beyond: int) -> Ranked:
    """Rank some items (c, n_bytes) by (distance, id), where all others are known to be at least `beyond` away."""
    distances = whole_distances(origin, query, codes)
    order = np.lexsort((ids, distances))[:k]
    # at an equal distance an id outside might be smaller
    exact = beyond == NONE or (len(order) == k and int(distances[order[-1]]) < beyond)
    return Ranked(distances[order], ids[order], exact)


def joined(origin: Origin, ranked: list[Ranked], k: int) -> Any:
    """Distances (q, k) in the unit of the weights, ids (q, k) and flags (q,); inf and -1 where there are fewer."""
    distances, ids = np.full((len(ranked), k), np.inf), np.full((len(ranked), k), -1, dtype=np.int64)
    for row, one in enumerate(ranked):
        distances[row, : len(one.ids)] = one.distances * origin.whole[1]
        ids[row, : len(one.ids)] = one.ids
    return distances, ids, np.array([one.exact for one in ranked], dtype=bool)
