"""The figures of a report: each in the page, and as a PNG and an SVG file beside it."""

from __future__ import annotations

import re
from html import escape
from pathlib import Path
from typing import Any

from ...storage import write_atomically
from ..drawing import inline_svg, svg_file, to_png, to_svg
from .line_styles import colour_names

__all__ = ["FigureFiles", "file_name"]

WIDTH = 1200  # pixels


def file_name(text: str) -> str:
    """Letters and numbers of a text, fit for a file's name and an address.

    Examples
    --------
    >>> file_name("../SCENE 15 <K>"), file_name("日本")
    ('scene-15-k', 'figure')
    """
    return re.sub(r"[^a-z0-9]+", "-", text.lower())[:60].strip("-") or "figure"


_LINK = re.compile(r'href="figures/([a-z0-9-]+\.(?:png|svg))"')


class FigureFiles:
    """Writes figures into a folder, each under a name of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "figures"
        self.folder.mkdir(parents=True, exist_ok=True)
        self.names: list[str] = []
        self._colours = colour_names()

    def add(self, name: str, figure: Any | None, title: str, words: str) -> str:
        """Keep the figure's files, and give the part of the page that shows it; nothing where there is no figure."""
        if figure is None:
            return ""
        own = self._own(file_name(name))
        svg = to_svg(figure)
        write_atomically(self.folder / f"{own}.svg", svg_file(svg).encode())
        write_atomically(self.folder / f"{own}.png", to_png(figure, WIDTH))
        links = ", ".join(f'<a href="figures/{own}.{kind}">{kind.upper()}</a>' for kind in ("png", "svg"))
        return (
            f'<figure class="card">\n<div class="wide">{inline_svg(svg, own, self._colours)}</div>\n'
            f'<figcaption id="{own}-caption"><strong>{escape(title)}</strong>{escape(words)} '
            f'<span class="files">{links}</span></figcaption>\n</figure>'
        )

    def sweep(self, page: Path) -> None:
        """Remove the figures that an earlier page links to and this one has not; other files stay."""
        if page.is_file():
            kept = {f"{own}.{kind}" for own in self.names for kind in ("png", "svg")}
            for name in set(_LINK.findall(page.read_text(encoding="utf-8", errors="replace"))) - kept:
                (self.folder / name).unlink(missing_ok=True)

    def _own(self, name: str) -> str:
        count, own = 1, name
        while own in self.names:
            count += 1
            own = f"{name}-{count}"
        self.names.append(own)
        return own
