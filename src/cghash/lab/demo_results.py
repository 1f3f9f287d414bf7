"""What the demo measured: plain numbers, enough to write the report without running anything again."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ..exceptions import FormatError
from ..storage import write_atomically

__all__ = ["DemoResults", "Digit", "Example", "Fit", "Row", "named"]


@dataclass(frozen=True)
class Row:
    """One method at one length: a row of the table and a curve of the precision–recall plot."""

    method: str
    n_bits: int | None  # None: vectors, not codes
    n_bytes: int  # an item
    map: float
    top: float
    knn_error: float
    precision: list[float]  # (p,)
    recall: list[float]  # (p,)


@dataclass(frozen=True)
class Fit:
    """How one model was learned; lists have one number for each column."""

    method: str
    message: str
    seconds: float
    objective: list[float]
    bound: list[float]
    satisfied: list[float]
    weights: list[float]


@dataclass(frozen=True)
class Digit:
    """An 8 × 8 image."""

    label: int
    pixels: list[int]  # (64,) from 0 to 16


@dataclass(frozen=True)
class Example:
    """A query and its nearest items under some methods."""

    why: str  # it is shown
    query: Digit
    nearest: dict[str, list[Digit]]

    def n_right(self, method: str) -> int:
        return sum(item.label == self.query.label for item in self.nearest[method])


@dataclass(frozen=True)
class DemoResults:
    """Everything that the table and the report show."""

    n_database: int
    n_queries: int
    seed: int
    top: int  # how many items `Row.top` counts
    seconds: float
    rows: list[Row]
    fits: list[Fit]
    by_bits: dict[str, list[tuple[int, float]]]  # method → (number of bits, mAP)
    examples: list[Example]
    masks: list[list[float]]  # (64,) what each pixel adds to the heaviest linear functions, from -1 to 1

    def best(self, method: str) -> Row:
        """The method's row of the largest mAP."""
        return max((row for row in self.rows if row.method == method), key=lambda row: row.map)

    def fit_of(self, method: str) -> Fit:
        return next(fit for fit in self.fits if fit.method == method)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the results as JSON."""
        write_atomically(path, json.dumps(asdict(self), allow_nan=False).encode())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> DemoResults:
        """Read what `save` wrote."""
        try:
            return cls._from_dict(json.loads(Path(path).read_text(encoding="utf-8")))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise FormatError(f"{os.fspath(path)} does not hold results of the demo: {error}") from error

    @classmethod
    def _from_dict(cls, values: dict[str, Any]) -> DemoResults:
        return cls(
            **values
            | {
                "rows": [Row(**row) for row in values["rows"]],
                "fits": [Fit(**fit) for fit in values["fits"]],
                "by_bits": {method: [(m, v) for m, v in curve] for method, curve in values["by_bits"].items()},
                "examples": [_example(example) for example in values["examples"]],
            }
        )


def _example(values: dict[str, Any]) -> Example:
    nearest = {method: [Digit(**item) for item in items] for method, items in values["nearest"].items()}
    return Example(values["why"], Digit(**values["query"]), nearest)


def named(label: int) -> str:
    """The digit with its article.

    Examples
    --------
    >>> named(7), named(8)
    ('a 7', 'an 8')
    """
    return f"an {label}" if label == 8 else f"a {label}"
