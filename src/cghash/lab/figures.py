"""Figures of the demo as inline SVG, whose colours are names that the page's style sheet fills in."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from typing import Any

import numpy as np

from ..exceptions import MissingDependencyError
from .demo import BEST, EUCLIDEAN, LINEAR, PAPER, PCA, RANDOM
from .demo_results import DemoResults, Fit, Row

__all__ = ["LOOKS", "NAMES", "figures", "require_matplotlib"]

# Colours of Okabe and Ito, safe for the colour-blind, and the names that stand for them on the page.
INK, BLUE, GREEN, PURPLE, ORANGE, GREY = "#010203", "#0072b2", "#009e73", "#cc79a7", "#e69f00", "#808284"
NAMES = {INK: "ink", BLUE: "blue", GREEN: "green", PURPLE: "purple", ORANGE: "orange", GREY: "grey"}
LOOKS = {  # colour and marker: no curve is told apart by colour alone
    BEST: (BLUE, "o"),
    LINEAR: (GREEN, "s"),
    PAPER: (PURPLE, "^"),
    EUCLIDEAN: (INK, ""),
    RANDOM: (GREY, "v"),
    PCA: (ORANGE, "D"),
}
STYLE = {
    "svg.fonttype": "none",
    "svg.hashsalt": "cghash",
    "font.size": 10,
    "text.color": INK,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": INK,
    "grid.alpha": 0.12,
    "grid.linewidth": 0.8,
    "xtick.color": INK,
    "ytick.color": INK,
    "legend.frameon": False,
    "lines.linewidth": 1.8,
    "lines.markersize": 5,
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
    return {name: _svg(name, draw, results) for name, draw in drawings.items()}


def _svg(name: str, draw: Callable[[Any, DemoResults], None], results: DemoResults) -> str:
    require_matplotlib()
    from matplotlib import rc_context
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    with rc_context(STYLE):
        figure = Figure(figsize=(5.4, 3.7), layout="constrained")
        FigureCanvasAgg(figure)
        draw(figure.subplots(), results)
        buffer = io.StringIO()
        figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None})
    return _inline(buffer.getvalue(), name)


def require_matplotlib() -> None:
    """Say how to install matplotlib where it is missing."""
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise MissingDependencyError('the report needs matplotlib: python -m pip install "cghash[lab]"') from error


def _inline(svg: str, name: str) -> str:
    """Make a matplotlib SVG part of a page: no prologue, no name spaces, own ids, colours by name."""
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    head, body = svg.split(">", 1)
    view = re.search(r'viewBox="[^"]*"', head)
    assert view is not None
    body = body.replace("xlink:href", "href")
    body = re.sub(r'(id="|href="#|url\(#)', rf"\g<1>{name}-", body)
    for colour, word in NAMES.items():
        body = body.replace(colour, f"var(--{word})")
    return f'<svg {view[0]} role="img" aria-labelledby="{name}-caption" focusable="false">{body.strip()}'


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
    positive = bound[bound > 0]
    if positive.size:
        axes.set_yscale("log")
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
