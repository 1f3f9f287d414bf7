"""What the paper claims of CGHash, and what these results show of it.

Li, Lin, Shen, van den Hengel, Dick: Learning Hash Functions Using Column Generation. ICML 2013, section 4.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from .charts import RECALL, mean_curve
from .looks import OURS, PAPER_TEN, TUNED
from .measured import CRITERIA, PAPER_SETS, Measured, Spread, paired, title_of

__all__ = ["AGREES", "DISAGREES", "UNMEASURED", "Claim", "Contest", "claims", "contests", "counted"]

AGREES, DISAGREES, UNMEASURED = "agrees", "does not agree", "not measured"
SEEN = "seen"
RIVALS = (*PAPER_TEN, "ITQ-CCA")  # ITQ by its other projection, where it is told the labels
SMALL_CHANGE = 0.01  # of mean average precision: what C may change without being called significant


@dataclass(frozen=True)
class Claim:
    """A sentence of the paper in our words, its place there, and what was seen here."""

    words: str
    place: str
    here: str
    verdict: str
    exceptions: tuple[str, ...] = ()


@dataclass(frozen=True)
class Contest:
    """CGHash against the best of the paper's ten, on one data set at one number of bits."""

    dataset: str
    bits: int
    criterion: str
    method: str  # CGHash, or a variant of it
    ours: Spread
    best: str
    theirs: Spread
    gain: Spread  # over the splits that both have
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


def counted(measured: Measured, protocol: str = SEEN) -> list[str]:
    """The data sets that the paper has too; all of them where none is."""
    there = measured.datasets(protocol)
    return [dataset for dataset in there if dataset in PAPER_SETS] or there


def contests(measured: Measured, criterion: str, protocol: str = SEEN, ours: str = OURS) -> list[Contest]:
    """All contests by a criterion: where CGHash, or this variant, and one of the ten or more have a value."""
    return [
        contest
        for dataset in counted(measured, protocol)
        for bits in measured.bits(dataset, protocol)
        if (contest := _contest(measured, dataset, protocol, bits, criterion, ours))
    ]


def _contest(measured: Measured, dataset: str, protocol: str, bits: int, criterion: str, ours: str) -> Contest | None:
    rule = CRITERIA[criterion]
    values = {m: measured.values(dataset, protocol, m, bits, criterion) for m in (ours, *RIVALS)}
    spreads = {method: Spread.of(found.values()) for method, found in values.items() if found}
    others = [method for method in RIVALS if method in spreads]
    if ours not in spreads or not others:
        return None
    best = max(others, key=lambda method: rule.gain(spreads[method].mean, 0.0))
    gain, ahead = paired(rule, values[ours], values[best])
    return Contest(dataset, bits, criterion, ours, spreads[ours], best, spreads[best], gain, ahead)


def claims(measured: Measured) -> list[Claim]:
    """The paper's claims in its order; the first three again for settings chosen by validation, if there are some."""
    again = quality_claims(measured, TUNED) if TUNED in measured.methods() else []
    others = [_larger_k(measured), _influence_of_c(measured), _pictures(measured)]
    return [*quality_claims(measured, OURS), *others, *again]


def quality_claims(measured: Measured, ours: str) -> list[Claim]:
    """What the paper says of its three criteria, of CGHash or a variant of it."""
    return [
        _area(measured, ours),
        _most(
            measured,
            ours,
            "top",
            f"{ours} finds a larger share of true neighbours among the {measured.top} nearest than the ten others, at "
            "most lengths of the codes.",
        ),
        _most(
            measured,
            ours,
            "knn_error",
            f"{ours} has a lower {measured.k}-nearest-neighbour error than the ten others in most cases.",
        ),
    ]


def area(measured: Measured, dataset: str, method: str, bits: int) -> float:
    """The area under the mean precision–recall curve."""
    curve = mean_curve(measured.of(dataset, SEEN, method, bits))
    return math.nan if curve is None else float(np.trapezoid(curve, RECALL))


def _area(measured: Measured, ours: str) -> Claim:
    words = f"{ours} has a larger area under the precision–recall curve than each of the ten others."
    won, exceptions = [], []
    for contest in _at_longest(measured, ours, "map"):
        areas = {m: area(measured, contest.dataset, m, contest.bits) for m in (ours, *RIVALS)}
        known = {m: value for m, value in areas.items() if math.isfinite(value)}
        if ours not in known or len(known) < 2:
            continue
        best = max(known, key=lambda m: known[m])
        won.append(best == ours)
        if best != ours:
            ahead = f"area {known[best]:.3f} of {best} against {known[ours]:.3f} of {ours}"
            exceptions.append(f"{title_of(contest.dataset)}, {contest.bits} bits: {ahead}. {contest.sentence('mAP')}")
    longest = _at_longest(measured, ours, "map")
    by_map = f"By mean average precision: first on {sum(c.won for c in longest)} of {len(longest)} data sets."
    here = f"Largest area on {sum(won)} of {len(won)} data sets. {by_map}"
    verdict = UNMEASURED if not won else AGREES if all(won) else DISAGREES
    place = "section 4, quantitative comparison; left plots of the figures of the six data sets"
    return Claim(words, place, here if won else "", verdict, tuple(exceptions))


def _at_longest(measured: Measured, ours: str, criterion: str) -> list[Contest]:
    return [c for c in contests(measured, criterion, ours=ours) if c.bits == measured.longest(c.dataset, SEEN)]


