"""SPLH: sequential projection learning.

Wang, Kumar, Chang: Sequential projection learning for hashing with compact codes. ICML 2010. S holds +1 for pairs of
labelled items X_l with a common label and −1 for the others. Each direction w_k is the leading eigenvector of the
adjusted covariance M_k = X_l S_k X_lᵀ + η X Xᵀ; then pairs that it puts on the wrong side weigh more,
S_(k+1) = S_k − α T(S̃_k, S_k) with S̃_k = X_lᵀ w_k w_kᵀ X_l and T keeping its entries whose sign differs from S_k,
and the direction is taken out of the items, X ← X − w_k w_kᵀ X. The labelled items X_l in
the first term stay whole: directions need not be orthogonal, and there may be more of them than features.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.sparse.linalg import LinearOperator, eigsh

from .._arrays import Floats
from .base import not_negative, positive, whole
from .labels import signs_of_similarity
from .projections import HyperplanePeer, principal_components, project, signed

_DENSE = 100  # features: fewer are solved for at once


@dataclass(eq=False, repr=False)
class SPLH(HyperplanePeer):
    """Sequential projection learning: each direction mends the pairs that the one before got wrong.

    The items are scaled to a mean squared length of 1 about their mean, and both terms of M are means, over pairs and
    over items: η and α then do not depend on the units of the items, nor on their number.

    Parameters
    ----------
    n_bits : int, default=64
    n_labelled : int, default=1000
        Items drawn to make pairs of; the rest are used without their labels.
    eta : float, default=0.1
        What the variance of all items counts beside the pairs.
    alpha : float, default=10.0
        How much a wrong pair gains in weight.
    random_state : int, RandomState or None, default=None
        Of the items drawn.

    Attributes
    ----------
    directions_ : (n_bits, d) of length 1
    mean_ : (d,) the mean of the items

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(40, 3))
    >>> SPLH(3, random_state=0).fit(X, X[:, 0] > 0).directions_.shape
    (3, 3)
    """

    supervision = "required"
    prefixes = True
    checks: ClassVar = {"n_labelled": whole(2), "eta": positive, "alpha": not_negative}

    n_bits: int = 64
    _: KW_ONLY
    n_labelled: int = 1000
    eta: float = 0.1
    alpha: float = 10.0
    random_state: Any = None

    def _learn(self, X: Any, labels: Any, rng: np.random.Generator) -> int:
        chosen = np.sort(rng.permutation(len(X))[: self.n_labelled])
        self.mean_, components, variances = principal_components(X, X.shape[1])
        scale = 1 / np.sqrt(variances.sum())
        Z = project(X[chosen], self.mean_, components) * scale  # (l, r)
        S = signs_of_similarity(labels[chosen], labels[chosen])
        start = rng.standard_normal(len(components))
        W = sequence(Z, S, self.eta * scale**2 * variances, self.alpha, start, self.n_bits)
        self.directions_ = signed(W @ components)
        return len(W)


def sequence(Z: Floats, S: Any, variances: Floats, alpha: float, start: Floats, m: int) -> Floats:
    """The directions (m, r), of length 1.

    Parameters
    ----------
    Z : (l, r) labelled items
    S : (l, l) +1 and −1
    variances : (r,) η times the variances of all items, whose coordinates are uncorrelated
    alpha : weight of the corrections
    start : (r,) where the search for eigenvectors starts
    m : number of directions
    """
    items, S, C = (A.astype(np.float32) for A in (Z, S, np.diag(variances)))  # the eigenvectors need no more digits
    W = np.empty((m, Z.shape[1]))
    for k in range(m):
        w = W[k] = leading_eigenvector(items, S, C, start)
        along = items @ w.astype(np.float32)  # (l,)
        approximate = np.outer(along, along)  # S̃
        approximate[approximate * S >= 0] = 0  # T
        S -= np.float32(alpha) * approximate
        for covariance in (C, C.T):  # of X − w wᵀ X
            covariance -= np.outer(w, w @ covariance)
    return W


def leading_eigenvector(Z: Any, S: Any, C: Any, start: Floats) -> Floats:
    """The eigenvector (r,) of the largest eigenvalue of M = Zᵀ S Z / l² + C."""
    if len(C) < _DENSE:
        return np.asarray(np.linalg.eigh(Z.T @ (S @ Z) / len(Z) ** 2 + C)[1][:, -1])

    def multiply(v: Floats) -> Any:
        v = v.ravel().astype(np.float32)
        return Z.T @ (S @ (Z @ v)) / len(Z) ** 2 + C @ v

    M = LinearOperator(C.shape, matvec=multiply, dtype=np.float64)
    return np.asarray(eigsh(M, k=1, which="LA", v0=start, tol=1e-5)[1][:, 0])
