"""Raw results, by what they are of: values over splits, means and deviations."""

from __future__ import annotations

import math
import re
import statistics
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from ...exceptions import InvalidInputError

__all__ = ["CRITERIA", "Criterion", "Measured", "Spread", "on_common_splits", "paired"]

Result = dict[str, Any]
Name = tuple[str, str, str]  # data set, protocol, method
EUCLIDEAN = "Euclidean"  # the vectors themselves: a reference, never ranked among codes
PAPER_SETS = ("isolet", "scene15", "mnist", "labelme", "usps", "pascal07")  # in the order of the paper's figures
TITLES = {"isolet": "ISOLET", "scene15": "SCENE-15", "mnist": "MNIST", "labelme": "LABELME", "usps": "USPS"} | {
    "pascal07": "PASCAL07",
    "newsgroups20": "20 Newsgroups",
    "cifar10": "CIFAR-10",
    "digits": "Digits",
}
PROTOCOLS = {"seen": "seen classes", "unseen": "unseen classes", "heldout": "items not trained on"}
USUAL = {"top": 50, "k": 3}  # in cells that do not say
_OF_K = re.compile(r"(?:^|\s)K\s*=\s*(\d+)$")


@dataclass(frozen=True)
class Criterion:
    """A number that a cell has, what it is called, and which way is better."""

    key: str
    larger_is_better: bool

    def title(self, top: str, k: str) -> str:
        return {"map": "mAP", "top": f"top-{top}", "knn_error": f"{k}-NN error"}[self.key]

    def better(self, a: float, b: float) -> bool:
        return a > b if self.larger_is_better else a < b

    def gain(self, a: float, b: float) -> float:
        """By how much a is better than b."""
        return a - b if self.larger_is_better else b - a


CRITERIA = {c.key: c for c in (Criterion("map", True), Criterion("top", True), Criterion("knn_error", False))}


@dataclass(frozen=True)
class Spread:
    """A mean over n splits with the sample standard deviation, which one split does not have.

    Examples
    --------
    >>> str(Spread.of([1.0, 2.0, 3.0])), str(Spread.of([0.5])), str(Spread.of([]))
    ('2.000 ± 1.000', '0.500', '–')
    """

    mean: float
    deviation: float
    n: int

    @classmethod
    def of(cls, values: Iterable[float]) -> Spread:
        numbers = [value for value in values if math.isfinite(value)]
        mean = statistics.fmean(numbers) if numbers else math.nan
        return cls(mean, statistics.stdev(numbers) if len(numbers) > 1 else math.nan, len(numbers))

    def __str__(self) -> str:
        return self.text(3)

    def text(self, digits: int) -> str:
        if not self.n:
            return "–"
        deviation = f" ± {self.deviation:.{digits}f}" if self.n > 1 else ""
        return f"{self.mean:.{digits}f}{deviation}".replace("-", "−")


def on_common_splits(values: dict[str, dict[int, float]]) -> dict[str, dict[int, float]]:
    """The values of each method on the splits that all of them have; all values where there is no such split.

    Examples
    --------
    >>> on_common_splits({"A": {0: 0.5, 1: 0.75}, "B": {1: 0.25}})
    {'A': {1: 0.75}, 'B': {1: 0.25}}
    >>> on_common_splits({"A": {0: 0.5}, "B": {1: 0.25}})
    {'A': {0: 0.5}, 'B': {1: 0.25}}
    """
    common = set.intersection(*map(set, values.values())) if values else set()
    if not common:
        return values
    return {method: {s: v for s, v in found.items() if s in common} for method, found in values.items()}


def paired(criterion: Criterion, ours: dict[int, float], theirs: dict[int, float]) -> tuple[Spread, int]:
    """By how much ours is better on the splits that both have, and on how many of them it is.

    Examples
    --------
    >>> gain, ahead = paired(CRITERIA["map"], {0: 0.5, 1: 0.75}, {0: 0.25, 1: 0.75, 2: 0.9})
    >>> str(gain), ahead
    ('0.125 ± 0.177', 1)
    """
    gains = [criterion.gain(ours[split], theirs[split]) for split in sorted(set(ours) & set(theirs))]
    return Spread.of(gains), sum(gain > 0 for gain in gains)


def k_of(method: str) -> int | None:
    """The K that a method's name ends with.

    Examples
    --------
    >>> k_of("CGHash K=30"), k_of("K=3"), k_of("STACK=3")
    (30, 3, None)
    """
    found = _OF_K.search(method)
    return int(found[1]) if found else None


