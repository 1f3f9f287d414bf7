"""Pictures of queries and of what each method finds nearest to them."""

from __future__ import annotations

import re
from html import escape

from .html import paragraph, section
from .looks import OURS
from .measured import Measured, Result, title_of
from .pictures import Picture, pictures_of

__all__ = ["examples_section"]

_BASE64 = re.compile(r"[A-Za-z0-9+/]+={0,2}")


def examples_section(measured: Measured) -> str:
    """All queries that results have pictures of, by data set."""
    parts = []
    for dataset in measured.datasets():
        cells = _cells(measured, dataset)
        queries = pictures_of(next(iter(cells.values()))) if cells else []
        shown = "\n".join(_query(query, number, cells) for number, (query, _) in enumerate(queries))
        if shown:
            parts.append(f'<h3>{escape(title_of(dataset))}</h3>\n<div class="examples pictures">\n{shown}\n</div>')
    words = "Queries at the left, the nearest items at the right, in order. Those of another class are framed."
    return section("examples", "What is found", paragraph(words) if parts else "", *parts)


def _cells(measured: Measured, dataset: str) -> dict[str, Result]:
    """Method → the cell of the longest codes of the first split that has pictures; CGHash first."""
    found: dict[str, Result] = {}
    with_pictures = [cell for cell in measured.good if cell["dataset"] == dataset and pictures_of(cell)]
    for cell in sorted(with_pictures, key=lambda cell: (cell["protocol"], cell["split"], -cell["bits"])):
        found.setdefault(cell["method"], cell)
    return dict(sorted(found.items(), key=lambda item: (not item[0].startswith(OURS), item[0])))


def _query(query: Picture, number: int, cells: dict[str, Result]) -> str:
    """The query, and the items of each method that was asked the same one."""
    rankings = [
        _ranking(method, cell["bits"], items)
        for method, cell in cells.items()
        for asked, items in pictures_of(cell)[number : number + 1]
        if asked == query
    ]
    return (
        f'<article class="card example">\n<div class="query">{_image(query, "Query")}'
        f"<p>{escape(str(query['label']))}</p></div>\n<div>\n{chr(10).join(rankings)}\n</div>\n</article>"
    )


def _ranking(method: str, bits: int, items: list[Picture]) -> str:
    n_right = sum(bool(item["right"]) for item in items)
    shown = "".join(_item(item) for item in items)
    told = f"{n_right} of {len(items)} right, {bits} bits"
    return f'<div class="ranking"><h3>{escape(method)}<small>{told}</small></h3>\n<ol class="items">{shown}</ol></div>'


def _item(item: Picture) -> str:
    if item["right"]:
        return f"<li>{_image(item, 'Right')}</li>"
    return f'<li class="wrong" data-label="{escape(str(item["label"]))}">{_image(item, "Wrong")}</li>'


def _image(picture: Picture, what: str) -> str:
    """An image, or its label where the result holds no image."""
    label = escape(f"{what}: {picture['label']}")
    if not _BASE64.fullmatch(str(picture.get("png", ""))):
        return f"<span>{label}</span>"
    return f'<img src="data:image/png;base64,{picture["png"]}" alt="{label}">'
