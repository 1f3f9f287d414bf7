"""Hash families: parameters → bits, and how each is priced.

| name         | functions                          | priced                                       |
|--------------|------------------------------------|----------------------------------------------|
| `linear`     | hyperplanes                        | tanh relaxation; refined: eigenvector, ridge |
| `rbf`        | hyperplanes over Gaussian bumps    | as linear                                    |
| `rbf-kmeans` | the same, around k-means centres   | as linear                                    |
| `stump`      | one feature against a threshold    | exhaustively, exactly                        |
| `tree`       | decision trees                     | minorise–maximise                            |
| a classifier | whatever it can learn              | minorise–maximise                            |
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..._validation import did_you_mean
from ...exceptions import InvalidInputError
from .base import Family, Functions, Priced
from .classifier import ClassifierFamily, ClassifierFunctions
from .linear import LinearFamily, LinearFunctions
from .rbf import RBFFamily, RBFFunctions, cluster_centres
from .stump import StumpFamily, StumpFunctions
from .tree import TreeFamily, TreeFunctions

__all__ = ["FAMILIES", "Family", "Functions", "Priced", "family_of", "functions_class"]

_MAKERS: dict[str, Callable[[bool], Family]] = {  # by the value of `hash_function`: from `refined` to the family
    "linear": LinearFamily,
    "stump": lambda refined: StumpFamily(),
    "tree": lambda refined: TreeFamily(),
    "rbf": RBFFamily,
    "rbf-kmeans": lambda refined: RBFFamily(refined, landmarks=cluster_centres),
}
FAMILIES = tuple(_MAKERS)
_FUNCTIONS: tuple[type[Functions], ...] = (
    LinearFunctions,
    StumpFunctions,
    TreeFunctions,
    RBFFunctions,
    ClassifierFunctions,
)


def family_of(hash_function: Any, refined: bool) -> Family:
    """The family that the parameter `hash_function` means."""
    from sklearn.base import is_classifier
    from sklearn.tree import DecisionTreeClassifier

    if isinstance(hash_function, str):
        if hash_function in _MAKERS:
            return _MAKERS[hash_function](refined)
        raise InvalidInputError(
            f"hash_function must be one of {list(FAMILIES)} or a classifier, got {hash_function!r}"
            f"{did_you_mean(hash_function, FAMILIES)}"
        )
    if type(hash_function) is DecisionTreeClassifier:
        return TreeFamily(hash_function)
    estimator = hasattr(hash_function, "__sklearn_tags__") and not isinstance(hash_function, type)
    if not estimator or not is_classifier(hash_function):
        raise InvalidInputError(
            f"hash_function must be one of {list(FAMILIES)} or a classifier object, got {hash_function!r}"
        )
    return ClassifierFamily(hash_function)


def functions_class(name: str) -> type[Functions]:
    """The class of functions of a family's name, as model files give it."""
    for kind in _FUNCTIONS:
        if kind.family == name:
            return kind
    raise InvalidInputError(f"family must be one of {[kind.family for kind in _FUNCTIONS]}, got {name!r}")
