"""What a partition is: a short description that travels to a worker, which reads the items there."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from .._arrays import Array, Ints
from .._validation import check_whole
from ..exceptions import InvalidInputError
from ..index.checks import check_ids
from ..reading.label_files import written_labels

_ROWS = 1 << 14  # that are decoded at a time


class Block(NamedTuple):
    """Some items of a partition."""

    ids: Ints  # (n,)
    X: Array  # (n, d) float32 or float64
    y: Array | None  # (n,) labels


class Piece(NamedTuple):
    """What a source gives for some of its rows, before it is checked."""

    X: Array
    y: Array | None
    ids: Array | None  # None: row numbers
    row: int  # of the first of them, as messages count


@dataclass(frozen=True, kw_only=True)
class Partition(ABC):
    """Consecutive rows of a data set that one worker reads.

    Parameters
    ----------
    name : as messages call it
    first : number of its first row in the whole data set
    n_rows, n_features : shape of its items
    dtype : float32 or float64, which its items are read as
    has_labels : whether items have a label each
    fingerprint : tells whether this is still the same partition of the same data
    """

    name: str
    first: int
    n_rows: int
    n_features: int
    dtype: str
    has_labels: bool
    fingerprint: str

    def read(self) -> Block:
        """All items of the partition."""
        X, ids = np.empty((self.n_rows, self.n_features), self.dtype), np.empty(self.n_rows, np.int64)
        labels: list[Array] = []
        first = 0
        for block in self.read_batches(_ROWS):  # in pieces: decoding takes several times the memory of what it decodes
            here = slice(first, first + len(block.ids))
            X[here], ids[here], first = block.X, block.ids, here.stop
            if block.y is not None:
                labels.append(block.y)
        if not self.has_labels:
            return Block(ids, X, None)
        return Block(ids, X, np.concatenate(labels or [np.zeros(0, np.int64)]))

    def read_batches(self, rows: int) -> Iterator[Block]:
        """The items, at most `rows` at a time, so that no more of them need be in memory."""
        first = self.first
        for piece in self._pieces(check_whole(rows, 1, "rows")):
            block = self._checked(piece, first)
            first += len(block.ids)
            if first > self.first + self.n_rows:
                break
            yield block
        if first != self.first + self.n_rows:
            raise InvalidInputError(f"{self.name} must hold {self.n_rows} rows, got {first - self.first}")

    @abstractmethod
    def _pieces(self, rows: int) -> Iterator[Piece]:
        """What the source holds, at most `rows` rows at a time."""

    def _checked(self, piece: Piece, first: int) -> Block:
        X = np.asarray(piece.X, dtype=self.dtype)
        if X.ndim != 2 or X.shape[1] != self.n_features:
            raise InvalidInputError(
                f"{self.name} must hold items of {self.n_features} features, got an array of shape {X.shape}"
            )
        if not np.isfinite(X).all():
            row, column = np.argwhere(~np.isfinite(X))[0].tolist()
            raise InvalidInputError(
                f"{self.name}, row {piece.row + row}: must hold finite numbers, "
                f"got {X[row, column]} in place {column} of its vector"
            )
        ids = np.arange(first, first + len(X)) if piece.ids is None else check_ids(piece.ids, f"ids of {self.name}")
        y = None if piece.y is None else written_labels(np.asarray(piece.y))
        for name, values in (("ids", ids), ("labels", y)):
            if values is not None and len(values) != len(X):
                raise InvalidInputError(f"{name} of {self.name} must be one an item, {len(X)}, got {len(values)}")
        return Block(ids, X, y)


def item_dtype(dtype: Any, name: str) -> str:
    """What items of a type are read as: float32 where it holds them exactly, else float64.

    >>> item_dtype("int8", "X"), item_dtype("int64", "X")
    ('float32', 'float64')
    """
    kind = np.dtype(dtype)
    if kind.kind not in "iuf":
        raise InvalidInputError(f"{name} must hold numbers, got {kind}")
    return "float32" if np.can_cast(kind, np.float32, "safe") else "float64"
