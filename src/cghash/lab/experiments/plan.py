"""An experiment: data sets, methods, numbers of bits and splits, as a TOML file says."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import resources
from pathlib import Path
from typing import Any

from ... import _validation as check
from ...exceptions import InvalidInputError

__all__ = ["DataSpec", "Experiment", "MethodSpec", "Task", "built_in", "read_experiment", "source_of"]

PROTOCOLS = ("seen", "unseen")
SCALINGS = ("none", "unit", "hellinger")
Parameters = Mapping[str, Any]


@dataclass(frozen=True)
class DataSpec:
    """A data set by name or path, and how much of it serves."""

    name: str
    path: str | None = None  # of the user's own items
    train: int | None = None  # training items of a split; None: two thirds of all
    test: int | None = None  # queries; None: all others
    scaling: str = "none"  # "unit": rows of unit length, "hellinger": roots of counts that sum to 1


@dataclass(frozen=True)
class MethodSpec:
    """An estimator with its parameters."""

    name: str
    estimator: str
    parameters: Parameters = field(default_factory=dict)
    search: Mapping[str, Sequence[Any]] = field(default_factory=dict)  # parameter: values to choose from
    bits: Sequence[int] = ()  # only these of the experiment's numbers of bits; none: all
    labels: bool = True  # whether it is told the labels
    pictures: bool = False  # whether to keep what some queries find, as pictures
    on: Mapping[str, Parameters] = field(default_factory=dict)  # data set: parameters there

    def parameters_on(self, dataset: str) -> dict[str, Any]:
        return {**self.parameters, **self.on.get(dataset, {})}


@dataclass(frozen=True)
class Validation:
    """How parameters are chosen: by folds of the training items, or of a sample of them."""

    folds: int = 3
    items: int = 2000  # at most so many of them
    bits: int = 0  # 0: the largest number of the experiment


@dataclass(frozen=True)
class Task:
    """A method on one split of a data set: a cell for each number of bits."""

    dataset: DataSpec
    protocol: str
    split: int
    method: MethodSpec

    @property
    def name(self) -> str:
        return f"{self.method.name} on {self.dataset.name} ({self.protocol}), split {self.split}"


@dataclass(frozen=True)
class Experiment:
    """Every combination of data sets, protocols, splits and methods, each for all numbers of bits.

    Examples
    --------
    >>> paper = read_experiment("paper")
    >>> len(paper.methods), paper.bits
    (13, (10, 20, 30, 40, 50, 60))
    """

    name: str
    title: str
    datasets: tuple[DataSpec, ...]
    methods: tuple[MethodSpec, ...]
    bits: tuple[int, ...] = (10, 20, 30, 40, 50, 60)
    splits: int = 5
    protocols: tuple[str, ...] = ("seen",)
    top: int = 50
    neighbors: int = 3
    true_neighbors: int = 0  # how many nearest by the vectors codes should find; 0: not asked
    validation: Validation = Validation()

    def tasks(self) -> Iterator[Task]:
        """All tasks, a split of everything after the other: what is there of a run that was stopped can be compared."""
        for split in range(self.splits):
            for protocol in self.protocols:
                for dataset in self.datasets:
                    yield from (Task(dataset, protocol, split, method) for method in self.methods)

    def bits_of(self, task: Task) -> list[int]:
        """The numbers of bits of a task's cells."""
        return [n_bits for n_bits in self.bits if not task.method.bits or n_bits in task.method.bits]

    def only(
        self,
        datasets: Sequence[str] = (),
        methods: Sequence[str] = (),
        bits: Sequence[int] = (),
        splits: int | None = None,
        protocols: Sequence[str] = (),
    ) -> Experiment:
        """A part of the experiment; a data set that it lacks may be the path of items."""
        return _checked(
            replace(
                self,
                datasets=_picked(self.datasets, datasets, "dataset", _own_data),
                methods=_picked(self.methods, methods, "method", _plain_method),
                bits=tuple(bits) or self.bits,
                splits=self.splits if splits is None else splits,
                protocols=tuple(protocols) or self.protocols,
            )
        )


