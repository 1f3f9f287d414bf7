"""Evaluations of L-BFGS on a GPU: all kernels of one recorded as a graph, which a single call starts.

An evaluation takes a vector from the host and gives one back; both copies belong to the graph. Its kernels write into
memory that is taken once, so that recording takes none.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from ..._arrays import Array, Floats
from .. import pair_kernels
from .columns import Group

if TYPE_CHECKING:
    from .pairs import DevicePairs

Tensor = Any

_FEATURES, _WIDEST, _TIMES = 4096, 1024, 32  # numbers a turn, features at most, and turns, of a program that adds up
_VALUES = 4, 1024  # items, and features at most, that a program multiplies at once
_GAINS = 64, 32  # values of items, and entries of each, that a program takes at once for the gains of draws
_ENTRIES = 4, 64  # items, and entries of each, that a program takes at once
_TOGETHER = 32  # programs whose sums stand in one row: their columns are added up side by side
_BLOCK, _TURNS = 1024, 16  # slots a program, and how often
_MARGINS = 512  # that a program holds
N_COUNTS = 3  # F(w) and what is counted beside it
_MOST_MARGINS = 4096  # of one block, up to which the kernel takes it


class _Recorded(ABC):
    """The way from x on the host to y on the host."""

    def __init__(self, n_in: int, n_out: int, dtype: Any, device: Any) -> None:
        self.device = device
        self.x = torch.zeros(n_in, dtype=dtype, device=device)
        self.y = torch.zeros(n_out, dtype=torch.float64, device=device)
        self._from = torch.zeros(n_in, dtype=dtype, pin_memory=True)
        self._to = torch.zeros(n_out, dtype=torch.float64, pin_memory=True)
        self._host_x, self._host_y = self._from.numpy(), self._to.numpy()
        self._graph: Any = None
        self._n_calls = 0

    def __call__(self, x: Array) -> Floats:
        self._host_x[: len(x)] = x
        if self._n_calls == 1:  # the kernels are compiled by then
            self._record()
        self._n_calls += 1
        if self._graph is None:
            self._there_and_back()
        else:
            self._graph.replay()
        torch.cuda.current_stream(self.device).synchronize()
        return self._host_y.copy()  # type: ignore[no-any-return]

    def _record(self) -> None:
        here, aside = torch.cuda.current_stream(self.device), torch.cuda.Stream(self.device)
        aside.wait_stream(here)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.stream(aside):
            graph.capture_begin(capture_error_mode="thread_local")
            try:
                self._there_and_back()
            finally:
                graph.capture_end()  # whatever happened, or the stream would go on recording
        here.wait_stream(aside)
        self._graph = graph

    def _there_and_back(self) -> None:
        self.x.copy_(self._from, non_blocking=True)
        self.go()
        self._to.copy_(self.y, non_blocking=True)

    @abstractmethod
    def go(self) -> None:
        """Start the kernels from `x` to `y`."""


class RecordedRelaxed(_Recorded):
    """Points (m, d + 1), v with b behind, ↦ half the gradients of tᵀLt by v (m, d), then sums (m, 32, 2).

    The sums are of the gradient by b, and of tᵀLt itself; t = tanh(Z·v + b).
    """

    def __init__(self, live: Tensor, pairs: DevicePairs, n_points: int) -> None:
        n, d = live.shape
        super().__init__(n_points * (d + 1), n_points * (d + 2 * _TOGETHER), torch.float32, live.device)
        self.live, self.n_points = live, n_points
        self.entries = pairs.row_starts, pairs.row_others, pairs.row_weights  # of now: the graph reads them
        self.t, self.slope = torch.empty((2, n_points, n), device=live.device)
        self.parts = _feature_parts(live, n_points)
        self.n_programs = -(-n // _ENTRIES[0])
        shape = -(-self.n_programs // _TOGETHER), n_points * 2 * _TOGETHER
        self.sums = torch.zeros(shape, dtype=torch.float64, device=live.device)

    def relaxed(self, points: Array) -> tuple[Floats, Floats]:
        """tᵀLt (m,), and half its gradients (m, d + 1)."""
        m, d = self.n_points, self.live.shape[1]
        found = self(points.reshape(-1))
        sums = found[m * d :].reshape(m, _TOGETHER, 2).sum(axis=1)
        gradients = np.empty((m, d + 1))
        gradients[:, :d], gradients[:, d] = found[: m * d].reshape(m, d), sums[:, 0]
        return sums[:, 1], gradients

    def go(self) -> None:
        (n, d), m = self.live.shape, self.n_points
        rows, step = _VALUES[0], min(_VALUES[1], _up(d))
        pair_kernels.tanh_values[(-(-n // rows),)](
            self.live, n, self.x, self.t, POINTS=m, UP=_up(m), D=d, ROWS=rows, STEP=step
        )
        rows, step = _ENTRIES
        pair_kernels.relaxed_slopes[(self.n_programs, m)](
            *self.entries, self.t, self.slope, self.sums, n, POINTS=m, TOGETHER=_TOGETHER, ROWS=rows, STEP=step,
        )  # fmt: skip
        _add_features(self.live, self.slope, self.parts)
        _add_parts(self.parts, self.y)
        _add_parts(self.sums, self.y[m * d :])


def feature_sums(live: Tensor, r: Tensor) -> Tensor:
    """Zᵀr (d,), in doubles."""
    parts = _feature_parts(live, 1)
    _add_features(live, r[None], parts)
    return parts.sum(dim=0, dtype=torch.float64)


def pair_gains(pairs: DevicePairs, t: Tensor) -> Tensor:
    """Σ s·(t_i − t_j)² (m,) for values t (n_live, m), m a power of two, in doubles."""
    n, m = t.shape
    rows = max(1, _GAINS[0] // m)
    parts = torch.empty((-(-n // rows), m), dtype=torch.float64, device=t.device)
    pair_kernels.pair_gains[(len(parts),)](
        pairs.row_starts, pairs.row_others, pairs.row_weights, t, parts, n, M=m, ROWS=rows, STEP=_GAINS[1]
    )
    return parts.sum(dim=0) / 2.0  # each pair is an entry of both of its rows


def cut_steps(first: Tensor, second: Tensor, weights: Tensor, places: Tensor, steps: Tensor) -> None:
    """Add each pair's weight to `steps` (m, T + 1) at the lower of its places (m, n_live), take it at the higher."""
    n = len(weights)
    pair_kernels.cut_steps[(-(-n // _BLOCK), len(places))](
        first, second, weights, n, places, places.shape[1], steps, steps.shape[1], BLOCK=_BLOCK
    )


def _feature_tile(d: int) -> tuple[int, int]:
    """Items and features that a program adds up at once."""
    width = min(_WIDEST, _up(d))
    return min(64, _FEATURES // width), width


def _feature_parts(live: Tensor, n_points: int) -> Tensor:
    n, d = live.shape
    return torch.empty((-(-n // (_feature_tile(d)[0] * _TIMES)), n_points * d), device=live.device)


def _add_features(live: Tensor, r: Tensor, parts: Tensor) -> None:
    (n, d), m = live.shape, len(r)
    rows, width = _feature_tile(d)
    pair_kernels.feature_sums[(len(parts), -(-d // width))](
        live, n, r, parts, POINTS=m, UP=_up(m), D=d, ROWS=rows, TIMES=_TIMES, WIDTH=width, num_warps=8
    )


def _add_parts(parts: Tensor, out: Tensor) -> None:
    n, d = parts.shape
    width = min(32, _up(d))
    pair_kernels.part_sums[(-(-d // width),)](parts, n, d, out, STEP=2048 // width, WIDTH=width)


class RecordedLoss(_Recorded):
    """w (m,) ↦ F(w), the weight of satisfied triplets, how many are live, then ∇F(w) (m,); ∂F/∂D stays in `q`.

    Planes as in columns.py; `dead` is the margin from which on a triplet is not live.
    """

    def __init__(self, planes: Tensor, groups: list[Group], code: int, dead: float, n_planes: int) -> None:
        super().__init__(8 * n_planes, N_COUNTS + 8 * n_planes, torch.float64, planes.device)
        self.planes, self.groups, self.code, self.n_planes = planes, groups, code, n_planes
        self.dead = dead
        self.n_slots = planes.shape[1]
        new = {"dtype": torch.float64, "device": planes.device}
        self.D, self.q = torch.empty((2, self.n_slots), **new)
        self.n_programs = [-(-len(group.weights) // _blocks_of(group)) for group in groups]
        self.counts = torch.empty((sum(self.n_programs), N_COUNTS), **new)
        self.parts = torch.empty((-(-self.n_slots // (_BLOCK * _TURNS)), 8 * n_planes), **new)

    @staticmethod
    def takes(groups: list[Group]) -> bool:
        """Whether a program can hold the margins of a block."""
        return all(_up(group.n_near) * _up(group.n_far) <= _MOST_MARGINS for group in groups)

    def go(self) -> None:
        n, about = self.n_slots, (self.planes, self.n_slots, self.n_slots, self.n_planes)
        pair_kernels.distances[(-(-n // _BLOCK),)](*about, self.x, self.D, BLOCK=_BLOCK)
        at = 0
        for group, n_programs in zip(self.groups, self.n_programs, strict=True):
            slots = slice(group.first, group.first + group.n_slots)
            pair_kernels.block_slopes[(n_programs,)](
                self.D[slots], group.weights, len(group.weights), self.q[slots], self.counts[at:], self.dead,
                LOSS=self.code, NEAR=group.n_near, FAR=group.n_far, NEAR_UP=_up(group.n_near),
                FAR_UP=_up(group.n_far), BLOCKS=_blocks_of(group), num_warps=_warps_of(group),
            )  # fmt: skip
            at += n_programs
        _add_parts(self.counts, self.y)
        if self.n_planes:
            pair_kernels.bit_sums[(len(self.parts), self.n_planes)](
                *about, self.q, self.parts, BLOCK=_BLOCK, TIMES=_TURNS, num_warps=8
            )
            _add_parts(self.parts, self.y[N_COUNTS:])


def bit_sums(planes: Tensor, n_planes: int, q: Tensor) -> Tensor:
    """Σ q·bit_j (8·n_planes,)."""
    n = planes.shape[1]
    parts = torch.zeros((-(-n // (_BLOCK * _TURNS)), 8 * n_planes), dtype=torch.float64, device=planes.device)
    if n_planes:
        pair_kernels.bit_sums[(len(parts), n_planes)](
            planes, n, n, n_planes, q, parts, BLOCK=_BLOCK, TIMES=_TURNS, num_warps=8
        )
    return parts.sum(dim=0)


def distances(planes: Tensor, n_planes: int, w: Tensor) -> Tensor:
    """Σ_j w_j·bit_j (n_slots,)."""
    n = planes.shape[1]
    out = torch.empty(n, dtype=torch.float64, device=planes.device)
    pair_kernels.distances[(-(-n // _BLOCK),)](planes, n, n, n_planes, w, out, BLOCK=_BLOCK)
    return out


def _up(count: int) -> int:
    return 1 << max(count - 1, 0).bit_length()


def _blocks_of(group: Group) -> int:
    return max(1, _MARGINS // (_up(group.n_near) * _up(group.n_far)))


def _warps_of(group: Group) -> int:
    """One for a few margins: threads that need not wait for others are quicker."""
    return 1 if _up(group.n_near) * _up(group.n_far) <= _MARGINS else 4
