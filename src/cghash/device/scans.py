"""Passes over codes on a device: torch operations for CPU tensors, kernels for a GPU. Both give the same.

Codes are int32 words, (W, capacity) in a segment; queries are (q, W). Distances are whole weights, int64.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from .._arrays import Ints
from .._tensors import import_torch
from .bounds import Bound, bound_of

if TYPE_CHECKING:
    from .blocks import DeviceBlocks

Tensor = Any

FAR = 1 << 62  # no distance is so large
PLANES = 3  # bits of the small weights of a single query: what counting bits has time for while memory is read
_LARGEST_FACTOR = 127  # of int8
_LARGEST_FLOAT, _LARGEST_SUM = 15, 2047  # whole numbers that 8-bit floats, and 16-bit floats, hold exactly
_LARGEST_INT = 2**31 - 1
_ROOM_ALONE = 1 << 18  # positions within the bound of a query alone
_AT_ONCE = 1 << 22  # pairs of a code and a query, in torch operations


@dataclass
class Segment:
    """Codes that were allocated together."""

    words: Tensor  # (W, capacity) int32
    offset: int  # position of the first
    n: int = 0

    @property
    def capacity(self) -> int:
        return int(self.words.shape[1])


class DeviceWeights:
    """Whole weights (32·W,) in the forms that passes ask for."""

    def __init__(self, weights: Ints, device: Any) -> None:
        self.weights, self.device = weights, device

    @cached_property
    def table(self) -> Tensor:
        """(4W, 256) int64: the weight of all differing bits of a byte, at each place of a byte in a code."""
        bits = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1, bitorder="little")
        return self._put(self.weights.reshape(-1, 8) @ bits.T.astype(np.int64))

    @cached_property
    def for_one(self) -> Bound:
        return bound_of(self.weights, 2**PLANES - 1)

    @cached_property
    def for_many(self) -> Bound:
        """Up to 15, and a sum of at most 2047, where products are of 8-bit floats: their sums are exact then."""
        largest = min(_LARGEST_FLOAT, _LARGEST_SUM // len(self.weights)) if self.in_half else _LARGEST_FACTOR
        return bound_of(self.weights, largest)

    @cached_property
    def in_half(self) -> bool:
        """Whether products are of 8-bit floats, which take half the room of int8: where the device multiplies them, and
        sums of so many weights are exact.
        """
        if len(self.weights) > _LARGEST_SUM:
            return False
        return self.device.type == "cuda" and tuple(import_torch().cuda.get_device_capability(self.device)) >= (8, 9)

    @cached_property
    def masks(self) -> Tensor:
        """(PLANES, W) int32: the bits that count 2^p."""
        packed = np.packbits(self.for_one.planes(PLANES).astype(np.uint8), axis=1, bitorder="little")
        return self._put(packed.view("<i4"))

    @cached_property
    def factors(self) -> Tensor:
        """(32·W,) int8, the small weights of `for_many`."""
        return self._put(self.for_many.small.astype(np.int8))

    def bound(self, n_queries: int) -> Bound:
        return self.for_one if is_few(n_queries) else self.for_many

    def _put(self, array: Any) -> Tensor:
        return import_torch().from_numpy(np.ascontiguousarray(array)).to(self.device)


@dataclass
class Batch:
    """Queries (q, W) and the weights that they are asked under."""

    queries: Tensor
    weights: DeviceWeights

    def __len__(self) -> int:
        return len(self.queries)

    def signed(self, rows: Tensor) -> Tensor:
        """Small weights with the signs of the queries' bits (r, 64·⌈W/2⌉), for products with those of the codes.

        Columns are in the kernels' order; row q is 0. int8, or 8-bit floats.
        """
        of_rows = self._signed[rows]
        return of_rows.view(import_torch().float8_e4m3fn) if self.weights.in_half else of_rows

    @cached_property
    def _signed(self) -> Tensor:
        """(q + 1, 64·⌈W/2⌉) int8, or the bytes of 8-bit floats."""
        torch = import_torch()
        q, width = self.queries.shape
        shifts = torch.arange(32, dtype=torch.int32, device=self.queries.device)
        signs = (self.queries[:, :, None] >> shifts & 1).to(torch.int8) * 2 - 1  # (q, W, 32)
        signed = torch.zeros((q + 1, width + width % 2, 32), dtype=torch.int8, device=self.queries.device)
        signed[:q, :width] = signs * self.weights.factors.view(width, 32)
        in_turn = signed.view(q + 1, -1, 2, 32).transpose(2, 3).reshape(q + 1, -1)  # two words' bits in turn
        return in_turn.to(torch.float8_e4m3fn).view(torch.int8) if self.weights.in_half else in_turn

    def least_agreements(self, limits: Tensor) -> Tensor:
        """How much a code within a limit agrees with its query at least, by `signed`: int32 or float16."""
        torch = import_torch()
        bound = self.weights.for_many
        least = int(bound.small.sum()) - 2 * (limits // bound.scale)
        if not self.weights.in_half:
            return least.clamp_(-_LARGEST_INT, _LARGEST_INT).to(torch.int32)
        return least.clamp_(-_LARGEST_SUM, _LARGEST_SUM + 1).to(torch.float16)  # agreements lie between


def is_few(n_queries: int) -> bool:
    """Whether codes are read for each query anew: a product of so few with them would take longer."""
    return n_queries < 4


class CodePasses(Protocol):
    """What a device must be able to do with codes."""

    def near(
        self, segment: Segment, first: int, end: int, batch: Batch, limits: Tensor, allowed: Tensor | None, room: int
    ) -> tuple[Tensor, Tensor, Tensor] | None:
        """Local positions first … end, a query each, and their distance: all that are within its limit.

        None where there is no room for so many.
        """

    def shortlist(
        self, blocks: DeviceBlocks, query: Tensor, k: int, weights: DeviceWeights, allowed: Tensor | None
    ) -> tuple[Ints, Ints] | None:
        """Distances and positions, the k nearest of a query (W,) among them; None where this way does not find them."""

    def minima(
        self, words: Tensor, queries: Tensor, weights: DeviceWeights, is_allowed: Tensor | None, group: int
    ) -> Tensor:
        """The least distances (q, n // group) in groups of consecutive codes to each query; FAR for none allowed."""


class TorchPasses:
    """Passes in torch operations."""

    def near(
        self, segment: Segment, first: int, end: int, batch: Batch, limits: Tensor, allowed: Tensor | None, room: int
    ) -> tuple[Tensor, Tensor, Tensor] | None:
        torch, queries, weights = import_torch(), batch.queries, batch.weights
        bound = weights.bound(len(queries))
        small = torch.from_numpy(bound.small).to(torch.float32)
        query_bits = bits_of(queries)  # (q, 32·W)
        most = (limits // bound.scale).to(torch.float64) - query_bits @ small.double()
        found, step = [], max(1, _AT_ONCE // len(queries))
        for start in range(first, end, step):
            stop = min(start + step, end)
            bits = bits_of(segment.words[:, start:stop].T).float()
            rest = bits @ (small * (1 - 2 * query_bits.float())).T  # (c, q)
            within = rest.double() <= most
            if allowed is not None:
                at = torch.arange(start, stop) + segment.offset
                within &= is_set(allowed, at)[:, None]
            found.append(within.nonzero() + torch.tensor([start, 0]))
            if sum(map(len, found)) > room:
                return None
        at, owners = torch.cat(found).T
        distances = self.distances(segment.words, at, owners, queries, weights)
        within = distances <= limits[owners]
        return at[within], owners[within], distances[within]

    def shortlist(
        self, blocks: DeviceBlocks, query: Tensor, k: int, weights: DeviceWeights, allowed: Tensor | None
    ) -> tuple[Ints, Ints] | None:
        words, positions = blocks.sample()
        if k > words.shape[1]:
            return None
        is_allowed = None if allowed is None else is_set(allowed, positions)
        limit = self.minima(words, query[None], weights, is_allowed, 1).topk(k, largest=False).values[:, -1]
        if int(limit) == FAR:
            return None
        found = []
        for segment in blocks.segments:
            near = self.near(segment, 0, segment.n, Batch(query[None], weights), limit, allowed, _ROOM_ALONE)
            if near is None:
                return None
            at, _, distances = near
            found.append(np.stack([distances, at + segment.offset]))
        distances, at = np.concatenate(found, axis=1)
        return distances, at

    def distances(self, words: Tensor, at: Tensor, owners: Tensor, queries: Tensor, weights: DeviceWeights) -> Tensor:
        """Distances of the codes at positions to their owners."""
        differing = words[:, at].T ^ queries[owners]  # (m, W)
        return _weight_of(differing, weights.table)

    def minima(
        self, words: Tensor, queries: Tensor, weights: DeviceWeights, is_allowed: Tensor | None, group: int
    ) -> Tensor:
        torch = import_torch()
        rows = []
        for query in queries:
            distances = _weight_of(words.T ^ query, weights.table)
            if is_allowed is not None:
                distances = torch.where(is_allowed, distances, FAR)
            rows.append(distances.view(-1, group).amin(dim=1))
        return torch.stack(rows)


def bits_of(words: Tensor) -> Tensor:
    """(n, 32·W) float64 of 0 and 1, bit j of a code in column j."""
    torch = import_torch()
    shifts = torch.arange(32, dtype=torch.int32, device=words.device)
    return (words[:, :, None] >> shifts & 1).reshape(len(words), -1).double()


def is_set(marks: Tensor, positions: Tensor) -> Tensor:
    """Whether the bit of each position is set, of marks with eight to a byte."""
    torch = import_torch()
    return (marks[positions >> 3] >> (positions & 7).to(torch.uint8) & 1).bool()


def _weight_of(differing: Tensor, table: Tensor) -> Tensor:
    torch = import_torch()
    octets = differing.flatten().view(torch.uint8).view(-1, len(table)).long()  # (m, 4W)
    return table[torch.arange(len(table)), octets].sum(dim=1)


def passes_of(device: Any) -> CodePasses:
    if device.type == "cuda":
        from .triton_passes import TritonPasses

        return TritonPasses()
    return TorchPasses()
