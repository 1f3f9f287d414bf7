"""A bit for each item by cuts of graphs, one block of like items after the other.

The bit z in {−1, 1} should maximise zᵀRz, R = kS − HHᵀ the residue of the k − 1 bits before. With all items but those
of a block fixed, what counts is Σ R_ij z_i z_j over the pairs in the block and 2 Σ u_i z_i, u_i the sum of R_ij z_j
over those outside. Where all items of a block share a label, R_ij = k − h_i·h_j ≥ 1: they only attract each other, and
a minimum cut finds the best z exactly: R_ij joins i and j, u_i > 0 joins i to the source, u_i < 0 to the sink.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import breadth_first_order, maximum_flow

from .._arrays import Floats, Ints
from .labels import Residue

_BLOCK = 100  # items in a block; capacities then stay below 2³¹ in sum, for any number of bits
# more of both, measured once: the share in the top 50 rose from 0.869 to 0.875, mAP fell from 0.715 to 0.705
_SWEEPS, _STARTS = 3, 2


def blocks_of(labels: Any, rng: np.random.Generator) -> list[Ints]:
    """Blocks of items that share a label, drawn: each item with labels is in one block for each, the others alone.

    Examples
    --------
    >>> [block.tolist() for block in blocks_of(np.array([0, 1, 0]), np.random.default_rng(0))]
    [[0, 2], [1]]
    """
    if labels.ndim == 2:
        kinds = [np.flatnonzero(column) for column in labels.T]
        alone = [np.array([i]) for i in np.flatnonzero(~labels.any(axis=1))]
    else:
        kinds, alone = [np.flatnonzero(labels == label) for label in range(labels.max() + 1)], []
    pieces = [
        np.sort(piece)
        for kind in kinds
        if len(kind)
        for piece in np.array_split(rng.permutation(kind), -(-len(kind) // _BLOCK))
    ]
    return pieces + alone


def infer_bits(residue: Residue, blocks: list[Ints], rng: np.random.Generator) -> Floats:
    """Signs z (n,) of a large zᵀRz: the best of some starts, each improved block by block."""
    found = []
    for _ in range(_STARTS):
        z = np.where(rng.random(residue.groups.n_groups) < 0.5, 1.0, -1.0)[residue.groups.group]
        found.append(improve(residue, blocks, z, _SWEEPS))
    return max(found, key=residue.gain)


def improve(residue: Residue, blocks: list[Ints], z: Floats, n_sweeps: int) -> Floats:
    """Give each block in turn its best signs, until none changes, or so many times."""
    z, groups, H = z.copy(), residue.groups, residue.H
    k = H.shape[1] + 1
    by_group, by_bit = groups.sums(z), z @ H  # Zᵀz and Hᵀz
    for _ in range(n_sweeps):
        changed = False
        for block in blocks:
            group, h, old = groups.group[block], H[block], z[block]
            outside = by_group - np.bincount(group, old, groups.n_groups)
            u = k * groups.between[group] @ outside - h @ (by_bit - old @ h)
            new = best_signs(u, k, h)
            if block_value(new, u, k, h) > block_value(old, u, k, h):  # whole numbers: changes without gain would go on
                by_group += np.bincount(group, new - old, groups.n_groups)
                by_bit += (new - old) @ h
                z[block], changed = new, True
        if not changed:
            break
    return z


def block_value(z: Floats, u: Floats, k: int, h: Floats) -> float:
    """Σ_ij (k − h_i·h_j) z_i z_j + 2 u·z of signs z (b,), with bits h (b, k − 1) of −1 and 1."""
    return float(k * z.sum() ** 2 - np.sum((z @ h) ** 2) + 2.0 * u @ z)


def best_signs(u: Floats, k: int, h: Floats) -> Floats:
    """Signs z (b,) of the largest `block_value`, exactly; u is whole.

    Examples
    --------
    >>> best_signs(np.array([5.0, -1.0, -9.0]), 1, np.empty((3, 0))).tolist()
    [1.0, -1.0, -1.0]
    """
    if np.all(u >= 0) or np.all(u <= 0):  # nothing pulls them apart
        return np.full(len(u), 1.0 if u.sum() >= 0 else -1.0)
    pairs = k - h @ h.T
    np.fill_diagonal(pairs, 0.0)
    most = pairs.sum(axis=1) + 1  # a stronger pull decides alone
    return _cut(np.clip(u, -most, most), pairs)


def _cut(u: Floats, pairs: Floats) -> Floats:
    b = len(u)
    source, sink = b, b + 1
    capacity = np.zeros((b + 2, b + 2), dtype=np.int32)
    capacity[:b, :b] = pairs
    capacity[source, :b] = np.maximum(u, 0)
    capacity[:b, sink] = np.maximum(-u, 0)
    graph = sp.csr_matrix(capacity)
    left = graph - maximum_flow(graph, source, sink).flow
    left.eliminate_zeros()
    reached = breadth_first_order(left, source, return_predecessors=False)
    z = np.full(b + 2, -1.0)
    z[reached] = 1.0
    return z[:b]
