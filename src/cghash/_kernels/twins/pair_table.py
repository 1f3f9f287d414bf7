"""Columns as bits over pair slots: NumPy twin of native/pair_table.hpp."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from ..._arrays import Floats, Ints

_CHUNK = 1 << 20  # triplets at a time


def _squared_hinge(margin: Floats) -> tuple[Floats, Floats]:
    slack = np.maximum(1.0 - margin, 0.0)
    return slack * slack, 2.0 * slack


def _hinge(margin: Floats) -> tuple[Floats, Floats]:
    slack = 1.0 - margin
    return np.maximum(slack, 0.0), (slack > 0.0).astype(np.float64)


def _logistic(margin: Floats) -> tuple[Floats, Floats]:
    small = np.exp(-np.abs(margin))
    return np.log1p(small) + np.maximum(-margin, 0.0), np.where(margin > 0, small, 1.0) / (1.0 + small)


def _exponential(margin: Floats) -> tuple[Floats, Floats]:
    value = np.exp(-margin)
    return value, value


_LOSSES = (_squared_hinge, _hinge, _logistic, _exponential)  # in the order of the native codes


def block_margins(n_near: Ints, n_far: Ints, weights: Floats, D: Floats) -> Iterator[tuple[Floats, Ints, Ints, Floats]]:
    """Yield margins (b, K⁺, K⁻), near slots (b, K⁺), far slots (b, K⁻) and weights (b,) of blocks of one shape."""
    size = n_near + n_far
    start = np.cumsum(size) - size
    kinds, which = np.unique(np.stack([n_near, n_far], axis=1), axis=0, return_inverse=True)
    for kind, (near_k, far_k) in enumerate(kinds):
        blocks = np.flatnonzero(which.ravel() == kind)
        step = max(1, _CHUNK // max(1, int(near_k * far_k)))
        for first in range(0, len(blocks), step):
            some = blocks[first : first + step]
            near = start[some, None] + np.arange(near_k)
            far = start[some, None] + near_k + np.arange(far_k)
            yield D[far][:, None, :] - D[near][:, :, None], near, far, weights[some]


class PairTable:
    """Triplets as product blocks, and the columns found so far as bits over their pair slots.

    Block b compares anchors[b] with each of near[near_ptr[b]:near_ptr[b + 1]] against each of its far items; each such
    triplet weighs weights[b]. Its slots are its near pairs, then its far pairs; slots are numbered block after block.
    """

    def __init__(
        self,
        anchors: Ints,
        near_ptr: Ints,
        near: Ints,
        far_ptr: Ints,
        far: Ints,
        weights: Floats,
        n_items: int,
    ) -> None:
        n_blocks = anchors.size
        if not 0 <= n_items < 2**31:
            raise ValueError("n_items must lie between 0 and 2^31 - 1")
        for name, ptr, values in (("near_ptr", near_ptr, near), ("far_ptr", far_ptr, far)):
            if ptr.size != n_blocks + 1 or ptr[0] != 0 or ptr[-1] != values.size:
                raise ValueError(f"{name} must run from 0 to the number of items, one more than blocks")
            if np.any(np.diff(ptr) < 0):
                raise ValueError(f"{name} must not fall")
        for name, rows in (("anchors", anchors), ("near", near), ("far", far)):
            if rows.size and (rows.min() < 0 or rows.max() >= n_items):
                raise ValueError(f"{name} must be row numbers from 0 to n_items - 1")
        if weights.size != n_blocks:
            raise ValueError("weights has the wrong length")
        self.n_items = n_items
        self.n_columns = 0
        self._weights = weights
        self._n_near, self._n_far = np.diff(near_ptr), np.diff(far_ptr)
        self._start = near_ptr[:-1] + far_ptr[:-1]  # first slot of each block
        self.n_slots = int(near.size + far.size)
        block = np.repeat(np.arange(n_blocks), self._n_near + self._n_far)
        within = np.arange(self.n_slots) - self._start[block]
        is_near = within < self._n_near[block]
        self._slot_anchor = anchors[block]
        self._slot_item = np.empty(self.n_slots, dtype=np.int64)
        self._slot_item[is_near] = near
        self._slot_item[~is_near] = far
        self._columns = np.zeros((0, (self.n_slots + 7) // 8), dtype=np.uint8)

    @property
    def n_bytes(self) -> int:
        return int(self._columns.nbytes)

    def reserve(self, n_columns: int) -> None:
        if not 0 <= n_columns <= 65536:
            raise ValueError("n_columns must lie between 0 and 65536")
        if n_columns > len(self._columns):
            wider = np.zeros((n_columns, self._columns.shape[1]), dtype=np.uint8)
            wider[: self.n_columns] = self._columns[: self.n_columns]
            self._columns = wider

    def append(self, bits: NDArray[np.uint8]) -> None:
        if bits.shape != (self.n_items,):
            raise ValueError("bits has the wrong length")
        if self.n_columns == len(self._columns):
            self.reserve(max(8, 2 * self.n_columns))
        self._columns[self.n_columns] = np.packbits((bits[self._slot_anchor] ^ bits[self._slot_item]) & 1)
        self.n_columns += 1

    def distances(self, w: Floats, n_threads: int) -> Floats:
        """D[slot] = Σ_j w_j·[h_j differs on the slot's two items]."""
        self._check_size(w, self.n_columns, "w")
        D = np.zeros(self.n_slots)
        for j in np.flatnonzero(w):
            D += w[j] * np.unpackbits(self._columns[j], count=self.n_slots)
        return D

    def adjoint(self, q: Floats, n_threads: int) -> Floats:
        """Σ_slot q[slot]·bit_j(slot), for each column j."""
        self._check_size(q, self.n_slots, "q")
        columns = self._columns[: self.n_columns]
        return np.array([np.unpackbits(column, count=self.n_slots) @ q for column in columns], dtype=np.float64)

    def loss(self, loss: int, D: Floats, n_threads: int) -> tuple[float, Floats]:
        """Σ p f(ρ), and its derivative by each slot's distance."""
        self._check_size(D, self.n_slots, "D")
        if not 0 <= loss < len(_LOSSES):
            raise ValueError("loss code must lie between 0 and 3")
        value, q = 0.0, np.zeros(self.n_slots)
        for margins, near, far, p in self.margins(D):
            values, slopes = _LOSSES[loss](margins)  # (b, K⁺, K⁻)
            value += float(p @ values.sum(axis=(1, 2)))
            q[near] = p[:, None] * slopes.sum(axis=2)
            q[far] = -p[:, None] * slopes.sum(axis=1)
        return value, q

    def evaluate(self, loss: int, w: Floats, n_threads: int) -> tuple[float, Floats]:
        value, q = self.loss(loss, self.distances(w, n_threads), n_threads)
        return value, self.adjoint(q, n_threads)

    def counts(self, D: Floats, low: float, high: float, n_threads: int) -> tuple[float, int]:
        """Share of triplets, by weight, with a margin above `low`; how many have one below `high`."""
        self._check_size(D, self.n_slots, "D")
        share, live = 0.0, 0
        for margins, _, _, p in self.margins(D):
            share += float(p @ np.sum(margins > low, axis=(1, 2)))
            live += int(np.sum(margins < high))
        return share, live

    def margins(self, D: Floats) -> Iterator[tuple[Floats, Ints, Ints, Floats]]:
        return block_margins(self._n_near, self._n_far, self._weights, D)

    @staticmethod
    def _check_size(array: Floats, expected: int, name: str) -> None:
        if array.size != expected:
            raise ValueError(f"{name} has the wrong length")
