"""Which items are relevant to a query: those that share a label with it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from .._arrays import Array, Floats, Int32s, Ints
from ..codes import check_bits
from ..exceptions import InvalidInputError

__all__ = ["Labels"]


@dataclass(frozen=True)
class Labels:
    """Labels of queries, and of a database whose items are of a kind when they have the same labels.

    Examples
    --------
    >>> labels = Labels.of(["b", "z"], ["a", "b", "b"], (2, 3))
    >>> labels.kinds.tolist(), labels.gains(slice(0, 2)).tolist()
    ([0, 1, 1], [[0.0, 1.0], [0.0, 0.0]])
    >>> labels = Labels.of([[1, 1, 0]], [[1, 1, 1], [0, 0, 1], [1, 1, 1]], (1, 3))
    >>> labels.kinds.tolist(), labels.gains(slice(0, 1)).tolist()
    ([1, 0, 1], [[0.0, 2.0]])
    """

    queries: Array  # (q,) label numbers, -1 where no item has the label; or (q, c) indicators
    kinds: Int32s  # (n,)
    labels: Array  # (number of kinds,) label numbers; or (number of kinds, c) indicators

    @classmethod
    def of(cls, query_labels: ArrayLike, database_labels: ArrayLike, shape: tuple[int, int]) -> Labels:
        queries, database = np.asarray(query_labels), np.asarray(database_labels)
        for name, labels, n in ("query_labels", queries, shape[0]), ("database_labels", database, shape[1]):
            if labels.ndim not in (1, 2) or len(labels) != n:
                raise InvalidInputError(f"{name} must have {n} rows, 1-D or 2-D, got shape {labels.shape}")
        if len(database) == 0:
            raise InvalidInputError("database_labels must have 1 row or more, got 0")
        if queries.shape[1:] != database.shape[1:]:
            raise InvalidInputError(
                f"database_labels must be like query_labels, of shape {queries.shape}, got {database.shape}"
            )
        return cls._several(queries, database) if queries.ndim == 2 else cls._single(queries, database)

    @classmethod
    def _single(cls, queries: Array, database: Array) -> Labels:
        for name, labels in ("query_labels", queries), ("database_labels", database):
            if labels.dtype.kind == "f" and np.isnan(labels).any():
                raise InvalidInputError(f"{name} must not be missing, got nan")
        if (queries.dtype.kind in "US") != (database.dtype.kind in "US"):
            raise InvalidInputError(
                f"database_labels must be of the type of query_labels, {queries.dtype}, got {database.dtype}"
            )
        known, numbers = np.unique(database, return_inverse=True)
        place = np.minimum(np.searchsorted(known, queries), len(known) - 1)
        own = np.where(known[place] == queries, place, -1)
        return cls(own, numbers.astype(np.int32), np.arange(len(known)))

    @classmethod
    def _several(cls, queries: Array, database: Array) -> Labels:
        given = ("query_labels", queries), ("database_labels", database)
        own, flags = (check_bits(labels, name) for name, labels in given)
        sets, numbers = np.unique(flags, axis=0, return_inverse=True)
        return cls(own, numbers.reshape(-1).astype(np.int32), sets)

    @property
    def n_kinds(self) -> int:
        return len(self.labels)

    @property
    def counts(self) -> Ints:
        """Items of each kind: (number of kinds,)."""
        return np.bincount(self.kinds, minlength=self.n_kinds)

    def gains(self, rows: slice) -> Floats:
        """How many labels each kind shares with each of some queries: (q, number of kinds)."""
        if self.labels.ndim == 2:
            shared: Floats = self.queries[rows].astype(np.float64) @ self.labels.T.astype(np.float64)
            return shared
        same: Floats = np.equal(self.queries[rows, None], self.labels).astype(np.float64)
        return same
