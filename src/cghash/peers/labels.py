"""Labels as the supervised peers need them: class numbers (n,) or multi-label indicators (n, L)."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._arrays import Bools, Floats


def indicators(labels: Any) -> Floats:
    """One column a label, 1 where an item has it: (n, L).

    Examples
    --------
    >>> indicators(np.array([1, 0])).tolist()
    [[0.0, 1.0], [1.0, 0.0]]
    """
    if labels.ndim == 2:
        return np.asarray(labels, dtype=np.float64)
    return np.asarray(np.eye(int(labels.max()) + 1)[labels])


def similar(labels: Any, others: Any) -> Bools:
    """Whether two items share a label: (n, m).

    Examples
    --------
    >>> similar(np.array([0, 1]), np.array([1, 1])).tolist()
    [[False, False], [True, True]]
    """
    if labels.ndim == 2:
        return np.asarray(labels.astype(np.float32) @ others.T.astype(np.float32) > 0)
    return np.asarray(labels[:, None] == others[None])


def signs_of_similarity(labels: Any, others: Any) -> Floats:
    """+1 where two items share a label and −1 elsewhere: (n, m).

    Examples
    --------
    >>> signs_of_similarity(np.array([0, 1]), np.array([1, 1])).tolist()
    [[-1.0, -1.0], [1.0, 1.0]]
    """
    return np.where(similar(labels, others), 1.0, -1.0)