class Measured:
    """All results of a report. Where a cell comes twice, the later one stands; cells asked for differently do not mix.

    Parameters
    ----------
    results : what `read_results` gives, of one experiment or of several

    Examples
    --------
    >>> cell = {"dataset": "usps", "protocol": "seen", "split": 0, "method": "LSH", "bits": 8, "status": "ok"}
    >>> measured = Measured([cell | {"criteria": {"map": 0.5}}, cell | {"split": 1, "criteria": {"map": 0.25}}])
    >>> str(measured.spread("usps", "seen", "LSH", 8, "map"))
    '0.375 ± 0.177'
    """

    def __init__(self, results: Sequence[Result]) -> None:
        if not results:
            raise InvalidInputError("results must hold a cell or more, got none")
        for result in results:
            _key(result)  # names what is wrong
        kept, self.left_out = asked_alike(results)
        cells = {_key(result): result for result in kept}
        self.n_twice = len(kept) - len(cells)
        self.cells = [cells[key] for key in sorted(cells)]
        self.good = [cell for cell in self.cells if cell["status"] == "ok" and "criteria" in cell]
        self.failed = [cell for cell in self.cells if cell["status"] != "ok"]
        self._groups: dict[tuple[str, str, str, int], list[Result]] = defaultdict(list)
        self._bits: dict[tuple[str, str, str], set[int]] = defaultdict(set)
        self._asked: dict[tuple[str, str, str], set[int]] = defaultdict(set)
        for cell in self.good:
            of = cell["dataset"], cell["protocol"], cell["method"]
            for size, usual in USUAL.items():
                self._asked[*of[:2], size].add(int(cell.get(size, usual)))
            self._groups[*of, cell["bits"]].append(cell)
            self._bits[of].add(cell["bits"])

    @property
    def protocols(self) -> list[str]:
        return sorted({cell["protocol"] for cell in self.good})

    def size(self, name: str, dataset: str | None = None, protocol: str | None = None) -> str:
        """How many nearest items are looked at ("top") or vote ("k"); all such numbers where data sets differ."""
        found = {
            n
            for (d, p, s), sizes in self._asked.items()
            for n in sizes
            if s == name and _among(dataset, protocol, d, p)
        }
        return "/".join(map(str, sorted(found or {USUAL[name]})))

    def title(self, criterion: str, dataset: str | None = None, protocol: str | None = None) -> str:
        return CRITERIA[criterion].title(self.size("top", dataset, protocol), self.size("k", dataset, protocol))

    def datasets(self, protocol: str | None = None) -> list[str]:
        """The paper's data sets in its order, then the others by name."""
        names = {cell["dataset"] for cell in self.good if protocol in (None, cell["protocol"])}
        return sorted(names, key=lambda name: (PAPER_SETS.index(name) if name in PAPER_SETS else 9, name))

    def main_protocol(self, dataset: str) -> str:
        """Under which codes and vectors are compared: items that nothing was trained on, where there are some."""
        return next(p for p in ("heldout", "seen", *self.protocols) if dataset in self.datasets(p))

    def methods(self, dataset: str | None = None, protocol: str | None = None) -> list[str]:
        """Names of the methods with codes, and of the reference; not those that differ in K alone."""
        pairs = {(d, p) for d, p, _ in self._bits if _among(dataset, protocol, d, p)}
        return sorted({m for pair in pairs for m in set(self._methods(*pair)) - set(self.methods_of_k(*pair))})

    def codes(self, dataset: str, protocol: str) -> list[str]:
        return [name for name in self.methods(dataset, protocol) if name != EUCLIDEAN]

    def methods_of_k(self, dataset: str, protocol: str) -> list[str]:
        """The methods that differ in K, by K; none where there is only one K."""
        found = [(k, name) for name in self._methods(dataset, protocol) if (k := k_of(name)) is not None]
        return [name for _, name in sorted(found)] if len({k for k, _ in found}) > 1 else []

    def bits(self, dataset: str, protocol: str, method: str | None = None) -> list[int]:
        if method is not None:
            return sorted(self._bits.get((dataset, protocol, method), ()))
        return sorted({m for of, bits in self._bits.items() if of[:2] == (dataset, protocol) for m in bits})

    def longest(self, dataset: str, protocol: str, methods: Sequence[str] = ()) -> int:
        """The largest number of bits that half of the methods have or more: where they are compared."""
        names = methods or self.codes(dataset, protocol) or self._methods(dataset, protocol)
        bits = [m for name in names for m in self.bits(dataset, protocol, name)]
        return max((m for m in bits if 2 * bits.count(m) >= len(names)), default=max(bits))

    def shown(self, dataset: str, protocol: str) -> list[int]:
        """The numbers of bits that tables and curves are of: the longest, and shorter ones that half have curves of."""
        names, longest = self.codes(dataset, protocol), self.longest(dataset, protocol)

        def is_curved(bits: int) -> bool:
            curved = (any(cell.get("curve") for cell in self.of(dataset, protocol, name, bits)) for name in names)
            return 2 * sum(curved) >= max(1, len(names))

        return [*(bits for bits in self.bits(dataset, protocol) if bits < longest and is_curved(bits)), longest]

    def of(self, dataset: str, protocol: str, method: str, bits: int) -> list[Result]:
        """The good cells of all splits."""
        return self._groups.get((dataset, protocol, method, bits), [])

    def values(self, dataset: str, protocol: str, method: str, bits: int, criterion: str) -> dict[int, float]:
        """Split → value, where there is one: not every cell has every criterion."""
        cells = self.of(dataset, protocol, method, bits)
        found = {int(cell["split"]): number(cell["criteria"].get(criterion)) for cell in cells}
        return {split: value for split, value in found.items() if math.isfinite(value)}

    def spread(self, dataset: str, protocol: str, method: str, bits: int, criterion: str) -> Spread:
        return Spread.of(self.values(dataset, protocol, method, bits, criterion).values())

    def line(self, dataset: str, protocol: str, method: str, criterion: str) -> list[tuple[int, Spread]]:
        """Number of bits and spread, where there is one."""
        bits = self.bits(dataset, protocol, method)
        found = [(m, self.spread(dataset, protocol, method, m, criterion)) for m in bits]
        return [(m, spread) for m, spread in found if spread.n]

    def splits(self, dataset: str, protocol: str, bits: int) -> dict[str, list[int]]:
        """Method with codes → its splits."""
        found = {m: self.of(dataset, protocol, m, bits) for m in self.codes(dataset, protocol)}
        return {m: sorted(int(cell["split"]) for cell in cells) for m, cells in found.items() if cells}

    def _methods(self, dataset: str, protocol: str) -> list[str]:
        return sorted({m for d, p, m in self._bits if (d, p) == (dataset, protocol)})


