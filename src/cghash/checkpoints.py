"""Checkpoints of a fit: what Algorithm 1 knows after each column, and whose fit it is."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from . import storage
from .exceptions import FormatError, InvalidInputError
from .learning.column_generation import State
from .learning.families import Functions, functions_class
from .learning.result import record_of
from .learning.triplets import TripletSet

KIND, VERSION = "cghash-checkpoint", 1
_MOST = 1e100  # weight of a bit: squares of sums are finite


class Checkpoint:
    """Writes a fit's state after each column and finds it again; a path of None does nothing."""

    def __init__(self, path: str | os.PathLike[str] | None) -> None:
        self.path = None if path is None else Path(path)
        self._stored: tuple[storage.Arrays, dict[str, Any]] | None = None
        if self.path is not None:
            if not self.path.parent.is_dir():
                raise InvalidInputError(f"checkpoint must lie in a folder that exists, got {os.fspath(self.path)!r}")
            if self.path.is_dir():
                raise InvalidInputError(f"checkpoint must be a file, got the folder {os.fspath(self.path)!r}")
            if self.path.exists():
                self._stored = storage.load(self.path, KIND, VERSION)

    def seed(self, drawn: int, fixed: bool) -> int:
        """The seed of the fit: the stored one goes on, unless the caller fixed another."""
        if self._stored is None or fixed:
            return drawn
        return _seed_in(self._stored[1], self.path)

    def begin(self, fingerprint: Callable[[], str], seed: int, n_bits: int) -> State:
        """The state to go on from, which is empty for a new fit."""
        if self.path is None:
            return State()
        self._fingerprint, self._seed = fingerprint(), seed
        if self._stored is None:
            return State()
        arrays, about = self._stored
        if (about.get("fingerprint"), about.get("seed")) != (self._fingerprint, seed):
            raise InvalidInputError(
                f"checkpoint {os.fspath(self.path)!r} belongs to another fit (data, comparisons, parameters "
                "or random_state differ); remove it or name another path"
            )
        state = _state(self.path, arrays, about)
        n = min(len(state.records), n_bits)
        return State(state.functions.head(n), state.weights[:n], state.records[:n])  # type: ignore[union-attr]

    def write(self, state: State) -> None:
        if self.path is None or state.functions is None:
            return
        arrays = {f"functions.{name}": array for name, array in state.functions.arrays().items()}
        arrays["weights"] = np.concatenate(state.weights)
        about = {
            "fingerprint": self._fingerprint,
            "seed": self._seed,
            "family": state.functions.family,
            "records": [vars(record) for record in state.records],
        }
        storage.save(self.path, KIND, VERSION, arrays, about)


def read_checkpoint(path: str | os.PathLike[str]) -> tuple[State, dict[str, Any]]:
    """The state that a checkpoint holds, and what it says about its fit."""
    arrays, about = storage.load(path, KIND, VERSION)
    state = _state(path, arrays, about)
    _seed_in(about, path)
    return state, about


def _seed_in(about: dict[str, Any], path: Any) -> int:
    seed = about.get("seed")
    if not isinstance(seed, int) or isinstance(seed, bool) or not 0 <= seed < 2**31:
        raise FormatError(f"{path} must hold the seed of a fit, got {seed!r:.40}")
    return seed


def _state(path: Any, arrays: storage.Arrays, about: dict[str, Any]) -> State:
    try:
        functions, records = functions_in(arrays, about), about["records"]
        if not isinstance(records, list) or len(records) != len(functions):
            raise FormatError(f"there must be a record for each of its {len(functions)} functions")
        weights = weights_path(arrays["weights"], len(functions))
        return State(functions, weights, [record_of(record) for record in records])
    except (KeyError, ValueError) as error:
        raise FormatError(f"{path} is a cghash checkpoint, but its parts do not fit together: {error}") from error


def functions_in(arrays: storage.Arrays, about: dict[str, Any]) -> Functions:
    """The hash functions of a model or a checkpoint."""
    inside = {name.removeprefix("functions."): a for name, a in arrays.items() if name.startswith("functions.")}
    return functions_class(about["family"]).from_arrays(inside)


def weights_path(flat: np.ndarray[Any, np.dtype[np.float64]], n: int) -> list[Any]:
    """The weights after columns 1, 2, …, n, which are stored one behind the other."""
    starts = np.cumsum(np.arange(n + 1))
    if n == 0 or flat.shape != (starts[n],) or flat.dtype != np.float64 or not np.all((flat >= 0) & (flat <= _MOST)):
        raise FormatError(f"weights must be numbers of 0 to {_MOST:g}, and one for each of the first 1, 2, … {n} bits")
    return [flat[starts[j] : starts[j + 1]].copy() for j in range(n)]


def deciding(model: Any) -> dict[str, Any]:
    """The parameters of an estimator that decide which codes come out."""
    free = ("n_bits", "time_limit", "checkpoint", "n_jobs", "verbose", "random_state")
    return {name: _described(value) for name, value in model.get_params(deep=False).items() if name not in free}


def _described(value: Any) -> str:
    """A parameter in words that stay the same from run to run; Python's own for an object hold its address."""
    if getattr(type(value), "__repr__", None) is not object.__repr__:
        return repr(value)
    return f"{type(value).__qualname__}({sorted(getattr(value, '__dict__', {}).items())})"


def fingerprint_of(X: Any, t: TripletSet, duplets: Any, parameters: dict[str, Any]) -> str:
    """What makes two fits the same: data, comparisons and the parameters that change the outcome."""
    data = (X.data, X.indices, X.indptr, np.array(X.shape)) if hasattr(X, "indptr") else (X,)
    words = np.frombuffer(repr(sorted(parameters.items())).encode(), np.uint8)
    comparisons = (t.anchors, t.near, t.near_ptr, t.far, t.far_ptr, t.weights)
    return storage.digest([*data, *comparisons, duplets, words])
