"""Codes in blocks of 64, and their nearest: NumPy twin of native/code_blocks.hpp."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._arrays import Bytes, Codes, Floats, Ints
from .scanned_blocks import ScannedBlocks

LANES = 64  # codes in a block, whose bytes are stored byte by byte: byte j of lane i is at 64·j + i
_AT_ONCE = 1 << 16  # codes


class CodeBlocks(ScannedBlocks):
    """Packed codes by position 0 … n − 1, as blocks in which equal bytes of 64 codes stand together.

    Distances are sums of whole weights over the differing bits; order is (distance, id), where an id is the
    position if no ids are given. `allowed` has a bit for each position, little-endian, `n_allowed` of them set;
    positions without it are passed over.
    """

    def __init__(self, n_bytes: int) -> None:
        if not 1 <= n_bytes <= 512:
            raise ValueError("n_bytes must lie between 1 and 512")
        self._codes = np.empty((0, n_bytes), dtype=np.uint8)
        self._n = 0

    @property
    def n_codes(self) -> int:
        return self._n

    @property
    def n_bytes(self) -> int:
        return self._codes.shape[1]

    def append(self, codes: Codes) -> None:
        self._check_width(codes)
        end = self._n + len(codes)
        if end > len(self._codes):
            room = np.empty((max(end, self._n + self._n // 16), self.n_bytes), dtype=np.uint8)
            room[: self._n] = self._codes[: self._n]
            self._codes = room
        self._codes[self._n : end] = codes
        self._n = end

    def truncate(self, n_codes: int) -> None:
        """Keep the first so many codes."""
        if not 0 <= n_codes <= self._n:
            raise ValueError("n_codes must be at most what is there")
        self._n = n_codes

    def attach(self, blocks: Codes, n_codes: int) -> None:
        """Take over n codes from blocks as `chunks` gives them; only where there are none yet. May be written to."""
        n_blocks = -(-n_codes // LANES)
        if self._n:
            raise ValueError("attach needs empty blocks")
        if n_codes < 0 or blocks.size != n_blocks * LANES * self.n_bytes:
            raise ValueError("blocks must hold 64 codes a block")
        whole = blocks.reshape(n_blocks, self.n_bytes, LANES).transpose(0, 2, 1).reshape(-1, self.n_bytes)
        self._codes, self._n = np.ascontiguousarray(whole)[:n_codes].copy(), n_codes

    def chunks(self) -> list[Codes]:
        """The blocks in order, in one piece or several; lanes past the last code are 0."""
        n_blocks = -(-self._n // LANES)
        padded = np.zeros((n_blocks * LANES, self.n_bytes), dtype=np.uint8)
        padded[: self._n] = self._codes[: self._n]
        return [np.ascontiguousarray(padded.reshape(n_blocks, LANES, self.n_bytes).transpose(0, 2, 1)).reshape(-1)]

    def get(self, positions: Ints) -> Codes:
        self._check_positions(positions)
        return self._codes[positions]

    def put(self, positions: Ints, codes: Codes) -> None:
        self._check_positions(positions)
        self._check_width(codes)
        if len(codes) != len(positions):
            raise ValueError("codes must be as many as positions")
        self._codes[positions] = codes

    def search(
        self, queries: Codes, k: int, weights: Ints, ids: Ints | None, allowed: Bytes | None, n_allowed: int,
        n_threads: int, unit: float = 1.0, own: bool = False,
    ) -> tuple[Floats, Ints]:  # fmt: skip
        """The k nearest of each query: distances, as multiples of `unit`, and ids (q, k), padded with (∞, -1)."""
        rows = self._checked_weights(queries, weights, ids, allowed, own)
        if k < 1:
            raise ValueError("k must be at least 1")
        distances, found = np.full((len(queries), k), np.inf), np.full((len(queries), k), -1)
        for row, query in enumerate(queries):
            d, i = self._ranked(query, rows[row], ids, allowed)
            distances[row, : len(d)], found[row, : len(i)] = d[:k] * unit, i[:k]
        return distances, found

    def range_search(
        self, queries: Codes, radii: Ints, weights: Ints, ids: Ints | None, allowed: Bytes | None, n_allowed: int,
        n_threads: int, unit: float = 1.0, own: bool = False,
    ) -> tuple[Ints, Floats, Ints]:  # fmt: skip
        """All codes within each query's radius: offsets (q + 1,), distances, as multiples of `unit`, and ids."""
        rows = self._checked_weights(queries, weights, ids, allowed, own)
        if len(radii) != len(queries):
            raise ValueError("radii must be as many as queries")
        found = []
        for query, row, radius in zip(queries, rows, radii, strict=True):
            d, i = self._ranked(query, row, ids, allowed)
            found.append((d[d <= radius] * unit, i[d <= radius]))
        offsets = np.cumsum([0, *(len(d) for d, _ in found)])
        distances = np.concatenate([np.zeros(0), *(d for d, _ in found)])
        return offsets, distances, np.concatenate([np.zeros(0, dtype=np.int64), *(i for _, i in found)])

    def info(self) -> dict[str, Any]:
        """Bytes of codes and of what `prepare` built."""
        return {"code_bytes": self._codes.nbytes, "prune_bytes": 0}

    def _ranked(self, query: Codes, weights: Ints, ids: Ints | None, allowed: Any) -> tuple[Ints, Ints]:
        """All allowed codes, by (distance, id)."""
        distances = np.concatenate(
            [
                _distances(query, self._codes[first : min(first + _AT_ONCE, self._n)], weights)
                for first in range(0, max(self._n, 1), _AT_ONCE)
            ]
        )
        found = np.arange(self._n) if ids is None else ids
        if allowed is not None:
            keep = np.unpackbits(allowed, count=self._n, bitorder="little").view(bool)
            distances, found = distances[keep], found[keep]
        order = np.lexsort((found, distances))
        return distances[order], found[order]

    def _among(self, positions: Ints, ids: Ints | None) -> tuple[CodeBlocks, Ints | None, Bytes]:
        self._check_positions(positions)
        marks = np.zeros(self._n, dtype=bool)
        marks[positions] = True
        return self, ids, np.packbits(marks, bitorder="little")

    def _check_width(self, codes: Codes) -> None:
        if codes.shape[1] != self.n_bytes:
            raise ValueError("codes must have n_bytes bytes")

    def _check_positions(self, positions: Ints) -> None:
        if np.any((positions < 0) | (positions >= self._n)):
            raise ValueError("positions must lie between 0 and n_codes - 1")

    def _checked_weights(self, queries: Codes, weights: Ints, ids: Ints | None, allowed: Any, own: bool) -> Ints:
        """The weights of each query (q, 8·n_bytes), where all that is asked fits the codes."""
        self._check_width(queries)
        n_rows = len(queries) if own and weights.size != 8 * self.n_bytes else 1
        if weights.size != n_rows * 8 * self.n_bytes:
            raise ValueError(
                "weights must have one entry for each bit, or, as queries' own, for each bit of each query"
            )
        rows = weights.reshape(n_rows, 8 * self.n_bytes)
        if np.any(rows < 0) or np.any(rows.sum(axis=1) >= 2**53):
            raise ValueError("weights must not be negative, and their sum below 2^53")
        if ids is not None and ids.size != self._n:
            raise ValueError("ids must be as many as codes")
        if allowed is not None and allowed.size != -(-self._n // 8):
            raise ValueError("allowed must have a bit for each code")
        return np.broadcast_to(rows, (len(queries), rows.shape[1]))


def _distances(query: Codes, codes: Codes, weights: Ints) -> Ints:
    bits = np.unpackbits(codes ^ query, axis=1, bitorder="little")
    return (bits @ weights.astype(np.float64)).astype(np.int64)  # whole numbers below 2^53: exact in any order
