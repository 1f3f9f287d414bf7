"""Tables of the choices that were made by measuring quality."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Callable
from typing import Any

from markdown_tables import bold, shown, table

Row = dict[str, Any]

QUERY_RULES = ("codes", "margin", "distance", "over mean", "root", "cut at 1", "cut at ½", "decoder", "query")
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


def queries(rows: list[Row], cell: Callable[[list[Row]], str], least: int = 0) -> str:
    """A line a method, at its longest up to 64 bits, and a column a rule; the product's rule is bold."""
    rows = [r for r in rows if r["bits"] == max(o["bits"] for o in rows if _same(o, r) and o["bits"] <= 64)]
    lines = []
    for method in dict.fromkeys(r["method"] for r in rows):
        mine = [[r for r in rows if (r["method"], r["rule"]) == (method, rule)] for rule in QUERY_RULES]
        cells = [cell(found) if found else "–" for found in mine]
        if cells[least] != "–":
            lines.append([method, *cells[least:-1], bold(cells[-1], True)])
    return table(["functions", *QUERY_RULES[least:]], lines)


def top_100(rows: list[Row]) -> str:
    return shown(statistics.mean(r["top_100"] for r in rows), 3)


def label_gains(rows: list[Row]) -> str:
    """The mean gain over sets, and the least with its set."""
    found = [r for r in rows if "gain" in r and ("labels" in r["method"] or "CGHash" in r["method"])]
    if not found:
        return "–"
    least = min(found, key=lambda r: r["gain"])
    return f"{statistics.mean(r['gain'] for r in found):+.3f} ({least['gain']:+.3f} {least['set']})"


def embeddings(rows: list[Row]) -> str:
    """10@10 / 10@100 of embeddings, asked with codes and with vectors."""
    lines = []
    sets = [name for name in ("newsgroups", "glove") if any(r["set"] == name for r in rows)]
    for method in dict.fromkeys(r["method"] for r in rows if r["set"] in sets):
        for bits in sorted({r["bits"] for r in rows if r["method"] == method and r["set"] in sets}):
            cells = []
            for name, rule in itertools.product(sets, ("codes", "query")):
                wanted = (name, method, bits, rule)
                found = next((r for r in rows if (r["set"], r["method"], r["bits"], r["rule"]) == wanted), None)
                cells.append("–" if found is None else f"{found['top_10']:.3f} / {found['top_100']:.3f}")
            lines.append([method, str(bits), *cells])
    header = ["functions", "bits", *(f"{name}, {how}" for name, how in itertools.product(sets, ("codes", "vectors")))]
    return table(header, lines)


def _same(row: Row, other: Row) -> bool:
    return (row["set"], row["method"]) == (other["set"], other["method"])


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
