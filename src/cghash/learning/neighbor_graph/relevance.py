"""Which items are relevant to each other: those of one label, or those with a label in common."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ..._arrays import Array, Bools, Ints
from ...exceptions import InvalidInputError


class Labels:
    """Items are relevant to those of their label."""

    def __init__(self, labels: Array) -> None:
        self.codes = np.unique(labels, return_inverse=True)[1].astype(np.int32).reshape(-1)  # (n,)

    def block(self, rows: slice | Ints, columns: slice | Ints) -> None:
        return None  # the kernel compares the codes

    def rows(self, rows: Ints) -> Bools:
        return np.asarray(self.codes[rows][:, None] == self.codes)


class SharedLabel:
    """Items are relevant to those with which they have a label in common."""

    def __init__(self, indicator: Any) -> None:
        self.codes = np.zeros(indicator.shape[0], dtype=np.int32)  # not used by the kernel
        marked = indicator.astype(bool).astype(np.float32)  # (n, L)
        self._labels = marked if isinstance(marked, np.ndarray) else marked.tocsr()

    def block(self, rows: slice | Ints, columns: slice | Ints) -> NDArray[np.uint8]:
        shared = _dense(self._labels[rows] @ self._labels[columns].T)
        return np.ascontiguousarray(shared > 0).view(np.uint8)

    def rows(self, rows: Ints) -> Bools:
        return np.asarray(_dense(self._labels[rows] @ self._labels.T) > 0)


def relevance_between(relevance: Any, n: int) -> Labels | SharedLabel:
    if relevance is None:
        return Labels(np.zeros(n, dtype=np.int32))
    if not sparse.issparse(relevance):
        relevance = np.asarray(relevance)
    if relevance.ndim not in (1, 2) or relevance.shape[0] != n:
        raise InvalidInputError(
            f"relevance must be ({n},) labels or an ({n}, L) indicator matrix, got shape {relevance.shape}"
        )
    return Labels(relevance) if relevance.ndim == 1 else SharedLabel(relevance)


def _dense(matrix: Any) -> Any:
    return matrix if isinstance(matrix, np.ndarray) else matrix.toarray()
