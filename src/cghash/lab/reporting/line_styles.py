"""How each method is drawn: the same in every figure of every report.

CGHash and its variants are blue and thick. The paper's ten have solid lines and full marks, later methods dashed lines
and hollow marks, so that no two methods differ in colour alone. The reference is ink, dashed, without marks.
"""

from __future__ import annotations

import colorsys
import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from ..drawing import INK
from .values import EUCLIDEAN, k_of

__all__ = ["CARD", "OURS", "PAPER_TEN", "TUNED", "LineStyle", "colour_names", "line_styles_of", "palette_css"]

CARD = "#ffffff"  # stands for the colour that figures lie on
PAPER_TEN = ("LSH", "SSC", "LSI", "LCH", "SPH", "STH", "AGH", "BRE", "SPLH", "ITQ")
OURS = "CGHash"
TUNED = "CGHash tuned"  # its settings chosen by validation on training items
DASHES = (0, (4.5, 1.6))


@dataclass(frozen=True)
class LineStyle:
    """Colour, mark and line of a method."""

    colour: str
    marker: str
    group: str  # "ours", "paper", "later", "reference"

    @property
    def strong(self) -> bool:
        return self.group == "ours"

    @property
    def line(self) -> dict[str, Any]:
        """What matplotlib draws the line with."""
        hollow = self.group == "later"
        return {
            "color": self.colour,
            "marker": self.marker,
            "markerfacecolor": CARD if hollow else self.colour,
            "markeredgecolor": self.colour,
            "markeredgewidth": 1.1 if hollow else 0.6,
            "markersize": 6.4 if self.strong else 4.8,
            "linestyle": DASHES if self.group in ("later", "reference") else "-",
            "linewidth": 2.9 if self.strong else 1.25,
            "zorder": 3 if self.strong else 4,  # thin lines over thick ones: both are seen
        }


def _group(group: str, **styles: str) -> dict[str, LineStyle]:
    return {name: LineStyle(style[:7], style[8:], group) for name, style in styles.items()}  # "#rrggbb m"


KNOWN = (
    {EUCLIDEAN: LineStyle(INK, "", "reference")}
    | {"CGHash": LineStyle("#0067b8", "o", "ours")}
    | {TUNED: LineStyle("#1b2f8f", "D", "ours")}
    | {"CGHash default": LineStyle("#3aa0e8", "s", "ours")}
    | _group("paper", LSH="#868b94 v", SSC="#97633f s", LSI="#94930a <", LCH="#129a9a >", SPH="#dd6bb8 p")
    | _group("paper", STH="#2b982f ^", AGH="#8f5fc0 D", BRE="#d42a2a X", SPLH="#f58314 P", ITQ="#c29c00 h")
    | _group("later", KSH="#a8004f s", SDH="#00603d o", FastHash="#b04300 ^", PQ="#47515f D", RaBitQ="#6f2da8 P")
    | _group("later", SignBits="#70767e <", PCAH="#7f8a12 v", KLSH="#b5687f >", LDAHash="#007b88 h")
    | {"ITQ-CCA": LineStyle("#866800", "p", "later")}
)
FREE = [  # for names that are not ours: a colour and a mark that no other pair has
    LineStyle(colour, marker, "later")
    for colour, marker in zip(
        ("#b5179e", "#3a7d0a", "#c1440e", "#4361ee", "#7b4b2a", "#0a7d6e", "#9d0208", "#5a4fcf", "#6a7b00", "#a44a9c"),
        "*dX8Hp*dX8",
        strict=True,
    )
]
VARIANTS = [
    LineStyle(colour, marker, "ours") for colour, marker in zip(("#00a3c4", "#5661e0", "#004a7c"), "^vP", strict=True)
]
BY_K = ("#e09f00", "#2f9e5b", "#0a6fc2", "#5b2a86", "#b3261e", "#4d5560")  # from the smallest K on


def line_styles_of(methods: Iterable[str]) -> dict[str, LineStyle]:
    """The style of each method; names that are not known get one by their letters, and never the same twice at a time.

    Examples
    --------
    >>> styles = line_styles_of(["CGHash", "ITQ", "mine"])
    >>> styles["CGHash"].group, styles["ITQ"].group, styles["mine"].group
    ('ours', 'paper', 'later')
    """
    names = sorted(set(methods))
    found = {name: KNOWN[name] for name in names if name in KNOWN}
    by_k = sorted((k, name) for name in names if (k := k_of(name)) is not None)
    for place, (_, name) in enumerate(by_k if len(by_k) > 1 else []):  # one alone is a method like others
        found[name] = LineStyle(BY_K[place % len(BY_K)], "osD^vP"[place % 6], "ours")
    for pool, mine in ((VARIANTS, True), (FREE, False)):
        others = [name for name in names if name not in found and name.startswith(OURS) is mine]
        found |= _free(others, pool)
    return found


def _free(names: list[str], pool: list[LineStyle]) -> dict[str, LineStyle]:
    """From the place that its letters give, the next style that nobody took; styles come again when all are taken."""
    found: dict[str, LineStyle] = {}
    for name in names:
        start = int(hashlib.sha256(name.encode()).hexdigest(), 16) % len(pool)
        order = pool[start:] + pool[:start]
        taken = list(found.values())
        found[name] = min(order, key=taken.count)
    return found


def _palette() -> list[str]:
    styles = [*KNOWN.values(), *FREE, *VARIANTS]
    return sorted({style.colour for style in styles} | set(BY_K), key=str)


def colour_names() -> dict[str, str]:
    """Colour → the name that stands for it in a page."""
    named = {colour: f"m{colour[1:]}" for colour in _palette() if colour != INK}
    return {INK: "ink", CARD: "card", **named}


def palette_css() -> str:
    """The colours of all methods on light and on dark ground."""
    named = {colour: name for colour, name in colour_names().items() if name.startswith("m")}
    light = " ".join(f"--{name}: {colour};" for colour, name in named.items())
    dark = " ".join(f"--{name}: {_lighter(colour)};" for colour, name in named.items())
    return f":root {{ {light} }}\n@media (prefers-color-scheme: dark) {{ :root {{ {dark} }} }}\n"


def _lighter(colour: str) -> str:
    """The same hue, light enough for dark ground."""
    red, green, blue = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
    hue, light, saturation = colorsys.rgb_to_hls(red, green, blue)
    return "#" + "".join(
        f"{round(255 * part):02x}" for part in colorsys.hls_to_rgb(hue, 0.55 + 0.25 * light, saturation)
    )
