"""How fits went: objective and bound, satisfied triplets and weights column by column, and what linear bits look at."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np

from ..._arrays import Floats
from ..drawing import plain_log_axis
from .charts import COLUMN, GAP, framed
from .examples import is_base64
from .html import listed
from .line_labels import LineLabel, name_of, write_column
from .line_styles import LineStyle
from .values import Measured, number

__all__ = ["FIGURES", "Fit", "certificates", "fits_of", "masks"]

Styles = dict[str, LineStyle]


@dataclass(frozen=True)
class Fit:
    """What one cell keeps of its fit; lists have one number for each column."""

    method: str
    message: str
    seconds: float
    objective: Floats
    bound: Floats  # 0 where there is none
    satisfied: Floats  # shares of the triplets
    weights: Floats
    masks: list[str]  # PNG as base64


def fits_of(measured: Measured, dataset: str) -> list[Fit]:
    """The fits that cells of a data set keep: of each method the longest codes, of the first protocol and split."""
    kept = [cell for cell in measured.good if cell["dataset"] == dataset and isinstance(cell.get("fit"), dict)]
    found: dict[str, Fit] = {}
    for cell in sorted(kept, key=lambda cell: (cell["protocol"], cell["split"], -cell["bits"])):
        found.setdefault(cell["method"], _fit(cell))
    return [found[method] for method in sorted(found)]


def _fit(cell: dict[str, Any]) -> Fit:
    record = cell["fit"]
    numbers = {
        key: np.nan_to_num([number(value) for value in record.get(key, [])], neginf=0.0)
        for key in ("objective", "bound", "satisfied", "weights")
    }
    pictures = record.get("masks", [])
    shown = [picture for picture in pictures if is_base64(picture)] if isinstance(pictures, list) else []
    return Fit(cell["method"], record.get("message", ""), number(cell.get("seconds_fit")), **numbers, masks=shown)


def objectives(fits: Sequence[Fit], styles: Styles) -> Any | None:
    """The objective over the columns, and dashed the bound below which it cannot fall with the functions found."""
    ends = [(fit, fit.objective) for fit in fits if fit.objective.size and fit.objective.min() > 0]

    def paint(axes: Any) -> None:
        for fit, values in ends:
            colour, columns = styles[fit.method].colour, _columns(values)
            bound = np.where(fit.bound > 0, fit.bound, np.nan)
            axes.plot(columns, values, color=colour, linewidth=1.8)
            if len(bound) == len(values):
                axes.plot(columns, bound, color=colour, linewidth=1.1, linestyle=(0, (4, 1.5)))
                axes.fill_between(columns, bound, values, color=colour, alpha=0.12, linewidth=0)
        axes.set_yscale("log")
        plain_log_axis(axes.yaxis)
        low = min(_lowest(fit.bound, values[-1]) for fit, values in ends)
        axes.set_ylim(0.7 * low, 1.3 * max(values.max() for _, values in ends))
        axes.set(xlabel="columns (bits)", ylabel="objective")
        labels = [_label(fit, f"{values[-1]:.3g}", styles, values[-1]) for fit, values in ends]
        write_column(axes, labels, "in the end", COLUMN, GAP)

    return framed(paint, len(ends)) if ends else None


def _lowest(bound: Floats, last: float) -> float:
    """Where an axis begins: at the least bound above 0, but not far below the objective."""
    above = bound[bound > 0]
    return max(float(above.min()), last / 30) if above.size else last


def satisfied(fits: Sequence[Fit], styles: Styles) -> Any | None:
    """The share of the triplets that the learned distance gets right, over the columns."""
    ends = [(fit, 100.0 * fit.satisfied) for fit in fits if fit.satisfied.size]

    def paint(axes: Any) -> None:
        for fit, percent in ends:
            axes.plot(_columns(percent), percent, **styles[fit.method].line | {"markevery": 0.12})
        axes.set(xlabel="columns (bits)", ylabel="satisfied triplets, %")
        labels = [_label(fit, f"{percent[-1]:.1f} %", styles, percent[-1]) for fit, percent in ends]
        write_column(axes, labels, "in the end", COLUMN, GAP)

    return framed(paint, len(ends)) if ends else None


def weights(fits: Sequence[Fit], styles: Styles) -> Any | None:
    """The weight of each bit, in the order learned; the labels say how many are zero."""
    there = [fit for fit in fits if fit.weights.size]

    def paint(axes: Any) -> None:
        for fit in there:
            axes.plot(_columns(fit.weights), fit.weights, **styles[fit.method].line | {"linestyle": "none"})
        axes.set(xlabel="bit, in the order learned", ylabel="weight")
        zeros = [(fit, f"{(fit.weights == 0).sum()} of {fit.weights.size}") for fit in there]
        write_column(axes, [_label(fit, n, styles, math.nan) for fit, n in zeros], "weights of zero", COLUMN, GAP)

    return framed(paint, len(there)) if there else None


FIGURES: dict[str, tuple[Callable[[Sequence[Fit], Styles], Any | None], str, str]] = {
    "objective": (
        objectives,
        "objective and bound",
        "Every column comes with a bound, dashed, below which the objective cannot fall with the functions found; the "
        "shaded gap is what is left.",
    ),
    "satisfied": (
        satisfied,
        "satisfied triplets",
        "Share of the comparisons that the learned distance gets right.",
    ),
    "weights": (
        weights,
        "weights of the bits",
        "In the order learned. Bits do not count alike, and those of weight zero could be left out.",
    ),
}


def _columns(values: Floats) -> Floats:
    return np.arange(1.0, len(values) + 1)


def _label(fit: Fit, value: str, styles: Styles, height: float) -> LineLabel:
    return LineLabel(name_of(fit.method), value, styles[fit.method], float(height))


def masks(fit: Fit) -> str:
    """What each pixel adds to the heaviest linear bits."""
    if not fit.masks:
        return ""
    images = "".join(
        f'<li><img src="data:image/png;base64,{mask}" alt="What each pixel adds to bit number {rank} by weight"></li>'
        for rank, mask in enumerate(fit.masks, 1)
    )
    return (
        f'<figure class="card">\n<ul class="masks">{images}</ul>\n<figcaption><strong>{escape(fit.method)}: what bits '
        "look at</strong>The heaviest bits: large values of the blue pixels push a bit to 1, of the orange ones to "
        "0.</figcaption>\n</figure>"
    )


def certificates(fits: Sequence[Fit]) -> str:
    """What the fits say of themselves, a card each."""
    cards = []
    for fit in fits:
        seconds = [f"learned in {fit.seconds:.1f} s of processor time"] if math.isfinite(fit.seconds) else []
        said = listed([part for part in fit.message.split("; ") if part] + seconds)
        cards.append(f'<article class="card"><h3>{escape(fit.method)}</h3>\n{said}</article>')
    return '<div class="certificates">\n' + "\n".join(cards) + "\n</div>"
