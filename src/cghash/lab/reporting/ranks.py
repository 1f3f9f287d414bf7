"""Average ranks of the methods over data sets and criteria."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from .measured import CRITERIA, Measured

__all__ = ["Rank", "Rankings", "rank_values"]


@dataclass(frozen=True)
class Rank:
    """A method's place on one data set by one criterion; equal ones share the mean of their places."""

    dataset: str
    protocol: str
    criterion: str
    method: str
    rank: float


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


class Rankings:
    """The ranks of all methods with codes, at the longest codes of each data set."""

    def __init__(self, measured: Measured) -> None:
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


def _ranked(measured: Measured, dataset: str, protocol: str, criterion: str) -> dict[str, float]:
    bits = measured.longest(dataset, protocol)
    means = {m: measured.spread(dataset, protocol, m, bits, criterion).mean for m in measured.codes(dataset, protocol)}
    finite = {method: mean for method, mean in means.items() if math.isfinite(mean)}
    return rank_values(finite, CRITERIA[criterion].larger_is_better) if len(finite) > 1 else {}
