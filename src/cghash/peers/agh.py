"""AGH: hashing with anchor graphs.

Liu, Wang, Kumar, Chang: Hashing with graphs. ICML 2011. Z (n, m) holds the similarity of each item to its s nearest
of m anchors u_j, exp(−‖x − u_j‖²/t) scaled to a sum of one; the anchor graph is A = Z Λ⁻¹ Zᵀ, Λ = diag(Zᵀ1), whose
Laplacian I − A has the eigenvectors Y = Z W, W = √n Λ^(−1/2) V Σ^(−1/2), V and Σ those of M = Λ^(−1/2) Zᵀ Z Λ^(−1/2)
without the eigenvalue one. An item not seen has y = z(x) W. One layer: the bits are [y > 0]. Two layers: each y gives
[y > 0] and, with thresholds b⁺ > 0 > b⁻ for the two sides, a second bit; they are found by minimising fᵀ(I − A)f
with 1ᵀf = 0, where f = y − b⁺ on the positive side and b⁻ − y on the negative.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from .._arrays import Floats
from ..exceptions import InvalidInputError
from ..learning.families.rbf import cluster_centres, squared_distances
from .base import Peer, whole

_TINY = np.finfo(np.float64).tiny


@dataclass(eq=False, repr=False)
class AGH(Peer):
    """Anchor graph hashing: eigenvectors of a graph in which items meet at anchors, cut once or twice.

    Parameters
    ----------
    n_bits : int, default=64
    layers : {1, 2}, default=2
        Bits of an eigenvector.
    n_anchors : int, default=300
        Centres of k-means.
    n_nearest : int, default=2
        Anchors that an item is similar to.
    random_state : int, RandomState or None, default=None

    Attributes
    ----------
    anchors_ : (m, d)
    bandwidth_ : t
    projection_ : (m, r) W
    thresholds_ : (r, 2) b⁻ and b⁺ of each eigenvector; of no use with one layer

    Examples
    --------
    >>> X = [[0.0], [0.1], [0.2], [5.0], [5.1], [5.3]]
    >>> bits = AGH(1, n_anchors=3, random_state=0).fit_transform(X).ravel()
    >>> bits[0] == bits[1] == bits[2] != bits[3] == bits[4] == bits[5]
    np.True_
    """

    prefixes = True
    checks: ClassVar = {"layers": whole(1), "n_anchors": whole(2), "n_nearest": whole(1)}

    n_bits: int = 64
    _: KW_ONLY
    layers: int = 2
    n_anchors: int = 300
    n_nearest: int = 2
    random_state: Any = None

    def _check(self) -> None:
        if self.layers > 2:
            raise InvalidInputError(f"layers must be 1 or 2, got {self.layers}")

    def _learn(self, X: Any, labels: Any, rng: np.random.Generator) -> int:
        self.anchors_ = cluster_centres(X, self.n_anchors, rng)
        square = squared_distances(X, self.anchors_)
        farthest = np.partition(square, self._s - 1, axis=1)[:, self._s - 1]
        self.bandwidth_ = max(float(np.mean(np.sqrt(farthest))) ** 2, _TINY)
        Z = _similarities(square, self._s, self.bandwidth_)
        self.projection_ = graph_projection(Z, -(-self.n_bits // self.layers))
        Y = Z @ self.projection_  # (n, r)
        self.thresholds_ = np.array([second_thresholds(Z, y) for y in Y.T]) if self.layers == 2 else np.zeros((0, 2))
        return min(self.n_bits, self.layers * int(Y.shape[1]))

    @property
    def _s(self) -> int:
        return min(self.n_nearest, len(self.anchors_))

    def _margins(self, X: Any) -> Floats:
        Z = _similarities(squared_distances(X, self.anchors_), self._s, self.bandwidth_)
        Y = np.asarray(Z @ self.projection_)
        if self.layers == 1:
            return Y
        low, high = self.thresholds_.T
        second = np.where(Y > 0, Y - high, low - Y)
        return np.stack([Y, second], axis=2).reshape(len(Y), -1)  # the bits of an eigenvector side by side


def _similarities(square: Floats, s: int, t: float) -> sp.csr_array:
    """Z (n, m) from squared distances to anchors."""
    n, m = square.shape
    nearest = np.argpartition(square, s - 1, axis=1)[:, :s]
    near = np.take_along_axis(square, nearest, axis=1)
    values = np.exp(-(near - near.min(axis=1, keepdims=True)) / t)  # the nearest one's stays above zero
    values /= values.sum(axis=1, keepdims=True)
    return sp.csr_array((values.ravel(), nearest.ravel(), np.arange(0, n * s + 1, s)), shape=(n, m))


def graph_projection(Z: Any, r: int) -> Floats:
    """W (m, at most r), such that Z W are the leading eigenvectors of the anchor graph, of length √n."""
    mass = np.asarray(Z.sum(axis=0)).ravel()  # Λ
    root = np.sqrt(mass)
    inverse = np.divide(1.0, root, out=np.zeros_like(root), where=root > 0)
    M = inverse[:, None] * (Z.T @ Z).toarray() * inverse
    constant = root / np.linalg.norm(root)  # of the eigenvalue one: put below all others
    values, V = np.linalg.eigh(M - 2.0 * np.outer(constant, constant))
    kept = np.flatnonzero(values > 1e-8)[::-1][:r]
    if not kept.size:  # all items are alike
        return np.zeros((len(mass), 1))
    V = V[:, kept] * np.where(V[np.abs(V).argmax(axis=0), np.arange(V.shape[1])] < 0, -1.0, 1.0)[kept]
    return np.asarray(np.sqrt(Z.shape[0]) * inverse[:, None] * V / np.sqrt(values[kept]))


def second_thresholds(Z: Any, y: Floats) -> tuple[float, float]:
    """b⁻ and b⁺ of one eigenvector y (n,): the two numbers of a quadratic problem with one linear condition."""
    positive = (y > 0).astype(np.float64)
    f, E = np.abs(y), np.stack([1.0 - positive, -positive], axis=1)  # f(b) = |y| + E (b⁻, b⁺)
    mass = np.asarray(Z.sum(axis=0)).ravel()
    inverse = np.divide(1.0, mass, out=np.zeros_like(mass), where=mass > 0)
    through, through_f = Z.T @ E, Z.T @ f  # to the anchors
    system = np.zeros((3, 3))
    system[:2, :2] = E.T @ E - through.T @ (inverse[:, None] * through)  # Eᵀ(I − A)E
    system[:2, 2] = system[2, :2] = E.sum(axis=0)
    target = np.append(through.T @ (inverse * through_f) - E.T @ f, -f.sum())
    low, high, _ = np.linalg.lstsq(system, target)[0]
    return float(low), float(high)