def asked_alike(results: Sequence[Result]) -> tuple[list[Result], Counter[Name]]:
    """Keep, of each data set, protocol and method, the cells whose fingerprint "asked" most of them have.

    Of fingerprints that equally many cells have, the one that comes last is kept. Cells without one are asked alike.

    Returns
    -------
    kept : the results that stay, in their order
    left_out : (data set, protocol, method) → how many results were left out

    Examples
    --------
    >>> of = {"dataset": "usps", "protocol": "seen", "method": "LSH", "bits": 8}
    >>> asked = [of | {"split": split, "asked": name} for split, name in enumerate("aab")]
    >>> kept, left_out = asked_alike(asked)
    >>> [cell["split"] for cell in kept], dict(left_out)
    ([0, 1], {('usps', 'seen', 'LSH'): 1})
    """
    cells: dict[Name, dict[str, set[tuple[int, int]]]] = defaultdict(dict)  # a cell that comes twice counts once
    for result in results:
        by_fingerprint = cells[_name(result)]
        found = by_fingerprint.pop(_fingerprint(result), set())  # so that the one that came last stands last
        by_fingerprint[_fingerprint(result)] = found | {(int(result["bits"]), int(result["split"]))}
    most = {
        name: max(reversed(by_fingerprint), key=lambda asked: len(by_fingerprint[asked]))
        for name, by_fingerprint in cells.items()
    }
    kept = [result for result in results if _fingerprint(result) == most[_name(result)]]
    left_out = Counter(_name(result) for result in results if _fingerprint(result) != most[_name(result)])
    return kept, left_out


def _name(result: Result) -> Name:
    return str(result["dataset"]), str(result["protocol"]), str(result["method"])


def _fingerprint(result: Result) -> str:
    return str(result.get("asked") or "")


def _among(dataset: str | None, protocol: str | None, d: str, p: str) -> bool:
    """Whether a data set and protocol are the wanted ones; None: all are."""
    return dataset in (None, d) and protocol in (None, p)


def number(value: Any) -> float:
    """A number as it stands in a result, where nothing stands for nan."""
    return math.nan if value is None else float(value)


def title_of(dataset: str) -> str:
    """A data set's name as the paper writes it."""
    return TITLES.get(dataset, dataset)


def title_of_protocol(protocol: str) -> str:
    """What the items are that are searched, and the queries.

    Examples
    --------
    >>> title_of_protocol("heldout"), title_of_protocol("mine")
    ('items not trained on', 'mine')
    """
    return PROTOCOLS.get(protocol, protocol)


def _key(result: Result) -> tuple[str, str, str, int, int]:
    try:
        names = str(result["dataset"]), str(result["protocol"]), str(result["method"])
        return *names, int(result["bits"]), int(result["split"])
    except (KeyError, TypeError, ValueError) as error:
        raise InvalidInputError(
            f"results must be cells of 'cghash lab run', got {str(result)[:80]}: {error!r}"
        ) from error
