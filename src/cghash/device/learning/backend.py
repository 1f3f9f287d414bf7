"""`Backend` of a device of torch's: checks, items there, and the memory that a fit will need."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

from ..._tensors import device_of, import_torch, is_tensor, memory_for
from ...exceptions import InvalidInputError
from ...learning.backend import Backend
from ...learning.column_generation import Problem
from ...learning.families.base import Family
from ...learning.families.linear import LinearFamily
from ...learning.families.rbf import RBFFamily
from ...learning.losses import Loss
from ...learning.triplets import TripletSet
from .columns import DeviceColumns, is_known
from .families import DeviceFamily, DeviceLinear, DeviceRBF
from .neighbors import SCORES, nearest
from .pairs import DevicePairs

Tensor = Any

_OF_A_SLOT = 120  # bytes: items, entries, weights, distances and slopes
_PASSING = 1 << 30  # bytes of what is there for a moment
_LOWER = "learn from fewer items, with fewer neighbours (n_neighbors) or, for RBF functions, fewer landmarks"


class DeviceBackend(Backend):
    """Items and triplets on a device."""

    nearest = staticmethod(nearest)

    def __init__(self, device: Any, family: Family, loss: Loss) -> None:
        self.device = device_of(device)
        _check_runs_on_device(family, loss)

    def holds(self, X: Any) -> bool:
        return is_tensor(X)

    def checked(self, X: Tensor) -> Tensor:
        """Items (n, d) of a tensor as float32 or float64, finite."""
        return _checked_tensor(X)

    def memory(self, X: Any, family: Family, n_slots: int, n_bits: int) -> AbstractContextManager[None]:
        n, d = X.shape
        width = min(family.n_landmarks, n) if isinstance(family, RBFFamily) else d
        items = 2 * n * d * X.dtype.itemsize
        graph = 14 * n * d + 3 * 4 * SCORES + 8 * n_slots + 32 * n
        learning = 2 * 4 * n * width + n_slots * (_OF_A_SLOT + n_bits // 8)
        needed = items + max(graph, learning) + _PASSING
        return memory_for(f"learning from {n} items of {d} features", needed, self.device, _LOWER, ahead=True)

    def put(self, X: Any) -> Tensor:
        if hasattr(X, "indptr"):
            raise InvalidInputError("X must be dense on a device, got a sparse matrix: leave device out")
        return (X if is_tensor(X) else import_torch().from_numpy(X)).to(self.device).contiguous()

    def family(self, family: Family) -> DeviceFamily:
        if isinstance(family, RBFFamily):
            return DeviceRBF(family)
        assert isinstance(family, LinearFamily)
        return DeviceLinear(family)

    def sums(self, triplets: TripletSet, problem: Problem, n_bits: int) -> tuple[DeviceColumns, DevicePairs]:
        columns = DeviceColumns(triplets, problem.loss, self.device, min(n_bits, 256))
        return columns, DevicePairs(columns, problem.regularizer.duplets, triplets.n_items)


def _check_runs_on_device(family: Family, loss: Loss) -> None:
    """Say clearly what cannot be learned on a device."""
    if not isinstance(family, LinearFamily | RBFFamily):
        raise InvalidInputError(
            'hash_function must be "linear", "rbf" or "rbf-kmeans" on a device; others learn on the CPU: '
            "leave device out"
        )
    if not is_known(loss):
        raise InvalidInputError(
            'loss must be "squared_hinge", "logistic" or "exponential" on a device; others learn on the CPU: leave '
            "device out"
        )


def _checked_tensor(X: Tensor) -> Tensor:
    torch = import_torch()
    if X.ndim != 2 or X.shape[0] < 2 or X.shape[1] < 1:
        raise InvalidInputError(f"X must be (n, d) with at least 2 items and 1 feature, got shape {tuple(X.shape)}")
    if X.is_complex():
        raise InvalidInputError(f"X must hold real numbers, got {X.dtype}")
    X = X if X.dtype in (torch.float32, torch.float64) else X.float()
    if not bool(torch.isfinite(X).all()):
        raise InvalidInputError("X must hold finite numbers, got NaN or infinity")
    return X.contiguous()
