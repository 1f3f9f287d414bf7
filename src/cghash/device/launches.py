"""Passes over codes by the Triton kernels."""

from __future__ import annotations

from typing import Any

import torch

from . import kernels
from .scans import DeviceWeights, Segment, Tensor, is_few

_BLOCK = 1024  # codes a program, of a single query
_SPAN, _TILE = 128, 256  # codes and queries that are multiplied at once
_MOST_TILES = 32
_PART = 64  # queries, when hits are looked at again
_MOST_HITS = 1 << 22
_SMALLEST, _LARGEST = -(2**31) + 1, 2**31 - 1


class TritonPasses:
    """Passes by kernels; capacities and starts are multiples of `_BLOCK`, so that they read whole blocks."""

    def near(
        self, segment: Segment, first: int, end: int, queries: Tensor, weights: DeviceWeights, limits: Tensor,
        allowed: Tensor | None, room: int,
    ) -> tuple[Tensor, Tensor] | None:  # fmt: skip
        kept = _Kept(room, queries.device)
        scan = self._one_by_one if is_few(len(queries)) else self._many
        if not scan(segment, first, end, queries, weights, limits, allowed, kept):
            return None
        return kept.pairs()

    def _one_by_one(
        self, segment: Segment, first: int, end: int, queries: Tensor, weights: DeviceWeights, limits: Tensor,
        allowed: Tensor | None, kept: _Kept,
    ) -> bool:  # fmt: skip
        most = (limits // weights.for_one.scale).clamp_(max=_LARGEST).to(torch.int32)
        for i in range(len(queries)):
            kernels.scan_one[(-(-(end - first) // _BLOCK),)](
                segment.words, segment.capacity, first, end, queries[i], weights.masks, most[i:],
                segment.words if allowed is None else allowed, kept.count, kept.positions, kept.owners, kept.room, i,
                segment.offset, W=queries.shape[1], PLANES=len(weights.masks), FILTERED=allowed is not None,
                BLOCK=_BLOCK, num_warps=4,
            )  # fmt: skip
        return True

    def _many(
        self, segment: Segment, first: int, end: int, queries: Tensor, weights: DeviceWeights, limits: Tensor,
        allowed: Tensor | None, kept: _Kept,
    ) -> bool:  # fmt: skip
        order = limits.argsort()  # queries of like limits stand in one tile
        tile = _TILE if len(queries) > _TILE // 2 else _PART
        n_tiles = -(-len(queries) // tile)
        assert n_tiles <= _MOST_TILES
        signed, least = _operands(queries[order], weights, limits[order], n_tiles * tile)
        hits = torch.empty(_MOST_HITS, dtype=torch.int64, device=queries.device)
        n_hits = torch.zeros(1, dtype=torch.int32, device=queries.device)
        width = queries.shape[1]
        kernels.scan_many[(-(-(end - first) // _SPAN),)](
            segment.words, segment.capacity, first, signed, least.view(n_tiles, tile).amin(dim=1), n_tiles, n_hits,
            hits, _MOST_HITS, W=width, ROWS=tile, BLOCK=_SPAN, num_warps=4, num_stages=3,
        )  # fmt: skip
        found = int(n_hits)
        if found > _MOST_HITS:
            return False
        if found:
            kernels.collect_many[(found, 1, n_tiles * (tile // _PART))](
                segment.words, segment.capacity, first, end, signed, least, hits,
                segment.words if allowed is None else allowed, segment.offset, kept.count, kept.positions, kept.owners,
                kept.room, W=width, SPAN=_SPAN, PARTS=tile // _PART, FILTERED=allowed is not None, ROWS=_PART,
                BLOCK=_SPAN, num_warps=4,
            )  # fmt: skip
        kept.order = order
        return True

    def distances(self, words: Tensor, at: Tensor, owners: Tensor, queries: Tensor, weights: DeviceWeights) -> Tensor:
        out = torch.empty(len(at), dtype=torch.int64, device=words.device)
        if len(at):
            kernels.exact_distances[(-(-len(at) // 256),)](
                words, words.shape[1], at, owners, queries, weights.table, out, len(at), W=len(words), BLOCK=256,
                num_warps=4,
            )  # fmt: skip
        return out

    def minima(
        self, words: Tensor, queries: Tensor, weights: DeviceWeights, is_allowed: Tensor | None, group: int
    ) -> Tensor:
        n = words.shape[1]
        out = torch.empty((len(queries), n // group), dtype=torch.int64, device=words.device)
        kernels.group_minima[(n // _BLOCK, len(queries))](
            words, n, queries, weights.table, words if is_allowed is None else is_allowed.view(torch.uint8), out, n,
            W=len(words), FILTERED=is_allowed is not None, GROUP=group, BLOCK=_BLOCK, num_warps=4,
        )  # fmt: skip
        return out


class _Kept:
    """Room for positions that a pass keeps, and how many there were."""

    def __init__(self, room: int, device: Any) -> None:
        self.room = room
        self.count = torch.zeros(1, dtype=torch.int64, device=device)
        self.positions = torch.empty(room, dtype=torch.int64, device=device)
        self.owners = torch.empty(room, dtype=torch.int32, device=device)
        self.order: Tensor | None = None  # which query each owner is

    def pairs(self) -> tuple[Tensor, Tensor] | None:
        count = int(self.count)
        if count > self.room:
            return None
        positions, owners = self.positions[:count], self.owners[:count]
        return positions, owners if self.order is None else self.order[owners]


def _operands(queries: Tensor, weights: DeviceWeights, limits: Tensor, n_rows: int) -> tuple[Tensor, Tensor]:
    """Signed small weights (n_rows, 64·⌈W/2⌉) int8, columns as the kernels order bits, and the least agreements."""
    bound, (q, width) = weights.for_many, queries.shape
    shifts = torch.arange(32, dtype=torch.int32, device=queries.device)
    signs = (queries[:, :, None] >> shifts & 1).to(torch.int8) * 2 - 1  # (q, W, 32)
    signed = torch.zeros((n_rows, width + width % 2, 32), dtype=torch.int8, device=queries.device)
    signed[:q, :width] = signs * weights.factors.view(width, 32)
    in_turn = signed.view(n_rows, -1, 2, 32).transpose(2, 3).contiguous()  # two words' bits in turn
    least = torch.full((n_rows,), _LARGEST, dtype=torch.int32, device=queries.device)
    total = int(bound.small.sum())
    least[:q] = (total - 2 * (limits // bound.scale)).clamp_(_SMALLEST, _LARGEST).to(torch.int32)
    return in_turn.view(n_rows, -1), least
