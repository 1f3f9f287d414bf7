"""Who is trained on, who is searched and who asks, in each split of a data set."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ..._arrays import Array, Ints
from ...exceptions import InvalidInputError

__all__ = ["Split", "folds", "split_items"]

UNSEEN_SHARE = 0.27  # of the classes, those never seen in training: 7 of 26, 3 of 10, 4 of 15
QUERY_SHARE = 0.25  # of the items of unseen classes, those that ask


@dataclass(frozen=True)
class Split:
    """Row numbers of the training items, of the database and of the queries; labels that count in the criteria."""

    train: Ints
    database: Ints
    queries: Ints
    labels: Array  # (n,) or (n, L), of all items


def split_items(
    y: Array, protocol: str, seed: int, n_train: int | None, n_test: int | None, drawn_by: str = "cghash"
) -> Split:
    """A random split.

    "seen": as in the paper, the training items are the database, and others ask; each class has its share of both.
    "heldout": the database are items that are neither trained on nor ask.
    "unseen": some classes are left out of training, and their items alone are searched and ask.

    Parameters
    ----------
    y : (n,) labels or (n, L) multi-label indicators
    protocol : "seen", "heldout" or "unseen"
    seed : number of the split
    n_train, n_test : how many training items and queries at most; None: two thirds, and all others
    drawn_by : "scikit-learn": as `train_test_split(X, y, stratify=y, random_state=seed)` parts them, for "seen"

    Examples
    --------
    >>> split = split_items(np.repeat([0, 1], 10), "seen", 0, 12, None)
    >>> len(split.train), len(split.queries), sorted(np.repeat([0, 1], 10)[split.train].tolist())
    (12, 8, [0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1])
    """
    if drawn_by == "scikit-learn":
        return _drawn_elsewhere(y, protocol, seed, n_train, n_test)
    rng = np.random.default_rng([seed, 20130616])
    n = len(y)
    n_train = (2 * n) // 3 if n_train is None else n_train
    if protocol != "unseen":
        if n_train >= n:
            raise InvalidInputError(f"train must leave items to ask, got {n_train} of {n}")
        rest = n - n_train if protocol == "seen" else (n - n_train) // 4
        train, queries = _parts(np.arange(n), y, rng, n_train, rest if n_test is None else n_test)
        others = np.setdiff1d(np.arange(n), np.concatenate([train, queries]))
        if protocol == "heldout" and not len(others):
            raise InvalidInputError(f"train and test must leave a database, got {n_train} and {n_test} of {n}")
        return Split(train, train if protocol == "seen" else others, queries, y)
    hidden, seen, labels = _unseen_classes(y, rng)
    n_queries = int(len(hidden) * QUERY_SHARE)
    queries, database = _parts(
        hidden, y, rng, n_queries if n_test is None else min(n_test, n_queries), min(n_train, len(hidden) - n_queries)
    )
    train, _ = _parts(seen, y, rng, min(n_train, len(seen)), 0)
    return Split(train, database, queries, labels)


def _drawn_elsewhere(y: Array, protocol: str, seed: int, n_train: int | None, n_test: int | None) -> Split:
    from sklearn.model_selection import train_test_split

    if protocol != "seen":
        raise InvalidInputError(f"drawn_by 'scikit-learn' is for the protocol 'seen', got {protocol!r}")
    try:
        train, queries = train_test_split(
            np.arange(len(y)), train_size=n_train, test_size=n_test, stratify=y, random_state=seed
        )
    except ValueError as error:
        raise InvalidInputError(f"train and test must part {len(y)} items by class: {error}") from error
    return Split(train, train, queries, y)


def folds(y: Array, protocol: str, n_folds: int, n_items: int, seed: int) -> Iterator[Split]:
    """Splits of the training items alone, by which parameters are chosen; `y` are their labels.

    Under "unseen" a fold is made of whole classes, as in the protocol itself.
    """
    rng = np.random.default_rng([seed, 20130617])
    some, _ = _parts(np.arange(len(y)), y, rng, min(n_items, len(y)), 0)
    if protocol != "unseen":
        for number in range(n_folds):
            ask = np.zeros(len(some), dtype=bool)
            ask[number::n_folds] = True  # the rows come class by class: each fold has its share of each
            rest = some[~ask]
            train, database = (rest, rest) if protocol == "seen" else (rest[::2], rest[1::2])
            yield Split(train, database, some[ask], y)
        return
    for number in range(n_folds):
        hidden, seen, labels = _unseen_classes(y[some], np.random.default_rng([seed, number]))
        ask = np.zeros(len(hidden), dtype=bool)
        ask[:: round(1 / QUERY_SHARE)] = True
        everywhere = np.zeros(y.shape, dtype=y.dtype)
        everywhere[some] = labels
        yield Split(some[seen], some[hidden[~ask]], some[hidden[ask]], everywhere)


def _unseen_classes(y: Array, rng: np.random.Generator) -> tuple[Ints, Ints, Array]:
    """Items of the classes left out, those of the others, and labels of the former alone."""
    multiple = y.ndim == 2
    classes = np.arange(y.shape[1]) if multiple else np.unique(y)
    n_hidden = max(2, round(UNSEEN_SHARE * len(classes)))
    if len(classes) - n_hidden < 2:
        raise InvalidInputError(f"the protocol 'unseen' needs 4 classes or more, got {len(classes)}")
    hidden = rng.permutation(classes)[:n_hidden]
    if not multiple:
        left_out = np.isin(y, hidden)
        return np.flatnonzero(left_out), np.flatnonzero(~left_out), y
    labels = np.zeros_like(y)
    labels[:, hidden] = y[:, hidden]
    hides = np.asarray(labels.any(axis=1))
    return np.flatnonzero(hides), np.flatnonzero(~hides & y.any(axis=1)), labels


def _parts(items: Ints, y: Array, rng: np.random.Generator, first: int, second: int) -> tuple[Ints, Ints]:
    """Two disjoint draws of these items, class by class, each class by its share; items of several labels at random."""
    if first + second > len(items):
        raise InvalidInputError(f"train and test must be at most {len(items)} items together, got {first + second}")
    order = rng.permutation(items)
    classes = y[order] if y.ndim == 1 else np.zeros(len(order), dtype=np.int64)
    _, number, sizes = np.unique(classes, return_inverse=True, return_counts=True)
    by_class = np.argsort(number, kind="stable")
    # an item's place within its class, from 0 to 1: the lowest places are the first draw, the next the second
    place = np.empty(len(order))
    starts = np.cumsum(sizes) - sizes
    place[by_class] = (np.arange(len(order)) - starts[number[by_class]] + 0.5) / sizes[number[by_class]]
    chosen = np.argsort(place, kind="stable")
    return tuple(  # type: ignore[return-value]
        order[part[np.argsort(number[part], kind="stable")]]
        for part in (chosen[:first], chosen[first : first + second])
    )
