"""Average ranks of the methods over data sets and criteria; variants of CGHash one at a time."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from .line_styles import OURS, TUNED
from .values import CRITERIA, Measured, Spread, on_common_splits

__all__ = ["Rank", "RankRow", "Rankings", "rank_values", "rank_variants"]


@dataclass(frozen=True)
class Rank:
    """A method's place on one data set by one criterion; equal ones share the mean of their places."""

    dataset: str
    protocol: str
    criterion: str
    method: str
    rank: float


@dataclass(frozen=True)
class RankRow:
    """A line of the table of ranks: average, and whether it is the best, for each column."""

    method: str
    averages: list[tuple[str, bool]]
    rankings: str  # "5 of 6"


def rank_values(values: dict[str, float], larger_is_better: bool) -> dict[str, float]:
    """Ranks from 1 for the best; those of equal values are averaged.

    Examples
    --------
    >>> rank_values({"a": 0.5, "b": 0.9, "c": 0.5}, larger_is_better=True)
    {'a': 2.5, 'b': 1.0, 'c': 2.5}
    """
    from scipy.stats import rankdata

    signed = [-value if larger_is_better else value for value in values.values()]
    return dict(zip(values, rankdata(signed).tolist(), strict=True))


def rank_variants(values: dict[str, float], larger_is_better: bool) -> dict[str, float]:
    """Ranks where at most one variant of CGHash stands before anyone.

    A variant is ranked among itself and the methods that are none; those among themselves and the main variant. So the
    main variant has the same place in both.

    Examples
    --------
    >>> rank_variants({"CGHash": 0.7, "CGHash tuned": 0.9, "ITQ": 0.6, "SDH": 0.8}, larger_is_better=True)
    {'CGHash': 2.0, 'CGHash tuned': 1.0, 'ITQ': 3.0, 'SDH': 2.0}
    """
    variants = [method for method in values if method.startswith(OURS)]
    others = {method: value for method, value in values.items() if method not in variants}
    main = next((name for name in (TUNED, OURS, *variants) if name in variants), None)
    if not others or len(values) < 2:
        return {}
    with_main = others if main is None else others | {main: values[main]}
    ranks = rank_values(with_main, larger_is_better)
    alone = {name: rank_values(others | {name: values[name]}, larger_is_better)[name] for name in variants}
    return {method: (ranks | alone)[method] for method in values}


class Rankings:
    """The ranks of all methods with codes, at the longest codes of each data set, on the splits that all have."""

    def __init__(self, measured: Measured) -> None:
        self.measured = measured
        self.ranks = [
            Rank(dataset, protocol, criterion, method, rank)
            for protocol in measured.protocols
            for dataset in measured.datasets(protocol)
            for criterion in CRITERIA
            for method, rank in _ranked(measured, dataset, protocol, criterion).items()
        ]

    @property
    def n_tables(self) -> int:
        """How many rankings there are."""
        return len({(rank.dataset, rank.protocol, rank.criterion) for rank in self.ranks})

    def count(self, method: str) -> int:
        """In how many of them a method stands."""
        return sum(rank.method == method for rank in self.ranks)

    def average(self, wanted: Callable[[Rank], bool] = lambda rank: True) -> dict[str, float]:
        """Method → mean of its ranks, the best first."""
        found: dict[str, list[float]] = defaultdict(list)
        for rank in filter(wanted, self.ranks):
            found[rank.method].append(rank.rank)
        means = {method: math.fsum(ranks) / len(ranks) for method, ranks in found.items()}
        return dict(sorted(means.items(), key=lambda item: (item[1], item[0])))

    def order(self) -> Iterable[str]:
        """The methods by their average over all rankings; those that miss some come last."""
        return sorted(self.average(), key=lambda method: (self.count(method) < self.n_tables, self.average()[method]))

    def columns(self) -> dict[str, dict[str, float]]:
        """What a table of ranks has: averages over all, by protocol where there are several, and by criterion."""
        protocols = sorted({rank.protocol for rank in self.ranks})
        columns = {"all": self.average()}
        if len(protocols) > 1:
            columns |= {p: self.average(_of("protocol", p)) for p in protocols}
        return columns | {self.measured.title(key): self.average(_of("criterion", key)) for key in CRITERIA}

    def rows(self) -> list[RankRow]:
        """The lines of that table, in order."""
        columns = self.columns().values()
        return [
            RankRow(method, [_shown(c, method) for c in columns], f"{self.count(method)} of {self.n_tables}")
            for method in self.order()
        ]

    def words(self) -> str:
        """How to read that table."""
        variants = sorted({rank.method for rank in self.ranks if rank.method.startswith(OURS)})
        said = (
            f" The variants of {OURS} ({', '.join(variants)}) are ranked one at a time: each among itself and the "
            f"methods that are none, and those among themselves and one variant ({TUNED}, or else {OURS}, or else the "
            "first)."
        )
        return (
            "The mean of a method's places over data sets and criteria (mAP and top: larger is better; error: "
            "smaller), with the longest codes, on the splits that all methods have. 1 is the best; equal values share "
            f"their places. There are {self.n_tables} rankings; methods that do not stand in all of them come last, "
            f"since their means are over others.{said if len(variants) > 1 else ''}"
        )


def _of(field: str, value: str) -> Callable[[Rank], bool]:
    return lambda rank: getattr(rank, field) == value


def _shown(means: dict[str, float], method: str) -> tuple[str, bool]:
    return (f"{means[method]:.2f}", means[method] == min(means.values())) if method in means else ("–", False)


def _ranked(measured: Measured, dataset: str, protocol: str, criterion: str) -> dict[str, float]:
    bits = measured.longest(dataset, protocol)
    values = {m: measured.values(dataset, protocol, m, bits, criterion) for m in measured.codes(dataset, protocol)}
    common = on_common_splits({method: found for method, found in values.items() if found})
    means = {method: Spread.of(found.values()).mean for method, found in common.items()}
    return rank_variants(means, CRITERIA[criterion].larger_is_better)
