"""Results as tables: CSV for other programs, Markdown for documents, rows for the page."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Sequence
from typing import Any

from .html import Cell, table
from .values import CRITERIA, EUCLIDEAN, Measured, Result, Spread, number, paired, title_of

__all__ = ["cells_csv", "markdown_table", "quality_table", "summary_csv"]

PLAIN = ("dataset", "protocol", "split", "method", "bits", "status", "n_bits", "bytes")
SCORES = ("map", "top", "knn_error", "ndcg", "recall")
COSTS = ("seconds_fit", "seconds_choice", "seconds_encode", "peak_mb")
SIZES = ("n_train", "n_database", "n_queries", "n_features", "commit", "code", "error")


def cells_csv(measured: Measured) -> str:
    """A line a cell, also of those that failed."""
    lines = (
        [_plain(cell.get(key)) for key in PLAIN]
        + [_plain(cell.get("criteria", {}).get(key)) for key in SCORES]
        + [_plain(cell.get(key)) for key in (*COSTS, *SIZES)]
        for cell in measured.cells
    )
    return _csv((*PLAIN, *SCORES, *COSTS, *SIZES), lines)


def summary_csv(measured: Measured) -> str:
    """A line for each data set, protocol, method, number of bits and criterion: mean and deviation over splits."""
    keys = sorted({(c["dataset"], c["protocol"], c["method"], c["bits"]) for c in measured.good})
    rows = ((key, name, measured.spread(*key, name)) for key in keys for name in SCORES)
    lines = ([*key, name, s.mean, _plain(s.deviation), s.n] for key, name, s in rows if s.n)
    return _csv(("dataset", "protocol", "method", "bits", "criterion", "mean", "deviation", "n_splits"), lines)


def markdown_table(results: Sequence[Result], protocol: str = "seen") -> str:
    """Data sets × methods with the longest codes: three criteria, mean ± deviation over splits.

    Parameters
    ----------
    results : what `read_results` gives
    protocol : "seen" or "unseen" classes, or items "heldout" from training

    Returns
    -------
    text : a table of Markdown; the best codes of a data set by each criterion are bold

    Examples
    --------
    >>> cell = {"dataset": "usps", "protocol": "seen", "split": 0, "bits": 8, "status": "ok", "top": 50, "k": 3}
    >>> found = {"map": 0.5, "top": 0.75, "knn_error": 0.125}
    >>> print(markdown_table([cell | {"method": "LSH", "criteria": found}]))
    | data set | method | bits | mAP | top-50 | 3-NN error |
    |---|---|--:|--:|--:|--:|
    | USPS | LSH | 8 | **0.500** | **0.750** | **0.125** |
    """
    measured = Measured(results)
    heads = ["data set", "method", "bits", *(measured.title(key, protocol=protocol) for key in CRITERIA)]
    lines = ["| " + " | ".join(heads) + " |", "|---|---|--:" + "|--:" * len(CRITERIA) + "|"]
    for dataset in measured.datasets(protocol):
        bits = measured.longest(dataset, protocol)
        best = {key: _best(measured, dataset, protocol, bits, key) for key in CRITERIA}
        for method in by_map(measured, dataset, protocol, bits):
            spreads = {key: measured.spread(dataset, protocol, method, bits, key) for key in CRITERIA}
            values = [f"**{s}**" if best[key] == method else str(s) for key, s in spreads.items()]
            length = "–" if method == EUCLIDEAN else str(bits)
            lines.append("| " + " | ".join([_bare(title_of(dataset)), _bare(method), length, *values]) + " |")
    return "\n".join(lines)


def quality_table(measured: Measured, dataset: str, protocol: str, bits: int | None = None) -> str:
    """The page's table of a data set: methods by mAP; the best bold, those within one deviation of it underlined."""
    bits = bits or measured.longest(dataset, protocol)
    best = {key: _best(measured, dataset, protocol, bits, key) for key in CRITERIA}
    rows = [
        [_named(method), *(_valued(measured, dataset, protocol, bits, key, method, best[key]) for key in CRITERIA)]
        for method in by_map(measured, dataset, protocol, bits)
    ]
    heads = (f"{bits} bits", *(measured.title(key, dataset, protocol) for key in CRITERIA))
    return table(heads, rows, f"{title_of(dataset)}: criteria with {bits} bits")


