"""What a hash family is: learned functions that turn items into bits, and the search for the best next one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np

from ..._arrays import Array, Bools
from ..pricing import SignedPairs

ROWS_AT_A_TIME = 8192


class Functions(ABC):
    """Learned hash functions of one family, in the order in which they were found."""

    family: ClassVar[str]

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def bits(self, X: Any, n_threads: int = 1) -> Bools:
        """The bits (n, ℓ) of items X (n, d)."""

    @abstractmethod
    def head(self, m: int) -> Self:
        """The first m functions."""

    @abstractmethod
    def one(self, j: int) -> Self:
        """Function j alone."""

    @abstractmethod
    def joined(self, other: Self) -> Self:
        """These functions, then the other's."""

    def takes(self, n_features: int) -> bool:
        """Whether items of so many features can be given to `bits`."""
        return True

    @abstractmethod
    def arrays(self) -> dict[str, Array]:
        """Everything that a model file must hold."""

    @classmethod
    @abstractmethod
    def from_arrays(cls, arrays: Mapping[str, Array]) -> Self:
        """The inverse of `arrays`; raises FormatError when they do not fit together."""


@dataclass(frozen=True)
class Priced:
    """Candidates of one pricing problem, each a single function, the largest true gain first."""

    candidates: list[Functions]
    bits: list[Bools]  # (n_items,) of each candidate
    gains: list[float]  # the true gain of each
    max_gain: float | None = None  # over the whole family, where pricing is exact
    positive_gains: float | None = None  # Σ of the positive gains over the whole family, where pricing is exact
    n_evaluations: int = 0
    bytes_read: int = field(default=0)  # of the features, by those evaluations


class Family(ABC):
    """A set of hash functions that can be searched for a large gain."""

    exact = False  # whether `price` finds the best of the whole family

    @abstractmethod
    def prepare(self, X: Any, rng: np.random.Generator, n_threads: int) -> None:
        """Look at the training items once, before the first pricing problem."""

    @abstractmethod
    def price(self, pairs: SignedPairs, rng: np.random.Generator, taken: Functions | None) -> Priced:
        """Search for functions with a large gain; an exact family leaves out those `taken` already."""

    @abstractmethod
    def training_bits(self, function: Functions) -> Bools:
        """The bits (n_items,) of a single function on the training items."""


def one_by_one(functions: Functions, bits: Bools) -> list[tuple[Functions, Bools]]:
    """Each function alone, with its bits (n_items,), from those of all (n_items, ℓ)."""
    return [(functions.one(j), column) for j, column in enumerate(np.ascontiguousarray(bits.T))]


def ranked(pairs: SignedPairs, found: Sequence[tuple[Functions, Bools]], **told: Any) -> Priced:
    """Candidates ordered by their true gain."""
    gains = [pairs.gain(bits) for _, bits in found]
    order = sorted(range(len(found)), key=lambda i: -gains[i])
    return Priced([found[i][0] for i in order], [found[i][1] for i in order], [gains[i] for i in order], **told)


def rows_in_blocks(n: int, step: int = ROWS_AT_A_TIME) -> list[slice]:
    return [slice(first, min(first + step, n)) for first in range(0, n, step)]
