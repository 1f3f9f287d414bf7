"""Tables of the choices that were made by measuring quality."""

from __future__ import annotations

import statistics
from typing import Any

from markdown_tables import bold, shown, table

Row = dict[str, Any]

CHOSEN = ("linear", "K nearest × rest", 10, 0.1)  # the default


def unlabelled(rows: list[Row]) -> str:
    """mAP by labels / recall of the Euclidean neighbours: on each set at the larger length, and means at both."""
    sets = list(dict.fromkeys(r["set"] for r in rows))
    lengths = sorted({r["bits"] for r in rows if "bits" in r})
    names = list(dict.fromkeys(_name(r) for r in rows))
    lines = []
    for name in names:
        mine = [r for r in rows if _name(r) == name]
        cells = [_pair(mine, [s], lengths[-1]) for s in sets]
        means = [_pair(mine, sets, bits) for bits in lengths]
        words = [bold(shown(word), name == CHOSEN) for word in name]
        lines.append([*words, *cells, *means])
    header = ["functions", "near × far", "K", "C", *sets, *(f"mean, {bits} bits" for bits in lengths)]
    return table(header, lines, words=2)


def landmarks(rows: list[Row]) -> str:
    """Quality and seconds over the number of landmarks."""
    names = ("landmarks", "map", "top", "knn_error", "seconds")
    header = ["set", "landmarks", "mAP", "top-50", "3-NN error", "processor seconds"]
    return table(header, ([r["set"], *(shown(r[name]) for name in names)] for r in rows))


def _name(row: Row) -> tuple[Any, ...]:
    return tuple(row.get(key) for key in ("family", "way", "K", "C"))


def _pair(rows: list[Row], sets: list[str], bits: int) -> str:
    """Means over seeds, then over sets."""
    mine = [r for r in rows if r.get("bits", bits) == bits]
    found = []
    for name in ("map", "recall"):
        each = [[r[name] for r in mine if r["set"] == s and name in r] for s in sets]
        found.append(shown(statistics.mean(map(statistics.mean, each)), 3) if all(each) else "–")
    return " / ".join(found)
