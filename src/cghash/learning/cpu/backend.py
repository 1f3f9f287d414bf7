"""`Backend` of the CPU."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np

from ..backend import Backend
from ..column_generation import Problem
from ..families.base import Family
from ..triplets import TripletSet
from .columns import Columns
from .neighbors import nearest
from .pairs import SignedPairs

_CAPACITY = 256  # columns, up to which memory is taken ahead


class CpuBackend(Backend):
    """Items and triplets in memory."""

    nearest = staticmethod(nearest)

    def __init__(self, n_threads: int = 1) -> None:
        self.n_threads = n_threads

    def holds(self, X: Any) -> bool:
        return False

    def checked(self, X: Any) -> Any:
        return X

    def memory(self, X: Any, family: Family, n_slots: int, n_bits: int) -> AbstractContextManager[None]:
        return nullcontext()

    def put(self, X: Any) -> Any:
        return X

    def family(self, family: Family) -> Family:
        return family

    def sums(self, triplets: TripletSet, problem: Problem, n_bits: int) -> tuple[Columns, SignedPairs]:
        columns = Columns(triplets, problem.loss, self.n_threads, min(n_bits, _CAPACITY))
        first, second = triplets.slots()
        duplets = problem.regularizer.duplets
        ends = np.concatenate([first, duplets[:, 0]]), np.concatenate([second, duplets[:, 1]])
        return columns, SignedPairs(*ends, triplets.n_items, self.n_threads)
