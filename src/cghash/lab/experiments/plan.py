"""An experiment: data sets, methods, numbers of bits and splits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

__all__ = ["DataSpec", "Experiment", "MethodSpec", "Task", "Validation"]

Parameters = Mapping[str, Any]


@dataclass(frozen=True)
class DataSpec:
    """A data set by name or path, and how much of it serves."""

    name: str
    path: str | None = None  # of the user's own items
    labels: str | None = None  # path of their labels
    label_column: str | None = None  # or the column that holds them
    train: int | None = None  # training items of a split; None: two thirds of all
    test: int | None = None  # queries; None: all others
    drawn_by: str = "cghash"  # "scikit-learn": splits as its train_test_split draws them, by class
    scaling: str = "none"  # "unit": rows of unit length, "hellinger": roots of counts that sum to 1
    digest: str = ""  # of its items, once they were read


@dataclass(frozen=True)
class MethodSpec:
    """An estimator with its parameters."""

    name: str
    estimator: str
    parameters: Parameters = field(default_factory=dict)
    search: Mapping[str, Sequence[Any]] = field(default_factory=dict)  # parameter: values to choose from
    bits: Sequence[int] = ()  # only these of the experiment's numbers of bits; none: all
    labels: bool = True  # whether it is told the labels
    pictures: bool | str = False  # whether to keep what some queries find, as pictures; "all": what each finds
    on: Mapping[str, Parameters] = field(default_factory=dict)  # data set: parameters there

    def parameters_on(self, dataset: str) -> dict[str, Any]:
        return {**self.parameters, **self.on.get(dataset, {})}


@dataclass(frozen=True)
class Validation:
    """How parameters are chosen: by folds of the training items, or of a sample of them."""

    folds: int = 3
    items: int = 2000  # at most so many of them
    bits: int = 0  # 0: the largest number of the experiment
    criterion: str = "all"  # "map", "top", "knn_error", or "all": the mean of the three, the error from 1


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
    """Every combination of data sets, protocols, splits and methods, each for all numbers of bits."""

    name: str
    title: str
    datasets: tuple[DataSpec, ...]
    methods: tuple[MethodSpec, ...]
    bits: tuple[int, ...] = (10, 20, 30, 40, 50, 60)
    splits: int = 5
    first_split: int = 0  # its number, from which the others go on
    shown: tuple[int, ...] = ()  # numbers of bits, beside the largest, that have curves and tables of their own
    protocols: tuple[str, ...] = ("seen",)
    top: int = 50
    neighbors: int = 3
    true_neighbors: int = 0  # how many nearest by the vectors codes should find; 0: not asked
    validation: Validation = Validation()

    def tasks(self) -> Iterator[Task]:
        """All tasks, a split of everything after the other: what is there of a run that was stopped can be compared."""
        for split in range(self.first_split, self.first_split + self.splits):
            for protocol in self.protocols:
                for dataset in self.datasets:
                    yield from (Task(dataset, protocol, split, method) for method in self.methods)

    def bits_of(self, task: Task) -> list[int]:
        """The numbers of bits of a task's cells."""
        return [n_bits for n_bits in self.bits if not task.method.bits or n_bits in task.method.bits]
