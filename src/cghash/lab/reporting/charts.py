"""The plots of one data set: precision–recall, and criteria against bits, with labels in the place of a legend."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..._arrays import Floats
from ..drawing import INK, draw
from .line_labels import STEP, LineLabel, name_of, write_column
from .line_styles import LineStyle
from .values import EUCLIDEAN, Measured, Spread

__all__ = ["Chart", "against_bits", "mean_curve", "precision_recall"]

RECALL = np.linspace(0.0, 1.0, 101)
PLOT, COLUMN, GAP = 3.3, 2.55, 0.34  # inches: the axes, the labels, from one to the other
LEFT, RIGHT, BELOW, ABOVE = 0.74, 0.1, 0.52, 0.36


@dataclass(frozen=True)
class Chart:
    """One data set under one protocol, and the methods to draw."""

    measured: Measured
    dataset: str
    protocol: str
    styles: dict[str, LineStyle] = field(repr=False)
    methods: Sequence[str]

    @property
    def longest(self) -> int:
        return self.measured.longest(self.dataset, self.protocol, self.methods)

    def line(self, method: str, criterion: str) -> list[tuple[int, Spread]]:
        return self.measured.line(self.dataset, self.protocol, method, criterion)

    def said(self, method: str, criterion: str) -> tuple[str, float] | None:
        """The value with the longest codes that the method has, as text and as a number."""
        line = self.line(method, criterion)
        if not line:
            return None
        bits, spread = line[-1]
        where = "" if bits == self.longest or method == EUCLIDEAN else f" ({bits} bits)"
        return spread.text(3) + where, spread.mean


def precision_recall(chart: Chart) -> Any | None:
    """Mean precision over recall with the longest codes; the labels give the mean average precision. None: no curve."""
    where = chart.dataset, chart.protocol
    curves = {m: mean_curve(chart.measured.of(*where, m, chart.longest)) for m in chart.methods}
    spreads = {m: chart.measured.spread(*where, m, chart.longest, "map") for m, c in curves.items() if c is not None}
    if not spreads:
        return None
    order = sorted(spreads, key=lambda m: (m == EUCLIDEAN, -spreads[m].mean, m))
    shorter = [
        (method, curve)
        for bits in chart.measured.shown(*where)[:-1]
        for method in order
        if method != EUCLIDEAN and (curve := mean_curve(chart.measured.of(*where, method, bits))) is not None
    ]
    labels = [LineLabel(name_of(m), spreads[m].text(3), chart.styles[m], math.nan) for m in order]

    def paint(axes: Any) -> None:
        for place, method in enumerate(order):
            marks = {"markevery": (4 + place % 5 * 2, 13)}  # not all at the same recall
            axes.plot(RECALL, curves[method], **chart.styles[method].line | marks)
        for method, curve in shorter:
            axes.plot(RECALL, curve, color=chart.styles[method].colour, linewidth=0.9, linestyle=(0, (1, 1.5)))
        axes.set(xlabel="recall", ylabel="precision", xlim=(0, 1), ylim=(0, 1.0))
        write_column(axes, labels, "mean average precision", COLUMN, GAP)

    return framed(paint, len(labels))


def against_bits(chart: Chart, criterion: str) -> Any | None:
    """A criterion over the number of bits; the labels give its value with the longest codes. None: nobody has it."""
    said = {m: found for m in chart.methods if (found := chart.said(m, criterion))}
    if not said:
        return None
    ends = [LineLabel(name_of(m), said[m][0], chart.styles[m], said[m][1]) for m in sorted(said)]
    title = chart.measured.title(criterion, chart.dataset, chart.protocol)

    def paint(axes: Any) -> None:
        for method in said:
            bits, spreads = zip(*chart.line(method, criterion), strict=True)
            means = [spread.mean for spread in spreads]
            if method == EUCLIDEAN:
                axes.axhline(means[-1], color=INK, linestyle=(0, (4.5, 1.6)), linewidth=1.25, zorder=2)
            else:
                axes.plot(bits, means, clip_on=False, **chart.styles[method].line)
        _ticks(axes, chart)
        axes.set(xlabel="bits", ylabel=f"{_NAMES[criterion]} {title}".strip())
        low, high = _limits([s.mean for m in said for _, s in chart.line(m, criterion)])
        axes.set_ylim(low, high)
        write_column(axes, ends, f"at {chart.longest} bits", COLUMN, GAP)

    return framed(paint, len(ends))


_NAMES = {"map": "mean average precision,", "top": "true neighbours in the", "knn_error": ""}


def framed(paint: Any, n_labels: int) -> Any:
    """A figure of one plot with a column for so many labels."""
    tall = max(3.3, STEP * (n_labels - 1) + 0.1)
    width, height = LEFT + PLOT + GAP + COLUMN + RIGHT, BELOW + tall + ABOVE

    def on(figure: Any) -> None:
        paint(figure.add_axes((LEFT / width, BELOW / height, PLOT / width, tall / height)))

    return draw(on, (width, height))


def mean_curve(cells: Sequence[dict[str, Any]]) -> Floats | None:
    """The mean over splits of precision at each recall of a grid; None where no cell has a curve."""
    curves = [cell["curve"] for cell in cells if cell.get("curve", {}).get("recall")]
    drawn = [np.interp(RECALL, curve["recall"], _numbers(curve["precision"])) for curve in curves]  # (s, 101)
    means = np.mean(drawn, axis=0) if drawn else np.full(1, np.nan)
    return means if np.isfinite(means).all() else None


def _numbers(values: Sequence[float | None]) -> Floats:
    return np.array([np.nan if value is None else value for value in values])


def _ticks(axes: Any, chart: Chart) -> None:
    bits = sorted({m for method in chart.methods for m in chart.measured.bits(chart.dataset, chart.protocol, method)})
    if bits[0] * 8 <= bits[-1] and len(bits) < 8:  # doubling lengths: as far apart as they are in ratio
        axes.set_xscale("log", base=2)
    axes.set_xticks(bits, [str(m) for m in bits])
    axes.minorticks_off()
    if len(bits) > 1:
        axes.set_xlim(bits[0], bits[-1])


def _limits(values: Sequence[float]) -> tuple[float, float]:
    """A little more than the values reach over, and nothing below 0."""
    low, high = min(values), max(values)
    margin = 0.04 * (high - low) or 0.05
    return max(0.0, low - margin), min(high + margin, max(1.0, high))
