"""ITQ: iterative quantisation.

Gong, Lazebnik: Iterative quantization: A Procrustean approach to learning binary codes. CVPR 2011; with Gordo and
Perronnin, TPAMI 2013. Items are projected by PCA or, with labels, by CCA, whose directions are scaled by their
correlations; then B = sgn(VR) and the orthogonal R that is best for B take turns to
lower the quantisation error ‖B − VR‖² (an orthogonal Procrustes problem).
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np

from .._arrays import Floats
from ..exceptions import InvalidInputError
from .base import one_of, positive, whole
from .labels import indicators
from .projections import HyperplanePeer, principal_components, project

PROJECTIONS = ("auto", "pca", "cca")


@dataclass(eq=False, repr=False)
class ITQ(HyperplanePeer):
    """Iterative quantisation: PCA or CCA, turned so that the coordinates lie near the corners of a cube.

    Parameters
    ----------
    n_bits : int, default=64
        With PCA at most the rank of the centred items come out. With CCA there are no more directions than labels: the
        rest have correlation 0, and being scaled by it leave the items in few dimensions, which more bits cut up.
    projection : {"auto", "pca", "cca"}, default="auto"
        "auto": CCA where `fit` is given labels, else PCA.
    n_iter : int, default=50
    regularization : float, default=1e-4
        Added to the variance of every direction and of every label before CCA divides by it, as a share of the mean
        variance of each.
    random_state : int, RandomState or None, default=None
        Of the first rotation.

    Attributes
    ----------
    directions_ : (n_bits_, d) projection and rotation in one
    mean_ : (d,) the mean of the items
    rotation_ : (k, n_bits_) R, with orthonormal rows; k = n_bits_ with PCA
    quantisation_errors_ : (n_iter,) ‖B − VR‖² / n after each turn, in the units in which ‖V‖² = n

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(100, 4))
    >>> model = ITQ(4, random_state=0).fit(X)
    >>> bool(model.quantisation_errors_[-1] <= model.quantisation_errors_[0])
    True
    """

    supervision = "optional"
    checks: ClassVar = {"projection": one_of(*PROJECTIONS), "n_iter": whole(1), "regularization": positive}

    n_bits: int = 64
    _: KW_ONLY
    projection: str = "auto"
    n_iter: int = 50
    regularization: float = 1e-4
    random_state: Any = None

    def _learn(self, X: Any, labels: Any, rng: np.random.Generator) -> int:
        if self.projection == "cca" and labels is None:
            raise InvalidInputError("projection='cca' learns from labels: requires y to be passed, got y=None")
        if labels is None or self.projection == "pca":
            self.mean_, W, _ = principal_components(X, self.n_bits)
            n_bits = len(W)
        else:
            self.mean_, W = canonical_directions(X, indicators(labels), self.n_bits, self.regularization)
            n_bits = self.n_bits
        V = project(X, self.mean_, W)
        V /= np.sqrt(np.mean(np.sum(V * V, axis=1)))
        R = np.linalg.qr(rng.standard_normal((n_bits, n_bits)))[0][: len(W)]
        self.rotation_, self.quantisation_errors_ = rotate(V, R, self.n_iter)
        self.directions_ = self.rotation_.T @ W
        return n_bits


def rotate(V: Floats, R: Floats, n_iter: int) -> tuple[Floats, Floats]:
    """Turn R (k, ℓ) to lower ‖B − VR‖² for projected items V (n, k); the rows of R stay orthonormal.

    The problem with R (ℓ, ℓ) and V filled up with zeros to ℓ columns has the same steps: only the first k rows count.
    """
    errors = []
    for _ in range(n_iter):
        B = np.where(V @ R > 0, 1.0, -1.0)
        U, _, Wt = np.linalg.svd(V.T @ B, full_matrices=False)  # orthogonal Procrustes
        R = U @ Wt
        errors.append(np.mean(np.sum((B - V @ R) ** 2, axis=1)))
    return R, np.array(errors)


def canonical_directions(X: Any, Y: Floats, m: int, regularization: float) -> tuple[Floats, Floats]:
    """The mean (d,), and at most m directions (k, d) of largest correlation with labels Y, each times its correlation.

    They solve Xᵀ Y (YᵀY + ρI)⁻¹ Yᵀ X w = λ² (XᵀX + ρI) w. In the coordinates of all principal components XᵀX is
    diagonal, and what is left is a singular value decomposition of a matrix with a column a label.
    """
    mean, components, variances = principal_components(X, X.shape[1])
    whiten = components / np.sqrt(variances + regularization * variances.mean())[:, None]  # (r, d)
    Y = Y - Y.mean(axis=0)
    own, axes = np.linalg.eigh(Y.T @ Y / len(Y))
    half = axes / np.sqrt(np.maximum(own, 0) + regularization * own.mean())  # (L, L)
    U, correlations, _ = np.linalg.svd(project(X, mean, whiten).T @ Y @ half / len(Y), full_matrices=False)
    k = min(m, max(1, int(np.sum(correlations > 1e-6))))
    return mean, (U[:, :k] * correlations[:k]).T @ whiten
