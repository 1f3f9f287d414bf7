"""The columns found so far, as bits over pair slots on a device: `ColumnSums` there."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..._arrays import Bools, Floats
from ..._tensors import import_torch
from ...learning.backend import column_key
from ...learning.losses import Exponential, Logistic, Loss, SquaredHinge, closed_dual, kernel_code
from ...learning.triplets import TripletSet

Tensor = Any

_AT_ONCE = 1 << 24  # margins


@dataclass(frozen=True)
class Group:
    """Blocks of one shape: `n_near` × `n_far` triplets each, whose slots stand one behind the other from `first`."""

    first: int
    n_near: int
    n_far: int
    weights: Tensor  # (b,) of each triplet of a block

    @property
    def n_slots(self) -> int:
        return len(self.weights) * (self.n_near + self.n_far)

    def parts(self, D: Tensor) -> Iterator[tuple[slice, Tensor, Tensor, Tensor]]:
        """Slots, near and far distances (b, K⁺), (b, K⁻) and weights (b,) of some blocks at a time."""
        width = self.n_near + self.n_far
        step = max(1, _AT_ONCE // (self.n_near * self.n_far))
        for begin in range(0, len(self.weights), step):
            p = self.weights[begin : begin + step]
            slots = slice(self.first + begin * width, self.first + (begin + len(p)) * width)
            both = D[slots].view(len(p), width)
            yield slots, both[:, : self.n_near], both[:, self.n_near :], p


def grouped(triplets: TripletSet, device: Any) -> tuple[list[Group], Tensor, Tensor]:
    """Blocks by their shape, and the two items (n_slots,), (n_slots,) of each slot in the groups' order."""
    torch = import_torch()
    n_near, n_far = np.diff(triplets.near_ptr), np.diff(triplets.far_ptr)
    width = int(n_far.max(initial=0)) + 1
    shapes, which = np.unique(n_near * width + n_far, return_inverse=True)
    groups, first, second, at = [], [], [], 0
    for number, (near, far) in enumerate(zip(*np.divmod(shapes, width), strict=True)):
        if near * far == 0:
            continue
        blocks = np.flatnonzero(which.reshape(-1) == number)
        groups.append(Group(at, int(near), int(far), torch.from_numpy(triplets.weights[blocks]).to(device)))
        first.append(torch.from_numpy(triplets.anchors[blocks]).to(device).repeat_interleave(int(near + far)))
        lists = (triplets.near, triplets.near_ptr, near), (triplets.far, triplets.far_ptr, far)
        items = [ids[pointers[blocks][:, None] + np.arange(size)] for ids, pointers, size in lists]
        second.append(torch.from_numpy(np.concatenate(items, axis=1)).to(device).view(-1))
        at += groups[-1].n_slots
    none = torch.zeros(0, dtype=torch.int64, device=device)
    return groups, torch.cat([none, *first]), torch.cat([none, *second])


def loss_and_multipliers(loss: Loss, margin: Tensor) -> tuple[Tensor, Tensor]:
    """f(ρ) and u = −f'(ρ)."""
    torch = import_torch()
    if isinstance(loss, SquaredHinge):
        short = (1.0 - margin).clamp_(min=0.0)
        return short * short, 2.0 * short
    if isinstance(loss, Exponential):
        value = torch.exp(-margin)
        return value, value
    assert isinstance(loss, Logistic)
    return torch.nn.functional.softplus(-margin), torch.sigmoid(-margin)


def logistic_conjugate(u: Tensor, scale: float) -> Tensor:
    """f*(−scale·u)."""
    torch = import_torch()
    v = scale * u
    return torch.special.xlogy(v, v) + torch.special.xlogy(1.0 - v, 1.0 - v)


def is_known(loss: Loss) -> bool:
    """Whether a loss runs on a device."""
    return type(loss) in (SquaredHinge, Logistic, Exponential)


def dead_above(loss: Loss) -> float:
    return float(getattr(loss, "dead_above", math.inf))


