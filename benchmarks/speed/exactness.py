"""Whether answers are right: distances by float64 tables, brute force, recall."""

from __future__ import annotations

import numpy as np
from search_codes import CodeSet

from cghash.codes import whole_weights

SAME = 1e-6  # relative: distances that float32 cannot tell apart


def byte_tables(weights: np.ndarray) -> np.ndarray:
    """What each value of q XOR x counts, byte by byte: (bytes, 256) float64, whose sums are exact."""
    whole, unit = whole_weights(weights, len(weights))
    bits = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1, bitorder="little")
    return whole.reshape(-1, 8).astype(np.float64) @ bits.T * unit


def distances_to(query: np.ndarray, codes: np.ndarray, tables: np.ndarray) -> np.ndarray:
    return sum(tables[j][codes[:, j] ^ query[j]] for j in range(len(tables)))


def brute_force(data: CodeSet, query: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """The k nearest by a full comparison, order (distance, id)."""
    all_distances = distances_to(query, data.codes, byte_tables(data.weights))
    near = np.flatnonzero(all_distances <= np.partition(all_distances, k - 1)[k - 1])
    near = near[np.lexsort((near, all_distances[near]))[:k]]
    return all_distances[near], near


def recall(data: CodeSet, queries: np.ndarray, found: np.ndarray, truth: np.ndarray) -> float:
    """Share of the found ids (q, k) that are as near as the k-th of the true distances (q, k)."""
    tables, hits = byte_tables(data.weights), 0
    for query, ids, distances in zip(queries, found, truth, strict=True):
        real = ids[ids >= 0]
        hits += int(np.sum(distances_to(query, data.codes[real], tables) <= distances[-1] * (1 + SAME)))
    return hits / found.size
