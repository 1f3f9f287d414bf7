"""A page of HTML that refers to nothing outside itself."""

from __future__ import annotations

from html import escape
from pathlib import Path

__all__ = ["document"]


def document(title: str, body: str, style: str = "") -> str:
    """A whole page in the look that all reports share; `style` is what this one adds.

    Examples
    --------
    >>> document("a < b", "<p>so</p>").splitlines()[-4:]
    ['<p>so</p>', '</main>', '</body>', '</html>']
    """
    shared = Path(__file__).with_name("report.css").read_text(encoding="utf-8")
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>\n{shared}{style}</style>\n</head>\n"
        f"<body>\n<main>\n{body}\n</main>\n</body>\n</html>\n"
    )
