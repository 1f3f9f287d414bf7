"""One method on one split of a data set: fit, encode, criteria; a result for each number of bits."""

from __future__ import annotations

import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ..._arrays import Array, Ints
from ...criteria import (
    Retrieval,
    euclidean_neighbors,
    recall_by_codes,
    recall_by_distances,
    retrieve_by_codes,
    retrieve_by_distances,
    retrieve_by_vectors,
)
from ...exceptions import CGHashWarning
from ..datasets import DataSet
from .cell_details import Nearest, fit_record, nearest_by_codes, retrieved_pictures
from .machine import peak_memory, reset_peak_memory
from .methods import EUCLIDEAN, Choice, estimator_of, has_prefixes, plain_parameters_of
from .plan import Experiment, Task
from .protocol import Split, split_items
from .scaled_items import items_of

__all__ = ["run_task"]

RETRIEVED = 100  # of which the true neighbours are a part
Keep = Callable[[int, dict[str, Any]], None]  # number of bits, result


@dataclass(frozen=True)
class Work:
    """A task with its items."""

    experiment: Experiment
    task: Task
    data: DataSet
    split: Split
    n_jobs: int

    @property
    def X(self) -> Array:  # noqa: N802
        return self.data.X

    @property
    def train(self) -> tuple[Array, Array]:
        assert self.data.y is not None
        return self.X[self.split.train], self.data.y[self.split.train]

    @property
    def labels(self) -> tuple[Array, Array]:
        return self.split.labels[self.split.queries], self.split.labels[self.split.database]

    @cached_property
    def true_neighbors(self) -> Ints | None:
        """The nearest of each query by the vectors, where the experiment asks how many of them codes find."""
        n = min(self.experiment.true_neighbors, len(self.split.database))
        sides = self.X[self.split.queries], self.X[self.split.database]
        return euclidean_neighbors(*sides, n, self.n_jobs) if n else None

    @property
    def settings(self) -> dict[str, int]:
        n = len(self.split.database)
        jobs = {"n_jobs": self.n_jobs}
        return {"top": min(self.experiment.top, n), "k": min(self.experiment.neighbors, n)} | jobs


def run_task(experiment: Experiment, task: Task, bits: list[int], keep: Keep, folder: str | None, n_jobs: int) -> None:
    """Measure a method at each of these numbers of bits, and hand every result to `keep` as it comes."""
    reset_peak_memory()
    work = _prepare(experiment, task, folder, n_jobs)
    measure = _euclidean if task.method.estimator == EUCLIDEAN else _codes
    for n_bits, result in measure(work, bits):
        keep(n_bits, {"status": "ok", **_sizes(work), **result})


def failure(error: BaseException) -> dict[str, Any]:
    """What is kept of a cell that failed."""
    lines = traceback.format_exception(error)
    return {"status": "failed", "error": f"{type(error).__name__}: {error}", "trace": "".join(lines)[-4000:]}


def _prepare(experiment: Experiment, task: Task, folder: str | None, n_jobs: int) -> Work:
    spec = task.dataset
    data = items_of(spec, folder)
    assert data.y is not None
    split = split_items(data.y, task.protocol, task.split, spec.train, spec.test, spec.drawn_by)
    return Work(experiment, task, data, split, n_jobs)


def _codes(work: Work, bits: list[int]) -> Iterator[tuple[int, dict[str, Any]]]:
    method, seed = work.task.method, work.task.split
    parameters, chosen = _chosen(work)
    model, seconds = None, 0.0
    for n_bits in sorted(bits, reverse=True):
        if model is None or not has_prefixes(model):
            reset_peak_memory()
            model = estimator_of(method.estimator, parameters, n_bits, seed, work.n_jobs)
            seconds = _fit(model, work.train[0], work.train[1] if method.labels else None)
        shorter = model.truncate(n_bits) if n_bits < model.n_bits_ else model
        told = {"seconds_fit": seconds, "trained_once": has_prefixes(model), **chosen}
        told["parameters"] = plain_parameters_of(model)
        result = _trimmed(told | _measured(shorter, work) | {"peak_mb": peak_memory()}, n_bits, work)
        if _is_looked_at(n_bits, work):
            result |= fit_record(model, work.data, work.split.train) | _pictures(
                work, nearest_by_codes(shorter, work.X, work.split)
            )
        yield n_bits, result


def _chosen(work: Work) -> tuple[dict[str, Any], dict[str, Any]]:
    """The parameters of the task's method, and how they were chosen, where they were."""
    method = work.task.method
    parameters = method.parameters_on(work.task.dataset.name)
    if not method.search:
        return parameters, {}
    began = time.process_time()
    X, y = work.train
    choice = Choice(method, parameters, work.task.protocol, work.experiment, work.task.split, work.n_jobs)
    values, tried = choice.best(X, y)
    took = {"chosen": values, "tried": tried, "seconds_choice": time.process_time() - began}
    return parameters | values, took


