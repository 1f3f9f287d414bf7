"""The methods by name, and the choice of their parameters on training items alone."""

from __future__ import annotations

import importlib
import inspect
import itertools
import os
import sys
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from ... import peers
from ...criteria import retrieve_by_distances
from ...exceptions import CGHashWarning, InvalidInputError
from .plan import Experiment, MethodSpec, Parameters
from .protocol import Split, folds

__all__ = ["EUCLIDEAN", "NAMES", "Choice", "estimator_of", "has_prefixes", "plain_parameters_of"]

EUCLIDEAN = "Euclidean"  # no codes at all: the vectors themselves, as a reference
CRITERIA = ("map", "top", "knn_error")  # what parameters are chosen by
FREE = ("random_state", "n_jobs", "verbose", "checkpoint")  # parameters that do not decide a result here
OURS = ("n_bits", "random_state", "n_jobs", "checkpoint")  # parameters that no plan sets; a checkpoint is a file
NAMES = ("CGHash", *peers.PEERS, EUCLIDEAN)


def estimator_of(name: str, parameters: Parameters, n_bits: int, seed: int, n_jobs: int) -> Any:
    """The estimator, not fitted; the seed and the threads are given where it takes them.

    A name such as "mine:MedianCut" is a class of a module that Python finds, in the working folder too.

    Examples
    --------
    >>> estimator_of("LSH", {}, 16, 0, 1)
    LSH(n_bits=16, random_state=0)
    """
    kind = _kind_of(name)
    takes = inspect.signature(kind).parameters
    free = [parameter for parameter in takes if parameter not in OURS]
    unknown = sorted(set(parameters) - set(free))
    if unknown:
        hint = "; the experiment's bits, splits and folder decide these" if set(unknown) & set(OURS) else ""
        raise InvalidInputError(f"parameters of {name} must be among {', '.join(free)}, got {', '.join(unknown)}{hint}")
    given = {"random_state": seed, "n_jobs": n_jobs}
    return kind(n_bits, **{key: value for key, value in given.items() if key in takes} | dict(parameters))


def _kind_of(name: str) -> type:
    if ":" in name:
        return _imported(name)
    if name not in NAMES or name == EUCLIDEAN:
        raise InvalidInputError(f"estimator must be one of {', '.join(NAMES)}, or module:Class, got {name!r}")
    from ...hasher import CGHash

    return CGHash if name == "CGHash" else getattr(peers, name)


def _imported(name: str) -> type:
    """A class of the user's own."""
    from ...estimator import CodeEstimator

    module, _, attribute = name.partition(":")
    if os.getcwd() not in sys.path:  # where `cghash` is run, as where `python` is
        sys.path.insert(0, os.getcwd())
    try:
        kind = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise InvalidInputError(f"estimator {name!r} cannot be imported: {error}") from error
    if not (inspect.isclass(kind) and issubclass(kind, CodeEstimator)):
        raise InvalidInputError(f"estimator {name!r} must be a class derived from cghash.peers.base.Peer, got {kind!r}")
    return kind


def has_prefixes(model: Any) -> bool:
    """Whether one fit gives all shorter codes too."""
    return getattr(model, "prefixes", True)


def plain_parameters_of(model: Any) -> dict[str, Any]:
    """Its parameters, with those that nobody set, but not the seed and the threads."""
    given = model.get_params(deep=False)
    return {name: _plain(value) for name, value in given.items() if name not in ("n_bits", *FREE)}


def _plain(value: Any) -> Any:
    return value if isinstance(value, str | int | float | bool | None) else repr(value)


@dataclass(frozen=True)
class Choice:
    """Parameters that do best over folds of the training items."""

    method: MethodSpec
    parameters: Parameters  # those that are given
    protocol: str
    experiment: Experiment
    seed: int
    n_jobs: int

    def best(self, X: Any, y: Any) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        """The chosen values of `search`, and what was measured: each combination with its means over the folds."""
        search = self.method.search
        tried = []
        for values in itertools.product(*search.values()):
            some = dict(zip(search, values, strict=True))
            tried.append({**some, **self._means({**self.parameters, **some}, X, y)})
        best = max(tried, key=lambda row: float(row["score"]))
        return {key: best[key] for key in search}, tried

    def _means(self, parameters: Parameters, X: Any, y: Any) -> dict[str, float]:
        how = self.experiment.validation
        n_bits = how.bits or max(self.experiment.bits)
        found = []
        for split in folds(y, self.protocol, how.folds, how.items, self.seed):
            model = estimator_of(self.method.estimator, parameters, n_bits, self.seed, self.n_jobs)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", CGHashWarning)
                model.fit(X[split.train], y[split.train] if self.method.labels else None)
            found.append(self._criteria(model, X, split))
        means = {name: float(np.mean([row[name] for row in found])) for name in CRITERIA}
        return means | {"score": _score(means, how.criterion)}

    def _criteria(self, model: Any, X: Any, split: Split) -> dict[str, float]:
        queries, codes = X[split.queries], model.encode(X[split.database])
        labels = split.labels[split.queries], split.labels[split.database]
        sizes = {"top": min(self.experiment.top, len(codes)), "k": min(self.experiment.neighbors, len(codes))}
        ranked = retrieve_by_distances(
            lambda rows: model.distances(queries[rows], codes), *labels, **sizes, n_jobs=self.n_jobs
        )
        return {name: getattr(ranked, name) for name in CRITERIA}


def _score(means: dict[str, float], criterion: str) -> float:
    """What is chosen by, larger is better."""
    upward = means | {"knn_error": 1.0 - means["knn_error"]}
    return float(np.mean(list(upward.values()))) if criterion == "all" else upward[criterion]
