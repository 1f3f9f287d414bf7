"""Raw results: one JSON file a cell, or the lines of one file; and what they must be before anybody relies on them."""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from ... import __version__
from ...exceptions import FormatError, InvalidInputError
from ...storage import json_object, strict, write_atomically
from .methods import EUCLIDEAN, estimator_of, plain_parameters_of
from .plan import DataSpec, Experiment, Task

__all__ = ["Store", "checked_result", "collect", "fingerprint", "read_results"]

Result = dict[str, Any]
KEYS = ("dataset", "protocol", "split", "method", "bits")
STATUSES = ("ok", "failed")
FIT = ("objective", "bound", "satisfied", "weights")  # of each column
_MOST = 2**32  # that is counted
_LARGEST = 1e15  # that is measured


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
        write_atomically(path, _json(whole))

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

    def read(self, experiment: Experiment) -> list[Result]:
        """The results of this experiment's cells, in its order."""
        cells = ((task, n_bits) for task in experiment.tasks() for n_bits in experiment.bits_of(task))
        return [result for task, n_bits in cells for result in _read(self.path_of(task, n_bits))]

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
        "dataset": _decisive(task.dataset),
        "estimator": method.estimator,
        "parameters": parameters,
        "search": dict(method.search),
        "labels": method.labels,
        "validation": asdict(experiment.validation) if method.search else None,
        "longest": max(experiment.bits) if method.search else None,
        "criteria": [experiment.top, experiment.neighbors, experiment.true_neighbors],
    }
    return hashlib.sha256(json.dumps(decides, sort_keys=True, default=str).encode()).hexdigest()[:12]


def _decisive(dataset: DataSpec) -> dict[str, Any]:
    """What of a data set decides a result; how it is drawn is left out where it is drawn as ever."""
    decides = asdict(replace(dataset, path=None, labels=None))
    if dataset.drawn_by == DataSpec.drawn_by:
        del decides["drawn_by"]
    return decides


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
    write_atomically(file, b"".join(map(_json, results)))
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


def _json(result: Result) -> bytes:
    """A line of JSON, which has no nan and no infinities."""
    plain = strict(result, lambda number: None)
    return json.dumps(plain, allow_nan=False, default=lambda value: value.item()).encode() + b"\n"


def checked_result(text: str | bytes) -> dict[str, Any]:
    """The result of a cell in a JSON text; ValueError where a part that is read later is not what it must be.

    >>> checked_result('{"dataset": "digits", "protocol": "seen", "split": 0, "method": 3, "bits": 8, "status": "ok"}')
    Traceback (most recent call last):
    ValueError: 'method' must be a word, got 3
    """
    result = json_object(text)
    missing = [key for key in (*KEYS, "status") if key not in result]
    if missing:
        raise ValueError(f"it has no {missing[0]!r}")
    for key, value in result.items():
        words, good = _KINDS.get(key, ("", None))
        if good is not None and not good(value):
            raise ValueError(f"{key!r} must be {words}, got {value!r:.40}")
    return result


def _is_word(value: Any) -> bool:
    return isinstance(value, str)


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value < _MOST


def _is_number(value: Any) -> bool:
    """A number, or null for one that is not known."""
    if isinstance(value, float) and math.isnan(value):
        return True
    return value is None or (isinstance(value, int | float) and type(value) is not bool and abs(value) < _LARGEST)


def _are_criteria(value: Any) -> bool:
    return isinstance(value, dict) and all(map(_is_number, value.values()))


def _is_curve(value: Any) -> bool:
    if not isinstance(value, dict):
        return False
    recall, precision = value.get("recall", []), value.get("precision", [])
    return (
        isinstance(recall, list)
        and isinstance(precision, list)
        and len(recall) == len(precision)
        and all(number is not None and _is_number(number) for number in recall)
        and all(map(_is_number, precision))
    )


def _is_fit(value: Any) -> bool:
    """How a fit went: a message, and lists with a number for each column."""
    if not isinstance(value, dict) or not isinstance(value.get("message", ""), str):
        return False
    lists = [value.get(key, []) for key in FIT]
    return all(isinstance(numbers, list) and all(map(_is_number, numbers)) for numbers in lists)


def _are_tried(value: Any) -> bool:
    """Rows of what was tried, with what was measured."""
    if not isinstance(value, list) or not all(isinstance(row, dict) for row in value):
        return False
    return all(_is_number(row.get(key)) for row in value for key in ("C", "map"))


_COUNT = ("a whole number of at least 0", _is_count)
_NUMBER = ("a number or null", _is_number)
_WORD = ("a word", _is_word)
_KINDS: dict[str, tuple[str, Callable[[Any], bool]]] = {
    **dict.fromkeys(("dataset", "protocol", "method"), _WORD),
    **dict.fromkeys(("split", "bits", "n_bits", "bytes", "top", "k"), _COUNT),
    **dict.fromkeys(("n_train", "n_database", "n_queries", "n_features", "seed", "cores"), _COUNT),
    **dict.fromkeys(("peak_mb", "seconds_fit", "seconds_encode", "seconds_choice"), _NUMBER),
    **dict.fromkeys(("asked", "estimator", "error", "trace"), ("a text", lambda value: isinstance(value, str))),
    **dict.fromkeys(("versions", "parameters", "chosen"), ("an object", lambda value: isinstance(value, dict))),
    "status": (f"one of {STATUSES}", lambda value: value in STATUSES),
    "criteria": ("numbers by name", _are_criteria),
    "curve": ("a recall and a precision of one length", _is_curve),
    "tried": ("a list of what was tried", _are_tried),
    "fit": ("a message and numbers by name", _is_fit),
}
