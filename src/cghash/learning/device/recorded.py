"""Evaluations of L-BFGS on a GPU: all kernels of one recorded as a graph, which a single call starts.

An evaluation takes a vector from the host and gives one back. Its kernels write into memory that is taken once, so
that recording takes none.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray

from ...device import pair_kernels
from .margins import Group

if TYPE_CHECKING:
    from .pairs import DevicePairs

Tensor = Any

_ROWS, _TIMES, _WIDTH = 8, 32, 128  # items a turn, turns, and features, of a program that adds up features
_VALUES = 4, 1024  # items, and features at most, that a program multiplies at once
_ENTRIES = 2, 16  # items, and entries of each, that a program takes at once
_TOGETHER = 32  # programs whose sums stand in one row: their columns are added up side by side
_BLOCK, _TURNS = 1024, 16  # slots a program, and how often
_MARGINS = 2048  # margins that a program holds
_MOST_MARGINS = 4096  # of one block, up to which the kernel takes it


class _Recorded(ABC):
    """The way from x on the host to y on the host."""

    def __init__(self, n_in: int, n_out: int, dtype: Any, device: Any) -> None:
        self.device = device
        self.x = torch.zeros(n_in, dtype=dtype, device=device)
        self.y = torch.zeros(n_out, dtype=torch.float64, device=device)
        self._host_x = torch.zeros(n_in, dtype=dtype, pin_memory=True)
        self._host_y = torch.zeros(n_out, dtype=torch.float64, pin_memory=True)
        self._graph: Any = None
        self._n_calls = 0

    def __call__(self, x: NDArray[Any]) -> NDArray[np.float64]:
        self._host_x.numpy()[: len(x)] = x
        if self._n_calls == 1:  # the kernels are compiled by then
            self._record()
        self._n_calls += 1
        self.x.copy_(self._host_x, non_blocking=True)
        if self._graph is None:
            self.go()
        else:
            self._graph.replay()
        self._host_y.copy_(self.y, non_blocking=True)
        torch.cuda.current_stream(self.device).synchronize()
        return self._host_y.numpy().copy()  # type: ignore[no-any-return]

    def _record(self) -> None:
        here, aside = torch.cuda.current_stream(self.device), torch.cuda.Stream(self.device)
        aside.wait_stream(here)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.stream(aside):
            graph.capture_begin(capture_error_mode="thread_local")
            self.go()
            graph.capture_end()
        here.wait_stream(aside)
        self._graph = graph

    @abstractmethod
    def go(self) -> None:
        """Start the kernels from `x` to `y`."""


class RecordedRelaxed(_Recorded):
    """v with b behind ↦ half the gradient of tᵀLt by v, then sums (32, 2): of that by b, and of tᵀLt.

    t = tanh(Z·v + b).
    """

    def __init__(self, live: Tensor, pairs: DevicePairs) -> None:
        n, d = live.shape
        super().__init__(d + 1, d + 2 * _TOGETHER, torch.float32, live.device)
        self.live, self.pairs = live, pairs
        self.t, self.slope = torch.empty((2, n), device=live.device)
        self.parts = torch.empty((-(-n // (_ROWS * _TIMES)), d), device=live.device)
        self.n_programs = -(-n // _ENTRIES[0])
        shape = -(-self.n_programs // _TOGETHER), 2 * _TOGETHER
        self.sums = torch.zeros(shape, dtype=torch.float64, device=live.device)

    def relaxed(self, x: NDArray[Any]) -> tuple[float, NDArray[np.float64]]:
        """tᵀLt, and half its gradient by x."""
        found = self(x)
        by_b, value = found[-2 * _TOGETHER :].reshape(_TOGETHER, 2).sum(axis=0)
        return float(value), np.append(found[: -2 * _TOGETHER], by_b)

    def go(self) -> None:
        (n, d), pairs = self.live.shape, self.pairs
        rows, step = _VALUES[0], min(_VALUES[1], _up(d))
        pair_kernels.tanh_values[(-(-n // rows),)](self.live, n, self.x, self.t, D=d, ROWS=rows, STEP=step)
        rows, step = _ENTRIES
        pair_kernels.relaxed_slopes[(self.n_programs,)](
            pairs.row_starts, pairs.row_others, pairs.row_weights, self.t, self.slope, self.sums, n, ROWS=rows,
            STEP=step, num_warps=2,
        )  # fmt: skip
        _add_features(self.live, self.slope, self.parts)
        _add_parts(self.parts, self.y)
        _add_parts(self.sums, self.y[d:])


def feature_sums(live: Tensor, r: Tensor) -> Tensor:
    """Zᵀr (d,), in doubles."""
    parts = torch.empty((-(-len(live) // (_ROWS * _TIMES)), live.shape[1]), device=live.device)
    _add_features(live, r, parts)
    return parts.sum(dim=0, dtype=torch.float64)


def _add_features(live: Tensor, r: Tensor, parts: Tensor) -> None:
    n, d = live.shape
    pair_kernels.feature_sums[(len(parts), -(-d // _WIDTH))](
        live, n, r, parts, D=d, ROWS=_ROWS, TIMES=_TIMES, WIDTH=_WIDTH
    )


def _add_parts(parts: Tensor, out: Tensor) -> None:
    n, d = parts.shape
    width = min(32, 1 << (d - 1).bit_length())
    pair_kernels.part_sums[(-(-d // width),)](parts, n, out, D=d, STEP=2048 // width, WIDTH=width)


class RecordedLoss(_Recorded):
    """w (m,) ↦ F(w), then ∇F(w) (m,); ∂F/∂D stays in `q`. Planes as in columns.py."""

    def __init__(self, planes: Tensor, groups: list[Group], code: int, n_planes: int) -> None:
        super().__init__(8 * n_planes, 1 + 8 * n_planes, torch.float64, planes.device)
        self.planes, self.groups, self.code, self.n_planes = planes, groups, code, n_planes
        self.n_slots = planes.shape[1]
        new = {"dtype": torch.float64, "device": planes.device}
        self.D, self.q = torch.empty((2, self.n_slots), **new)
        self.n_programs = [-(-len(group.weights) // _blocks_of(group)) for group in groups]
        self.values = torch.empty((sum(self.n_programs), 1), **new)
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
                self.D[slots], group.weights, len(group.weights), self.q[slots], self.values[at:], LOSS=self.code,
                NEAR=group.n_near, FAR=group.n_far, NEAR_UP=_up(group.n_near), FAR_UP=_up(group.n_far),
                BLOCKS=_blocks_of(group),
            )  # fmt: skip
            at += n_programs
        _add_parts(self.values, self.y)
        if self.n_planes:
            pair_kernels.bit_sums[(len(self.parts), self.n_planes)](
                *about, self.q, self.parts, BLOCK=_BLOCK, TIMES=_TURNS, num_warps=8
            )
            _add_parts(self.parts, self.y[1:])


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
