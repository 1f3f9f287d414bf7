"""What a hash family is: learned functions that turn items into bits, and the search for the best next one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from ..._arrays import Array, Bools, Floats
from ...exceptions import FormatError
from ..cpu.pairs import SignedPairs


class Functions(ABC):
    """Learned hash functions of one family, in the order in which they were found."""

    family: ClassVar[str]

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def bits(self, X: Any, n_threads: int = 1) -> Bools:
        """The bits (n, ℓ) of items X (n, d)."""

    def margins(self, X: Any, n_threads: int = 1) -> Floats | None:
        """Numbers (n, ℓ) whose bits are whether they are above 0; None where there are none."""
        return None

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
class ArrayFunctions(Functions):
    """Base for dataclasses of arrays: those in `shared` belong to all functions at once, those in `whole` are whole."""

    shared: ClassVar[tuple[str, ...]] = ()
    whole: ClassVar[tuple[str, ...]] = ()

    def __len__(self) -> int:
        return len(getattr(self, self._rows()[0]))

    def head(self, m: int) -> Self:
        return replace(self, **{name: getattr(self, name)[:m] for name in self._rows()})

    def one(self, j: int) -> Self:
        return replace(self, **{name: getattr(self, name)[j : j + 1] for name in self._rows()})

    def joined(self, other: Self) -> Self:
        both = {name: np.concatenate([getattr(self, name), getattr(other, name)]) for name in self._rows()}
        return replace(self, **both)

    def arrays(self) -> dict[str, Array]:
        return {f.name: getattr(self, f.name) for f in fields(self)}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Array]) -> Self:
        missing = [f.name for f in fields(cls) if f.name not in arrays]
        if missing:
            raise FormatError(f"functions of family {cls.family!r} lack the arrays {missing}")
        made = cls(**{f.name: arrays[f.name] for f in fields(cls)})
        if any(not _is_kind(a, name in cls.whole) for name, a in made.arrays().items()):
            raise FormatError(f"arrays of family {cls.family!r} must be float64, and {list(cls.whole)} whole numbers")
        if any(not np.all(np.isfinite(a)) for a in made.arrays().values()):
            raise FormatError(f"functions of family {cls.family!r} hold values that are not finite")
        if any(getattr(made, name).ndim == 0 or len(getattr(made, name)) != len(made) for name in made._rows()):
            raise FormatError(f"the arrays of family {cls.family!r} differ in their number of functions")
        made.check()
        return made

    def check(self) -> None:
        """Raise FormatError when shapes or values do not fit together."""

    @classmethod
    def _rows(cls) -> list[str]:
        return [f.name for f in fields(cls) if f.name not in cls.shared]


def _is_kind(array: Array, whole: bool) -> bool:
    return np.can_cast(array.dtype, np.int64) and array.dtype.kind in "iu" if whole else array.dtype == np.float64


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
    def price(self, pairs: Any, rng: np.random.Generator, taken: Functions | None) -> Priced:
        """Search for functions with a large gain; an exact family leaves out those `taken` already."""

    @abstractmethod
    def training_bits(self, function: Functions) -> Bools:
        """The bits (n_items,) of a single function on the training items."""


class Candidate(NamedTuple):
    """A single function that may become the next column."""

    function: Functions
    bits: Any  # (n_items,) of the training items, or what a backend has in their place
    gain: float  # the true one


def ranked(candidates: Sequence[Candidate], **told: Any) -> Priced:
    """Candidates ordered by their true gain."""
    order = sorted(candidates, key=lambda candidate: -candidate.gain)
    return Priced([c.function for c in order], [c.bits for c in order], [c.gain for c in order], **told)


def weighed(pairs: SignedPairs, found: Sequence[tuple[Functions, Bools]]) -> list[Candidate]:
    """Functions with their bits (n_items,) and, by the pairs, their gains."""
    return [Candidate(function, bits, pairs.gain(bits)) for function, bits in found]


def one_by_one(functions: Functions, bits: Bools) -> list[tuple[Functions, Bools]]:
    """Each function alone, with its bits (n_items,), from those of all (n_items, ℓ)."""
    return [(functions.one(j), column) for j, column in enumerate(np.ascontiguousarray(bits.T))]
