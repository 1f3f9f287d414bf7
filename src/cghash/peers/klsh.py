"""KLSH: kernelised locality-sensitive hashing.

Kulis, Grauman: Kernelized locality-sensitive hashing for scalable image search. ICCV 2009. From p landmarks with the
centred kernel matrix K, a bit takes t of them at random, S, and h(x) = sgn(Σ_i w_i κ(x, x_i)) with w = K^(−1/2) e_S.
Over random S the projections have covariance proportional to the kernel, as a hyperplane drawn
from a normal distribution in the kernel's space has (the central limit theorem).
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.linalg import eigh
from sklearn.metrics.pairwise import additive_chi2_kernel, euclidean_distances, pairwise_kernels

from .._arrays import Floats
from ..exceptions import InvalidInputError, NothingToLearnError
from .base import Peer, one_of, optional, positive, whole

KERNELS = ("rbf", "linear", "chi2")
_RANGE = 1e-10  # of the largest eigenvalue: smaller ones are rounding


@dataclass(eq=False, repr=False)
class KLSH(Peer):
    """Kernelised locality-sensitive hashing: one random hyperplane a bit, in the space of a kernel.

    Parameters
    ----------
    n_bits : int, default=64
    kernel : {"rbf", "linear", "chi2"}, default="rbf"
        "chi2" wants features that are not negative.
    gamma : float or None, default=None
        Of the kernels "rbf", exp(−γ‖x − y‖²), and "chi2", exp(−γ Σ (x − y)²/(x + y)). By default 1 over the mean of
        what it multiplies, over the landmarks.
    n_landmarks : int, default=300
        p; all items where there are fewer.
    n_drawn : int, default=30
        t, landmarks that a hyperplane is made of; at most half of them.
    random_state : int, RandomState or None, default=None

    Attributes
    ----------
    landmarks_ : (p, d)
    coefficients_ : (n_bits, p) w
    thresholds_ : (n_bits,) the centring of the kernel
    kernel_, gamma_ : what was used

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(50, 3))
    >>> KLSH(16, n_landmarks=20, n_drawn=5, random_state=0).fit(X).encode(X).shape
    (50, 2)
    """

    prefixes = True
    checks: ClassVar = {
        "kernel": one_of(*KERNELS),
        "gamma": optional(positive),
        "n_landmarks": whole(2),
        "n_drawn": whole(1),
    }

    n_bits: int = 64
    _: KW_ONLY
    kernel: str = "rbf"
    gamma: float | None = None
    n_landmarks: int = 300
    n_drawn: int = 30
    random_state: Any = None

    def _learn(self, X: Any, labels: Any, rng: np.random.Generator) -> int:
        chosen = rng.choice(len(X), min(self.n_landmarks, len(X)), replace=False)
        self.landmarks_ = np.asarray(X[chosen], dtype=np.float64)
        self.kernel_ = self.kernel
        self.gamma_ = self._scale() if self.gamma is None else float(self.gamma)
        K = self._kernel(self.landmarks_)
        centred = K - K.mean(axis=0) - K.mean(axis=1)[:, None] + K.mean()
        if np.abs(centred).max() <= 1e-12 * np.abs(K).max():
            raise NothingToLearnError("X must hold items that differ, got landmarks that are all the same")
        root = inverse_root(centred)
        p = len(chosen)
        t = min(self.n_drawn, p // 2)
        drawn = np.array([rng.permutation(p)[:t] for _ in range(self.n_bits)])
        self.coefficients_ = root[drawn].sum(axis=1) * np.sqrt((p - 1) / t)
        self.thresholds_ = self.coefficients_ @ K.mean(axis=0)  # w sums to 0: the other means cancel
        return self.n_bits

    def _margins(self, X: Any) -> Floats:
        return np.asarray(self._kernel(X) @ self.coefficients_.T - self.thresholds_)

    def _kernel(self, X: Any) -> Floats:
        """κ(x, landmark): (n, p)."""
        if self.kernel_ == "linear":
            return np.asarray(X @ self.landmarks_.T)
        self._check_sign(X)
        X = np.asarray(X, dtype=np.float64)
        return np.asarray(pairwise_kernels(X, self.landmarks_, metric=self.kernel_, gamma=self.gamma_))

    def _check_sign(self, X: Any) -> None:
        if self.kernel_ == "chi2" and X.min() < 0:
            raise InvalidInputError(f"X must not be negative for kernel='chi2', got {X.min():g}")

    def _scale(self) -> float:
        """1 over the mean of what gamma multiplies."""
        if self.kernel_ == "linear":
            return 1.0
        if self.kernel_ == "rbf":
            exponents = euclidean_distances(self.landmarks_, squared=True)
        else:
            self._check_sign(self.landmarks_)
            exponents = -additive_chi2_kernel(self.landmarks_)
        return float(1.0 / max(exponents.mean(), 1e-300))


def inverse_root(K: Floats) -> Floats:
    """K^(−1/2) of a positive semidefinite matrix, on its range."""
    values, vectors = eigh(K)
    kept = values > _RANGE * values[-1]
    return np.asarray((vectors[:, kept] / np.sqrt(values[kept])) @ vectors[:, kept].T)
