"""The matrix of who shares a label with whom, and what bits leave of it, through groups of items of the same labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import scipy.sparse as sp

from .._arrays import Floats, Ints
from .labels import signs_of_similarity


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
