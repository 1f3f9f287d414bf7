"""The built-in smooth losses over product blocks of triplets, in torch."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...device.tensors import import_torch
from ..losses import Exponential, Logistic, Loss, SquaredHinge
from ..triplets import TripletSet

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


def conjugate(loss: Loss, u: Tensor, scale: float) -> Tensor:
    """f*(−scale·u)."""
    torch = import_torch()
    v = scale * u
    if isinstance(loss, Exponential):
        return torch.special.xlogy(v, v) - v
    return torch.special.xlogy(v, v) + torch.special.xlogy(1.0 - v, 1.0 - v)


def is_known(loss: Loss) -> bool:
    """Whether a loss runs on a device."""
    return type(loss) in (SquaredHinge, Logistic, Exponential)


def dead_above(loss: Loss) -> float:
    return float(getattr(loss, "dead_above", math.inf))
