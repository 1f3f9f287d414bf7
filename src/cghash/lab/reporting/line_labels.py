"""A column of labels beside a plot: each at the height of its line's end, none over another."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..._arrays import Floats
from .line_styles import LineStyle

__all__ = ["LineLabel", "name_of", "spread_out", "write_column"]

STEP = 0.178  # inches from a line of labels to the next
MOST_LETTERS = 20


@dataclass(frozen=True)
class LineLabel:
    """What is said of one line, and where the line ends; nan: nowhere."""

    name: str
    value: str
    style: LineStyle
    height: float  # in data coordinates


def name_of(method: str) -> str:
    """A method's name, cut where it would run out of its column.

    Examples
    --------
    >>> name_of("CGHash"), name_of("a name that goes on and on")
    ('CGHash', 'a name that goes on…')
    """
    plain = "".join(letter if letter.isprintable() else " " for letter in method)
    return plain if len(plain) <= MOST_LETTERS else plain[: MOST_LETTERS - 1].rstrip() + "…"


def spread_out(heights: Sequence[float], step: float, low: float, high: float) -> Floats:
    """Move heights, given from the lowest to the highest, as little as can be so that they are a step apart.

    The least sum of squared moves: with the steps taken out, the order is all that is asked for.

    Examples
    --------
    >>> spread_out([1.0, 1.0, 5.0], 1.0, 0.0, 10.0).tolist()
    [0.5, 1.5, 5.0]
    """
    from sklearn.isotonic import isotonic_regression

    steps = step * np.arange(len(heights))
    free = isotonic_regression(np.asarray(heights, dtype=np.float64) - steps, y_min=low, y_max=high - steps[-1])
    return np.asarray(free + steps)


def write_column(
    axes: Any, labels: Sequence[LineLabel], head: str, width: float, gap: float, side: str = "right"
) -> None:
    """Write labels beside the axes, in a column of `width` inches, with thin lines to where the lines end."""
    if not labels:
        return
    tall, wide = _inches(axes)
    origin, sign = (1.0, 1.0) if side == "right" else (0.0, -1.0)
    places = _places(axes, labels, tall)
    text = {"transform": axes.transAxes, "va": "center", "fontsize": 9, "clip_on": False}
    inner, outer = ("left", "right") if side == "right" else ("right", "left")

    def at(inches: float) -> float:
        return origin + sign * inches / wide

    axes.text(at(gap + width), 1 + 0.13 / tall, head, **text | {"ha": outer, "alpha": 0.7, "va": "bottom"})
    for label, place in zip(labels, places, strict=True):
        _write(axes, label, float(place), at, gap)
        bold = {"fontweight": "bold" if label.style.strong else "normal"}
        slant = {"fontstyle": "italic" if label.style.group == "reference" else "normal"}
        axes.text(at(gap + 0.34), place, label.name, ha=inner, **text | bold | slant)
        axes.text(at(gap + width), place, label.value, ha=outer, **text | bold)


def _write(axes: Any, label: LineLabel, place: float, at: Callable[[float], float], gap: float) -> None:
    """The label's mark, and the thin line to it."""
    on = {"clip_on": False, "transform": axes.transAxes}
    start = _share(axes, label.height)
    if np.isfinite(start):
        thin = {"color": label.style.colour, "linewidth": 0.6, "alpha": 0.65}
        axes.plot([at(0), at(0.06), at(gap - 0.04)], [start, start, place], **thin, **on)
    axes.plot([at(gap), at(gap + 0.13), at(gap + 0.26)], [place] * 3, **label.style.line | on | {"markevery": [1]})


def _places(axes: Any, labels: Sequence[LineLabel], tall: float) -> Floats:
    """Heights as shares of the axes; those that end nowhere stand evenly, in their order from the top."""
    step = min(STEP / tall, 1 / max(1, len(labels) - 1))
    starts = np.array([_share(axes, label.height) for label in labels])
    if not np.isfinite(starts).all():
        return np.asarray(1.0 - step * np.arange(len(labels)), dtype=np.float64)
    order = np.argsort(starts, kind="stable")
    places = np.empty(len(labels))
    places[order] = spread_out(starts[order].tolist(), step, 0.0, 1.0)
    return places


def _share(axes: Any, height: float) -> float:
    low, high, at = axes.yaxis.get_transform().transform([*axes.get_ylim(), height])
    return float((at - low) / (high - low))


def _inches(axes: Any) -> tuple[float, float]:
    box = axes.get_position()
    return box.height * axes.figure.get_figheight(), box.width * axes.figure.get_figwidth()
