"""The columns found so far, as bits over pair slots on a device: `ColumnSums` there."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._arrays import Bools, Floats
from ...device.tensors import import_torch
from ..columns import Columns
from ..losses import Loss, SquaredHinge, kernel_code
from ..triplets import TripletSet
from .margins import conjugate, dead_above, grouped, loss_and_multipliers

Tensor = Any


class DeviceColumns:
    """Columns a_j over a triplet set: plane c holds bits 8c … 8c + 7 of every slot, a byte each.

    Slots stand in the order of the groups of blocks (margins.py); slopes are a tensor over them.
    """

    def __init__(self, triplets: TripletSet, loss: Loss, device: Any, n_bits: int) -> None:
        torch = import_torch()
        self.loss, self.device = loss, device
        self.n_triplets = triplets.n_triplets
        self._groups, self.first, self.second = grouped(triplets, device)
        self.n_slots = triplets.n_slots
        self._planes = torch.zeros((-(-n_bits // 8), len(self.first)), dtype=torch.uint8, device=device)
        self.n_columns = self.n_evaluations = 0
        self._recorded: Any = None
        self._last: tuple[Floats, Floats] | None = None  # weights, and what was found there
        self._given: Tensor | None = None  # the slopes there, where they were asked for

    key = staticmethod(Columns.key)

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
        if isinstance(self.loss, SquaredHinge):  # f*(−v) = −v + v²/4, and u²/4 = f
            value, q = self.slopes(w)
            return scale * float(-q.clamp(max=0.0).sum()) - scale**2 * value
        D, total = self.distances(w), 0.0
        for group in self._groups:
            for _, near, far, p in group.parts(D):
                _, u = loss_and_multipliers(self.loss, far[:, None, :] - near[:, :, None])
                total -= float(p @ conjugate(self.loss, u, scale).sum(dim=(1, 2)))
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