def _most(measured: Measured, ours: str, criterion: str, words: str) -> Claim:
    """A claim of "most": over data sets × numbers of bits, more than half."""
    found = contests(measured, criterion, ours=ours)
    longest = _at_longest(measured, ours, criterion)
    n_won = sum(contest.won for contest in found)
    here = (
        f"Ahead in {n_won} of {len(found)} cases (data sets × numbers of bits), in {sum(c.won for c in longest)} of "
        f"{len(longest)} with the longest codes; {sum(c.close for c in found)} differences are within one deviation."
    )
    verdict = UNMEASURED if not found else AGREES if 2 * n_won > len(found) else DISAGREES
    plots = "middle" if criterion == "top" else "right"
    place = f"section 4, quantitative comparison; {plots} plots of the figures of the six data sets"
    title = measured.title(criterion)
    exceptions = tuple(c.sentence(title) for c in found if not c.won)
    return Claim(words, place, here if found else "", verdict, exceptions)


def _larger_k(measured: Measured) -> Claim:
    words = "In general, retrieval and classification on SCENE-15 improve as K grows (3, 10, 20, 30)."
    place = "section 4, figure of different K on SCENE-15"
    methods = measured.methods_of_k("scene15", SEEN)
    steps = list(_steps(measured, methods))
    if not steps:
        return Claim(words, place, "", UNMEASURED)
    n_better = sum(gain > 0 for _, gain in steps)
    here = (
        f"{n_better} of {len(steps)} steps to the next larger K are improvements (lengths of the codes × three "
        f"criteria). {_ends(measured, methods)}"
    )
    worse = tuple(f"{words}: worse by {-gain:.3f}" for words, gain in steps if gain <= 0)
    return Claim(words, place, here, AGREES if 2 * n_better > len(steps) else DISAGREES, worse)


def _steps(measured: Measured, methods: list[str]) -> Iterator[tuple[str, float]]:
    """From each K to the next, at each length, by each criterion: what changes, and by how much it is better."""
    for smaller, larger in pairwise(methods):
        for bits in measured.bits("scene15", SEEN):
            for key, rule in CRITERIA.items():
                a, b = (measured.spread("scene15", SEEN, m, bits, key) for m in (smaller, larger))
                if a.n and b.n:
                    yield f"{smaller} to {larger}, {measured.title(key)}, {bits} bits", rule.gain(b.mean, a.mean)


def _ends(measured: Measured, methods: list[str]) -> str:
    bits = max(measured.bits("scene15", SEEN, methods[-1]))
    ends = [measured.spread("scene15", SEEN, m, bits, "map") for m in (methods[0], methods[-1])]
    return f"mAP at {bits} bits: {methods[0]} {ends[0]}, {methods[-1]} {ends[1]}."


def _influence_of_c(measured: Measured) -> Claim:
    words = "In a wide range, the trade-off C has no significant influence on the results."
    place = "section 4, experimental setup"
    found = {d: lines for d in counted(measured) if len(lines := _by_c(measured, d)) > 1}
    if not found:
        return Claim(words, place, "", UNMEASURED)
    told, small = [], []
    for dataset, by_c in found.items():
        spreads = {c: Spread.of(values) for c, values in by_c.items()}
        means = [spread.mean for spread in spreads.values()]
        change = max(means) - min(means)
        deviations = [s.deviation for s in spreads.values() if s.n > 1]
        small.append(change <= max([SMALL_CHANGE, *deviations]))
        told.append(
            f"{title_of(dataset)}: C from {min(by_c):g} to {max(by_c):g} changes mAP in validation by {change:.3f}"
        )
    rule = f"Called significant: more than {SMALL_CHANGE} and than one deviation over splits."
    here = f"Not significant on {sum(small)} of {len(small)} data sets. {'; '.join(told)}. {rule}"
    exceptions = tuple(words for words, fine in zip(told, small, strict=True) if not fine)
    return Claim(words, place, here, AGREES if all(small) else DISAGREES, exceptions)


def _by_c(measured: Measured, dataset: str) -> dict[float, list[float]]:
    """C → mean average precision in the choice of parameters, of each split."""
    by_c: dict[float, list[float]] = defaultdict(list)
    for cell in measured.of(dataset, SEEN, OURS, measured.longest(dataset, SEEN)):
        for row in cell.get("tried", []):
            if "C" in row and row.get("map") is not None:
                by_c[float(row["C"])].append(float(row["map"]))
    return dict(by_c)


def _pictures(measured: Measured) -> Claim:
    words = f"The nearest items that {OURS} finds look right (examples of MNIST and LABELME)."
    place = "section 4, figure of retrieval examples"
    shown: dict[str, list[bool]] = defaultdict(list)
    for cell in measured.good:
        if cell["method"] == OURS and cell["protocol"] == SEEN and "pictures" in cell:
            shown[cell["dataset"]] += [bool(item["right"]) for items in _lists(cell) for item in items]
    marks = [mark for marks in shown.values() for mark in marks]
    if not marks:
        return Claim(words, place, "", UNMEASURED)
    told = "; ".join(f"{title_of(d)}: {sum(m)} of {len(m)} shown are of the query's class" for d, m in shown.items())
    here = f"{told}. Agreement is said from nine in ten on; the eye may judge below."
    return Claim(words, place, here, AGREES if sum(marks) >= 0.9 * len(marks) else DISAGREES)


def _lists(cell: dict[str, Any]) -> list[list[dict[str, Any]]]:
    lists: list[list[dict[str, Any]]] = cell["pictures"]["nearest"]
    return lists
