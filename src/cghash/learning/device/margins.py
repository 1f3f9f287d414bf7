"""The built-in smooth losses over product blocks of triplets, in torch."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

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


def grouped(triplets: TripletSet, device: Any) -> tuple[list[Group], NDArray[np.int64]]:
    """Blocks by their shape, and the slots (n_slots,) of the triplet set in the groups' order."""
    torch = import_torch()
    n_near, n_far = np.diff(triplets.near_ptr), np.diff(triplets.far_ptr)
    start = triplets.near_ptr[:-1] + triplets.far_ptr[:-1]
    shapes, which = np.unique(np.stack([n_near, n_far]), axis=1, return_inverse=True)
    groups, order, first = [], [], 0
    for number, (near, far) in enumerate(shapes.T.tolist()):
        blocks = np.flatnonzero(which.reshape(-1) == number)
        if near * far == 0:
            continue
        weights = torch.from_numpy(triplets.weights[blocks]).to(device)
        groups.append(Group(first, near, far, weights))
        order.append((start[blocks][:, None] + np.arange(near + far)).reshape(-1))
        first += groups[-1].n_slots
    return groups, np.concatenate([np.zeros(0, dtype=np.int64), *order])


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