def built_in() -> list[str]:
    """The names of the experiments that come with the package."""
    return sorted(Path(file.name).stem for file in _folder().iterdir() if file.name.endswith(".toml"))


def source_of(name: str | os.PathLike[str]) -> str:
    """The TOML text of an experiment, by its name or its path."""
    if str(name) in built_in():
        return str((_folder() / f"{name}.toml").read_text(encoding="utf-8"))
    path = Path(name)
    if path.suffix != ".toml":
        raise InvalidInputError(f"experiment must be one of {', '.join(built_in())} or a .toml file, got {str(name)!r}")
    return path.read_text(encoding="utf-8")


def read_experiment(name: str | os.PathLike[str]) -> Experiment:
    """The experiment of a name or of a .toml file."""
    try:
        said = tomllib.loads(source_of(name))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidInputError(f"{name} must be a TOML file: {error}") from error
    try:
        return _checked(_parsed(Path(name).stem, said))
    except TypeError as error:  # a key that no field has
        raise InvalidInputError(f"{name}: {str(error).rpartition('() ')[2]}") from error


def _folder() -> Any:
    return resources.files(__package__)


def _parsed(name: str, said: dict[str, Any]) -> Experiment:
    like = said.pop("like", None)  # an experiment from which everything comes that is not said here
    if like is not None:
        said = {**tomllib.loads(source_of(check.check_choice(like, tuple(built_in()), "like"))), **said}
    tables = {"datasets": DataSpec, "methods": MethodSpec}
    for key, kind in tables.items():
        rows = said.get(key)
        if not isinstance(rows, list) or not rows or not all(isinstance(row, dict) and row.get("name") for row in rows):
            raise InvalidInputError(f"{name}: {key} must be tables [[{key}]] with a name, got {rows!r}")
        said[key] = tuple(kind(**({"estimator": row["name"]} if kind is MethodSpec else {}) | row) for row in rows)
    for key in ("bits", "protocols"):
        if key in said:
            said[key] = tuple(said[key])
    if "validation" in said:
        said["validation"] = Validation(**said["validation"])
    return Experiment(**{"name": name, "title": name, **said})


def _own_data(path: str) -> DataSpec | None:
    return DataSpec(Path(path).stem, path) if Path(path).suffix in (".npz", ".npy", ".parquet", ".csv") else None


def _plain_method(name: str) -> MethodSpec | None:
    from .methods import NAMES

    return MethodSpec(name, name) if name in NAMES else None


def _picked(all_of: tuple[Any, ...], names: Sequence[str], what: str, other: Any) -> tuple[Any, ...]:
    known = {spec.name: spec for spec in all_of}
    picked = [known.get(name) or other(name) for name in names]
    for name, spec in zip(names, picked, strict=True):
        if spec is None:
            raise InvalidInputError(f"{what} must be one of {', '.join(known)}, got {name!r}")
    return tuple(picked) or all_of


def _checked(experiment: Experiment) -> Experiment:
    for bits in experiment.bits:
        check.check_whole(bits, 1, "bits")
    check.check_whole(experiment.splits, 1, "splits")
    check.check_whole(experiment.top, 1, "top")
    check.check_whole(experiment.neighbors, 1, "neighbors")
    check.check_whole(experiment.true_neighbors, 0, "true_neighbors")
    check.check_whole(experiment.validation.folds, 2, "validation.folds")
    check.check_whole(experiment.validation.items, 10, "validation.items")
    for protocol in experiment.protocols:
        check.check_choice(protocol, PROTOCOLS, "protocol")
    for dataset in experiment.datasets:
        check.check_choice(dataset.scaling, SCALINGS, f"scaling of {dataset.name}")
        for name in ("train", "test"):
            if getattr(dataset, name) is not None:
                check.check_whole(getattr(dataset, name), 2, f"{name} of {dataset.name}")
    for kind in (experiment.datasets, experiment.methods):
        names = [spec.name for spec in kind]
        if len(set(names)) < len(names):
            raise InvalidInputError(f"names must differ, got {', '.join(names)}")
    return replace(experiment, bits=tuple(sorted(set(experiment.bits))))
