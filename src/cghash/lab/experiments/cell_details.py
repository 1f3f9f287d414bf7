"""What is kept of some cells beside numbers: what queries find, how the fit went, what linear bits look at."""

from __future__ import annotations

import base64
import io
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._arrays import Array, Floats, Ints
from ...learning.families.linear import LinearFunctions
from ..datasets import DataSet
from ..datasets.dataset import Features
from ..features.images import require_pillow
from .protocol import Split
from .results import FIT

__all__ = ["Nearest", "fit_record", "nearest_by_codes", "retrieved_pictures"]

Nearest = Callable[[Ints, int], Ints]  # rows of m queries, n → rows of the database (m, n), the nearest first

N_QUERIES, N_NEAREST, N_MASKS = 5, 10, 20
SMALL = 32  # pixels of a side
POSITIVE, NEGATIVE = (0, 114, 178), (230, 159, 0)  # blue and orange


def nearest_by_codes(model: Any, X: Array, split: Split) -> Nearest:
    """The nearest items of the database by a model's codes; of equally near ones the first."""

    def nearest(rows: Ints, n: int) -> Ints:
        distances = model.distances(X[rows], model.encode(X[split.database]))
        found: Ints = split.database[np.argsort(distances, axis=1, kind="stable")[:, :n]]
        return found

    return nearest


def retrieved_pictures(data: DataSet, split: Split, nearest: Nearest, *, every: bool = False) -> dict[str, Any]:
    """The first query of each of some classes, or every query, and its nearest items of the database."""
    assert data.y is not None
    asked = split.queries if every else _first_of_classes(data.y, split.queries)
    found = nearest(asked, min(N_NEAREST, len(split.database)))
    items = _items(data, np.unique(np.concatenate([asked, found.ravel()])))
    return {
        "query": [items[row] for row in asked.tolist()],
        "nearest": [
            [items[row] | {"right": bool(data.y[row] == label)} for row in rows]
            for rows, label in zip(found.tolist(), data.y[asked], strict=True)
        ],
    }


def _first_of_classes(y: Array, queries: Ints) -> Ints:
    _, firsts = np.unique(y[queries], return_index=True)
    some = np.linspace(0, len(firsts) - 1, min(N_QUERIES, len(firsts))).astype(int)
    chosen: Ints = queries[firsts[some]]
    return chosen


def _items(data: DataSet, rows: Ints) -> dict[int, dict[str, Any]]:
    """Row → its label and its picture."""
    assert data.y is not None
    labels = [data.classes[label] if data.classes else str(label) for label in data.y[rows]]
    found = zip(rows.tolist(), labels, data.pictures(rows), strict=True)
    return {row: {"label": label, "png": _png(_larger(grey))} for row, label, grey in found}


def _larger(grey: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """A small picture with each pixel as a square of several, which a page does not blur."""
    times = max(1, SMALL // max(grey.shape))
    return grey.repeat(times, axis=0).repeat(times, axis=1)


def fit_record(model: Any, data: DataSet, train: Ints) -> dict[str, Any]:
    """How the fit of CGHash went, a number for each column; what its linear bits look at, where items are pixels."""
    result = getattr(model, "result_", None)
    if result is None:
        return {}
    numbers = {key: result.history[key] for key in FIT if key != "weights"} | {"weights": model.weights_}
    record = {"message": result.message, **{key: np.asarray(found).tolist() for key, found in numbers.items()}}
    if isinstance(data.painter, Features) and isinstance(model.functions_, LinearFunctions) and find_spec("PIL"):
        effects = model.functions_.coef * data.X[train].std(axis=0)
        record["masks"] = _masks(effects, model.weights_, data.painter.shape)
    return {"fit": record}


def _masks(effects: Floats, weights: Floats, shape: tuple[int, int]) -> list[str]:
    """What each pixel adds to the heaviest bits, scaled to the largest: blue where it pushes to 1, orange to 0."""
    heaviest = effects[np.argsort(-weights, kind="stable")[:N_MASKS]].reshape(-1, *shape)
    scaled = heaviest / np.maximum(np.abs(heaviest).max(axis=(1, 2), keepdims=True), 1e-300)
    colours = np.where(scaled[..., None] > 0, POSITIVE, NEGATIVE)
    rgba = np.concatenate([colours, np.abs(scaled)[..., None] * 255], axis=-1).astype(np.uint8)
    return [_png(mask) for mask in rgba]


def _png(image: NDArray[np.uint8]) -> str:
    """A PNG file of an (h, w) or (h, w, 4) image, as base64."""
    out = io.BytesIO()
    require_pillow().fromarray(image).save(out, "PNG", optimize=True)
    return base64.b64encode(out.getvalue()).decode()
