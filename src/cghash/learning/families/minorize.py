"""Minorise–maximise: any weighted two-class learner searches its own family for a large gain (design §3.6).

¼·hᵀ(L + Λ)h differs from the gain by a constant for h in {-1, 1}. With Λ large enough it is convex, so its tangent at
the current h is a lower bound, and raising that bound is a classification problem: labels sign(g), weights |g|,
g = (L + Λ)h. Λ starts at zero, where steps are long, and grows while steps do not pay; no step is kept that loses gain.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
import scipy.sparse.linalg

from ..._arrays import Bools, Floats, Singles
from ..cpu.pairs import SignedPairs, signs

Answer = TypeVar("Answer")
State = TypeVar("State")
Train = Callable[[Bools, Floats], tuple[Answer, Singles] | None]

_SHIFTS = (0.0, 0.1, 0.3, 1.0)  # of Λ = 2·Σ|s⁻|, with which L + Λ is convex for certain: (h_i − h_j)² ≤ 2h_i² + 2h_j²


def leading_signs(pairs: SignedPairs, rng: np.random.Generator, count: int, n_vectors: int = 4) -> list[Singles]:
    """Labellings that no family could beat by much: signs of L's leading eigenvector, then of random mixtures."""
    n = len(pairs.items)
    mixtures = rng.standard_normal((n_vectors, count))
    mixtures[:, 0] = np.eye(n_vectors)[:, 0]
    if n <= n_vectors + 1:
        return [signs(rng.standard_normal(n)) for _ in range(count)]
    operator = scipy.sparse.linalg.LinearOperator(
        (n, n), matvec=lambda t: pairs.laplacian(np.ravel(t)), dtype=np.float64
    )
    start = rng.standard_normal(n)
    try:
        _, vectors = scipy.sparse.linalg.eigsh(operator, k=n_vectors, which="LA", v0=start, tol=1e-2, maxiter=200)
    except scipy.sparse.linalg.ArpackNoConvergence:
        vectors = rng.standard_normal((n, n_vectors))
    return [signs(mixture) for mixture in (vectors[:, ::-1] @ mixtures).T]


def relaxed_gain(pairs: SignedPairs, h: Singles) -> float:
    """¼·hᵀLh."""
    return float(h @ pairs.laplacian(h)) / 4.0


def climb(start: State, step: Callable[[State, float], tuple[State, float] | None], max_steps: int = 20) -> list[State]:
    """States along the way, each with a larger gain than the one before.

    `step` goes from a state, with a share of Λ, to a new one and its gain, or nowhere.
    """
    found: list[State] = []
    here, gain, level = start, -np.inf, 0
    for _ in range(max_steps):
        answer = step(here, _SHIFTS[level])
        if answer is not None and (not found or answer[1] > gain + 1e-7 * abs(gain)):
            here, gain = answer
            found.append(here)
        elif level + 1 < len(_SHIFTS):
            level += 1
        else:
            break
    return found


def minorize_maximize(
    pairs: SignedPairs, start: Singles, train: Train[Answer], max_steps: int = 20
) -> list[tuple[Answer, Singles]]:
    """Answers of `train` along the way, each with a larger gain than the one before."""
    full = 2.0 * pairs.near_weight()  # Λ

    def step(here: tuple[Any, Singles], shift: float) -> tuple[tuple[Any, Singles], float] | None:
        h = here[1]
        g = np.asarray(pairs.laplacian(h) + shift * full * h, dtype=np.float64)
        answer = train(g > 0, np.abs(g)) if np.any(g) else None
        return None if answer is None else (answer, relaxed_gain(pairs, answer[1]))

    none_yet: Any = None
    return climb((none_yet, start), step, max_steps)
