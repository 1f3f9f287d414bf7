"""Neighbours of items by their codes, as scikit-learn has them: X goes in, neighbours or labels come out."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils import column_or_1d, get_tags
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from .._arrays import Array, Bools, Floats, Ints
from .._validation import check_choice, check_jobs, check_whole
from ..exceptions import InvalidInputError
from .weighted_hamming import WeightedHammingIndex

__all__ = ["HashNeighbors", "HashNeighborsClassifier"]


MODES = ("connectivity", "distance")
VOTES = ("uniform", "distance")


class HashNeighbors(BaseEstimator):  # type: ignore[misc]
    """The nearest training items under the distance of a hasher's codes; order (distance, row number), exact.

    `fit` fits a clone of the hasher. One that is fitted already is kept as it is when it comes as
    `sklearn.frozen.FrozenEstimator(hasher)`; its codes alone are then indexed.

    Parameters
    ----------
    hasher : estimator with `fit`, `encode`, `n_bits_` and, if its bits are weighted, `weights_`; default=None
        None is `CGHash()`.
    n_neighbors : int, default=5
        Neighbours that are asked for where a call does not say how many.
    n_jobs : int, default=None
        Threads of the search; None and -1 are all cores.

    Attributes
    ----------
    hasher_ : the fitted hasher
    index_ : WeightedHammingIndex of the training items, by row number
    n_samples_fit_ : int

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from cghash import CGHash
    >>> X, y = load_digits(return_X_y=True)
    >>> neighbors = HashNeighbors(CGHash(16, random_state=0), n_neighbors=3).fit(X[:300], y[:300])
    >>> distances, rows = neighbors.kneighbors(X[300:])
    >>> rows.shape
    (1497, 3)
    """

    def __init__(self, hasher: Any = None, n_neighbors: int = 5, *, n_jobs: int | None = None) -> None:
        self.hasher = hasher
        self.n_neighbors = n_neighbors
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit the hasher to X (n, d), and to y as it takes it, and index the codes of X."""
        check_whole(self.n_neighbors, 1, "n_neighbors")
        check_jobs(self.n_jobs)
        validate_data(self, X, y, skip_check_array=True)  # the hasher checks X
        self.hasher_ = clone(self._hasher()).fit(X, y)
        self._index(self.hasher_.encode(X))
        return self

    def kneighbors(
        self, X: Any = None, n_neighbors: int | None = None, return_distance: bool = True
    ) -> Ints | tuple[Floats, Ints]:
        """The nearest training items of each item.

        Parameters
        ----------
        X : (q, d) items; None asks for the neighbours of the training items, which do not count themselves
        n_neighbors : int, optional; default: as constructed
        return_distance : bool, default=True

        Returns
        -------
        distances : (q, n_neighbors) float64, ascending; only if `return_distance`
        rows : (q, n_neighbors) int64 row numbers, ascending among equal distances
        """
        k = check_whole(self.n_neighbors if n_neighbors is None else n_neighbors, 1, "n_neighbors")
        codes = self._codes(X)
        most = self.n_samples_fit_ - (X is None)
        if k > most:
            raise InvalidInputError(f"n_neighbors must be at most {most}, the items to be found, got {k}")
        distances, rows = self.index_.search(codes, k + (X is None))
        if X is None:
            keep = _others(rows)
            distances, rows = distances[keep].reshape(-1, k), rows[keep].reshape(-1, k)
        return (distances, rows) if return_distance else rows

    def kneighbors_graph(self, X: Any = None, n_neighbors: int | None = None, mode: str = "connectivity") -> csr_array:
        """The neighbours of each item as a (q, n) CSR array of 1 ("connectivity") or of distances ("distance")."""
        check_choice(mode, MODES, "mode")
        distances, rows = self.kneighbors(X, n_neighbors)
        values = distances.ravel() if mode == "distance" else np.ones(rows.size)
        offsets = np.arange(len(rows) + 1) * rows.shape[1]
        return csr_array((values, rows.ravel(), offsets), shape=(len(rows), self.n_samples_fit_))

    def radius_neighbors(
        self, X: Any = None, radius: float = 1.0, return_distance: bool = True
    ) -> NDArray[np.object_] | tuple[NDArray[np.object_], NDArray[np.object_]]:
        """All training items within a distance of each item.

        Parameters
        ----------
        X : (q, d) items; None asks for the neighbours of the training items, which do not count themselves
        radius : float, default=1.0
        return_distance : bool, default=True

        Returns
        -------
        distances : (q,) arrays of float64, ascending; only if `return_distance`
        rows : (q,) arrays of int64 row numbers, ascending among equal distances
        """
        codes = self._codes(X)
        offsets, distances, rows = self.index_.range_search(codes, radius)
        if X is None:
            query = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
            offsets = offsets - np.arange(len(offsets))  # one less for each: itself
            distances, rows = distances[rows != query], rows[rows != query]
        return (_split(distances, offsets), _split(rows, offsets)) if return_distance else _split(rows, offsets)

    # Within

    def _hasher(self) -> Any:
        from ..hasher import CGHash  # late: it imports this package

        hasher = CGHash() if self.hasher is None else self.hasher
        if not (hasattr(hasher, "fit") and hasattr(hasher, "encode")):
            raise InvalidInputError(f"hasher must be an estimator with fit and encode, got {hasher!r}")
        return hasher

    def _index(self, codes: NDArray[np.uint8]) -> None:
        weights = getattr(self.hasher_, "weights_", None)
        self.index_ = WeightedHammingIndex(self.hasher_.n_bits_, weights, n_jobs=self.n_jobs)
        self.index_.add(codes)
        self.n_samples_fit_ = len(codes)

    def _codes(self, X: Any) -> NDArray[np.uint8]:
        check_is_fitted(self)
        if X is None:
            return self.index_.reconstruct(np.arange(self.n_samples_fit_))
        return self.hasher_.encode(X)  # type: ignore[no-any-return]

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "index_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = get_tags(self._hasher()).input_tags.sparse
        return tags


