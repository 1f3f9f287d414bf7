"""Learn compact binary codes from relative comparisons, and search them exactly."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .estimator import Query as Query
    from .estimator import load as load
    from .hasher import CGHash as CGHash
    from .index import HashNeighbors as HashNeighbors
    from .index import HashNeighborsClassifier as HashNeighborsClassifier
    from .index import VectorIndex as VectorIndex
    from .index import WeightedHammingIndex as WeightedHammingIndex
    from .learning.result import FitResult as FitResult

    __version__: str

_HOMES = {
    "CGHash": ".hasher",
    "FitResult": ".learning.result",
    "HashNeighbors": ".index.estimators",
    "HashNeighborsClassifier": ".index.estimators",
    "Query": ".estimator",
    "VectorIndex": ".index",
    "WeightedHammingIndex": ".index",
    "load": ".estimator",
}
__all__ = [
    "CGHash",
    "FitResult",
    "HashNeighbors",
    "HashNeighborsClassifier",
    "Query",
    "VectorIndex",
    "WeightedHammingIndex",
    "__version__",
    "load",
]


def __getattr__(name: str) -> Any:
    """Public names load on first use, so that `cghash --help` stays quick."""
    if name == "__version__":
        return import_module("importlib.metadata").version("cghash")  # pyproject.toml says it, once
    if name in _HOMES:
        return getattr(import_module(_HOMES[name], __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
