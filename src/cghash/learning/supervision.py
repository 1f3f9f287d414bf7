"""Triplets as given, from labels or from Euclidean neighbours: who is near and who is far, for each item."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from .._arrays import Array, Ints
from .._tensors import in_host_memory
from ..exceptions import InvalidInputError, NothingToLearnError
from .backend import Nearest
from .cpu.neighbors import nearest as nearest_in_memory
from .triplets import TripletSet, from_lists, from_rows, join

SAMPLINGS = ("mixed", "neighbors", "classes")
_BLOCK = 1 << 24  # relevance entries at a time
_LABELS = "y must be labels (n,) or an indicator matrix (n, L)"
_SEVERAL = (
    "; where items have several labels, sklearn.preprocessing.MultiLabelBinarizer().fit_transform(y) is the matrix"
)


def comparisons_of(
    X: Any,
    y: Any,
    triplets: Any,
    weights: Any,
    sampling: str | None,
    n_neighbors: int,
    rng: np.random.Generator,
    n_threads: int,
    nearest: Nearest = nearest_in_memory,
) -> TripletSet:
    """The triplets of a fit: those given, as rows (t, 3) or a set; else by labels y; else by Euclidean neighbours."""
    n = X.shape[0]
    if triplets is not None:
        if y is not None:
            raise InvalidInputError("y and triplets must not both be given: labels make triplets of their own")
        return (
            _checked_set(triplets, n, weights) if isinstance(triplets, TripletSet) else from_rows(triplets, n, weights)
        )
    if weights is not None:
        raise InvalidInputError("triplet_weights must come with triplets")
    if y is None:
        return from_neighbors(X, sampling or "classes", n_neighbors, rng, n_threads, nearest)
    relevance = relevance_of(in_host_memory(y))
    if relevance.shape[0] != n:
        raise InvalidInputError(f"y must have one entry for each of {n} items, got {relevance.shape[0]}")
    return from_labels(X, relevance, sampling or "mixed", n_neighbors, rng, n_threads, nearest)


def _checked_set(triplets: TripletSet, n_items: int, weights: Any) -> TripletSet:
    if weights is not None:
        raise InvalidInputError("triplet_weights must come with rows of triplets: a TripletSet has weights of its own")
    if triplets.n_items != n_items:
        raise InvalidInputError(f"triplets must be of the {n_items} items of X, got a set over {triplets.n_items}")
    return triplets


def from_labels(
    X: Any,
    relevance: Any,
    sampling: str,
    n_neighbors: int,
    rng: np.random.Generator,
    n_threads: int,
    nearest: Nearest = nearest_in_memory,
) -> TripletSet:
    """Product blocks from labels (n,) or a multi-label indicator matrix (n, L).

    `neighbors`: the K nearest relevant × the K nearest irrelevant items, as in the paper. `classes`: K drawn from all
    relevant × K drawn from all irrelevant items. `mixed`: both.
    """
    check_learnable(relevance)
    n = X.shape[0]
    sets = []
    if sampling in ("neighbors", "mixed"):
        near, far = nearest(X, relevance, n_neighbors, n_neighbors, n_threads)
        sets.append(from_lists(near, far, n))
    if sampling in ("classes", "mixed"):
        near, far = draw(relevance, n_neighbors, rng)
        sets.append(from_lists(near, far, n))
    return join(sets)


def from_neighbors(
    X: Any,
    sampling: str,
    n_neighbors: int,
    rng: np.random.Generator,
    n_threads: int,
    nearest: Nearest = nearest_in_memory,
) -> TripletSet:
    """Product blocks without labels: each item's K nearest items against farther ones.

    The farther ones are the next K (`neighbors`), K drawn from all the rest (`classes`), or both (`mixed`).
    """
    n = X.shape[0]
    if n < 3:
        raise NothingToLearnError(f"X must have at least 3 items to compare, got {n}")
    k = min(n_neighbors, (n - 1) // 2)
    near, _ = nearest(X, None, 2 * k, 0, n_threads)
    near, next_ones = near[:, :k], near[:, k:]
    sets = []
    if sampling in ("neighbors", "mixed"):
        sets.append(from_lists(near, next_ones, n))
    if sampling in ("classes", "mixed"):
        taken = np.sort(np.concatenate([np.arange(n)[:, None], near], axis=1), axis=1)
        sets.append(from_lists(near, _skip(draw_distinct(rng, n, n - k - 1, k), taken), n))
    return join(sets)


def check_learnable(relevance: Any) -> None:
    """Say clearly when labels hold no comparison at all."""
    if relevance.ndim == 1:
        sizes = np.bincount(relevance)
        if np.count_nonzero(sizes) < 2:
            raise NothingToLearnError("y must hold at least two classes: with one class no item is irrelevant")
        if sizes.max() < 2:
            raise NothingToLearnError("y must hold a class of at least two items: no item has a relevant one")


def relevance_of(y: Any) -> Any:
    """Class numbers (n,) from labels of any kind, or the indicator matrix (n, L) of a multi-label problem."""
    y = sp.csr_matrix(y) if sp.issparse(y) else _as_array(y)
    if y.ndim not in (1, 2) or y.shape[-1] == 0:
        raise InvalidInputError(f"{_LABELS}, got shape {y.shape}")
    if y.ndim == 2 and y.shape[1] != 1:
        values = y.data if sp.issparse(y) else y
        if values.dtype.kind not in "biuf" or not np.isin(values, (0, 1)).all():
            hint = "; comparisons (anchor, near, far) go to triplets=" if y.shape[1] == 3 else ""
            raise InvalidInputError(f"{_LABELS} of 0 and 1, got other values{hint}")
        return y.astype(np.int8)
    from sklearn.utils.multiclass import check_classification_targets

    labels = (y.toarray() if sp.issparse(y) else y).ravel()
    _check_there(labels)
    try:
        check_classification_targets(labels)
    except ValueError as error:
        said = str(error).partition(". Maybe")[0]
        hint = f" ({labels[0]:.6g}, …); make classes of the numbers (numpy.digitize)" if "continuous" in said else ""
        raise InvalidInputError(f"{_LABELS}: {said}{hint}") from error
    return np.unique(labels, return_inverse=True)[1].astype(np.int64)


def _as_array(y: Any) -> Array:
    """Labels as an array; sets of labels are told how to become one."""
    try:
        array = np.asarray(y)
    except ValueError as error:  # lists of different lengths
        raise InvalidInputError(f"{_LABELS}, got lists of different lengths{_SEVERAL}") from error
    if array.dtype == object and array.size and isinstance(array.flat[0], set | frozenset | list | tuple):
        raise InvalidInputError(f"{_LABELS}, got a {type(array.flat[0]).__name__} for each item{_SEVERAL}")
    return array


def _check_there(labels: Array) -> None:
    if labels.dtype != object:
        return
    missing = [row for row, label in enumerate(labels) if label is None or type(label).__name__ == "NAType"]
    if missing:
        raise InvalidInputError(
            f"{_LABELS}, got no label ({labels[missing[0]]}) for {len(missing)} of {len(labels)} items, the first is "
            f"row {missing[0]}; leave these items out"
        )


def draw(relevance: Any, k: int, rng: np.random.Generator) -> tuple[Ints, Ints]:
    """For each item k different relevant and k different irrelevant items, uniformly; −1 where there are fewer."""
    return _draw_by_class(relevance, k, rng) if relevance.ndim == 1 else _draw_by_mask(relevance, k, rng)


def _draw_by_class(labels: Ints, k: int, rng: np.random.Generator) -> tuple[Ints, Ints]:
    n = len(labels)
    order = np.argsort(labels, kind="stable")  # items class after class
    sizes = np.bincount(labels)
    starts = np.cumsum(sizes) - sizes
    near, far = np.full((n, k), -1, dtype=np.int64), np.full((n, k), -1, dtype=np.int64)
    for start, size in zip(starts.tolist(), sizes.tolist(), strict=True):
        members = order[start : start + size]
        own = np.arange(size)[:, None]
        picks = draw_distinct(rng, size, size - 1, k)
        near[members, : picks.shape[1]] = members[picks + (picks >= own)] if picks.size else -1
        picks = draw_distinct(rng, size, n - size, k)
        far[members, : picks.shape[1]] = order[picks + size * (picks >= start)] if picks.size else -1
    return near, far


def _draw_by_mask(indicator: Any, k: int, rng: np.random.Generator) -> tuple[Ints, Ints]:
    n = indicator.shape[0]
    near, far = np.full((n, k), -1, dtype=np.int64), np.full((n, k), -1, dtype=np.int64)
    step = max(1, _BLOCK // n)
    counts, others = indicator.astype(np.int32), indicator.T.astype(np.int32)
    for first in range(0, n, step):
        rows = np.arange(first, min(first + step, n))
        shared = counts[rows] @ others
        relevant = np.asarray(shared.todense() if sp.issparse(shared) else shared) > 0
        keys = rng.random(relevant.shape)
        keys[np.arange(len(rows)), rows] = np.inf
        for out, wanted in ((near, relevant), (far, ~relevant)):
            ranked = np.where(wanted, keys, np.inf)
            best = np.argpartition(ranked, min(k, n - 1) - 1, axis=1)[:, :k]
            found = np.isfinite(np.take_along_axis(ranked, best, axis=1))
            out[rows, : best.shape[1]] = np.where(found, best, -1)
    return near, far


def draw_distinct(rng: np.random.Generator, n_rows: int, n_values: int, k: int) -> Ints:
    """(n_rows, min(k, n_values)) different numbers below n_values in each row, uniformly (Floyd's algorithm)."""
    k = max(0, min(k, n_values))
    out = np.full((n_rows, k), -1, dtype=np.int64)
    for i in range(k):
        last = n_values - k + i
        pick = rng.integers(0, last + 1, size=n_rows)
        seen = np.any(out[:, :i] == pick[:, None], axis=1)
        out[:, i] = np.where(seen, last, pick)
    return out


def _skip(picks: Ints, taken: Ints) -> Ints:
    """Numbers of the items that remain after leaving out `taken` (n, t), sorted in each row."""
    for column in range(taken.shape[1]):
        picks = picks + (picks >= taken[:, column : column + 1])
    return picks
