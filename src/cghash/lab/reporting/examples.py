"""Pictures of queries and of what each method finds nearest to them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np

from .html import paragraph, section
from .line_styles import OURS
from .values import EUCLIDEAN, Measured, Result, title_of

__all__ = ["Example", "examples_of", "examples_section", "is_base64", "pictures_of"]

Picture = dict[str, Any]

MOST = 10  # queries that are all shown; of more some are chosen
_BASE64 = re.compile(r"[A-Za-z0-9+/]+={0,2}")


@dataclass(frozen=True)
class Example:
    """A query, why it is shown, and what methods find: method → its number of bits, the items nearest first."""

    query: Picture
    why: str
    nearest: dict[str, tuple[int, list[Picture]]]


def examples_section(measured: Measured) -> str:
    """The queries to show, by data set."""
    parts, words = (
        [],
        "Queries at the left, the nearest items at the right, in order. Those of another class are framed.",
    )
    for dataset in measured.datasets():
        examples = examples_of(measured, dataset)
        if examples:
            shown = "\n".join(map(_example, examples))
            parts.append(f'<h3>{escape(title_of(dataset))}</h3>\n<div class="examples pictures">\n{shown}\n</div>')
            if any(example.why for example in examples):
                words += f" Where every query was kept, they are chosen by rule: {_RULE}."
    return section("examples", "What is found", paragraph(words) if parts else "", *parts)


def examples_of(measured: Measured, dataset: str) -> list[Example]:
    """The queries that results have pictures of; some of them, by rule, where they have many."""
    cells = _cells(measured, dataset)
    kept = {method: pictures_of(cell) for method, cell in cells.items()}
    queries = [query for query, _ in next(iter(kept.values()), [])]
    chosen = dict.fromkeys(range(len(queries)), "") if len(queries) <= MOST else _chosen(kept, cells)
    return [
        Example(
            queries[number],
            why,
            {
                method: (cells[method]["bits"], items)
                for method, pairs in kept.items()
                for asked, items in pairs[number : number + 1]
                if asked == queries[number]
            },
        )
        for number, why in chosen.items()
    ]


_RULE = (
    "three of different classes for which CGHash finds most right items beyond the others, the one for which it loses "
    "most, and one drawn at random"
)


def _chosen(kept: dict[str, list[tuple[Picture, list[Picture]]]], cells: dict[str, Result]) -> dict[int, str]:
    """Number of a query → why it is shown, by `_RULE`; the first method stands for CGHash."""
    first, *others = (_right(pairs) for pairs in kept.values())
    others = [right for right in others if len(right) == len(first)]
    gain = sum((first - right for right in others), np.zeros_like(first))  # (q,)
    order = np.argsort(-gain, kind="stable")
    labels = [str(query["label"]) for query, _ in next(iter(kept.values()))]
    _, firsts = np.unique(np.array(labels)[order], return_index=True)
    ours = OURS if next(iter(kept)).startswith(OURS) else next(iter(kept))
    shown = {int(number): f"{ours} gains most" for number in order[np.sort(firsts)[:3]]}
    if gain[order[-1]] < 0:
        shown[int(order[-1])] = f"{ours} loses most"
    seed = next(iter(cells.values()))["split"]
    shown.setdefault(int(np.random.default_rng(seed).integers(len(gain))), "drawn at random")
    return shown


def _right(pairs: Sequence[tuple[Picture, list[Picture]]]) -> Any:
    """How many of the nearest items are right: (q,)."""
    return np.array([sum(bool(item["right"]) for item in items) for _, items in pairs])


def _cells(measured: Measured, dataset: str) -> dict[str, Result]:
    """Method → the cell of the longest codes of the first split that has pictures; CGHash first."""
    found: dict[str, Result] = {}
    with_pictures = [cell for cell in measured.good if cell["dataset"] == dataset and pictures_of(cell)]
    for cell in sorted(with_pictures, key=lambda cell: (cell["protocol"], cell["split"], -cell["bits"])):
        found.setdefault(cell["method"], cell)
    return dict(sorted(found.items(), key=lambda item: (not item[0].startswith(OURS), item[0])))


def _example(example: Example) -> str:
    rankings = "\n".join(_ranking(method, bits, items) for method, (bits, items) in example.nearest.items())
    why = f"<br>{escape(example.why)}" if example.why else ""
    return (
        f'<article class="card example">\n<div class="query">{_image(example.query, "Query")}'
        f"<p>{escape(str(example.query['label']))}{why}</p></div>\n<div>\n{rankings}\n</div>\n</article>"
    )


def _ranking(method: str, bits: int, items: list[Picture]) -> str:
    n_right = sum(bool(item["right"]) for item in items)
    shown = "".join(_item(item) for item in items)
    told = f"{n_right} of {len(items)} right" + ("" if method == EUCLIDEAN else f", {bits} bits")
    return f'<div class="ranking"><h3>{escape(method)}<small>{told}</small></h3>\n<ol class="items">{shown}</ol></div>'


def _item(item: Picture) -> str:
    if item["right"]:
        return f"<li>{_image(item, 'Right')}</li>"
    return f'<li class="wrong" data-label="{escape(str(item["label"]))}">{_image(item, "Wrong")}</li>'


def _image(picture: Picture, what: str) -> str:
    """An image, or its label where the result holds no image."""
    label = escape(f"{what}: {picture['label']}")
    if not is_base64(picture.get("png")):
        return f"<span>{label}</span>"
    return f'<img src="data:image/png;base64,{picture["png"]}" alt="{label}">'


def is_base64(text: Any) -> bool:
    """Whether a result holds what may stand in an image's address."""
    return isinstance(text, str) and _BASE64.fullmatch(text) is not None


def pictures_of(cell: dict[str, Any]) -> list[tuple[Picture, list[Picture]]]:
    """Each query with its nearest items; what has not that form is left out.

    Examples
    --------
    >>> item = {"label": "3", "png": "", "right": True}
    >>> pictures_of({"pictures": {"query": [item, item], "nearest": [[item]]}}) == [(item, [item])]
    True
    >>> pictures_of({}), pictures_of({"pictures": None})
    ([], [])
    """
    pictures = cell.get("pictures")
    if not isinstance(pictures, dict):
        return []
    lists = (pictures.get(key) for key in ("query", "nearest"))
    queries, nearest = (found if isinstance(found, list) else [] for found in lists)
    pairs = zip(queries, nearest, strict=False)
    return [(query, items) for query, items in pairs if _labelled(query) and _judged(items)]


def _labelled(item: Any) -> bool:
    return isinstance(item, dict) and "label" in item


def _judged(items: Any) -> bool:
    return isinstance(items, list) and all(_labelled(item) and "right" in item for item in items)