def by_map(measured: Measured, dataset: str, protocol: str, bits: int) -> list[str]:
    """Methods that have a value, by mean average precision; the reference last."""
    spreads = {m: measured.spread(dataset, protocol, m, bits, "map") for m in measured.methods(dataset, protocol)}
    return sorted((m for m, s in spreads.items() if s.n), key=lambda m: (m == EUCLIDEAN, -spreads[m].mean, m))


def _best(measured: Measured, dataset: str, protocol: str, bits: int, key: str) -> str | None:
    means = {m: measured.spread(dataset, protocol, m, bits, key).mean for m in measured.codes(dataset, protocol)}
    finite = [method for method, mean in means.items() if math.isfinite(mean)]
    return max(finite, key=lambda m: CRITERIA[key].gain(means[m], 0.0), default=None)


def _valued(m: Measured, dataset: str, protocol: str, bits: int, key: str, method: str, best: str | None) -> Cell:
    text = str(m.spread(dataset, protocol, method, bits, key))
    if method == best:
        return Cell(text, "best")
    if best is None or method == EUCLIDEAN:
        return Cell(text)
    gain, _ = paired(CRITERIA[key], *(m.values(dataset, protocol, name, bits, key) for name in (best, method)))
    return Cell(text, "close" if gain.n > 1 and gain.mean <= gain.deviation else "")


def _named(method: str) -> Cell:
    return Cell(method, "reference" if method == EUCLIDEAN else "ours" if method.startswith("CGHash") else "")


def _plain(value: Any) -> Any:
    """Empty where there is nothing, or not a number."""
    return "" if value is None or (isinstance(value, float) and math.isnan(value)) else value


def _bare(text: str) -> str:
    return text.replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;").replace("\n", " ")


def _csv(heads: Sequence[str], lines: Iterable[Sequence[Any]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(heads)
    writer.writerows(lines)
    return text.getvalue()


def cost_table(measured: Measured, dataset: str, protocol: str) -> str:
    """What each method costs with the longest codes: time, bytes, memory."""
    bits = measured.longest(dataset, protocol)
    heads = ("method", "bits", "bytes", "fit, s", "choice, s", "encode, µs an item", "peak, MB")
    names = [*measured.methods(dataset, protocol), *measured.methods_of_k(dataset, protocol)]
    rows = [_costs(method, bits, measured.of(dataset, protocol, method, bits)) for method in names]
    return table(heads, [row for row in rows if row], f"{title_of(dataset)}: costs")


def _costs(method: str, bits: int, cells: list[Result]) -> list[str | Cell]:
    if not cells:
        return []
    got = sorted({int(cell["n_bits"]) for cell in cells if "n_bits" in cell})
    length = "–" if method == EUCLIDEAN else str(bits) if got in ([], [bits]) else f"{got[0]} of {bits}"
    sizes = sorted({int(cell["bytes"]) for cell in cells if "bytes" in cell})
    encode = [1e6 * number(c.get("seconds_encode")) / c["n_database"] for c in cells if c.get("n_database")]
    costs = [[number(cell.get(key)) for cell in cells] for key in ("seconds_fit", "seconds_choice")]
    if method == EUCLIDEAN:
        costs, encode = [[], []], []
    many = [*costs, encode, [number(cell.get("peak_mb")) for cell in cells]]
    return [_named(method), length, "–".join(map(str, sizes)) or "–", *(_short(Spread.of(values)) for values in many)]


def _short(spread: Spread) -> str:
    """A mean with as many digits as it needs."""
    if not spread.n:
        return "–"
    digits = 0 if spread.mean >= 100 else 1 if spread.mean >= 10 else 2
    return spread.text(digits)
