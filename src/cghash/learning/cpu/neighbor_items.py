"""Items as the neighbour graph reads them: placed about zero and scaled, and which are relevant to each other."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ..._arrays import Array, Bools, Floats, Ints, Singles
from ...exceptions import InvalidInputError

_NUMBERS = 1 << 16  # float64 numbers gathered at a time for distances: they stay in cache


class DenseItems:
    """Dense items, as they came, and (x - shift)·scale of some of them at a time."""

    def __init__(self, X: Any) -> None:
        self._X = np.asarray(X)
        if self._X.ndim != 2:
            raise InvalidInputError(f"X must be (n, d), got shape {self._X.shape}")
        self.n, self.d = self._X.shape
        self.whole = all(bool(np.all(part == np.rint(part))) for _, part in self._parts())
        self._shift, largest = self._centre()
        self.scale = power_of_two(largest)
        self.squares = np.empty(self.n)  # |x|² after shift and scale
        for rows, part in self._parts():
            part = self._place(part)
            self.squares[rows] = np.einsum("ij,ij->i", part, part)

    def _parts(self) -> Iterator[tuple[slice, Floats]]:
        step = max(1, 16 * _NUMBERS // max(1, self.d))
        for first in range(0, self.n, step):
            yield slice(first, first + step), self._X[first : first + step].astype(np.float64)

    def _centre(self) -> tuple[Floats, float]:
        """About the mean of each feature, and the largest |x - mean|: zero for a constant feature."""
        if self.n == 0 or self.d == 0:
            return np.zeros(self.d), 0.0
        total, low, high = np.zeros(self.d), np.full(self.d, np.inf), np.full(self.d, -np.inf)
        first = self._X[0].astype(np.float64)
        for _, part in self._parts():
            low, high = np.minimum(low, part.min(axis=0)), np.maximum(high, part.max(axis=0))
            total += (part - first).sum(axis=0)
        shift = first + total / self.n
        if self.whole:
            shift = np.rint(shift)
        return shift, float(np.maximum(high - shift, shift - low).max())

    def _place(self, part: Floats) -> Floats:
        part -= self._shift
        part *= self.scale
        return part

    def singles(self) -> tuple[Singles, Floats]:
        """Placed items rounded to float32 (n, d), and their |x|² (n,)."""
        rounded, squares = np.empty((self.n, self.d), dtype=np.float32), np.empty(self.n)
        for rows, part in self._parts():
            rounded[rows] = self._place(part)
            part = rounded[rows].astype(np.float64)
            squares[rows] = np.einsum("ij,ij->i", part, part)
        return rounded, squares

    def values(self, rows: Ints) -> Floats:
        return np.array(self._X[rows], dtype=np.float64, order="C")  # (r, d)

    def contents(self) -> Iterator[bytes]:
        for _, part in self._parts():
            part += 0.0  # -0 and 0 are the same
            yield from (row.tobytes() for row in part)

    def products(self, rows: Ints) -> Floats:
        placed = self._place(self.values(rows))  # (r, d)
        dots = np.empty((rows.size, self.n))
        for columns, part in self._parts():
            dots[:, columns] = placed @ self._place(part).T
        return dots


class SparseItems:
    """Sparse items, as they came, and scaled; centring would fill them."""

    def __init__(self, X: Any) -> None:
        self._X: Any = sparse.csr_array(X, dtype=np.float64)
        self.n, self.d = self._X.shape
        values = self._X.data
        self.whole = bool(np.all(values == np.rint(values)))
        self.scale = power_of_two(float(np.abs(values).max(initial=0.0)))
        self._placed: Any = self._X * self.scale
        self._placed.sum_duplicates()
        self._placed.eliminate_zeros()
        self.squares = np.asarray(self._placed.multiply(self._placed).sum(axis=1), dtype=np.float64).reshape(-1)

    def values(self, rows: Ints) -> Floats:
        return np.ascontiguousarray(self._X[rows].toarray())  # (r, d)

    def contents(self) -> Iterator[bytes]:
        rows = self._placed.indptr
        for first, last in itertools.pairwise(rows):
            yield self._placed.indices[first:last].tobytes() + self._placed.data[first:last].tobytes()

    def products(self, rows: Ints) -> Floats:
        return np.asarray((self._placed[rows] @ self._placed.T).toarray())  # (r, n)


Items = DenseItems | SparseItems


def is_exact(items: Items, mantissa: int) -> bool:
    """Are all products, scores and distances whole numbers of at most so many bits?"""
    return items.whole and bool(4 * items.squares.max() <= items.scale**2 * 2.0**mantissa)


def power_of_two(largest: float) -> float:
    """The scale that brings `largest` to between 1/2 and 1."""
    exponent = int(np.frexp(largest)[1]) if largest > 0 and np.isfinite(largest) else 0
    return 2.0 ** -max(exponent, -1000)


def first_copies(items: Items) -> Ints:
    """For each item, the first one equal to it."""
    seen: dict[bytes, int] = {}
    keys = (hashlib.blake2b(content, digest_size=24).digest() for content in items.contents())
    return np.fromiter((seen.setdefault(key, i) for i, key in enumerate(keys)), dtype=np.int64, count=items.n)


def distances(items: Items, rows: Ints, others: Ints, first_copy: Ints | None) -> Floats:
    """Σ(x - y)² of each pair of items, in float64: what decides. Copies of an item are computed once."""
    if first_copy is not None:
        keys, which = np.unique(rows * items.n + first_copy[others], return_inverse=True)
        return distances(items, keys // items.n, keys % items.n, None)[which]
    out = np.empty(rows.size)
    step = max(1, _NUMBERS // max(1, items.d))
    for first in range(0, rows.size, step):
        some = slice(first, first + step)
        difference = items.values(rows[some])
        difference -= items.values(others[some])
        out[some] = np.square(difference, out=difference).sum(axis=1)
    return out


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
