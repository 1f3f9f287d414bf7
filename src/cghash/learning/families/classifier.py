"""Any scikit-learn classifier that takes `sample_weight` as a hash family."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import has_fit_parameter

from ..._arrays import Array, Bools, Floats, Singles
from ...exceptions import InvalidInputError
from ..cpu.pairs import SignedPairs
from .base import Family, Functions, Priced, ranked, weighed
from .minorize import leading_signs, minorize_maximize

_UNSAVED = (
    "a model of arbitrary classifiers cannot be saved to a file that loads safely; use hash_function='linear', "
    "'stump', 'tree' or 'rbf' (a DecisionTreeClassifier counts as 'tree'), or keep the object with a tool that you "
    "trust, such as skops"
)


class ClassifierFunctions(Functions):
    """Fitted classifiers; bit j is what classifier j predicts."""

    family: ClassVar[str] = "classifier"

    def __init__(self, classifiers: list[Any]) -> None:
        self.classifiers = classifiers

    def __len__(self) -> int:
        return len(self.classifiers)

    def bits(self, X: Any, n_threads: int = 1) -> Bools:
        out = np.empty((X.shape[0], len(self)), dtype=bool)
        for j, classifier in enumerate(self.classifiers):
            out[:, j] = classifier.predict(X) > 0
        return out

    def head(self, m: int) -> Self:
        return type(self)(self.classifiers[:m])

    def one(self, j: int) -> Self:
        return type(self)(self.classifiers[j : j + 1])

    def joined(self, other: Self) -> Self:
        return type(self)(self.classifiers + other.classifiers)

    def arrays(self) -> dict[str, Array]:
        raise InvalidInputError(_UNSAVED)

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Array]) -> Self:
        raise InvalidInputError(_UNSAVED)


class ClassifierFamily(Family):
    """Functions that a classifier can learn, searched by minorise–maximise."""

    def __init__(self, classifier: Any, max_steps: int = 8) -> None:
        if not has_fit_parameter(classifier, "sample_weight"):
            raise InvalidInputError(
                "hash_function must be 'linear', 'stump', 'tree', 'rbf' or a classifier whose fit takes sample_weight, "
                f"got {classifier!r}"
            )
        self.classifier, self.max_steps = classifier, max_steps

    def prepare(self, X: Any, rng: np.random.Generator, n_threads: int) -> None:
        self.items = self.X = X  # as functions are given them, and as the classifier learns from them

    def price(self, pairs: SignedPairs, rng: np.random.Generator, taken: Functions | None) -> Priced:
        every = len(pairs.items) == self.X.shape[0]
        live = self.X if every else self.X[pairs.items]
        given = live if self.items is self.X else self.items if every else self.items[pairs.items]
        seed = int(rng.integers(2**31))
        fits = 0

        def train(labels: Bools, weights: Floats) -> tuple[Functions, Singles] | None:
            nonlocal fits
            if labels.all() or not labels.any():
                return None
            fits += 1
            function = self.fit_one(live, labels, weights / weights.mean(), seed)
            return function, np.where(function.bits(given)[:, 0], 1, -1).astype(np.float32)

        starts = leading_signs(pairs, rng, count=2 if taken is None else 6)
        steps = [step for start in starts for step in minorize_maximize(pairs, start, train, self.max_steps)]
        found = [(function, self.training_bits(function)) for function, _ in steps]
        return ranked(weighed(pairs, found), n_evaluations=fits)

    def fit_one(self, X: Any, labels: Bools, weights: Floats, seed: int) -> Functions:
        classifier = clone(self.classifier)
        if "random_state" in classifier.get_params():
            classifier.set_params(random_state=seed)
        return ClassifierFunctions([classifier.fit(X, labels.astype(np.int8), sample_weight=weights)])

    def training_bits(self, function: Functions) -> Bools:
        return function.bits(self.items)[:, 0]
