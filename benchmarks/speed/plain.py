"""The yardstick: the same steps as a plain NumPy/SciPy program would take them.

Triplets are written out, the columns are a float64 matrix over triplets, pricing sums over triplets, and scikit-learn
finds the neighbours. Settings are the paper's: squared hinge, l1, linear functions by the tanh relaxation.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize
from sklearn.neighbors import NearestNeighbors


def neighbor_triplets(X: np.ndarray, y: np.ndarray, K: int) -> np.ndarray:
    """(n·K², 3): the K nearest of the same label × the K nearest of others, class by class."""
    near, far = np.empty((len(X), K), dtype=int), np.empty((len(X), K), dtype=int)
    for label in np.unique(y):
        inside, outside = np.flatnonzero(y == label), np.flatnonzero(y != label)
        found = NearestNeighbors(n_neighbors=K + 1, algorithm="brute").fit(X[inside]).kneighbors(X[inside])[1]
        near[inside] = inside[found[:, 1:]]
        found = NearestNeighbors(n_neighbors=K, algorithm="brute").fit(X[outside]).kneighbors(X[inside])[1]
        far[inside] = outside[found]
    anchors = np.repeat(np.arange(len(X)), K * K)
    return np.stack([anchors, np.repeat(near, K, axis=1).ravel(), np.tile(far, (1, K)).ravel()], axis=1)


def price(Z: np.ndarray, triplets: np.ndarray, u: np.ndarray, rng: np.random.Generator, max_iter: int) -> np.ndarray:
    """v with b behind, by L-BFGS on the relaxed gain from the best of 16 draws."""
    a, p, q = triplets.T

    def relaxed(x: np.ndarray) -> tuple[float, np.ndarray]:
        t = np.tanh(Z @ x[:-1] + x[-1])
        far, near = t[a] - t[q], t[a] - t[p]
        g = np.bincount(a, 2 * u * (far - near), len(Z))
        g += np.bincount(p, 2 * u * near, len(Z)) - np.bincount(q, 2 * u * far, len(Z))
        g *= 1 - t * t
        return -float(u @ (far**2 - near**2)), -np.append(Z.T @ g, g.sum())

    def of_distance(x: np.ndarray) -> tuple[float, np.ndarray]:
        length = np.linalg.norm(x[:-1])
        value, gradient = relaxed(12 * x / length)
        gradient *= 12 / length
        gradient[:-1] -= (gradient @ x) * x[:-1] / length**2
        return value, gradient

    draws = [np.append(rng.standard_normal(Z.shape[1]), rng.uniform(-1, 1)) for _ in range(16)]
    start = min(draws, key=lambda x: relaxed(x)[0])
    start /= np.linalg.norm(start[:-1])
    return minimize(of_distance, start, jac=True, method="L-BFGS-B", options={"maxiter": max_iter}).x


def master(A: np.ndarray, C: float, w0: np.ndarray, tol: float) -> np.ndarray:
    """Weights by L-BFGS-B on the matrix of columns, to a relative gap."""
    state = {}

    def objective(w: np.ndarray) -> tuple[float, np.ndarray]:
        slack = np.maximum(1 - A @ w, 0)
        loss, gradient = float(np.mean(slack**2)), -2 * (A.T @ slack) / len(A)
        scale = min(1.0, C / max(1e-300, float(np.max(-gradient))))
        state["gap"] = 1 - scale * (loss - gradient @ w) / (loss + C * w.sum())
        return loss + C * w.sum(), gradient + C

    def stop(_: np.ndarray) -> None:
        if state["gap"] <= tol:
            raise StopIteration

    bounds = [(0, None)] * len(w0)
    return minimize(objective, w0, jac=True, method="L-BFGS-B", bounds=bounds, callback=stop).x


def fit(X: np.ndarray, y: np.ndarray, n_bits: int, K: int, C: float, max_iter: int = 30, tol: float = 1e-5) -> float:
    """The whole fit; returns the share of triplets satisfied."""
    triplets = neighbor_triplets(X, y, K)
    a, p, q = triplets.T
    span = np.ptp(X, axis=0)
    Z = (X - X.mean(axis=0)) / np.where(span > 0, span, np.inf)
    Z /= np.sqrt(np.mean(np.sum(Z**2, axis=1)))
    A, w, u = np.zeros((len(triplets), 0)), np.zeros(0), np.full(len(triplets), 2.0)
    for j in range(n_bits):
        x = price(Z, triplets, u / len(triplets), np.random.default_rng([0, j]), max_iter)
        h = Z @ x[:-1] + x[-1] > 0
        column = (h[a] != h[q]).astype(float) - (h[a] != h[p])
        A = np.column_stack([A, column])
        w = master(A, C, np.append(w, 0.0), tol)
        u = 2 * np.maximum(1 - A @ w, 0)
    return float(np.mean(A @ w > 0))
