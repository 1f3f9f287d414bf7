"""Raw results: one JSON file a cell, or the lines of one file."""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from ... import __version__
from ...exceptions import FormatError, InvalidInputError
from ...storage import write_atomically
from .methods import EUCLIDEAN, estimator_of, plain_parameters_of
from .plan import Experiment, Task
from .result_checks import KEYS, checked_result

__all__ = ["Store", "collect", "read_results"]

Result = dict[str, Any]


class Store:
    """A folder of results: DATASET/PROTOCOL-SPLIT/METHOD-BITS.json."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)

    def path_of(self, task: Task, n_bits: int) -> Path:
        split = f"{task.protocol}-{task.split}"
        return self.folder / _safe(task.dataset.name) / split / f"{_safe(task.method.name)}-{n_bits}.json"

    def write(self, experiment: Experiment, task: Task, n_bits: int, result: Result) -> None:
        """Keep a cell's result with what it is of."""
        cell = dict(zip(KEYS, (task.dataset.name, task.protocol, task.split, task.method.name, n_bits), strict=True))
        whole = {**cell, "estimator": task.method.estimator, "asked": fingerprint(experiment, task), **result}
        path = self.path_of(task, n_bits)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, json.dumps(_strict(whole), allow_nan=False).encode() + b"\n")

    def missing(self, experiment: Experiment, task: Task) -> list[int]:
        """The numbers of bits of which there is no good result that was asked for in the same way."""
        return [n_bits for n_bits in experiment.bits_of(task) if not self._good(experiment, task, n_bits)]

    def of_other_code(self, experiment: Experiment, task: Task, code: str) -> int:
        """How many good results there are that other sources of ours measured."""
        good = (self._good(experiment, task, n_bits) for n_bits in experiment.bits_of(task))
        return sum(result is not None and result.get("code") != code for result in good)

    def error_of(self, task: Task, n_bits: int) -> str:
        """Why a cell has no good result, as it was written."""
        try:
            result = checked_result(self.path_of(task, n_bits).read_bytes())
        except (OSError, ValueError) as error:
            return f"its result cannot be read: {error}"
        return str(result.get("error", "its result is of something else"))

    def _good(self, experiment: Experiment, task: Task, n_bits: int) -> Result | None:
        try:
            result = checked_result(self.path_of(task, n_bits).read_bytes())
        except (OSError, ValueError):
            return None
        asked = fingerprint(experiment, task)
        return result if result["status"] == "ok" and result.get("asked") == asked else None


def fingerprint(experiment: Experiment, task: Task) -> str:
    """What decides a cell's result, in a few letters: other items, another size or parameter make another."""
    method = task.method
    parameters: dict[str, Any] = {}
    if method.estimator != EUCLIDEAN:
        first = {name: values[0] for name, values in method.search.items()}
        model = estimator_of(method.estimator, method.parameters_on(task.dataset.name) | first, 1, 0, 1)
        parameters = {name: v for name, v in plain_parameters_of(model).items() if name not in method.search}
    decides = {
        "version": __version__,
        "dataset": asdict(replace(task.dataset, path=None, labels=None)),
        "estimator": method.estimator,
        "parameters": parameters,
        "search": dict(method.search),
        "labels": method.labels,
        "validation": asdict(experiment.validation) if method.search else None,
        "longest": max(experiment.bits) if method.search else None,
        "criteria": [experiment.top, experiment.neighbors, experiment.true_neighbors],
    }
    return hashlib.sha256(json.dumps(decides, sort_keys=True, default=str).encode()).hexdigest()[:12]


def read_results(path: str | os.PathLike[str]) -> list[Result]:
    """All results of a folder, or of a file of lines; FormatError when something in it is not one."""
    place = Path(path)
    if not place.exists():
        raise FileNotFoundError(f"there are no results at {place}")
    files = [place] if place.is_file() else sorted([*place.rglob("*.json"), *place.glob("*.jsonl")])
    results = [result for file in files for result in _read(file)]
    if not results:
        raise InvalidInputError(f"{place} must hold results of 'cghash lab run', got none")
    return sorted(results, key=lambda result: tuple(str(result[key]).zfill(6) for key in KEYS))


def collect(folder: str | os.PathLike[str], file: str | os.PathLike[str]) -> int:
    """Write all results of a folder as lines of one file, without error traces; returns how many."""
    results = read_results(folder)
    for result in results:
        result.pop("trace", None)
    write_atomically(file, b"".join(json.dumps(_strict(result)).encode() + b"\n" for result in results))
    return len(results)


def _read(file: Path) -> Iterator[Result]:
    text = file.read_bytes()
    for line in text.splitlines() if file.suffix == ".jsonl" else [text]:
        try:
            result = checked_result(line)
        except ValueError as error:
            raise FormatError(f"{file} is not a result of 'cghash lab run': {error}") from error
        if "criteria" in result:
            result["criteria"] = {name: math.nan if v is None else v for name, v in result["criteria"].items()}
        yield result


def _safe(name: str) -> str:
    """A name that is a file's: nothing that leads to another folder, and no two names alike."""
    plain = re.sub(r"[^A-Za-z0-9._+-]+", "-", name).strip(".")
    return plain if plain == name else f"{plain}-{hashlib.sha256(name.encode()).hexdigest()[:6]}"


def _strict(value: Any) -> Any:
    """The same without nan and infinities, which JSON cannot say."""
    if isinstance(value, dict):
        return {name: _strict(v) for name, v in value.items()}
    if isinstance(value, list | tuple):
        return [_strict(v) for v in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value.item() if hasattr(value, "item") else value
