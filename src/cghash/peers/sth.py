"""STH: self-taught hashing.

Zhang, Wang, Cai, Lu: Self-taught hashing for fast similarity search. SIGIR 2010. Its first stage finds codes of the
training items: the eigenvectors of L v = λ D v, L = D − W the Laplacian of the k-nearest-neighbour graph and D its
degrees, in increasing λ without the constant one, each cut at its median. Its second stage learns a linear support
vector machine for each bit, which answers for items not seen.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from .._arrays import Bools, Floats
from .base import Peer, one_of, positive, whole
from .projections import lengths

_NUMBERS = 1 << 22  # of edges' features at a time: 32 MB
_BATCH = 64  # eigenvectors are computed so many at a time: shorter fits find the same ones
_TOLERANCE = 0.1  # liblinear's for its dual problem: smaller ones moved criteria by at most 0.003, measured


@dataclass(eq=False, repr=False)
class STH(Peer):
    """Self-taught hashing: a Laplacian eigenmap, cut at the medians, and a linear support vector machine a bit.

    Parameters
    ----------
    n_bits : int, default=64
    n_neighbors : int, default=25
        Neighbours of an item in the graph.
    weights : {"cosine", "heat"}, default="cosine"
        Weight of an edge: the cosine of the two items, or exp(−‖x − y‖²/σ²), σ² the mean over all edges. Neighbours
        are the items of largest cosine or least distance; an item of zeros has no cosine, and no neighbours then.
    C : float, default=1.0
        Of the support vector machines, for items scaled to a mean squared length of one.

    Attributes
    ----------
    coef_ : (n_bits_, d) normals of the hyperplanes
    intercept_ : (n_bits_,)

    Examples
    --------
    >>> X = [[0.0, 1.0], [0.1, 1.0], [0.2, 1.0], [1.0, 0.2], [1.0, 0.1], [1.0, 0.0]]
    >>> STH(1, n_neighbors=3).fit_transform(X).ravel().tolist()
    [1, 1, 1, 0, 0, 0]
    """

    prefixes = True
    checks: ClassVar = {"n_neighbors": whole(1), "weights": one_of("cosine", "heat"), "C": positive}

    n_bits: int = 64
    _: KW_ONLY
    n_neighbors: int = 25
    weights: str = "cosine"
    C: float = 1.0

    def _learn(self, X: Any, labels: Any, rng: np.random.Generator) -> int:
        graph = neighbor_graph(X, self.n_neighbors, self.weights)
        targets = median_bits(eigenmap(graph, min(self.n_bits, len(X) - 1)))
        self.coef_, self.intercept_ = _machines(X, targets, self.C)
        return len(self.coef_)

    def _margins(self, X: Any) -> Floats:
        return np.asarray(X @ self.coef_.T + self.intercept_)

    def _shares(self, margins: Floats) -> Floats:
        return margins / lengths(self.coef_)[: self.n_bits_]


def neighbor_graph(X: Any, k: int, weights: str) -> sp.csr_matrix:
    """The symmetric matrix W (n, n) of edge weights: an edge where either item is near the other.

    Examples
    --------
    >>> neighbor_graph(np.array([[1.0, 0.0], [1.0, 0.0], [0.6, 0.8]]), 1, "cosine").toarray().round(2).tolist()
    [[0.0, 1.0, 0.6], [1.0, 0.0, 0.0], [0.6, 0.0, 0.0]]
    """
    from ..learning.cpu.neighbors import nearest

    n, sizes = len(X), np.abs(X).max(axis=1, keepdims=True)
    if weights == "cosine":
        joined = np.flatnonzero(sizes)  # (a,) a zero item would be near to all, but has no cosine with any
        A = X[joined] / sizes[joined]
        A = A / np.linalg.norm(A, axis=1, keepdims=True)  # nearest at length one: of the largest cosine
    else:
        joined, A = np.arange(n), X / (float(sizes.max()) or 1.0)
    near, _ = nearest(A, None, max(min(k, len(A) - 1), 0), 0, 1)
    rows, others = np.repeat(np.arange(len(A)), near.shape[1]), near.ravel()
    if weights == "cosine":
        values = np.maximum(_over_edges(lambda a, b: a * b, A, rows, others), 0.0)
    else:
        square = _over_edges(lambda a, b: (a - b) ** 2, A, rows, others)
        values = np.exp(-square / max(float(square.mean()), np.finfo(np.float64).tiny))
    directed = sp.csr_matrix((values, (joined[rows], joined[others])), shape=(n, n))
    return sp.csr_matrix(directed.maximum(directed.T))


def _over_edges(compute: Callable[[Any, Any], Any], A: Any, rows: Any, others: Any) -> Floats:
    """Sums over features of a product or difference of the two items of each edge, some edges at a time."""
    step = max(1, _NUMBERS // A.shape[1])
    parts = (slice(first, first + step) for first in range(0, max(len(rows), 1), step))
    return np.concatenate([compute(A[rows[part]], A[others[part]]).sum(axis=1, dtype=np.float64) for part in parts])


def eigenmap(W: Any, m: int) -> Floats:
    """The m eigenvectors (n, m) of L v = λ D v with the least λ, after the constant one."""
    degree = np.asarray(W.sum(axis=1)).ravel()
    root = np.sqrt(degree)
    inverse = np.divide(1.0, root, out=np.zeros_like(root), where=root > 0)
    # D^-1/2 W D^-1/2 has the eigenvalues 1 − λ ≥ −1; the constant eigenvector is put below them
    scaled = sp.diags_array(inverse) @ W @ sp.diags_array(inverse)
    constant = root / max(float(np.linalg.norm(root)), np.finfo(np.float64).tiny)
    n = len(root)
    count = -(-m // _BATCH) * _BATCH
    if n <= 5 * count:
        vectors = np.linalg.eigh(scaled.toarray() - 3.0 * np.outer(constant, constant))[1][:, ::-1][:, :m]
    else:
        from scipy.sparse.linalg import LinearOperator, eigsh

        deflated = LinearOperator((n, n), lambda v: scaled @ v - 3.0 * constant * (constant @ v), dtype=np.float64)
        start = np.random.default_rng(0).standard_normal(n)  # it decides where eigenvalues coincide, and there alone
        values, vectors = eigsh(deflated, count, which="LA", v0=start, ncv=3 * count)
        vectors = vectors[:, np.argsort(-values, kind="stable")][:, :m]
    vectors = inverse[:, None] * vectors
    largest = vectors[np.abs(vectors).argmax(axis=0), np.arange(m)]
    return np.asarray(vectors * np.where(largest < 0, -1.0, 1.0))


def median_bits(vectors: Floats) -> Bools:
    """Whether each value is above the median of its column; at least the median, where none is above."""
    middle = np.median(vectors, axis=0)
    above = vectors > middle
    return np.asarray(np.where(above.any(axis=0), above, vectors >= middle))


def _machines(X: Any, targets: Bools, C: float) -> tuple[Floats, Floats]:
    """Coefficients (m, d) and intercepts (m,) of a support vector machine for each column of bits (n, m)."""
    from sklearn.svm import LinearSVC

    # liblinear passes over zeros: items that are mostly zeros stay where they are
    mean = X.mean(axis=0, dtype=np.float64) if np.count_nonzero(X) > X.size / 2 else np.zeros(X.shape[1])
    size = float(np.sqrt(np.mean(np.sum((X - mean) ** 2, axis=1)))) or 1.0
    A = (X - mean) / size
    coef: list[Floats] = []
    intercept: list[float] = []
    for bits in targets.T:
        if bits.all() or not bits.any():
            v, b = np.zeros(X.shape[1]), 1.0 if bits.all() else -1.0
        else:
            machine = LinearSVC(C=C, dual=True, tol=_TOLERANCE, random_state=0).fit(A, bits)
            v, b = machine.coef_[0] / size, float(machine.intercept_[0])
        coef.append(v)
        intercept.append(b - float(v @ mean))
    return np.array(coef), np.array(intercept)
