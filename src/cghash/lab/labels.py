"""Which items are relevant to a query: those that share a label with it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..codes import check_bits
from ..exceptions import InvalidInputError

__all__ = ["Labels"]

Flags = NDArray[np.uint8]  # 0 and 1


@dataclass(frozen=True)
class Labels:
    """Labels of queries and database: numbers of one label an item, or indicators of several.

    Examples
    --------
    >>> labels = Labels.of(["b", "z"], ["a", "b", "b"], (2, 3))
    >>> labels.queries.tolist(), labels.database.tolist(), labels.relevant().tolist()
    ([1, -1], [0, 1, 1], [[0, 1, 1], [0, 0, 0]])
    """

    queries: NDArray[Any]  # (q,), -1 where no item has the label; or (q, c)
    database: NDArray[Any]  # (n,) or (n, c)

    @classmethod
    def of(cls, query_labels: ArrayLike, database_labels: ArrayLike, shape: tuple[int, ...]) -> Labels:
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
    def _single(cls, queries: NDArray[Any], database: NDArray[Any]) -> Labels:
        for name, labels in ("query_labels", queries), ("database_labels", database):
            if labels.dtype.kind == "f" and np.isnan(labels).any():
                raise InvalidInputError(f"{name} must not be missing, got nan")
        if (queries.dtype.kind in "US") != (database.dtype.kind in "US"):
            raise InvalidInputError(
                f"database_labels must be of the type of query_labels, {queries.dtype}, got {database.dtype}"
            )
        known, numbers = np.unique(database, return_inverse=True)
        place = np.minimum(np.searchsorted(known, queries), len(known) - 1)
        return cls(np.where(known[place] == queries, place, -1), numbers)

    @classmethod
    def _several(cls, queries: NDArray[Any], database: NDArray[Any]) -> Labels:
        given = ("query_labels", queries), ("database_labels", database)
        return cls(*(check_bits(labels, name).astype(np.float32) for name, labels in given))

    @property
    def multiple(self) -> bool:
        return self.database.ndim == 2

    def at(self, rows: slice) -> Labels:
        return replace(self, queries=self.queries[rows])

    def relevant(self) -> Flags:
        """1 where an item shares a label with the query: (q, n)."""
        if self.multiple:
            shared: Flags = (self.queries @ self.database.T > 0).view(np.uint8)
            return shared
        same: Flags = np.equal(self.queries[:, None], self.database).view(np.uint8)
        return same
