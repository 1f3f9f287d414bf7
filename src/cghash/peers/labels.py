"""Labels as the supervised peers need them, as class numbers (n,) or multi-label indicators (n, L): who shares one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import scipy.sparse as sp

from .._arrays import Bools, Floats, Ints


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


@dataclass(frozen=True)
class LabelGroups:
    """S = Z T Zᵀ (n, n), 1 where two items share a label and −1 elsewhere, never written out.

    Items with the same labels form a group: Z (n, g) says who belongs to which, T (g, g) is S between groups.
    """

    group: Ints  # (n,) the group of each item
    members: sp.csr_matrix  # Z
    between: Floats  # T

    @classmethod
    def of(cls, labels: Any) -> Self:
        """The groups of items with class numbers (n,) or multi-label indicators (n, L).

        Examples
        --------
        >>> groups = LabelGroups.of(np.array([4, 2, 4]))
        >>> groups.group.tolist(), groups.times(np.array([1.0, 10.0, 100.0])).tolist()
        ([1, 0, 1], [91.0, -91.0, 91.0])
        """
        kinds, group = np.unique(labels, axis=0, return_inverse=True)
        group = group.ravel()
        n = len(group)
        members = sp.csr_matrix((np.ones(n), group, np.arange(n + 1)), shape=(n, len(kinds)))
        return cls(group, members, signs_of_similarity(kinds, kinds))

    @property
    def n_groups(self) -> int:
        return len(self.between)

    def sums(self, A: Floats) -> Floats:
        """Zᵀ A, the sums (g, …) over the items (n, …) of each group."""
        return np.asarray(self.members.T @ A)

    def times(self, A: Floats) -> Floats:
        """S A (n, …)."""
        return np.asarray((self.between @ self.sums(A))[self.group])


@dataclass(frozen=True)
class Residue:
    """R = kS − HHᵀ (n, n), what k − 1 bits H leave for the next, never written out."""

    groups: LabelGroups
    H: Floats  # (n, k − 1) of −1 and 1

    def times(self, b: Floats) -> Floats:
        """R b (n,)."""
        return np.asarray((self.H.shape[1] + 1) * self.groups.times(b) - self.H @ (b @ self.H))

    def gain(self, b: Floats) -> float:
        """bᵀ R b."""
        return float(b @ self.times(b))
