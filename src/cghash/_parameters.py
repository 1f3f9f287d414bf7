"""The parameters of CGHash and their defaults, apart from what computes: `cghash fit --help` shows them at once."""

from __future__ import annotations

import os
from typing import Any


class Parameters:
    """The constructor of CGHash, which only stores."""

    def __init__(
        self,
        n_bits: int = 64,
        *,
        loss: Any = "squared_hinge",
        regularizer: str = "l1",
        C: float | None = None,
        hash_function: Any = "linear",
        sampling: str | None = None,
        n_neighbors: int = 10,
        method: str = "refined",
        tol: float = 1e-6,
        time_limit: float | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.n_bits = n_bits
        self.loss = loss
        self.regularizer = regularizer
        self.C = C
        self.hash_function = hash_function
        self.sampling = sampling
        self.n_neighbors = n_neighbors
        self.method = method
        self.tol = tol
        self.time_limit = time_limit
        self.checkpoint = checkpoint
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
