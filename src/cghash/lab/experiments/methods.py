"""The methods by name, and the choice of their parameters on training items alone."""

from __future__ import annotations

import inspect
import itertools
import warnings
from typing import Any

import numpy as np

from ... import peers
from ...exceptions import CGHashWarning, InvalidInputError
from ..criteria import retrieve_by_distances
from .plan import Parameters, Validation
from .protocol import Split, folds

__all__ = ["EUCLIDEAN", "NAMES", "choose", "estimator_of"]

EUCLIDEAN = "Euclidean"  # no codes at all: the vectors themselves, as a reference
NAMES = ("CGHash", *peers.PEERS, EUCLIDEAN)


def estimator_of(name: str, parameters: Parameters, n_bits: int, seed: int, n_jobs: int) -> Any:
    """The estimator, not fitted; the seed and the threads are given where it takes them.

    Examples
    --------
    >>> estimator_of("LSH", {}, 16, 0, 1)
    LSH(n_bits=16, random_state=0)
    """
    if name not in NAMES or name == EUCLIDEAN:
        raise InvalidInputError(f"estimator must be one of {', '.join(NAMES)}, got {name!r}")
    from ...hasher import CGHash

    kind = CGHash if name == "CGHash" else getattr(peers, name)
    takes = inspect.signature(kind).parameters
    unknown = set(parameters) - set(takes)
    if unknown:
        raise InvalidInputError(f"parameters of {name} must be among {', '.join(takes)}, got {', '.join(unknown)}")
    given = {"random_state": seed, "n_jobs": n_jobs}
    return kind(n_bits, **{key: value for key, value in given.items() if key in takes} | dict(parameters))


def has_prefixes(model: Any) -> bool:
    """Whether one fit gives all shorter codes too."""
    return getattr(model, "prefixes", True)


def choose(
    name: str,
    parameters: Parameters,
    search: dict[str, Any],
    items: tuple[Any, Any],
    protocol: str,
    n_bits: int,
    validation: Validation,
    seed: int,
    n_jobs: int,
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The values of `search` with the largest mean average precision over folds of the training items.

    Returns the chosen values, and what was measured: each combination with its mean over the folds.
    """
    X, y = items
    tried = []
    for values in itertools.product(*search.values()):
        some = dict(zip(search, values, strict=True))
        found = []
        for split in folds(y, protocol, validation.folds, validation.items, seed):
            model = estimator_of(name, {**parameters, **some}, validation.bits or n_bits, seed, n_jobs)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", CGHashWarning)
                model.fit(X[split.train], y[split.train])
            found.append(_precision(model, X, split, n_jobs))
        tried.append({**some, "map": float(np.mean(found))})
    best = max(tried, key=lambda row: float(row["map"]))
    return {key: best[key] for key in search}, tried


def _precision(model: Any, X: Any, split: Split, n_jobs: int) -> float:
    queries, codes = X[split.queries], model.encode(X[split.database])
    labels = split.labels[split.queries], split.labels[split.database]
    return retrieve_by_distances(
        lambda rows: model.distances(queries[rows], codes), *labels, top=1, k=1, n_jobs=n_jobs
    ).map
