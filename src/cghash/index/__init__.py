"""Exact search under the weighted Hamming distance."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .vector_index import VectorIndex
from .weighted_hamming import WeightedHammingIndex

if TYPE_CHECKING:
    from .estimators import HashNeighbors as HashNeighbors
    from .estimators import HashNeighborsClassifier as HashNeighborsClassifier

__all__ = ["HashNeighbors", "HashNeighborsClassifier", "VectorIndex", "WeightedHammingIndex"]


def __getattr__(name: str) -> Any:
    """The estimators load on first use: an index alone does without scikit-learn."""
    if name in __all__:
        return getattr(import_module(".estimators", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
