"""Reports of experiments: raw results → a page, figures, tables.

asked.py     cells that were asked for alike
measured.py  values by what they are of; means and deviations over splits
ranks.py     average ranks over data sets and criteria
contests.py  CGHash and the best of its rivals
claims.py    what the paper claims, and what the results show
looks.py     the colour, mark and line of each method
labels.py    labels beside a plot, at the heights of the lines' ends
charts.py, comparisons.py   figures
gallery.py   their files
pictures.py  what results hold of queries and the items nearest to them
plots.py, words.py, examples.py, tables.py   sections of the page
page.py      the page
"""

from __future__ import annotations

from .page import write_report
from .tables import markdown_table

__all__ = ["markdown_table", "write_report"]
