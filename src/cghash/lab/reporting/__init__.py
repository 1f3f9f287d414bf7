"""Reports of experiments: raw results → a page, figures, tables.

values.py       values by what they are of; means and deviations over splits
ranks.py        average ranks over data sets and criteria
contests.py     CGHash and the best of its rivals
claims.py       what the paper claims, and what the results show
line_styles.py  the colour, mark and line of each method
line_labels.py  labels beside a plot, at the heights of the lines' ends
charts.py, comparisons.py   figures
fits.py         how fits went, as figures and cards
figure_files.py the files of figures
examples.py     queries and the items nearest to them, as pictures
figure_sections.py, text_sections.py, tables.py   sections of the page
html.py, page.py   the page
"""

from __future__ import annotations

from .page import write_report
from .tables import markdown_table

__all__ = ["markdown_table", "write_report"]
