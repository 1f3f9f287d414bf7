"""Two codes that learn nothing from comparisons: what learned codes must beat."""

from __future__ import annotations

from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["RandomProjections", "SignOfPCA"]

Bits = NDArray[np.uint8]
Floats = NDArray[np.float64]


class _CentredProjections:
    """Bits [(x − mean)·direction > 0], unweighted."""

    mean_: Floats  # (d,)
    directions_: Floats  # (ℓ, d)

    def __init__(self, n_bits: int, random_state: int = 0) -> None:
        self.n_bits, self.random_state = n_bits, random_state

    def fit(self, X: ArrayLike) -> Self:
        items = np.asarray(X, dtype=np.float64)
        self.mean_ = items.mean(axis=0)
        self.directions_ = self._directions(items - self.mean_)
        return self

    def transform(self, X: ArrayLike) -> Bits:
        """The bits (n, ℓ) of items, as 0 and 1."""
        projected = (np.asarray(X, dtype=np.float64) - self.mean_) @ self.directions_.T
        return (projected > 0).astype(np.uint8)

    @property
    def n_bits_(self) -> int:
        return len(self.directions_)

    def _directions(self, centred: Floats) -> Floats:
        raise NotImplementedError


class SignOfPCA(_CentredProjections):
    """One bit for each of the leading principal components; fewer than asked for where the data have fewer.

    Examples
    --------
    >>> SignOfPCA(2).fit([[-2.0, 0.0], [-1.0, 0.0], [3.0, 0.0]]).transform([[5.0, 9.0]])
    array([[1]], dtype=uint8)
    """

    def _directions(self, centred: Floats) -> Floats:
        _, lengths, components = np.linalg.svd(centred, full_matrices=False)
        rank = int(np.sum(lengths > lengths[0] * max(centred.shape) * np.finfo(np.float64).eps))
        leading = components[: min(self.n_bits, rank)]
        largest = np.abs(leading).argmax(axis=1)  # a component's sign is free: its largest entry is positive
        return np.asarray(leading * np.sign(leading[np.arange(len(leading)), largest])[:, None])


class RandomProjections(_CentredProjections):
    """One bit for each of `n_bits` directions drawn from a normal distribution.

    Examples
    --------
    >>> RandomProjections(16).fit([[0.0, 1.0], [1.0, 0.0]]).transform([[5.0, 9.0]]).shape
    (1, 16)
    """

    def _directions(self, centred: Floats) -> Floats:
        rng = np.random.default_rng(self.random_state)
        return rng.standard_normal((self.n_bits, centred.shape[1]))
