"""What some queries find, as small pictures inside a result."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._arrays import Ints
from ..datasets import DataSet
from ..pixels import png
from .protocol import Split

N_QUERIES, N_NEAREST = 5, 10


def retrieved_pictures(model: Any, data: DataSet, split: Split) -> dict[str, Any]:
    """The first query of each of some classes, and its nearest items of the database."""
    assert data.y is not None
    X = data.X
    _, firsts = np.unique(data.y[split.queries], return_index=True)
    asked = split.queries[firsts[np.linspace(0, len(firsts) - 1, min(N_QUERIES, len(firsts))).astype(int)]]
    distances = model.distances(X[asked], model.encode(X[split.database]))
    nearest = split.database[np.argsort(distances, axis=1, kind="stable")[:, :N_NEAREST]]
    return {
        "query": _items(data, asked),
        "nearest": [
            [
                item | {"right": bool(right)}
                for item, right in zip(_items(data, rows), data.y[rows] == label, strict=True)
            ]
            for rows, label in zip(nearest, data.y[asked], strict=True)
        ],
    }


def _items(data: DataSet, rows: Ints) -> list[dict[str, Any]]:
    assert data.y is not None
    labels = [data.classes[label] if data.classes else str(label) for label in data.y[rows]]
    return [{"label": label, "png": _png(grey)} for label, grey in zip(labels, data.pictures(rows), strict=True)]


def _png(grey: NDArray[np.uint8]) -> str:
    rgba = np.stack([grey, grey, grey, np.full_like(grey, 255)], axis=-1)
    return base64.b64encode(png(rgba)).decode()