class DeviceColumns:
    """Columns a_j over a triplet set: plane c holds bits 8c … 8c + 7 of every slot, a byte each.

    Slots stand in the order of the groups of blocks (`Group`); slopes are a tensor over them.
    """

    def __init__(self, triplets: TripletSet, loss: Loss, device: Any, n_bits: int) -> None:
        torch = import_torch()
        self.loss, self.device = loss, device
        self.triplets = None  # in memory
        self.n_triplets = triplets.n_triplets
        self._groups, self.first, self.second = grouped(triplets, device)
        self.n_slots = triplets.n_slots
        self._planes = torch.zeros((-(-n_bits // 8), len(self.first)), dtype=torch.uint8, device=device)
        self.n_columns = self.n_evaluations = 0
        self._recorded: Any = None
        self._last: tuple[Floats, Floats] | None = None  # weights, and what was found there
        self._given: Tensor | None = None  # the slopes there, where they were asked for

    key = staticmethod(column_key)

    def append(self, bits: Bools) -> None:
        """Add the column of a hash function, from its bit of each item (n_items,)."""
        torch = import_torch()
        of_items = torch.from_numpy(np.ascontiguousarray(bits).view(np.uint8)).to(self.device)
        plane, place = divmod(self.n_columns, 8)
        if plane == len(self._planes):
            self._planes = torch.cat([self._planes, torch.zeros_like(self._planes[:1])])
        self._planes[plane] |= (of_items[self.first] ^ of_items[self.second]) << place
        self.n_columns += 1
        self._last = None
        if self._recorded is not None and self._recorded.n_planes != self._n_planes:
            self._recorded = None  # of fewer planes

    def evaluate(self, w: Floats) -> tuple[float, Floats]:
        """F(w) and ∇F(w) (m,)."""
        self.n_evaluations += 1
        if self.device.type == "cuda" and self._by_kernel:
            found = self._at(w)
            return float(found[0]), self._gradient(found)
        value, q = self._slopes(w)
        both = import_torch().cat([value.view(1), self._bit_sums(q)]).cpu().numpy()
        return float(both[0]), both[1:]

    def slopes(self, w: Floats) -> tuple[float, Tensor]:
        """F(w) and ∂F/∂D (n_slots,)."""
        if self.device.type == "cuda" and self._by_kernel:
            value = float(self._at(w)[0])
            self._given = self._recorded.q.clone()
            return value, self._given
        value, q = self._slopes(w)
        return float(value), q

    def adjoint(self, slopes: Tensor) -> Floats:
        """Σ_slot slopes·bit_j (m,) for each column."""
        if self._last is not None and slopes is self._given:
            return self._gradient(self._last[1])
        return self._bit_sums(slopes).cpu().numpy()  # type: ignore[no-any-return]

    def counts(self, w: Floats) -> tuple[float, int]:
        """Share of triplets satisfied, by weight, and how many still have a multiplier."""
        if self.device.type == "cuda" and self._by_kernel:
            _, satisfied, n_live = self._at(w)[:3].tolist()
            return min(satisfied, 1.0), int(n_live)
        D, share, live, high = self.distances(w), 0.0, 0, dead_above(self.loss)
        for group in self._groups:
            for _, near, far, p in group.parts(D):
                margin = far[:, None, :] - near[:, :, None]  # (b, K⁺, K⁻)
                share += float(p @ (margin > 0.0).sum(dim=(1, 2)).double())
                live += int((margin < high).sum())
        return min(share, 1.0), live

    def dual_value(self, w: Floats, scale: float) -> float:
        """−Σ p f*(−scale·u) for the multipliers u at w."""
        closed, D = closed_dual(self.loss), self.distances(w)
        if closed is not None:
            value, q = self.slopes(w)
            return closed(scale, value, float(-q.clamp(max=0.0).sum()), -float(q @ D))
        total = 0.0
        for group in self._groups:
            for _, near, far, p in group.parts(D):
                _, u = loss_and_multipliers(self.loss, far[:, None, :] - near[:, :, None])
                total -= float(p @ logistic_conjugate(u, scale).sum(dim=(1, 2)))
        return total

    def distances(self, w: Floats) -> Tensor:
        """Weighted distance D (n_slots,) of each slot's pair."""
        torch = import_torch()
        padded = np.zeros(8 * self._n_planes)
        padded[: len(w)] = w
        if self.device.type == "cuda":
            from .recorded import distances

            return distances(self._planes, self._n_planes, torch.from_numpy(padded).to(self.device))
        D = torch.zeros(self._planes.shape[1], dtype=torch.float64)
        for plane, part in zip(self._planes, torch.from_numpy(padded.reshape(-1, 8)), strict=False):
            D += (_octets() @ part)[plane.long()]
        return D

    def _at(self, w: Floats) -> Floats:
        """What `RecordedLoss` finds, and as many zeros as planes have more places; slopes stay on the device."""
        from .recorded import RecordedLoss

        if self._recorded is None:
            code = kernel_code(self.loss)
            assert code is not None
            self._recorded = RecordedLoss(self._planes, self._groups, code, dead_above(self.loss), self._n_planes)
        if self._last is None or not np.array_equal(self._last[0], w):
            self._last, self._given = (w.copy(), self._recorded(w)), None
        return self._last[1]

    def _gradient(self, found: Floats) -> Floats:
        from .recorded import N_COUNTS

        return found[N_COUNTS : N_COUNTS + self.n_columns].copy()

    @property
    def _by_kernel(self) -> bool:
        from .recorded import RecordedLoss

        return RecordedLoss.takes(self._groups)

    @property
    def _n_planes(self) -> int:
        return -(-self.n_columns // 8)

    def _slopes(self, w: Floats) -> tuple[Tensor, Tensor]:
        torch = import_torch()
        D = self.distances(w)
        q = torch.empty_like(D)
        value = torch.zeros((), dtype=torch.float64, device=self.device)
        for group in self._groups:
            for slots, near, far, p in group.parts(D):
                f, u = loss_and_multipliers(self.loss, far[:, None, :] - near[:, :, None])
                value += f.view(len(p), -1).sum(dim=1) @ p
                mine = q[slots].view(len(p), -1)
                torch.mul(u.sum(dim=2), p[:, None], out=mine[:, : group.n_near])
                torch.mul(u.sum(dim=1), -p[:, None], out=mine[:, group.n_near :])
        return value, q

    def _bit_sums(self, q: Tensor) -> Tensor:
        """Σ q·bit_j (m,)."""
        torch = import_torch()
        if self.device.type == "cuda":
            from .recorded import bit_sums

            return bit_sums(self._planes, self._n_planes, q)[: self.n_columns]
        planes = self._planes[: self._n_planes]
        sums = [torch.bincount(plane, weights=q, minlength=256) @ _octets() for plane in planes]
        return torch.cat([q.new_zeros(0), *sums])[: self.n_columns]


def _octets() -> Tensor:
    """Bit k (8) of each byte (256, 8)."""
    torch = import_torch()
    return (torch.arange(256)[:, None] >> torch.arange(8) & 1).double()