class HashNeighborsClassifier(ClassifierMixin, HashNeighbors):  # type: ignore[misc]
    """A vote of the nearest training items under the distance of a hasher's codes.

    Of labels with equally many votes, the one with the nearest item wins; `predict_proba` raises its share to the next
    float64, so that the largest share is always that of the label which `predict` returns.

    Parameters
    ----------
    hasher : as for `HashNeighbors`
    n_neighbors : int, default=5
        How many vote.
    weights : {"uniform", "distance"}, default="uniform"
        What a vote counts: 1, or 1/distance. Where items are at distance 0, only they vote.
    n_jobs : int, default=None
        Threads of the search; None and -1 are all cores.

    Attributes
    ----------
    classes_ : (L,) the labels
    hasher_, index_, n_samples_fit_ : as for `HashNeighbors`

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from cghash import CGHash
    >>> X, y = load_digits(return_X_y=True)
    >>> model = HashNeighborsClassifier(CGHash(16, random_state=0), n_neighbors=3).fit(X[:300], y[:300])
    >>> model.score(X[300:], y[300:]) > 0.8
    True
    """

    def __init__(
        self,
        hasher: Any = None,
        n_neighbors: int = 5,
        *,
        weights: str = "uniform",
        n_jobs: int | None = None,
    ) -> None:
        super().__init__(hasher, n_neighbors, n_jobs=n_jobs)
        self.weights = weights

    def fit(self, X: Any, y: Any) -> Self:  # type: ignore[override]
        """Fit the hasher to X (n, d) and labels y (n,), and index the codes of X."""
        check_choice(self.weights, VOTES, "weights")
        validate_data(self, X, y, skip_check_array=True)
        labels = column_or_1d(y, warn=True)
        check_classification_targets(labels)
        super().fit(X, labels)
        self.classes_, self._labels = np.unique(labels, return_inverse=True)
        return self

    def predict(self, X: Any) -> Array:
        """The label (q,) that wins the vote of each item's neighbours."""
        winners = _winners(*self._vote(X))
        return self.classes_[winners]

    def predict_proba(self, X: Any) -> Floats:
        """Each label's share (q, L) of the votes; columns as in `classes_`."""
        labels, votes = self._vote(X)
        shares: Floats = votes / votes.sum(axis=1, keepdims=True)
        tied = np.sum(shares == shares.max(axis=1, keepdims=True), axis=1) > 1
        winner = tied, _winners(labels, votes)[tied]
        shares[winner] = np.nextafter(shares[winner], 1.0)
        return shares

    def _vote(self, X: Any) -> tuple[Ints, Floats]:
        """The neighbours' labels (q, k) as numbers, nearest first, and the votes (q, L) of each label."""
        distances, rows = self.kneighbors(X)
        labels = self._labels[rows]
        votes = np.zeros((len(rows), len(self.classes_)))
        np.add.at(votes, (np.arange(len(rows))[:, None], labels), self._counts(distances))
        return labels, votes

    def _counts(self, distances: Floats) -> Floats:
        if check_choice(self.weights, VOTES, "weights") == "uniform":
            return np.ones(distances.shape)
        zero = distances == 0
        some = zero.any(axis=1, keepdims=True)
        return np.where(some, zero, 1.0 / np.where(zero, 1.0, distances))


def _winners(labels: Ints, votes: Floats) -> Ints:
    """The label (q,) with the most votes, of several the one that comes first among the neighbours (q, k)."""
    own = np.take_along_axis(votes, labels, axis=1)  # (q, k)
    first = np.argmax(own == votes.max(axis=1, keepdims=True), axis=1)
    winners: Ints = labels[np.arange(len(labels)), first]
    return winners


def _others(rows: Ints) -> Bools:
    """Which of the k + 1 nearest of each training item to keep: all but itself, or, behind equal codes, the last."""
    keep: Bools = rows != np.arange(len(rows))[:, None]
    keep[keep.all(axis=1), -1] = False
    return keep


def _split(values: Array, offsets: Ints) -> NDArray[np.object_]:
    parts = np.empty(len(offsets) - 1, dtype=object)
    for i in range(len(parts)):
        parts[i] = values[offsets[i] : offsets[i + 1]]
    return parts
