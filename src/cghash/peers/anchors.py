"""Kernels to anchors: the features that the kernel methods among the peers learn from."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._arrays import Floats, rows_in_blocks
from ..learning.families.rbf import drawn_items, squared_distances

_SAMPLE = 2000  # items that the width is taken from


def draw_anchors(X: Any, n_anchors: int, gamma: float | None, rng: np.random.Generator) -> tuple[Floats, float]:
    """Anchors (m, d) drawn from the items, and γ of the kernel: by default 1 over the mean of what it multiplies."""
    anchors = drawn_items(X, n_anchors, rng)
    if gamma is not None:
        return anchors, float(gamma)
    sample = X[np.sort(rng.choice(len(X), min(_SAMPLE, len(X)), replace=False))]
    return anchors, 1.0 / max(float(squared_distances(sample, anchors).mean()), 1e-300)


def kernel(X: Any, anchors: Floats, gamma: float) -> Floats:
    """exp(−γ‖x − anchor‖²): (n, m).

    Examples
    --------
    >>> kernel(np.array([[0.0], [2.0]]), np.array([[0.0], [1.0]]), np.log(2)).tolist()
    [[1.0, 0.5], [0.0625, 0.5]]
    """
    K = np.empty((len(X), len(anchors)))
    for rows in rows_in_blocks(len(X)):
        K[rows] = np.exp(-gamma * squared_distances(X[rows], anchors))
    return K
