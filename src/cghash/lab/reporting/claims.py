"""What the paper claims of CGHash, and what these results show of it.

Li, Lin, Shen, van den Hengel, Dick: Learning Hash Functions Using Column Generation. ICML 2013, section 4.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from .contests import ELEVEN, SEEN, TOLD, Areas, Contest, at_longest, contests, counted, largest_areas
from .examples import pictures_of
from .line_styles import OURS, PAPER_TEN, TUNED
from .values import CRITERIA, Measured, Spread, on_common_splits, title_of

__all__ = ["AGREES", "DISAGREES", "UNMEASURED", "Claim", "claims"]

AGREES, DISAGREES, UNMEASURED = "agrees", "does not agree", "not measured"
SMALL_CHANGE = 0.01  # of mean average precision: what C may change without being called significant


@dataclass(frozen=True)
class Claim:
    """A sentence of the paper in our words, its place there, and what was seen here."""

    words: str
    place: str
    here: str
    verdict: str
    exceptions: tuple[str, ...] = ()


def claims(measured: Measured) -> list[Claim]:
    """The paper's claims in its order; the first three again for settings chosen by validation, if there are some."""
    again = quality_claims(measured, TUNED) if TUNED in measured.methods() else []
    others = [_larger_k(measured), _influence_of_c(measured), _pictures(measured)]
    return [*quality_claims(measured, OURS), *others, *again]


def quality_claims(measured: Measured, ours: str) -> list[Claim]:
    """What the paper says of its three criteria, of CGHash or a variant of it."""
    top, k = (measured.size(name, protocol=SEEN) for name in ("top", "k"))
    return [
        _area(measured, ours),
        _most(
            measured,
            ours,
            "top",
            f"{ours} finds a larger share of true neighbours among the {top} nearest than the ten others, at "
            "most lengths of the codes.",
        ),
        _most(
            measured,
            ours,
            "knn_error",
            f"{ours} has a lower {k}-nearest-neighbour error than the ten others in most cases.",
        ),
    ]


def _area(measured: Measured, ours: str) -> Claim:
    words = f"{ours} has a larger area under the precision–recall curve than each of the ten others."
    place = "section 4, quantitative comparison; left plots of the figures of the six data sets"
    found, with_told = (largest_areas(measured, ours, rivals) for rivals in (PAPER_TEN, ELEVEN))
    if not found:
        return Claim(words, place, "", UNMEASURED)
    by_map, by_map_told = (at_longest(measured, "map", ours, rivals) for rivals in (PAPER_TEN, ELEVEN))
    here = (
        f"Largest area on {_won(found)} data sets{_told(measured, f'on {_won(with_told)}')}. By mean average "
        f"precision: first on {_won(by_map)} data sets{_told(measured, f'on {_won(by_map_told)}')}."
    )
    sentences = {contest.dataset: contest.sentence("mAP") for contest in by_map}
    exceptions = tuple(
        f"{title_of(a.dataset)}, {a.bits} bits: area {a.theirs:.3f} of {a.best} against {a.ours:.3f} of {ours}. "
        f"{sentences.get(a.dataset, '')}".rstrip()
        for a in found
        if not a.won
    )
    return Claim(words, place, here, DISAGREES if exceptions else AGREES, exceptions)


def _won(found: Sequence[Contest | Areas]) -> str:
    """Of how many contests how many are won: "5 of 6"."""
    return f"{sum(one.won for one in found)} of {len(found)}"


def _told(measured: Measured, counts: str) -> str:
    """The same count where ITQ may use the labels, if it was measured so."""
    there = TOLD in measured.methods(protocol=SEEN)
    return f" ({counts} where ITQ told the labels, {TOLD}, is an eleventh)" if there else ""


def _most(measured: Measured, ours: str, criterion: str, words: str) -> Claim:
    """A claim of "most": over data sets × numbers of bits, more than half."""
    found, with_told = (contests(measured, criterion, ours, rivals) for rivals in (PAPER_TEN, ELEVEN))
    longest, longest_told = (at_longest(measured, criterion, ours, rivals) for rivals in (PAPER_TEN, ELEVEN))
    n_won = sum(contest.won for contest in found)
    here = (
        f"Ahead in {_won(found)} cases (data sets × numbers of bits), in {_won(longest)} with the longest codes"
        f"{_told(measured, f'in {_won(with_told)} and {_won(longest_told)}')}; {sum(c.close for c in found)} "
        "differences are within one deviation."
    )
    verdict = UNMEASURED if not found else AGREES if 2 * n_won > len(found) else DISAGREES
    plots = "middle" if criterion == "top" else "right"
    place = f"section 4, quantitative comparison; {plots} plots of the figures of the six data sets"
    exceptions = tuple(c.sentence(measured.title(criterion, c.dataset, SEEN)) for c in found if not c.won)
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
                values = {m: measured.values("scene15", SEEN, m, bits, key) for m in (smaller, larger)}
                a, b = (Spread.of(found.values()) for found in on_common_splits(values).values())
                if a.n and b.n:
                    title = measured.title(key, "scene15", SEEN)
                    yield f"{smaller} to {larger}, {title}, {bits} bits", rule.gain(b.mean, a.mean)


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
        if cell["method"] == OURS and cell["protocol"] == SEEN:
            shown[cell["dataset"]] += [bool(item["right"]) for _, items in pictures_of(cell) for item in items]
    marks = [mark for marks in shown.values() for mark in marks]
    if not marks:
        return Claim(words, place, "", UNMEASURED)
    told = "; ".join(
        f"{title_of(d)}: {sum(m)} of {len(m)} shown are of the query's class" for d, m in shown.items() if m
    )
    here = f"{told}. Agreement is said from nine in ten on; the eye may judge below."
    return Claim(words, place, here, AGREES if sum(marks) >= 0.9 * len(marks) else DISAGREES)
