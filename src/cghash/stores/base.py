"""What every store does: `write`, `open`, `search`, `info`."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from importlib import import_module
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from .._arrays import Bools, Codes, Floats, Ints
from .._validation import check_answers, check_whole
from ..exceptions import FormatError, InvalidInputError, MissingDependencyError
from ..index.checks import check_codes, check_different, check_ids
from .origin import Origin, origin_of

Path = str | os.PathLike[str]


class Found(NamedTuple):
    """The nearest of each query.

    >>> Found(np.array([[0.5, 2.0]]), np.array([[3, 1]]), np.array([True])).ids.tolist()
    [[3, 1]]
    """

    distances: Floats  # (q, k), ascending, in the unit of the weights; inf where there are fewer
    ids: Ints  # (q, k), ascending among equal distances; -1 where there are fewer
    exact: Bools  # (q,) whether these are proven to be the k nearest of all


class Store(ABC):
    """Codes in a system that others made, and search among them under the learned weights.

    Distances are always those of the weights, to the last bit as `WeightedHammingIndex` has them; where a store may
    have missed an item, `exact` says so.
    """

    origin: Origin
    where: str  # as messages call it

    @classmethod
    @abstractmethod
    def write(cls, path: Path, model: Any, codes: ArrayLike, ids: ArrayLike | None = None) -> Self:
        """Write codes into a new place, whole or not at all.

        Parameters
        ----------
        path : file
        model : the fitted estimator whose codes these are, or an `Origin`
        codes : (n, n_bytes) uint8, packed
        ids : (n,) int64, 0 or more, different, optional; default: row numbers
        """

    @classmethod
    @abstractmethod
    def open(cls, path: Path, model: Any = None) -> Self:
        """Open what `write` wrote; FormatError when it is not whole, InvalidInputError when it is of another model."""

    @abstractmethod
    def __len__(self) -> int: ...

    def search(self, queries: ArrayLike, k: int) -> Found:
        """The k nearest codes of each query, order (distance, id).

        Parameters
        ----------
        queries : (q, n_bytes) uint8, packed codes of the same model
        k : int
        """
        checked_queries = check_codes(queries, self.origin.n_bits, "queries")
        return self._search(checked_queries, check_answers(len(checked_queries), k))

    def search_items(self, model: Any, X: Any, k: int) -> Found:
        """The k nearest codes of each item; the model is checked to be the one that made the codes."""
        self.origin.check(model, self.where)
        return self.search(model.encode(X), k)

    def info(self) -> dict[str, Any]:
        """What is stored: `n_codes`, `n_bits`, `fingerprint`, and what the store adds."""
        return {"n_codes": len(self), "n_bits": self.origin.n_bits, "fingerprint": self.origin.fingerprint}

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {len(self)} codes of {self.origin.n_bits} bits>"

    @abstractmethod
    def _search(self, queries: Codes, k: int) -> Found:
        """As `search`, of checked queries."""


def checked(model: Any, codes: ArrayLike, ids: ArrayLike | None) -> tuple[Origin, Codes, Ints]:
    """What `write` was given, or what is wrong with it."""
    origin = origin_of(model)
    packed = check_codes(codes, origin.n_bits)
    if ids is None:
        return origin, packed, np.arange(len(packed), dtype=np.int64)
    numbers = check_ids(ids)
    if len(numbers) != len(packed):
        raise InvalidInputError(f"ids must be as many as codes, {len(packed)}, got {len(numbers)}")
    check_different(numbers)
    return origin, packed, numbers


def check_asked(queries: Codes, k: Any, candidates: Any) -> int:
    """k, a whole number; candidates, where they are given, must be as many or more."""
    wanted = check_answers(len(queries), k)
    if candidates is not None and check_whole(candidates, 1, "candidates") < wanted:
        raise InvalidInputError(f"candidates must be at least k={wanted}, got {candidates}")
    return wanted


def check_file(path: Path) -> None:
    """Refuse a folder; what is missing is left to the system to say."""
    if os.path.isdir(path):
        raise FormatError(f"{os.fspath(path)} is a folder, not a file of codes")


def require(module: str, extra: str) -> Any:
    """An optional package, or a word on how to install it."""
    try:
        return import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise MissingDependencyError(f'{package} is needed here: pip install "cghash[{extra}]"') from error
