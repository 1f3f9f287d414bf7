"""The pictures that a cell holds: queries, and the items nearest to each."""

from __future__ import annotations

from typing import Any

__all__ = ["Picture", "pictures_of"]

Picture = dict[str, Any]


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
