"""The nearest codes on a device, exactly: a bound for all codes, distances of the few that pass it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from .._arrays import Ints
from .._tensors import import_torch
from .scans import FAR, Batch, DeviceWeights, Segment, Tensor, is_few, is_set

if TYPE_CHECKING:
    from .blocks import DeviceBlocks


ROOM = 1 << 20  # positions that a pass may keep for a query that is looked for alone; eight times as many of a batch
BATCH = 1024  # queries at once: a query and a distance, below 2⁵³, share 63 bits
LEAST_STEP = 1024  # codes
_GROWTH = 16  # times as many codes in the next range
_OWNER = 53  # bits of a distance


@dataclass
class Found:
    """Pairs of a query and a position that may be among the answers, with their distances."""

    owners: Tensor  # (m,) int64
    positions: Tensor  # (m,) int64, in the whole index
    distances: Tensor  # (m,) int64

    def joined(self, other: Found | None) -> Found:
        if other is None:
            return self
        cat = import_torch().cat
        mine, others = vars(self).values(), vars(other).values()
        return Found(*(cat(pair) for pair in zip(mine, others, strict=True)))

    def where(self, keep: Tensor) -> Found:
        return Found(*(values[keep] for values in vars(self).values()))


@dataclass
class Search:
    """One search of a batch of queries."""

    blocks: DeviceBlocks
    given: Tensor  # (q, W) int32, in host memory or on the device
    weights: DeviceWeights
    ids: Ints | None
    allowed: Tensor | None  # (⌈n/8⌉,) uint8

    @cached_property
    def batch(self) -> Batch:
        """The queries on the device."""
        return Batch(self.given.to(self.blocks.device), self.weights)

    # The k nearest

    def nearest(self, k: int) -> tuple[Ints, Ints]:
        """Distances and ids (q, k), padded with -1."""
        if is_few(len(self.given)):
            alone = [self._alone(query, k) for query in self.given]
            if all(answer is not None for answer in alone):
                return np.stack([d for d, _ in alone]), np.stack([i for _, i in alone])  # type: ignore[misc]
        return self._in_ranges(k)

    def _alone(self, query: Tensor, k: int) -> tuple[Ints, Ints] | None:
        """The answer (k,), (k,) to one query, where a sample's k-th nearest keeps most codes away."""
        found = self.blocks.passes.shortlist(self.blocks, query, k, self.weights, self.allowed)
        if found is None:
            return None
        distances, positions = found
        near = distances <= np.partition(distances, k - 1)[k - 1]
        distances, ids = distances[near], self._ids_at(positions[near])
        order = np.lexsort((ids, distances))[:k]
        return distances[order], ids[order]

    def _in_ranges(self, k: int) -> tuple[Ints, Ints]:
        limits, are_known = self._limits(k)
        found: Found | None = None
        for piece, is_last in self._pieces(limits, are_known):
            found = piece.joined(found)
            if not is_last:
                found = self._tightened(found, k, limits)
        return self._answers(found, k)

    def _limits(self, k: int) -> tuple[Tensor, bool]:
        """For each query a distance (q,) within which k codes of a sample lie, FAR where there are not so many.

        And whether there are so many for all.
        """
        torch = import_torch()
        words, positions = self.blocks.sample(small=True)
        n = words.shape[1]
        group = next((g for g in (1024, 32) if n % g == 0 and n >= 8 * g * k), 1)
        if k > n // group:
            return torch.full((len(self.given),), FAR, device=words.device), self.blocks.n_codes <= LEAST_STEP
        is_allowed = None if self.allowed is None else is_set(self.allowed, positions)
        least = self.blocks.passes.minima(words, self.batch.queries, self.weights, is_allowed, group)  # (q, n // group)
        limits = least.topk(k, dim=1, largest=False).values.amax(dim=1)
        return limits, is_allowed is None or not bool((limits >= FAR).any())

    def _tightened(self, found: Found, k: int, limits: Tensor) -> Found:
        """The k nearest so far of each query; what is farther than all of them need not be looked at again.

        Where ids are positions, what comes later has a larger id, and must be nearer: those equal to the k-th, which
        only the host ranks by their ids, do not grow more.
        """
        torch = import_torch()
        if self.ids is None:
            found = _nearly_first(found, k)
        else:
            distances, positions, owners = self._ranked(found, k)
            found = Found(*torch.from_numpy(np.stack([owners, positions, distances])).to(limits.device))
        every = torch.arange(len(limits), device=limits.device)
        starts, ends = (torch.searchsorted(found.owners, every, right=right) for right in (False, True))
        full = ends - starts >= k
        last = torch.nn.functional.pad(found.distances, (0, k))[starts + (k - 1)] - int(self.ids is None)
        limits.copy_(torch.where(full, torch.minimum(limits, last), limits))
        return found

    def _answers(self, found: Found | None, k: int) -> tuple[Ints, Ints]:
        out_distances, out_ids = (np.full((len(self.given), k), -1) for _ in range(2))
        if found is not None:
            distances, positions, owners = self._ranked(found, k)
            rank = _ranks(owners)
            out_distances[owners, rank] = distances
            out_ids[owners, rank] = self._ids_at(positions)
        return out_distances, out_ids

    def _ranked(self, found: Found, k: int | None) -> tuple[Ints, Ints, Ints]:
        """Distances, positions and owners, by owner, distance and id; of each owner the first k."""
        found = found if k is None else _nearly_first(found, k)
        owners, positions, distances = (values.cpu().numpy() for values in vars(found).values())
        if k is None or np.any((owners[1:] == owners[:-1]) & (distances[1:] == distances[:-1])):
            order = np.lexsort((self._ids_at(positions), distances, owners))
            owners, positions, distances = owners[order], positions[order], distances[order]
        if k is not None:
            first = _ranks(owners) < k
            owners, positions, distances = owners[first], positions[first], distances[first]
        return distances, positions, owners

    def _ids_at(self, positions: Ints) -> Ints:
        return positions if self.ids is None else self.ids[positions]

    # All within a radius

    def within(self, radii: Ints) -> tuple[Ints, Ints, Ints]:
        """Offsets (q + 1,), distances and ids of all codes within each query's radius."""
        limits = import_torch().from_numpy(np.array(radii)).to(self.blocks.device)
        parts = [self._ranked(piece, None) for piece, _ in self._pieces(limits, are_known=False)]
        none = np.zeros(0, dtype=np.int64)
        distances, positions, owners = (np.concatenate([none, *(part[i] for part in parts)]) for i in range(3))
        ids = self._ids_at(positions)
        order = np.lexsort((ids, distances, owners))
        offsets = np.concatenate([[0], np.cumsum(np.bincount(owners, minlength=len(limits)))])
        return offsets, distances[order], ids[order]

    # Passes

    def _pieces(self, limits: Tensor, are_known: bool) -> Iterator[tuple[Found, bool]]:
        """What is within the limits, range by range of positions, and whether that was the last.

        All codes of a segment at once for a query alone, where its limit is known to keep most of them away; else few,
        and more and more. What they find keeps more of the others away: their limits come from more codes.
        A range in which too many pass is halved until there is room for all of it. `limits` may be lowered meanwhile.
        """
        room = max(ROOM if is_few(len(self.given)) else 8 * ROOM, LEAST_STEP * len(self.given))
        segments, step, growth = self.blocks.segments, self._first_step(are_known, room), _GROWTH
        for segment in segments:
            first = 0
            while first < segment.n:
                end = min(segment.n, first + -(-step // LEAST_STEP) * LEAST_STEP)
                piece = self._piece(segment, first, end, limits, room)
                if piece is None:
                    step, growth = (end - first) // 2, 2
                    continue
                first, step = end, max(step, growth * (end - first))
                yield piece, segment is segments[-1] and first == segment.n

    def _first_step(self, are_known: bool, room: int) -> int:
        if not are_known:
            return max(LEAST_STEP, room // len(self.given) // 4)
        if is_few(len(self.given)):
            return self.blocks.n_codes
        return max(LEAST_STEP, _GROWTH * len(self.blocks.sample(small=True)[1]))

    def _piece(self, segment: Segment, first: int, end: int, limits: Tensor, room: int) -> Found | None:
        near = self.blocks.passes.near(segment, first, end, self.batch, limits, self.allowed, room)
        if near is None:
            return None
        at, owners, distances = near
        return Found(owners, at + segment.offset, distances)


def _nearly_first(found: Found, k: int) -> Found:
    """By owner and distance, the k least of each owner, and all that are equal to the last of these."""
    torch = import_torch()
    keys, order = (found.owners << _OWNER | found.distances).sort()
    owners = keys >> _OWNER
    starts = torch.searchsorted(owners, owners)  # of each owner's run
    ends = torch.searchsorted(owners, owners, right=True)
    last = keys[torch.minimum(starts + (k - 1), ends - 1)]
    return found.where(order[keys <= last])


def _ranks(owners: Ints) -> Ints:
    """How many of the same owner come before, of owners in order."""
    at = np.arange(len(owners))
    is_first = np.diff(owners, prepend=-1) != 0
    return at - np.maximum.accumulate(np.where(is_first, at, 0))


def batches(n_queries: int, size: int) -> list[slice]:
    return [slice(first, min(first + size, n_queries)) for first in range(0, n_queries, size)]


def gathered(parts: list[tuple[Ints, Ints, Ints]]) -> tuple[Ints, Ints, Ints]:
    """Offsets, distances and ids of several batches as of one."""
    ends = np.cumsum([0, *(part[0][-1] for part in parts)])
    offsets = np.concatenate([[0], *(part[0][1:] + end for part, end in zip(parts, ends[:-1], strict=True))])
    none = np.zeros(0, dtype=np.int64)
    return offsets, *(np.concatenate([none, *(part[i] for part in parts)]) for i in (1, 2))  # type: ignore[return-value]
