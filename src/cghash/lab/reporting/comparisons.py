"""Plots that set two things side by side: seen and unseen classes, quality and bytes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from ..drawing import INK, draw
from .charts import Chart
from .line_labels import STEP, LineLabel, name_of, write_column
from .line_styles import CARD
from .values import EUCLIDEAN, Spread, title_of

__all__ = ["quality_over_bytes", "seen_and_unseen"]

SLOPE, COLUMN, GAP, EDGE = 2.3, 2.5, 0.34, 0.1  # inches


def seen_and_unseen(seen: Chart, unseen: Chart, criterion: str) -> Any | None:
    """A line from a method's value on classes that it learned from to its value on others. None: nobody has both."""
    pairs = {m: (a, b) for m in seen.methods if (a := seen.said(m, criterion)) and (b := unseen.said(m, criterion))}
    if not pairs:
        return None
    tall = max(3.3, STEP * (len(pairs) - 1) + 0.1)
    width, height = 2 * (EDGE + COLUMN + GAP) + SLOPE, tall + 0.8
    columns = [
        [LineLabel(name_of(m), p[i][0], seen.styles[m], p[i][1]) for m, p in sorted(pairs.items())] for i in (0, 1)
    ]

    def paint(figure: Any) -> None:
        axes = figure.add_axes(((EDGE + COLUMN + GAP) / width, 0.25 / height, SLOPE / width, tall / height))
        for method, (a, b) in pairs.items():
            axes.plot([0, 1], [a[1], b[1]], clip_on=False, **seen.styles[method].line)
        axes.set(xlim=(0, 1), xticks=[], yticks=[])
        axes.spines[["bottom"]].set_visible(False)
        axes.spines[["right"]].set_visible(True)
        write_column(axes, columns[0], "classes seen in training", COLUMN, GAP, "left")
        write_column(axes, columns[1], "classes never seen", COLUMN, GAP, "right")

    return draw(paint, (width, height))


@dataclass(frozen=True)
class _Line:
    method: str
    n_bytes: list[float]
    values: list[float]
    last: Spread

    def said(self, most: float) -> str:
        """The value at the most bytes; at how many where it is at others."""
        return self.last.text(3) + ("" if self.n_bytes[-1] == most else f" ({self.n_bytes[-1]:g} B)")


def quality_over_bytes(chart: Chart) -> Any | None:
    """Mean average precision over the bytes of an item, with the vectors as reference. None: there are no codes."""
    lines = [line for method in chart.methods if (line := _line(chart, method))]
    codes = [line for line in lines if line.method != EUCLIDEAN]
    if not codes:
        return None
    floats = next((line for line in lines if line.method == EUCLIDEAN), None)
    plot, tall = 3.9, max(4.0, STEP * len(lines) + 0.1)
    left, column, above = 0.74, 2.6, 0.95
    width, height = left + plot + 0.34 + column + 0.12, 0.55 + tall + above
    most = max(line.n_bytes[-1] for line in codes)
    ends = [LineLabel(name_of(m.method), m.said(most), chart.styles[m.method], m.values[-1]) for m in lines]

    def paint(figure: Any) -> None:
        axes = figure.add_axes((left / width, 0.55 / height, plot / width, tall / height))
        _draw_codes(axes, codes, chart)
        if floats is not None:
            _draw_floats(axes, floats)
        values = [value for line in lines for value in line.values]
        margin = 0.05 * (max(values) - min(values)) or 0.05
        axes.set(xlabel="bytes of an item", ylabel="mean average precision")
        axes.set_ylim(min(values) - margin, max(values) + margin)
        write_column(axes, ends, f"at {most:g} bytes", column, 0.34)
        figure.text(
            0.16 / width, 1 - 0.16 / height, headline(chart, codes, floats), fontsize=12.5, va="top", weight="bold"
        )
        figure.text(0.16 / width, 1 - 0.43 / height, _subtitle(chart), fontsize=9, va="top", alpha=0.75)

    return draw(paint, (width, height))


def headline(chart: Chart, codes: list[_Line], floats: _Line | None) -> str:
    """What the picture shows of CGHash against the vectors, where that can be said."""
    plain = f"Quality over bytes: {name_of(title_of(chart.dataset))}"
    ours = max((line for line in codes if chart.styles[line.method].strong), key=lambda c: max(c.values), default=None)
    if ours is None or floats is None:
        return plain
    reached = [b for b, value in zip(ours.n_bytes, ours.values, strict=True) if value >= floats.values[0]]
    if not reached:
        return plain
    least = min(reached)
    size = "1 byte" if least == 1 else f"{least:g} bytes"
    return f"{size} of {ours.method} rank at least as well as the vectors, {floats.n_bytes[0]:g} bytes"


def _subtitle(chart: Chart) -> str:
    cell = chart.measured.of(chart.dataset, chart.protocol, chart.methods[0], chart.longest)
    sizes = cell[0] if cell else {}
    where = chart.dataset, chart.protocol
    splits = len({c["split"] for c in chart.measured.good if (c["dataset"], c["protocol"]) == where})
    words = [f"By mean average precision; {name_of(title_of(chart.dataset))}"]
    if "n_database" in sizes:
        words.append(
            f"{sizes['n_queries']} queries among {sizes['n_database']} items of {sizes['n_features']} dimensions"
        )
    return ", ".join([*words, f"mean over {splits} splits" if splits > 1 else "one split"])


def _draw_codes(axes: Any, codes: list[_Line], chart: Chart) -> None:
    ticks = sorted({b for line in codes for b in line.n_bytes})
    for line in codes:
        axes.plot(line.n_bytes, line.values, clip_on=False, **chart.styles[line.method].line)
    axes.set_xscale("log", base=2)
    axes.set_xticks(ticks, [f"{b:g}" for b in ticks])
    axes.minorticks_off()
    if len(ticks) > 1:
        axes.set_xlim(ticks[0], ticks[-1])


def _draw_floats(axes: Any, floats: _Line) -> None:
    value = floats.values[0]
    axes.axhline(value, color=INK, linestyle=(0, (4.5, 1.6)), linewidth=1.4, zorder=5)
    ground = {"facecolor": CARD, "edgecolor": "none", "pad": 1.2, "alpha": 0.85}
    words = f"vectors, {floats.n_bytes[0]:g} bytes"
    place = {"textcoords": "offset points", "fontsize": 9, "fontstyle": "italic", "zorder": 6}
    axes.annotate(words, (axes.get_xlim()[0], value), (6, 5), bbox=ground, **place)


def _line(chart: Chart, method: str) -> _Line | None:
    measured = chart.measured
    points = chart.line(method, "map")
    sizes = [_bytes(measured.of(chart.dataset, chart.protocol, method, bits)) for bits, _ in points]
    found = {size: spread for size, (_, spread) in zip(sizes, points, strict=True) if math.isfinite(size)}
    if not found:
        return None
    order = sorted(found)
    return _Line(method, order, [found[size].mean for size in order], found[order[-1]])


def _bytes(cells: list[dict[str, Any]]) -> float:
    known = [float(cell["bytes"]) for cell in cells if "bytes" in cell]
    return max(known, default=math.nan)
