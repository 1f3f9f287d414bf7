"""SDH: supervised discrete hashing.

Shen, Shen, Liu, Shen: Supervised discrete hashing. CVPR 2015. Codes B of the items should let a linear classifier tell
their labels, and be what the hash functions give: with the L2 loss (section 3.1)

    min over W, F, B in {−1, 1}:  ‖Y − BW‖² + λ‖W‖² + ν‖B − F(X)‖²,   F(x) = φ(x)P,

φ(x) the kernel of x to anchors. Three steps take turns, each the exact minimum over its own unknowns: W by ridge
regression (G-step), P by regression (F-step), and B bit by bit with the other bits fixed (discrete cyclic coordinate
descent): z = sgn(q − B'W'v), v the bit's row of W, q its column of Q = YWᵀ + νF(X), B' and W' those of the other bits.
Beside the paper, P is held by a small ridge term νδ‖P‖², without which items fewer than anchors would leave it open.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from .._arrays import Floats
from .anchors import draw_anchors, kernel
from .base import Peer, optional, positive, whole
from .labels import indicators

_SWEEPS = 10  # of a B-step over all bits, at most


@dataclass(eq=False, repr=False)
class SDH(Peer):
    """Supervised discrete hashing: codes from which a linear classifier tells the labels, and an RBF function a bit.

    Parameters
    ----------
    n_bits : int, default=64
    n_anchors : int, default=1000
        Drawn from the items; all items where there are fewer.
    gamma : float or None, default=None
        Of the kernel exp(−γ‖x − y‖²); by default 1 over the mean squared distance of items to anchors.
    lam : float, default=1.0
        λ, what the size of the classifier costs.
    nu : float, default=1e-5
        ν, what it costs that codes differ from the values of the hash functions.
    ridge : float, default=1e-2
        δ, what the size of the hash functions costs.
    n_iter : int, default=5
        Turns of the three steps; they end early when no bit changes.
    random_state : int, RandomState or None, default=None
        Of the anchors and the first codes.

    Attributes
    ----------
    anchors_ : (m, d)
    gamma_ : what was used
    coefficients_ : (n_bits, m) P
    objectives_ : the objective with the first codes, and after each turn; it never rises

    Examples
    --------
    >>> X = [[0.0], [0.1], [0.2], [5.0], [5.1], [5.3]]
    >>> model = SDH(4, random_state=0).fit(X, [0, 0, 0, 1, 1, 1])
    >>> len(np.unique(model.transform(X), axis=0))
    2
    """

    supervision = "required"
    checks: ClassVar = {
        "n_anchors": whole(1),
        "gamma": optional(positive),
        **dict.fromkeys(("lam", "nu", "ridge"), positive),
        "n_iter": whole(1),
    }

    n_bits: int = 64
    _: KW_ONLY
    n_anchors: int = 1000
    gamma: float | None = None
    lam: float = 1.0
    nu: float = 1e-5
    ridge: float = 1e-2
    n_iter: int = 5
    random_state: Any = None

    def _learn(self, X: Any, labels: Any, rng: np.random.Generator) -> int:
        self.anchors_, self.gamma_ = draw_anchors(X, self.n_anchors, self.gamma, rng)
        K = kernel(X, self.anchors_, self.gamma_)
        B = np.where(rng.random((len(X), self.n_bits)) < 0.5, 1.0, -1.0)
        P, objectives = alternate(K, indicators(labels), B, self.lam, self.nu, self.ridge, self.n_iter)
        self.coefficients_, self.objectives_ = np.ascontiguousarray(P.T), np.array(objectives)
        return self.n_bits

    def _margins(self, X: Any) -> Floats:
        return np.asarray(kernel(X, self.anchors_, self.gamma_) @ self.coefficients_.T)


def alternate(
    K: Floats, Y: Floats, B: Floats, lam: float, nu: float, ridge: float, n_iter: int
) -> tuple[Floats, list[float]]:
    """Take turns from codes B (n, ℓ), with kernels K (n, m) and labels Y (n, L): P (m, ℓ), and the objectives."""
    factor = cho_factor(K.T @ K + ridge * np.eye(K.shape[1]))
    objectives: list[float] = []
    for _ in range(n_iter + 1):
        W, P = classifier(B, Y, lam), cho_solve(factor, K.T @ B)  # the G-step and the F-step
        F = K @ P
        objectives.append(objective(B, Y, W, F, P, lam, nu, ridge))
        if len(objectives) > n_iter:
            break
        before, B = B, discrete_descent(B, W, Y @ W.T + nu * F)  # the B-step
        if np.array_equal(before, B):
            break
    return P, objectives


def classifier(B: Floats, Y: Floats, lam: float) -> Floats:
    """W (ℓ, L) that minimises ‖Y − BW‖² + λ‖W‖²."""
    return np.asarray(np.linalg.solve(B.T @ B + lam * np.eye(B.shape[1]), B.T @ Y))


def discrete_descent(B: Floats, W: Floats, Q: Floats) -> Floats:
    """Lower ‖BW‖² − 2 tr BᵀQ over codes B (n, ℓ), one bit after the other, until none changes.

    Examples
    --------
    >>> discrete_descent(np.array([[1.0, 1.0]]), np.array([[1.0], [1.0]]), np.array([[0.5, 0.0]])).tolist()
    [[-1.0, 1.0]]
    """
    B, G = B.copy(), W @ W.T
    for _ in range(_SWEEPS):
        changed = False
        for j in range(B.shape[1]):
            pull = Q[:, j] - B @ G[:, j] + B[:, j] * G[j, j]
            bit = np.where(pull == 0, B[:, j], np.sign(pull))
            changed |= not np.array_equal(bit, B[:, j])
            B[:, j] = bit
        if not changed:
            break
    return B


def objective(B: Floats, Y: Floats, W: Floats, F: Floats, P: Floats, lam: float, nu: float, ridge: float) -> float:
    """‖Y − BW‖² + λ‖W‖² + ν(‖B − F‖² + δ‖P‖²)."""
    fit, difference = Y - B @ W, B - F
    return float(np.sum(fit**2) + lam * np.sum(W**2) + nu * (np.sum(difference**2) + ridge * np.sum(P**2)))
