"""Tables and the figure of what the page was measured to do: the simulated curator, and the server under load."""

from __future__ import annotations

import statistics
from typing import Any

from cghash.lab.drawing import draw, to_png
from markdown_tables import shown, table

Row = dict[str, Any]

WORDS = {"active": "as the page asks", "near": "near, at random", "random": "at random"}
COLOURS = {"active": "#0b6e4f", "near": "#b26a00", "random": "#6c757d"}


def curator(rows: list[Row]) -> str:
    """Means over the seeds, at some numbers of answers."""
    lines = []
    for policy in WORDS:
        for answers in (100, 500, 1000, 2000):
            some = _at(rows, policy, answers)
            if some:
                means = [_mean(some, name) for name in ("asked", "map", "agreement")]
                spread = statistics.pstdev(row["map"] for row in some)
                cells = [shown(means[0], 0), f"{means[1]:.3f} ± {spread:.3f}", shown(means[2], 3)]
                lines.append([WORDS[policy], str(answers), *cells, str(len(some))])
    header = ["questions", "answers that tell", "questions asked", "mAP", "held-out agreement", "curators"]
    return table(header, lines)


def curator_figure(rows: list[Row]) -> bytes:
    """mAP and agreement over answers that tell, and mAP over questions asked."""

    def paint(figure: Any) -> None:
        panels = [("answers", "map"), ("asked", "map"), ("answers", "agreement")]
        titles = ["mean average precision", "mean average precision", "held-out agreement"]
        words = ["answers that tell something", "questions asked", "answers that tell something"]
        for place, ((across, up), title, word) in enumerate(zip(panels, titles, words, strict=True), 1):
            axes = figure.add_subplot(1, 3, place)
            for policy, colour in COLOURS.items():
                _line(axes, rows, policy, across, up, colour)
            axes.set_title(title, loc="left", fontsize=10)
            axes.set_xlabel(word)
            if across == "asked":
                axes.set_xlim(0, 4000)
            if place == 1:
                axes.legend(loc="lower right")

    return to_png(draw(paint, (12, 3.8), layout="constrained"), 1500)


def serve(rows: Row) -> str:
    """What the server does under load, beside what was asked of it."""
    search, busy, goals = rows["search"], rows["search while a fit runs"], rows["goals"]
    question = rows["question of 100 000 items"]
    grew = search["memory MB, last quarter"] - search["memory MB, first quarter"]
    lines = [
        ["searches a second", shown(search["requests a second"]), f"≥ {goals['searches a second']}"],
        ["p50 and p99, ms", f"{search['p50 ms']} and {search['p99 ms']}", f"p99 < {goals['p99 ms']}"],
        ["requests a second that do nothing", shown(rows["floor"]["requests a second"]), "–"],
        ["their p50 and p99, ms", f"{rows['floor']['p50 ms']} and {rows['floor']['p99 ms']}", "–"],
        ["errors", shown(search["errors"]), "0"],
        [f"memory after {search['requests']} searches, MB, and its growth",
         f"{search['memory MB, last quarter']}, {grew:+.1f}", "flat"],
        ["while a fit runs: searches a second", shown(busy["requests a second"]), "–"],
        ["while a fit runs: p99, ms", shown(busy["p99 ms"]), f"< {goals['p99 ms while a fit runs']}"],
        ["a question of 100 000 items: p50 and p99, ms", f"{question['p50 ms']} and {question['p99 ms']}",
         f"< {goals['question ms']}"],
    ]  # fmt: skip
    asked = f"{rows['items']} items of {rows['bits']} bits, {rows['connections']} connections, {rows['seconds']:g} s"
    return table([asked, "measured", "goal"], lines)


def _line(axes: Any, rows: list[Row], policy: str, across: str, up: str, colour: str) -> None:
    steps = sorted({row["answers"] for row in rows if row["policy"] == policy})
    groups = [_at(rows, policy, step) for step in steps]
    x, y = [_mean(group, across) for group in groups], [_mean(group, up) for group in groups]
    spread = [statistics.pstdev(row[up] for row in group) for group in groups]
    axes.plot(x, y, marker="o", color=colour, label=WORDS[policy])
    low, high = ([a + sign * b for a, b in zip(y, spread, strict=True)] for sign in (-1, 1))
    axes.fill_between(x, low, high, color=colour, alpha=0.15, linewidth=0)


def _at(rows: list[Row], policy: str, answers: int) -> list[Row]:
    return [row for row in rows if row["policy"] == policy and row["answers"] == answers]


def _mean(rows: list[Row], name: str) -> float:
    return statistics.mean(row[name] for row in rows)