def _fit(model: Any, X: Any, y: Any) -> float:
    """Processor seconds: other work on the machine does not count."""
    began = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CGHashWarning)  # fewer bits than asked for: the result says so
        model.fit(X, y)
    return time.process_time() - began


def _measured(model: Any, work: Work) -> dict[str, Any]:
    database, queries = work.X[work.split.database], work.X[work.split.queries]
    n_bits = int(model.n_bits_)
    began = time.process_time()
    if getattr(model, "hamming", True):
        bits = model.transform(database)
        seconds = time.process_time() - began
        ranked = model.transform(queries), bits, model.weights_
        found = retrieve_by_codes(*ranked, *work.labels, **work.settings)
        near = work.true_neighbors
        recall = None if near is None else recall_by_codes(near, *ranked, retrieved=(RETRIEVED,), n_jobs=work.n_jobs)
    else:
        codes = model.encode(database)
        seconds = time.process_time() - began
        found, recall = _by_distances(lambda rows: model.distances(queries[rows], codes), work)
    size = {"n_bits": n_bits, "bytes": -(-n_bits // 8), "seconds_encode": seconds}
    return size | _told(found, recall)


def _by_distances(distances: Callable[[slice], Array], work: Work) -> tuple[Retrieval, Any]:
    found = retrieve_by_distances(distances, *work.labels, **work.settings)
    near, n = work.true_neighbors, len(work.split.database)
    if near is None:
        return found, None
    return found, recall_by_distances(near, distances, n, retrieved=(RETRIEVED,), n_jobs=work.n_jobs)


def _euclidean(work: Work, bits: list[int]) -> Iterator[tuple[int, dict[str, Any]]]:
    """The vectors themselves: the same result beside every number of bits."""
    database, queries = work.X[work.split.database], work.X[work.split.queries]
    found = retrieve_by_vectors(queries, database, *work.labels, **work.settings)
    told = _told(found, None if work.true_neighbors is None else [1.0])
    size = int(database[:1].nbytes)
    told |= {
        "peak_mb": peak_memory(),
        "parameters": {},
        "seconds_fit": 0.0,
        "seconds_encode": 0.0,
        "trained_once": True,
    }

    def nearest(rows: Ints, n: int) -> Ints:
        return work.split.database[euclidean_neighbors(work.X[rows], database, n, work.n_jobs)]

    for n_bits in bits:
        result = _trimmed({**told, "n_bits": 8 * size, "bytes": size}, n_bits, work)
        yield n_bits, result | (_pictures(work, nearest) if _is_looked_at(n_bits, work) else {})


def _trimmed(result: dict[str, Any], n_bits: int, work: Work) -> dict[str, Any]:
    """The curve is kept of the longest codes, and of those that the experiment shows."""
    experiment = work.experiment
    if n_bits in (max(experiment.bits), *experiment.shown):
        return result
    return {name: value for name, value in result.items() if name != "curve"}


def _is_looked_at(n_bits: int, work: Work) -> bool:
    """Whether this is the cell whose fit and pictures are kept: the longest codes of the first split."""
    return n_bits == max(work.experiment.bits) and work.task.split == work.experiment.first_split


def _pictures(work: Work, nearest: Nearest) -> dict[str, Any]:
    """What queries find, where the method is to show it and the items have pictures and one label each."""
    asked, data = work.task.method.pictures, work.data
    if not asked or data.painter is None or data.multi_label:
        return {}
    return {"pictures": retrieved_pictures(data, work.split, nearest, every=asked == "all")}


def _told(found: Retrieval, recall: Any) -> dict[str, Any]:
    """Criteria as they are written down: six digits are more than splits agree on."""
    criteria = {name: round(getattr(found, name), 6) for name in ("map", "top", "knn_error", "ndcg")}
    if recall is not None:
        criteria["recall"] = round(float(recall[0]), 6)
    return {"criteria": criteria, "curve": {name: _rounded(getattr(found, name)) for name in ("precision", "recall")}}


def _rounded(values: Any) -> list[float]:
    return [round(float(value), 4) for value in values]


def _sizes(work: Work) -> dict[str, Any]:
    split = work.split
    return {
        "n_train": len(split.train),
        "n_database": len(split.database),
        "n_queries": len(split.queries),
        "n_features": int(work.X.shape[1]),
        **{name: value for name, value in work.settings.items() if name != "n_jobs"},
    }


@contextmanager
def limited_threads(n_jobs: int) -> Iterator[None]:
    from threadpoolctl import threadpool_limits

    with threadpool_limits(n_jobs):
        yield
