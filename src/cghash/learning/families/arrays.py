"""Functions whose parameters are arrays with one row a function: cutting, joining and checking them is all alike."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import ClassVar, Self

import numpy as np

from ..._arrays import Array
from ...exceptions import FormatError
from .base import Functions


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
