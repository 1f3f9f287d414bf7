"""What a fit tells about itself."""

from __future__ import annotations

from dataclasses import MISSING, asdict, dataclass, field, fields
from typing import Any, TypeVar

import numpy as np

from .._arrays import Array
from ..exceptions import FormatError

T = TypeVar("T", "ColumnRecord", "FitResult")

STATUSES = {
    "optimal": "no function of the family can improve the objective by more than the tolerance",
    "n_bits": "all bits that were asked for have been learned",
    "no_function": "the search found no further function that improves the objective",
    "time_limit": "the time limit was reached",
    "interrupted": "stopped by hand",
}


@dataclass
class ColumnRecord:
    """One step of Algorithm 1: the column that was added, and the master problem solved with it."""

    gain: float  # Σ p u a of the new column, at the multipliers before it
    violation: float  # gain − cost: how much each unit of its weight promised
    objective: float  # of the master problem with this column
    bound: float  # dual bound of the full problem; proven where the family is searched exactly
    gap: float  # (objective − bound) / objective
    satisfied: float  # share of triplets with a positive margin, by weight
    live_triplets: int  # triplets whose multiplier is not zero
    live_items: int  # items that some live pair mentions
    evaluations_pricing: int
    evaluations_master: int
    bytes_pricing: int  # of features, read by the evaluations
    seconds_pricing: float
    seconds_master: float
    bound_master: float  # dual bound of the master problem with these columns alone
    tolerance_master: float  # relative gap to which it was solved


@dataclass
class FitResult:
    """How a fit went: `status`, a `message` in words, and a record for each column.

    `exact` tells whether pricing searched the whole family, so that `bound` is proven and `status == "optimal"` is a
    certificate for the whole family; else both speak of the functions that were found.

    Examples
    --------
    >>> from cghash import CGHash
    >>> X = [[0.0], [0.1], [1.0], [1.1]]
    >>> result = CGHash(1, hash_function="stump").fit(X, triplets=[[0, 1, 2], [3, 2, 1]]).result_
    >>> result.status, result.exact, result.history["satisfied"].tolist()
    ('optimal', True, [1.0])
    """

    status: str
    exact: bool
    loss: str
    regularizer: str
    family: str
    n_triplets: int
    n_pairs: int
    columns: list[ColumnRecord] = field(default_factory=list)
    final_violation: float = float("nan")  # of the best function found after the last column
    zero_weights: int = 0  # columns whose weight is zero in the end
    seconds: float = 0.0  # in all
    seconds_triplets: float = 0.0  # until the triplets were there
    seconds_family: float = 0.0  # until the family was prepared

    @property
    def objective(self) -> float:
        return self.columns[-1].objective

    @property
    def bound(self) -> float:
        return self.columns[-1].bound

    @property
    def gap(self) -> float:
        return self.columns[-1].gap

    @property
    def history(self) -> dict[str, Array]:
        """Each field of the columns' records as an array (ℓ,)."""
        names = ColumnRecord.__dataclass_fields__
        return {name: np.array([getattr(c, name) for c in self.columns]) for name in names}

    @property
    def message(self) -> str:
        """The outcome in words."""
        n = len(self.columns)
        parts = [f"{n} bit{'s'[: n != 1]}; {STATUSES[self.status]}"]
        if n:
            last = self.columns[-1]
            of = "lower bound" if self.exact else "bound over the functions found"
            parts.append(
                f"objective {last.objective:.6g}, {of} {last.bound:.6g} (gap {100 * last.gap:.3g} %), "
                f"{100 * last.satisfied:.1f} % of {self.n_triplets} triplets satisfied"
            )
        if np.isfinite(self.final_violation):
            parts.append(f"best further violation {self.final_violation:.3g}")
        parts.append(
            "the whole family was searched, so the bound is proven"
            if self.exact
            else "the family was searched by heuristics, so better functions may exist"
        )
        if self.zero_weights:
            parts.append(f"{self.zero_weights} of the bits have weight zero and could be left out")
        return "; ".join(parts)

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers and words, for a model file."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> FitResult:
        """The inverse of `to_dict`; FormatError where a value is not what it must be."""
        if not isinstance(values, dict) or not isinstance(values.get("columns"), list):
            raise FormatError("its result must be an object with a list of columns")
        columns = [record_of(column) for column in values["columns"]]
        result = _checked(cls, values | {"columns": columns})
        if result.status not in STATUSES:
            raise FormatError(f"status of its result must be one of {', '.join(STATUSES)}, got {result.status!r}")
        return result


def record_of(values: Any) -> ColumnRecord:
    """The record of a column, as a file has it; FormatError where a value is not what it must be."""
    return _checked(ColumnRecord, values)


def _checked(kind: type[T], values: Any) -> T:
    """An object of a dataclass; each value must be of its field's type."""
    if not isinstance(values, dict):
        raise FormatError(f"{kind.__name__} must be an object, got {values!r:.40}")
    known = {f.name: f for f in fields(kind)}
    missing = [f.name for f in known.values() if f.default is f.default_factory is MISSING and f.name not in values]
    if missing or set(values) - set(known):
        wrong = missing or sorted(set(values) - set(known))
        raise FormatError(f"{kind.__name__} {'lacks' if missing else 'must not have'} {wrong[0]!r:.40}")
    for name, value in values.items():
        if not _is_of(known[name].type, value):
            raise FormatError(f"{name} of {kind.__name__} must be a {known[name].type}, got {value!r:.40}")
    return kind(**values)


def _is_of(kind: Any, value: Any) -> bool:
    """Whether a value is of a field's type, which is a word: "str", "bool", "int", "float", or a list of records."""
    if kind in ("int", "float"):
        whole = isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**63
        return whole if kind == "int" else whole or isinstance(value, float)
    return isinstance(value, {"str": str, "bool": bool}.get(kind, list))
