"""What a fit on a device begins with: checks, items there, and the memory that it will need."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any

from ...device.tensors import device_of, import_torch, is_on_gpu, is_tensor, memory_for
from ...exceptions import InvalidInputError
from ..column_generation import Problem
from ..families.base import Family
from ..families.linear import LinearFamily
from ..families.rbf import RBFFamily
from ..losses import Loss
from .columns import DeviceColumns
from .families import DeviceFamily, DeviceLinear, DeviceRBF
from .margins import is_known
from .neighbors import SCORES
from .pairs import DevicePairs

Tensor = Any

_OF_A_SLOT = 120  # bytes: items, entries, weights, distances and slopes
_PASSING = 1 << 30  # bytes of what is there for a moment
_LOWER = "learn from fewer items, with fewer neighbours (n_neighbors) or, for RBF functions, fewer landmarks"


def device_for(X: Any, device: Any) -> Any:
    """The torch device of a fit: the one asked for, else that of a tensor on a GPU; None for the CPU's own kernels."""
    if device is None and not is_on_gpu(X):
        return None
    return device_of(X.device if device is None else device)


def check_runs_on_device(family: Family, loss: Loss) -> None:
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


def checked_tensor(X: Tensor) -> Tensor:
    """Items (n, d) of a tensor as float32 or float64, finite."""
    torch = import_torch()
    if X.ndim != 2 or X.shape[0] < 2 or X.shape[1] < 1:
        raise InvalidInputError(f"X must be (n, d) with at least 2 items and 1 feature, got shape {tuple(X.shape)}")
    if X.is_complex():
        raise InvalidInputError(f"X must hold real numbers, got {X.dtype}")
    X = X if X.dtype in (torch.float32, torch.float64) else X.float()
    if not bool(torch.isfinite(X).all()):
        raise InvalidInputError("X must hold finite numbers, got NaN or infinity")
    return X.contiguous()


def put(X: Any, device: Any) -> Tensor:
    """Checked items, from host memory or another device, on a device."""
    if hasattr(X, "indptr"):
        raise InvalidInputError("X must be dense on a device, got a sparse matrix: leave device out")
    return (X if is_tensor(X) else import_torch().from_numpy(X)).to(device).contiguous()


def memory_of(X: Any, family: Family, n_slots: int, n_bits: int, device: Any) -> AbstractContextManager[None]:
    """Room for a fit on items X (n, d), asked for ahead."""
    n, d = X.shape
    width = min(family.n_landmarks, n) if isinstance(family, RBFFamily) else d
    items = 2 * n * d * X.dtype.itemsize
    graph = 14 * n * d + 3 * 4 * SCORES + 8 * n_slots + 32 * n
    learning = 2 * 4 * n * width + n_slots * (_OF_A_SLOT + n_bits // 8)
    needed = items + max(graph, learning) + _PASSING
    return memory_for(f"learning from {n} items of {d} features", needed, device, _LOWER, ahead=True)


def on_device(problem: Problem) -> Problem:
    """The problem with its family there."""
    family: DeviceFamily
    if isinstance(problem.family, RBFFamily):
        family = DeviceRBF(problem.family)
    else:
        assert isinstance(problem.family, LinearFamily)
        family = DeviceLinear(problem.family)
    return replace(problem, family=family)


def sums_on(device: Any, problem: Problem, n_bits: int) -> tuple[DeviceColumns, DevicePairs]:
    """Columns over the triplets, and signed pairs over their slots and the duplets, on a device."""
    triplets = problem.triplets
    assert triplets is not None
    columns = DeviceColumns(triplets, problem.loss, device, min(n_bits, 256))
    return columns, DevicePairs(columns, problem.regularizer.duplets, triplets.n_items)
