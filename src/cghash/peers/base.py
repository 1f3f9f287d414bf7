"""What the peers share: the face of CGHash, labels as they need them, and model files."""

from __future__ import annotations

import os
import warnings
from abc import abstractmethod
from collections.abc import Callable
from copy import copy
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted
from threadpoolctl import threadpool_limits

from .. import _validation as check
from .._arrays import Bools, Floats
from .._items import validated_items
from ..estimator import MOST_BITS, CodeEstimator
from ..exceptions import FewerBitsWarning, InvalidInputError
from ..learning.supervision import check_learnable, draw, relevance_of

_DRAWN = 10  # triplets an item that `score` draws

# What a parameter may be, for the table `checks` of a method

Check = Callable[[Any, str], object]  # of a value and the parameter's name


def whole(least: int, most: int | None = None) -> Check:
    """A whole number in a range."""

    def checked(value: Any, name: str) -> None:
        if check.check_whole(value, least, name) > (value if most is None else most):
            raise InvalidInputError(f"{name} must be at most {most}, got {value}")

    return checked


def one_of(*choices: str) -> Check:
    """One of some words."""
    return lambda value, name: check.check_choice(value, choices, name)


def positive(value: Any, name: str) -> None:
    """A number above 0."""
    check.check_positive(value, name)


def not_negative(value: Any, name: str) -> None:
    """A number, 0 or more."""
    check.check_positive(value, name, zero=True)


def optional(checked: Check) -> Check:
    """None, or what another check takes."""
    return lambda value, name: value is None or checked(value, name)


class Peer(CodeEstimator):
    """A method to compare CGHash with; its learned attributes are arrays, numbers and strings.

    A subclass gives its parameters as fields of a dataclass, or by an `__init__` that only stores; `checks` of them;
    `_learn`, and `_margins` or `_bits`.
    """

    supervision: ClassVar[str] = "none"  # what it does with labels: "none", "optional" or "required"
    prefixes: ClassVar[bool] = False  # whether a fit of m bits gives the first m bits of a longer fit
    hamming: ClassVar[bool] = True  # whether its distance is the weighted Hamming distance
    checks: ClassVar[dict[str, Check]] = {}  # of parameters by name; `n_bits` is checked already

    n_bits: int
    random_state: Any = None  # a parameter where a method draws
    fewer_because: ClassVar[str] = "the items allow no more"

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the hash functions.

        Parameters
        ----------
        X : (n, d) items
        y : (n,) labels or (n, L) multi-label indicator matrix, where the method uses them
        """
        self._check_parameters()
        if y is None and self.supervision == "required":
            # scikit-learn's words for it, which its own checks look for
            name = type(self).__name__
            raise InvalidInputError(f"{name} learns from labels: requires y to be passed, but the target y is None")
        X = validated_items(self, X, reset=True, ensure_min_samples=2)
        check.check_size(X)
        labels = None if y is None or self.supervision == "none" else self._labels(y, len(X))
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        # sums that several BLAS threads share are rounded otherwise, and a greedy method then takes other turns: with
        # one thread the bits do not depend on how many there are
        with threadpool_limits(1, user_api="blas"):
            self.n_bits_ = self._n_features_out = self._learn(X, labels, np.random.default_rng(seed))
        if self.n_bits_ < self.n_bits:
            came = f"{type(self).__name__} learned {self.n_bits_} of the {self.n_bits} bits asked for"
            warnings.warn(f"{came}: {self.fewer_because}", FewerBitsWarning, stacklevel=2)
        return self

    def transform(self, X: Any) -> NDArray[np.uint8]:
        """The bits (n, `n_bits_`) of items, as 0 and 1."""
        check_is_fitted(self)
        return np.ascontiguousarray(self._bits(self._items(X))[:, : self.n_bits_]).astype(np.uint8)

    @property
    def weights_(self) -> Floats:  # type: ignore[override]
        """(`n_bits_`,) the weight of each bit in the distance: 1, unless the method learns them."""
        return np.ones(self.n_bits_)

    def truncate(self, m: int) -> Self:
        """The model of the first m bits, where a shorter fit gives just these."""
        check_is_fitted(self)
        if not self.prefixes:
            raise InvalidInputError(f"{type(self).__name__} learns its bits together: fit it with n_bits={m} instead")
        if check.check_whole(m, 1, "m") > self.n_bits_:
            raise InvalidInputError(f"m must be at most n_bits_ = {self.n_bits_}, got {m}")
        shorter = copy(self)
        shorter.n_bits_ = shorter._n_features_out = m
        return shorter

    def score(self, X: Any, y: Any = None, *, triplets: Any = None, triplet_weights: Any = None) -> float:
        """Share of triplets (t, 3) of row numbers of X that the distance satisfies; drawn by labels y if not given."""
        check_is_fitted(self)
        X = self._items(X)
        if triplets is None:
            triplets = self._drawn_triplets(y, len(X))
        rows = check.check_rows(triplets, 3, len(X), "triplets", "anchor, near, far")
        shares = np.ones(len(rows)) if triplet_weights is None else triplet_weights
        shares = check.check_triplet_weights(shares, len(rows))
        anchor, near, far = rows.T
        satisfied = self._between(X, anchor, far) > self._between(X, anchor, near)
        return float(satisfied @ shares / shares.sum())

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to a file that loads without unpickling anything."""
        from .peer_files import save_peer

        check_is_fitted(self)
        save_peer(self, path)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a model that `save` wrote."""
        from .peer_files import load_peer

        return load_peer(cls, path)

    # What a method gives

    @abstractmethod
    def _learn(self, X: Any, labels: Any, rng: np.random.Generator) -> int:
        """Set the learned attributes from items (n, d) and labels, and say how many bits came out.

        `labels` is None, class numbers (n,) from 0, or a dense indicator matrix (n, L) of int8.
        """

    def _bits(self, X: Any) -> Bools:
        """The bits (n, at least `n_bits_`) of items: a method gives these, or `_margins`."""
        margins = self._margins(X)
        assert margins is not None, f"{type(self).__name__} must have _margins or _bits"
        return np.asarray(margins > 0)

    def _check_parameters(self) -> None:
        for name, checked in {"n_bits": whole(1, MOST_BITS), **self.checks}.items():
            checked(getattr(self, name), name)
        self._check()

    def _check(self) -> None:
        """Check what `checks` cannot say, such as a missing package."""

    def _between(self, X: Any, first: Any, second: Any) -> Floats:
        """Distances (t,) of items X[first], as queries, to the codes of X[second]."""
        bits = self._bits(X)[:, : self.n_bits_]
        return np.asarray((bits[first] ^ bits[second]) @ self.weights_)

    def _drawn_triplets(self, y: Any, n: int) -> Any:
        """For each item some pairs of a relevant and an irrelevant one, the same at every call."""
        if y is None:
            raise InvalidInputError("score compares items by triplets or by labels: pass triplets or y, got neither")
        near, far = draw(self._labels(y, n), _DRAWN, np.random.default_rng(0))
        rows = np.stack([np.repeat(np.arange(n), near.shape[1]), near.ravel(), far.ravel()], axis=1)
        return rows[np.all(rows >= 0, axis=1)]

    def _labels(self, y: Any, n: int) -> Any:
        labels = relevance_of(y)
        if labels.shape[0] != n:
            raise InvalidInputError(f"y must have one entry for each of {n} items, got {labels.shape[0]}")
        check_learnable(labels)
        return labels.toarray() if hasattr(labels, "toarray") else labels

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "n_bits_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = self.supervision == "required"
        tags.transformer_tags.preserves_dtype = []
        return tags
