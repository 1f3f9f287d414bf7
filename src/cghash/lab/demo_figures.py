"""Figures of the demo as inline SVG, whose colours are names that the page's style sheet fills in."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .demo import BEST, EUCLIDEAN, LINEAR, PAPER, PCA, RANDOM
from .demo_results import DemoResults, Fit, Row
from .drawing import INK, draw, inline_svg, require_matplotlib, to_svg

__all__ = ["LOOKS", "NAMES", "figures", "require_matplotlib"]

# Colours of Okabe and Ito, safe for the colour-blind, and the names that stand for them on the page.
BLUE, GREEN, PURPLE, ORANGE, GREY = "#0072b2", "#009e73", "#cc79a7", "#e69f00", "#808284"
NAMES = {INK: "ink", BLUE: "blue", GREEN: "green", PURPLE: "purple", ORANGE: "orange", GREY: "grey"}
LOOKS = {  # colour and marker: no curve is told apart by colour alone
    BEST: (BLUE, "o"),
    LINEAR: (GREEN, "s"),
    PAPER: (PURPLE, "^"),
    EUCLIDEAN: (INK, ""),
    RANDOM: (GREY, "v"),
    PCA: (ORANGE, "D"),
}


def figures(results: DemoResults) -> dict[str, str]:
    """Name → SVG text, without any address in it."""
    drawings: dict[str, Callable[[Any, DemoResults], None]] = {
        "precision_recall": _precision_recall,
        "bits": _bits,
        "objective": _objective,
        "satisfied": _satisfied,
        "weights": _weights,
    }
    return {name: _svg(name, paint, results) for name, paint in drawings.items()}


def _svg(name: str, paint: Callable[[Any, DemoResults], None], results: DemoResults) -> str:
    figure = draw(lambda figure: paint(figure.subplots(), results), (5.4, 3.7), layout="constrained")
    return inline_svg(to_svg(figure), name, NAMES)


def _precision_recall(axes: Any, results: DemoResults) -> None:
    longest = {row.method: row for row in results.rows}
    for row in results.rows:
        _curve(axes, row, main=longest[row.method] is row)
    axes.set(xlabel="recall", ylabel="precision", xlim=(0, 1.01), ylim=(0, 1.02))


def _curve(axes: Any, row: Row, main: bool) -> None:
    colour, marker = LOOKS[row.method]
    seen = np.asarray(row.recall) > 0.02  # the first few items crowd at the left edge
    recall, precision = np.asarray(row.recall)[seen], np.asarray(row.precision)[seen]
    style = {"linestyle": "-", "marker": marker, "markevery": 0.12} if main else {"linestyle": (0, (2, 2))}
    width = 1.8 if main else 1.1
    axes.plot(recall, precision, color=colour, linewidth=width, **style)


def _bits(axes: Any, results: DemoResults) -> None:
    for method, curve in results.by_bits.items():
        colour, marker = LOOKS[method]
        axes.plot(*zip(*curve, strict=True), color=colour, marker=marker)
    axes.axhline(results.best(EUCLIDEAN).map, color=INK, linestyle=(0, (5, 2)))
    axes.set(xlabel="bits", ylabel="mean average precision", ylim=(0, 1.02))
    longest = max(bits for curve in results.by_bits.values() for bits, _ in curve)
    axes.set_xticks(range(0, longest + 1, max(8, longest // 64 * 8)))


def _objective(axes: Any, results: DemoResults) -> None:
    fit = results.fit_of(BEST)
    columns = np.arange(1, len(fit.objective) + 1)
    bound = np.maximum(fit.bound, 0.0)
    axes.fill_between(columns, bound, fit.objective, color=BLUE, alpha=0.15, linewidth=0)
    axes.plot(columns, fit.objective, color=BLUE)
    axes.plot(columns, bound, color=ORANGE, linestyle=(0, (4, 1.5)))
    _scale_objective(axes, fit, bound)
    axes.annotate("objective", (columns[-1], fit.objective[-1]), (0, 6), color=BLUE, **_LABEL)
    axes.annotate("bound", (columns[-1], bound[-1]), (0, -14), color=ORANGE, **_LABEL)
    axes.set(xlabel="columns (bits)", ylabel="objective")


_LABEL: dict[str, Any] = {"textcoords": "offset points", "ha": "right"}


def _scale_objective(axes: Any, fit: Fit, bound: Any) -> None:
    from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

    positive = bound[bound > 0]
    if positive.size:
        axes.set_yscale("log")
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))  # the usual ones are formulas, which stay unread
        axes.yaxis.set_minor_formatter(NullFormatter())
        axes.set_ylim(max(positive.min(), fit.objective[-1] / 30) * 0.7, max(fit.objective) * 1.3)


def _satisfied(axes: Any, results: DemoResults) -> None:
    for fit in results.fits:
        colour, marker = LOOKS[fit.method]
        percent = 100.0 * np.asarray(fit.satisfied)
        axes.plot(np.arange(1, len(percent) + 1), percent, color=colour, marker=marker, markevery=0.12)
    axes.set(xlabel="columns (bits)", ylabel="satisfied triplets, %")


def _weights(axes: Any, results: DemoResults) -> None:
    weights = results.fit_of(BEST).weights
    axes.bar(np.arange(1, len(weights) + 1), weights, width=0.8, color=BLUE)
    axes.set(xlabel="bit, in the order learned", ylabel="weight")
    axes.grid(visible=False, axis="x")
