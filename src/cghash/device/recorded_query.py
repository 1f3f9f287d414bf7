"""One query alone on a GPU: all that it takes recorded once, and played again for each query."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch

from .._arrays import Ints
from . import kernels
from .scans import Tensor, is_set

if TYPE_CHECKING:
    from .blocks import DeviceBlocks

_GROUP = 1024  # codes of the sample, of which the nearest counts
_ROOM, _NEAR = 1 << 18, 1 << 13  # positions within the bound, and of these within the limit
_AT_A_TIME = 128
_BEFORE_RECORDING = 8  # queries
_LIMIT, _MOST, _N_NEAR, _HEAD = 0, 1, 2, 3  # places in what is read back; a count for each segment follows


class RecordedQuery:
    """The way of a query for k, weights, marks and a version of the codes, `key`.

    The query to the device, a limit from the sample, a scan of all codes, the distances of those that pass, and what
    is near back to host memory, with nothing asked in between: the device never waits for the host. After some queries
    this way is recorded as a graph, which one call starts.
    """

    def __init__(
        self,
        key: tuple[int, Any, Tensor | None, Any],
        blocks: DeviceBlocks,
        minima: Callable[..., Tensor],
        scan: Callable[..., None],
    ) -> None:
        self.key = key
        self.k, self.weights, self.allowed, _ = key
        self.segments, self.minima, self.scan = list(blocks.segments), minima, scan
        self.sample, positions = blocks.sample()
        self.is_allowed = None if self.allowed is None else is_set(self.allowed, positions)
        self.head = _HEAD + len(self.segments)
        device = self.sample.device
        self.query = torch.empty(len(self.sample), dtype=torch.int32, device=device)
        self.asked = torch.empty(len(self.sample), dtype=torch.int32, pin_memory=True)
        self.memory = torch.empty(self.head + 2 * _NEAR + _ROOM, dtype=torch.int64, device=device)
        self.answer = torch.empty(self.head + 2 * _NEAR, dtype=torch.int64, pin_memory=True)
        self.graph: Any = None
        self.n_asked = 0

    def is_for(self, key: tuple[Any, ...]) -> bool:
        return self.k == key[0] and all(mine is theirs for mine, theirs in zip(self.key[1:], key[1:], strict=True))

    def shortlist(self, query: Tensor) -> tuple[Ints, Ints] | None:
        """Distances and positions; None where there were too many, or too few in the sample."""
        if self.n_asked == _BEFORE_RECORDING:
            self._record()
        self.asked.copy_(query)
        if self.graph is None:
            self._go()
        else:
            self.graph.replay()
        self.n_asked += 1
        torch.cuda.current_stream(self.memory.device).synchronize()
        found = self.answer.numpy()
        n_near = int(found[_N_NEAR])
        if found[_MOST] < 0 or n_near > _NEAR or found[_HEAD : self.head].max(initial=0) > _ROOM:
            return None
        distances, positions = found[self.head :].reshape(2, _NEAR)[:, :n_near].copy()
        return distances, positions

    def _record(self) -> None:
        torch.cuda.synchronize(self.memory.device)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, capture_error_mode="thread_local"):
            self._go()
        self.graph = graph

    def _go(self) -> None:
        self.query.copy_(self.asked, non_blocking=True)
        self.memory[: self.head].zero_()
        n_groups = self.sample.shape[1] // _GROUP
        least = self.minima(self.sample, self.query[None], self.weights, self.is_allowed, _GROUP)
        limit, most, n_near = self.memory[_LIMIT:], self.memory[_MOST:], self.memory[_N_NEAR:]
        kernels.limit_of[(1,)](
            least, n_groups, self.k, self.weights.for_one.scale, limit, most,
            SIZE=1 << max(n_groups - 1, 1).bit_length(), num_warps=8,
        )  # fmt: skip
        distances, positions, kept = self.memory[self.head :].split([_NEAR, _NEAR, _ROOM])
        for i, segment in enumerate(self.segments):
            count = self.memory[_HEAD + i :]
            self.scan(segment, 0, segment.n, self.query, self.weights, most, self.allowed, count, kept)
            kernels.exact_within[(_ROOM // _AT_A_TIME,)](
                segment.words, segment.capacity, kept, count, _ROOM, self.query, self.weights.table, limit,
                segment.offset, n_near, distances, positions, _NEAR, W=len(self.sample), BLOCK=_AT_A_TIME, num_warps=4,
            )  # fmt: skip
        self.answer.copy_(self.memory[: len(self.answer)], non_blocking=True)
