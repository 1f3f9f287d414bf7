"""Cells of one method that were asked for in the same way: only those may be averaged."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Any

__all__ = ["asked_alike"]

Result = dict[str, Any]
Name = tuple[str, str, str]


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
