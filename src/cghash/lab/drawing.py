"""Drawing with matplotlib: figures as text of SVG, inside a page or in a file, and as PNG."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Mapping
from typing import Any

from ..exceptions import MissingDependencyError

__all__ = ["INK", "STYLE", "draw", "inline_svg", "plain_log_axis", "require_matplotlib", "svg_file", "to_png", "to_svg"]

INK = "#010203"  # stands for the colour of text: a page's style sheet fills in its own
STYLE = {
    "svg.fonttype": "none",
    "svg.hashsalt": "cghash",
    "font.family": "DejaVu Sans",
    "font.size": 10,
    "text.color": INK,
    "text.parse_math": False,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": INK,
    "grid.alpha": 0.12,
    "grid.linewidth": 0.8,
    "xtick.color": INK,
    "ytick.color": INK,
    "legend.frameon": False,
    "lines.linewidth": 1.8,
    "lines.markersize": 5,
}


def require_matplotlib() -> None:
    """Say how to install matplotlib where it is missing."""
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise MissingDependencyError('the report needs matplotlib: python -m pip install "cghash[lab]"') from error


def draw(paint: Callable[[Any], None], size: tuple[float, float], **options: Any) -> Any:
    """A figure of this size in inches that `paint` has drawn on; no window, no global state."""
    require_matplotlib()
    from matplotlib import rc_context
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    with rc_context(STYLE):
        figure = Figure(figsize=size, **options)
        FigureCanvasAgg(figure)
        paint(figure)
    return figure


def plain_log_axis(axis: Any) -> None:
    """Let a logarithmic axis show plain numbers; the usual ones are formulas, which stay unread here."""
    from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

    axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axis.set_minor_formatter(NullFormatter())


def to_svg(figure: Any) -> str:
    """The figure as SVG without background, date and addresses of who made it; the same figure gives the same text."""
    from matplotlib import rc_context

    buffer = io.StringIO()
    with rc_context(STYLE):
        figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None})
    svg = buffer.getvalue()
    return re.sub(r"\s*<metadata>.*?</metadata>", "", svg[svg.index("<svg") :], flags=re.DOTALL)


def svg_file(svg: str) -> str:
    """The SVG as a file of its own: with a white background."""
    head, body = svg.split(">", 1)
    return f'<?xml version="1.0" encoding="utf-8"?>\n{head}>\n <rect width="100%" height="100%" fill="#ffffff"/>{body}'


def inline_svg(svg: str, name: str, colours: Mapping[str, str]) -> str:
    """The SVG as part of a page: no name spaces, ids of its own, colours by the names that `colours` gives them."""
    head, body = svg.split(">", 1)
    view = re.search(r'viewBox="[^"]*"', head)
    assert view is not None
    body = body.replace("xlink:href", "href")
    body = re.sub(r'(id="|href="#|url\(#)', rf"\g<1>{name}-", body)
    for colour, word in colours.items():
        body = body.replace(colour, f"var(--{word})")
    return f'<svg {view[0]} role="img" aria-labelledby="{name}-caption" focusable="false">{body.strip()}'


def to_png(figure: Any, width: int, n_colours: int = 64) -> bytes:
    """The figure as a PNG of so many pixels in width, on white, in few colours: a third of the bytes."""
    from matplotlib import rc_context
    from PIL import Image

    buffer = io.BytesIO()
    with rc_context(STYLE):
        dpi = width / figure.get_figwidth()
        figure.savefig(buffer, format="png", dpi=dpi, facecolor="white", pil_kwargs={"compress_level": 0})
    image = (
        Image.open(buffer).convert("RGB").quantize(n_colours, method=Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE)
    )
    small = io.BytesIO()
    image.save(small, format="png", optimize=True)
    return small.getvalue()
