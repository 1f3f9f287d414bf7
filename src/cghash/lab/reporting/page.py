"""The report: a page, its figures and its tables, from raw results alone."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from ...storage import write_atomically
from ..drawing import require_matplotlib
from .examples import examples_section
from .figure_files import FigureFiles
from .figure_sections import Plots
from .html import document
from .line_styles import line_styles_of, palette_css
from .tables import cells_csv, summary_csv
from .text_sections import cells_section, costs_section, opening, paper_and_here, ranks_section
from .values import PAPER_SETS, Measured, Result

__all__ = ["write_report"]

TITLE = "Binary codes compared"
_HEADING = re.compile(r'<h2 id="([^"]+)">(.*?)</h2>')


def write_report(
    results: Sequence[Result],
    folder: str | os.PathLike[str],
    title: str = TITLE,
    *,
    lead: str | None = None,
    numbers: Mapping[str, object] | None = None,
) -> Path:
    """Write index.html, figures/ (PNG, SVG), summary.csv and cells.csv; the same results give the same bytes.

    Figures of an earlier report in the folder that this one has not are removed; other files are left alone.

    Parameters
    ----------
    results : what `read_results` gives, of one experiment or of several
    folder : where to; made where it is not there
    title : the page's heading
    lead : words below it; by default what every report answers
    numbers : what stands out, by what it is; by default what was measured

    Returns
    -------
    page : path of index.html
    """
    require_matplotlib()
    measured = Measured(results)
    place = Path(folder)
    files = FigureFiles(place)
    styles = line_styles_of(cell["method"] for cell in measured.good)
    page = _page(measured, Plots(measured, files, styles), title, opening(measured, title, lead, numbers))
    for name, text in {"summary.csv": summary_csv(measured), "cells.csv": cells_csv(measured)}.items():
        write_atomically(place / name, text.encode())
    files.sweep(place / "index.html")
    write_atomically(place / "index.html", page.encode())  # last: it is there when all is
    return place / "index.html"


def _page(measured: Measured, plots: Plots, title: str, header: str) -> str:
    of_paper = any(dataset in PAPER_SETS for dataset in measured.datasets())
    first = [paper_and_here(measured), plots.seen(), plots.heldout(), ranks_section(measured), plots.unseen()]
    first.append(plots.different_k())
    sections = [
        *([*first, plots.bytes()] if of_paper else [plots.bytes(), *first]),
        examples_section(measured),
        plots.fits(),
        costs_section(measured),
        cells_section(measured),
    ]
    body = "\n".join(part for part in sections if part)
    links = "".join(f'<li><a href="#{name}">{heading}</a></li>' for name, heading in _HEADING.findall(body))
    nav = f'<nav aria-label="Sections"><ul>{links}</ul></nav>'
    return document(title, f"{header}\n{nav}\n{body}", palette_css())
