"""`/api/models`: the versions, what each proves, what its bits separate, and what it changed."""

from __future__ import annotations

import math
from typing import Annotated, Any

import numpy as np
from fastapi import APIRouter, Query, Request, Response

from ...codes import unpack
from ...workspace.quality import most_changed, sampled_rows, split_of
from ...workspace.records import Version
from ...workspace.versions import CodeSearch, Ranking
from ..schemas import MOST_NUMBER, WHOLE, BitsOut, ChangesOut, CurrentRequest, CurveOut, ModelDetailOut, ModelsOut
from ..served_workspace import NotThereError, ServedWorkspace
from . import REFUSED, Number, OfRecords, answered, workspace_of

router = APIRouter(prefix="/api/models", tags=["models"], responses=REFUSED, route_class=OfRecords)

_ON_A_SIDE = 8  # items shown of each side of a bit
_LOOKED_AT = 20000  # items among which the sides of a bit are looked for


@router.get("", response_model=ModelsOut)
def models(request: Request) -> Response:
    """All versions, oldest first."""
    served = workspace_of(request)
    return answered({"current": served.current, "models": [_shown(v) for v in served.records.versions()]})


@router.post("/current", response_model=ModelsOut)
def use(request: Request, wanted: CurrentRequest) -> Response:
    """Use a version from now on: a new one, or go back to an old one."""
    workspace_of(request).use(wanted.version)
    return models(request)


@router.get("/{number}", response_model=ModelDetailOut)
def model(request: Request, number: Number) -> Response:
    """A version, its certificate, and how its fit went."""
    served = workspace_of(request)
    shown = _shown(served.records.version(served.check_version(number)))
    result = getattr(served.versions.at(number).model, "result_", None)
    if result is None:  # a peer's model
        return answered(shown | {"certificate": None, "history": None})
    certificate = {
        "message": result.message,
        "status": result.status,
        "exact": result.exact,
        "objective": result.objective,
        "bound": _finite(result.bound),
        "gap": _finite(result.gap),
    }
    history = {
        name: [_finite(float(value)) for value in result.history[name]]
        for name in ("objective", "bound", "satisfied", "gap")
    }
    return answered(shown | {"certificate": certificate, "history": history})


@router.get("/{number}/bits", response_model=BitsOut)
def bits(request: Request, number: Number, count: Annotated[int, Query(ge=1, le=1024), WHOLE] = 12) -> Response:
    """The heaviest bits, and items on either side of each."""
    served = workspace_of(request)
    search = served.versions.at(served.check_version(number))
    rows = sampled_rows(len(search.codes), _LOOKED_AT)
    values = unpack(search.codes[rows], search.bits)
    heaviest = np.argsort(-search.weights, kind="stable")[:count].tolist()
    return answered({"version": number, "bits": [_bit(served, search, rows, values, bit) for bit in heaviest]})


def _bit(served: ServedWorkspace, search: CodeSearch, rows: Any, values: Any, bit: int) -> dict[str, Any]:
    total = float(search.weights.sum())
    ones = values[:, bit] == 1
    labels = served.workspace.labels
    return {
        "bit": bit,
        "weight": float(search.weights[bit]),
        "share_of_weight": float(search.weights[bit]) / total if total else 0.0,
        "ones": float(ones.mean()),
        "zero": _side(served, rows[~ones]),
        "one": _side(served, rows[ones]),
        "zero_labels": None if labels is None else _common(labels[rows[~ones]], labels[rows]),
        "one_labels": None if labels is None else _common(labels[rows[ones]], labels[rows]),
    }


def _side(served: ServedWorkspace, rows: Any) -> list[dict[str, Any]]:
    """A few items of one side of a bit, spread over all of them."""
    return served.describe(rows[:: max(1, len(rows) // _ON_A_SIDE)][:_ON_A_SIDE].tolist())


def _common(some: Any, among: Any) -> list[str]:
    """Labels most of whose items are on this side, the purest first."""
    names, counts = np.unique(among, return_counts=True)
    here = dict(zip(*np.unique(some, return_counts=True), strict=True))
    shares = [(here.get(name, 0) / n, str(name)) for name, n in zip(names, counts, strict=True)]
    return [name for share, name in sorted(shares, key=lambda pair: -pair[0]) if share >= 0.8][:10]


@router.get("/{number}/curve", response_model=CurveOut)
def curve(request: Request, number: Number) -> Response:
    """Precision and recall by the labels of the workspace, where it has any."""
    served = workspace_of(request)
    labels, found = served.workspace.labels, served.retrieval(number)
    if labels is None or found is None:
        raise NotThereError("this workspace has no labels that precision could be measured by")
    return answered(
        {
            "recall": found.recall.tolist(),
            "precision": found.precision.tolist(),
            "mean_average_precision": found.map,
            "queries": len(split_of(labels)[0]),
        }
    )


@router.get("/{number}/changes", response_model=ChangesOut)
def changes(
    request: Request,
    number: Number,
    against: Annotated[
        int | None, Query(ge=1, le=MOST_NUMBER, description="another version; the vectors where none"), WHOLE
    ] = None,
    count: Annotated[int, Query(ge=1, le=50), WHOLE] = 8,
) -> Response:
    """Queries whose nearest items differ most between two versions."""
    served = workspace_of(request)
    after = served.versions.at(served.check_version(number))
    before: Ranking = served.versions.vectors
    if against is not None:
        before = served.versions.at(served.check_version(against))
    changed, _ = most_changed(before, after, served.workspace.vectors, count)
    return answered({"changes": [_change(served, before, after, *found) for found in changed]})


def _change(served: ServedWorkspace, before: Any, after: Any, row: int, overlap: float) -> dict[str, Any]:
    def nearest(search: Any) -> list[dict[str, Any]]:
        found = search.nearest(row, _ON_A_SIDE + 1, None)[1]
        return served.describe(found[found != row][:_ON_A_SIDE].tolist())

    described = served.describe([row])[0]
    return {"item": described, "overlap": overlap, "before": nearest(before), "after": nearest(after)}


def _shown(version: Version) -> dict[str, Any]:
    names = ("version", "name", "method", "bits", "answers", "created", "job")
    return {name: getattr(version, name) for name in names} | {"report": version.report or None}


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
