"""CGHash against the best of its rivals: by values on common splits, by areas under curves."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .charts import RECALL, mean_curve
from .line_styles import OURS, PAPER_TEN
from .values import CRITERIA, PAPER_SETS, Measured, Spread, on_common_splits, paired, title_of

__all__ = ["ELEVEN", "TOLD", "Areas", "Contest", "at_longest", "contests", "counted", "largest_areas"]

SEEN = "seen"
TOLD = "ITQ-CCA"  # ITQ by its other projection, where it is told the labels: not one of the paper's ten
ELEVEN = (*PAPER_TEN, TOLD)


@dataclass(frozen=True)
class Contest:
    """CGHash against the best of its rivals, on one data set at one number of bits, on the splits that both have.

    The best is the one that CGHash is least ahead of. Where two have no split in common, each has its own.
    """

    dataset: str
    bits: int
    criterion: str
    method: str  # CGHash, or a variant of it
    ours: Spread
    best: str
    theirs: Spread
    gain: Spread  # split by split
    n_ahead: int  # on so many of them

    @property
    def won(self) -> bool:
        return CRITERIA[self.criterion].better(self.ours.mean, self.theirs.mean)

    @property
    def close(self) -> bool:
        """Whether the mean difference is within one deviation of the differences."""
        return self.gain.n > 1 and abs(self.gain.mean) <= self.gain.deviation

    def sentence(self, title: str) -> str:
        """Who is ahead, and by how much."""
        how = (
            f"{self.best} {self.theirs} against {self.ours}"
            if not self.won
            else f"{self.ours}, {self.best} {self.theirs}"
        )
        close = ", a difference within one deviation" if self.close else ""
        ahead = f"{self.method} is ahead on {self.n_ahead} of {self.gain.n} splits"
        return f"{title_of(self.dataset)}, {title}, {self.bits} bits: {how}; {ahead}{close}."


def counted(measured: Measured) -> list[str]:
    """The data sets of seen classes that the paper has too; all of them where none is."""
    there = measured.datasets(SEEN)
    return [dataset for dataset in there if dataset in PAPER_SETS] or there


def contests(measured: Measured, criterion: str, ours: str = OURS, rivals: Sequence[str] = PAPER_TEN) -> list[Contest]:
    """All contests by a criterion on seen classes: where CGHash, or this variant, and a rival or more have a value."""
    return [
        contest
        for dataset in counted(measured)
        for bits in measured.bits(dataset, SEEN)
        if (contest := _contest(measured, dataset, bits, criterion, ours, rivals))
    ]


def _contest(
    measured: Measured, dataset: str, bits: int, criterion: str, ours: str, rivals: Sequence[str]
) -> Contest | None:
    rule = CRITERIA[criterion]
    mine = measured.values(dataset, SEEN, ours, bits, criterion)
    found = []
    for rival in rivals:
        theirs = measured.values(dataset, SEEN, rival, bits, criterion)
        if mine and theirs:
            both = on_common_splits({ours: mine, rival: theirs})
            spreads = [Spread.of(both[name].values()) for name in (ours, rival)]
            found.append(
                Contest(dataset, bits, criterion, ours, spreads[0], rival, spreads[1], *paired(rule, mine, theirs))
            )
    return min(found, key=lambda contest: rule.gain(contest.ours.mean, contest.theirs.mean), default=None)


def at_longest(measured: Measured, criterion: str, ours: str, rivals: Sequence[str]) -> list[Contest]:
    """The contests with the longest codes of each data set."""
    found = contests(measured, criterion, ours, rivals)
    return [contest for contest in found if contest.bits == measured.longest(contest.dataset, SEEN)]


def area(measured: Measured, dataset: str, method: str, bits: int, other: str) -> float:
    """The area under the mean precision–recall curve, on the splits that another method has too, if there are some."""
    cells = {m: measured.of(dataset, SEEN, m, bits) for m in (method, other)}
    common = {cell["split"] for cell in cells[method]} & {cell["split"] for cell in cells[other]}
    curve = mean_curve([cell for cell in cells[method] if cell["split"] in common or not common])
    return math.nan if curve is None else float(np.trapezoid(curve, RECALL))


@dataclass(frozen=True)
class Areas:
    """The area of CGHash, and of the rival that it is least ahead of."""

    dataset: str
    bits: int
    ours: float
    best: str
    theirs: float

    @property
    def won(self) -> bool:
        return self.ours > self.theirs


def largest_areas(measured: Measured, ours: str, rivals: Sequence[str]) -> list[Areas]:
    """With the longest codes of each data set, where they are known."""
    best = []
    for dataset in counted(measured):
        bits = measured.longest(dataset, SEEN)
        pairs = {m: (area(measured, dataset, ours, bits, m), area(measured, dataset, m, bits, ours)) for m in rivals}
        found = [Areas(dataset, bits, a, m, b) for m, (a, b) in pairs.items() if math.isfinite(a - b)]
        best += sorted(found, key=lambda areas: areas.ours - areas.theirs)[:1]
    return best
