"""Passes over codes by the Triton kernels."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from .._arrays import Ints
from . import kernels
from .recorded_query import RecordedQuery
from .scans import Batch, DeviceWeights, Segment, Tensor, is_few

if TYPE_CHECKING:
    from .blocks import DeviceBlocks

_BLOCK = 1024  # codes a program, of a single query
_SPAN, _TILE = 256, 256  # codes and queries that are multiplied at once
_FEW_WORDS = 4  # of codes whose products with large tiles find room on a multiprocessor
_MOST_TILES = 32
_PART = 64  # queries, where there are few or their codes are long
_MOST_HITS = 1 << 22
_COLLECTORS = 1 << 13  # programs that share the hits
_MOST_ALONE = 64  # k, of a query whose limit one program finds
_LARGEST = 2**31 - 1


class TritonPasses:
    """Passes by kernels; capacities and starts are multiples of `_BLOCK`, so that they read whole blocks."""

    def __init__(self) -> None:
        self._recorded: RecordedQuery | None = None

    def near(
        self, segment: Segment, first: int, end: int, batch: Batch, limits: Tensor, allowed: Tensor | None, room: int
    ) -> tuple[Tensor, Tensor, Tensor] | None:
        scan = self._one_by_one if is_few(len(batch)) else self._many
        return scan(segment, first, end, batch, limits, allowed, room)

    def _one_by_one(
        self, segment: Segment, first: int, end: int, batch: Batch, limits: Tensor, allowed: Tensor | None, room: int
    ) -> tuple[Tensor, Tensor, Tensor] | None:
        queries, weights = batch.queries, batch.weights
        most = _most(limits, weights)
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
        distances = self.distances(segment.words, at, owners, queries, weights)
        within = distances <= limits[owners]
        return at[within], owners[within], distances[within]

    def _many(
        self, segment: Segment, first: int, end: int, batch: Batch, limits: Tensor, allowed: Tensor | None, room: int
    ) -> tuple[Tensor, Tensor, Tensor] | None:
        queries, weights, width = batch.queries, batch.weights, batch.queries.shape[1]
        in_order, order = limits.sort()  # queries of like limits stand in one tile
        tile = _TILE if len(queries) > _TILE // 2 and width <= _FEW_WORDS else _PART
        n_tiles = -(-len(queries) // tile)
        assert n_tiles <= _MOST_TILES
        rows = torch.nn.functional.pad(order, (0, n_tiles * tile - len(queries)), value=len(queries))
        farthest = torch.cat([in_order[tile - 1 : -1 : tile], in_order[-1:]])  # limit of each tile
        counts = torch.zeros(2, dtype=torch.int64, device=queries.device)
        hits = torch.empty(_MOST_HITS, dtype=torch.int64, device=queries.device)
        tiles = torch.empty(_MOST_HITS, dtype=torch.int32, device=queries.device)
        kernels.scan_many[(-(-(end - first) // _SPAN),)](
            segment.words, segment.capacity, first, end, batch.signed(rows), batch.least_agreements(farthest),
            n_tiles, segment.words if allowed is None else allowed, segment.offset, counts, hits, tiles, _MOST_HITS,
            W=width, HALF=weights.in_half, FILTERED=allowed is not None, ROWS=tile, BLOCK=_SPAN, num_warps=4,
            num_stages=3 if width <= _FEW_WORDS else 2,
        )  # fmt: skip
        found = torch.empty((3, room), dtype=torch.int64, device=queries.device)
        kernels.collect_many[(_COLLECTORS,)](
            segment.words, segment.capacity, counts, _MOST_HITS, hits, tiles, n_tiles, queries[order], len(queries),
            weights.masks, _most(in_order, weights), weights.table, in_order, counts[1:], *found, room,
            W=width, PLANES=len(weights.masks), ROWS=tile, num_warps=2,
        )  # fmt: skip
        n_hits, count = counts.tolist()
        if n_hits > _MOST_HITS or count > room:
            return None
        return found[0, :count], order[found[1, :count]], found[2, :count].clone()  # without the rest of `found`

    def shortlist(
        self, blocks: DeviceBlocks, query: Tensor, k: int, weights: DeviceWeights, allowed: Tensor | None
    ) -> tuple[Ints, Ints] | None:
        if k > min(blocks.sample()[0].shape[1] // _BLOCK // 4, _MOST_ALONE):
            return None
        key = k, weights, allowed, blocks.version
        with blocks.one_query:  # one query at a time: the buffers are the same for all
            if self._recorded is None or not self._recorded.is_for(key):
                self._recorded = RecordedQuery(key, blocks, self.minima, _scan_one)
            return self._recorded.shortlist(query)

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


def _most(limits: Tensor, weights: DeviceWeights) -> Tensor:
    """The most (q,) that the bound of a code within the limits may be."""
    return (limits // weights.for_one.scale).clamp_(max=_LARGEST)


def _scan_one(
    segment: Segment, first: int, end: int, query: Tensor, weights: DeviceWeights, most: Tensor,
    allowed: Tensor | None, count: Tensor, positions: Tensor,
) -> None:  # fmt: skip
    kernels.scan_one[(-(-(end - first) // _BLOCK),)](
        segment.words, segment.capacity, first, end, query, weights.masks, most,
        segment.words if allowed is None else allowed, segment.offset, count, positions, len(positions),
        W=len(segment.words), PLANES=len(weights.masks), FILTERED=allowed is not None, BLOCK=_BLOCK, num_warps=4,
    )  # fmt: skip
