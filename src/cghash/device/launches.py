"""Passes over codes by the Triton kernels."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from . import kernels
from .alone import Alone
from .scans import DeviceWeights, Ints, Segment, Tensor, is_few

if TYPE_CHECKING:
    from .blocks import DeviceBlocks

_BLOCK = 1024  # codes a program, of a single query
_SPAN, _TILE = 256, 256  # codes and queries that are multiplied at once
_FEW_WORDS = 4  # of codes whose products with large tiles find room on a multiprocessor
_MOST_TILES = 32
_PART = 64  # queries, where there are few or their codes are long
_MOST_HITS = 1 << 22
_MOST_ALONE = 64  # k, of a query whose limit one program finds
_MOST_IN_HALF = 2047
_SMALLEST, _LARGEST = -(2**31) + 1, 2**31 - 1


class TritonPasses:
    """Passes by kernels; capacities and starts are multiples of `_BLOCK`, so that they read whole blocks."""

    def __init__(self) -> None:
        self._way: Alone | None = None

    def near(
        self, segment: Segment, first: int, end: int, queries: Tensor, weights: DeviceWeights, limits: Tensor,
        allowed: Tensor | None, room: int,
    ) -> tuple[Tensor, Tensor, Tensor] | None:  # fmt: skip
        scan = self._one_by_one if is_few(len(queries)) else self._many
        return scan(segment, first, end, queries, weights, limits, allowed, room)

    def _one_by_one(
        self, segment: Segment, first: int, end: int, queries: Tensor, weights: DeviceWeights, limits: Tensor,
        allowed: Tensor | None, room: int,
    ) -> tuple[Tensor, Tensor, Tensor] | None:  # fmt: skip
        most = (limits // weights.for_one.scale).clamp_(max=_LARGEST)
        found = []
        for i in range(len(queries)):
            count = torch.zeros(1, dtype=torch.int64, device=queries.device)
            positions = torch.empty(room, dtype=torch.int64, device=queries.device)
            _scan_one(segment, first, end, queries[i], weights, most[i:], allowed, count, positions)
            if int(count) > room:
                return None
            found.append(positions[: int(count)])
        at = torch.cat(found)
        owners = torch.cat([torch.full_like(positions, i) for i, positions in enumerate(found)])
        return at, owners, self.distances(segment.words, at, owners, queries, weights)

    def _many(
        self, segment: Segment, first: int, end: int, queries: Tensor, weights: DeviceWeights, limits: Tensor,
        allowed: Tensor | None, room: int,
    ) -> tuple[Tensor, Tensor, Tensor] | None:  # fmt: skip
        order = limits.argsort()  # queries of like limits stand in one tile
        ordered, in_order = queries[order], limits[order]
        width = queries.shape[1]
        tile = _TILE if len(queries) > _TILE // 2 and width <= _FEW_WORDS else _PART
        n_tiles = -(-len(queries) // tile)
        assert n_tiles <= _MOST_TILES
        signed, least = _operands(ordered, weights, in_order, n_tiles * tile)
        counts = torch.zeros(2, dtype=torch.int64, device=queries.device)
        hits = torch.empty(_MOST_HITS, dtype=torch.int64, device=queries.device)
        tiles = torch.empty(_MOST_HITS, dtype=torch.int32, device=queries.device)
        kernels.scan_many[(-(-(end - first) // _SPAN),)](
            segment.words, segment.capacity, first, end, signed, least.view(n_tiles, tile).amin(dim=1), n_tiles,
            segment.words if allowed is None else allowed, segment.offset, counts, hits, tiles, _MOST_HITS, W=width,
            HALF=weights.in_half, FILTERED=allowed is not None, ROWS=tile, BLOCK=_SPAN, num_warps=4,
            num_stages=3 if width <= _FEW_WORDS else 2,
        )  # fmt: skip
        n_hits = int(counts[0])
        if n_hits > _MOST_HITS:
            return None
        found = torch.empty((3, room), dtype=torch.int64, device=queries.device)
        if n_hits:
            kernels.collect_many[(n_hits,)](
                segment.words, segment.capacity, hits, tiles, n_tiles, ordered, len(queries), weights.table, in_order,
                counts[1:], found[0], found[1], found[2], room, W=width, ROWS=tile, num_warps=4,
            )  # fmt: skip
        count = int(counts[1])
        return None if count > room else (found[0, :count], order[found[1, :count]], found[2, :count])

    def shortlist(
        self, blocks: DeviceBlocks, query: Tensor, k: int, weights: DeviceWeights, allowed: Tensor | None
    ) -> tuple[Ints, Ints] | None:
        if k > min(blocks.sample()[0].shape[1] // _BLOCK // 4, _MOST_ALONE):
            return None
        key = k, weights, allowed, blocks.version
        with blocks.alone:  # one query at a time: the buffers are the same for all
            if self._way is None or not self._way.is_for(key):
                self._way = Alone(key, blocks, self.minima, _scan_one)
            return self._way.shortlist(query)

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


def _scan_one(
    segment: Segment, first: int, end: int, query: Tensor, weights: DeviceWeights, most: Tensor,
    allowed: Tensor | None, count: Tensor, positions: Tensor,
) -> None:  # fmt: skip
    kernels.scan_one[(-(-(end - first) // _BLOCK),)](
        segment.words, segment.capacity, first, end, query, weights.masks, most,
        segment.words if allowed is None else allowed, segment.offset, count, positions, len(positions),
        W=len(segment.words), PLANES=len(weights.masks), FILTERED=allowed is not None, BLOCK=_BLOCK, num_warps=4,
    )  # fmt: skip


def _operands(queries: Tensor, weights: DeviceWeights, limits: Tensor, n_rows: int) -> tuple[Tensor, Tensor]:
    """Signed small weights (n_rows, 64·⌈W/2⌉), columns as the kernels order bits, and the least agreements (n_rows,).

    int8 and int32, or 8-bit and 16-bit floats.
    """
    bound, (q, width) = weights.for_many, queries.shape
    shifts = torch.arange(32, dtype=torch.int32, device=queries.device)
    signs = (queries[:, :, None] >> shifts & 1).to(torch.int8) * 2 - 1  # (q, W, 32)
    signed = torch.zeros((n_rows, width + width % 2, 32), dtype=torch.int8, device=queries.device)
    signed[:q, :width] = signs * weights.factors.view(width, 32)
    in_turn = signed.view(n_rows, -1, 2, 32).transpose(2, 3).contiguous()  # two words' bits in turn
    least = torch.full((n_rows,), _LARGEST, dtype=torch.int32, device=queries.device)
    total = int(bound.small.sum())
    least[:q] = (total - 2 * (limits // bound.scale)).clamp_(_SMALLEST, _LARGEST).to(torch.int32)
    if not weights.in_half:
        return in_turn.view(n_rows, -1), least
    few = least.clamp_(-_MOST_IN_HALF, _MOST_IN_HALF + 1)  # agreements lie between
    return in_turn.view(n_rows, -1).to(torch.float8_e4m3fn), few.to(torch.float16)
