"""`/api/search`: the nearest items of an item, a text, a vector or a picture."""

from __future__ import annotations

import time
from typing import Any, TypeVar, cast
from urllib.parse import parse_qsl

import numpy as np
from fastapi import APIRouter, Request, Response
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ValidationError
from starlette.concurrency import run_in_threadpool

from ...exceptions import FormatError, InvalidInputError
from ...workspace.versions import VECTORS, CodeSearch, Ranking, VectorSearch
from ..schemas import Failure, SearchByRow, SearchOptions, SearchOut, SearchRequest
from ..served_workspace import NoPictureError, ServedWorkspace
from . import REFUSED, answered, workspace_of

router = APIRouter(prefix="/api", tags=["search"], responses=REFUSED)

Schema = TypeVar("Schema", bound=BaseModel)

_MANY = {"filter": "filters"}  # parameters that may be given several times, and the field that holds them

_PICTURE = {
    "required": True,
    "content": {"image/*": {"schema": {"type": "string", "format": "binary", "description": "a picture's file"}}},
}

_NO_PICTURE: dict[int | str, dict[str, Any]] = {400: {"model": Failure, "description": "The picture cannot be read"}}


def parameters_of(request: Request, schema: type[Schema]) -> Schema:
    """What stands behind the `?`, read in one step; an empty value is as none.

    FastAPI would read each parameter by itself, which takes longer than the search that it asks for.
    """
    given: dict[str, Any] = {}
    for name, value in parse_qsl(request.scope["query_string"].decode("latin-1"), keep_blank_values=True):
        if name in _MANY:
            given.setdefault(_MANY[name], []).append(value)
        elif value:  # the field's own name is no parameter's: it must not take the place of the list
            given[f"?{name}" if name in _MANY.values() else name] = value
    try:
        return schema.model_validate(given, strict=False)
    except ValidationError as error:
        raise RequestValidationError(error.errors(include_url=False, include_context=False)) from error


def described(schema: type[BaseModel]) -> dict[str, Any]:
    """The same parameters for OpenAPI."""
    names = {field: name for name, field in _MANY.items()}
    whole = schema.model_json_schema()
    required = whole.get("required", ())
    return {
        "parameters": [
            {
                "name": names.get(field, field),
                "in": "query",
                "required": field in required,
                "schema": about if field in required or field in names else {"anyOf": [about, {"const": ""}]},
            }
            for field, about in whole["properties"].items()
        ]
    }


@router.get("/search", response_model=SearchOut, openapi_extra=described(SearchByRow))
async def search_by_row(request: Request) -> Response:
    """The nearest items of an item; the same as POST, for the address line."""
    served, asked = workspace_of(request), parameters_of(request, SearchByRow)
    return answered(await _searched(served, served.check_row(asked.item), asked))


@router.post("/search", response_model=SearchOut)
async def search(request: Request, asked: SearchRequest) -> Response:
    """The nearest items of one of `item`, `text` and `vector`."""
    served = workspace_of(request)
    return answered(await _searched(served, await _query(served, asked), asked))


@router.post(
    "/search/image",
    response_model=SearchOut,
    responses=_NO_PICTURE,
    openapi_extra={**described(SearchOptions), "requestBody": _PICTURE},
)
async def search_by_image(request: Request) -> Response:
    """The nearest items of a picture: JPEG, PNG, BMP, GIF, TIFF, PPM or WEBP."""
    served, asked = workspace_of(request), parameters_of(request, SearchOptions)
    try:
        vector = await served.pictures.result(served.workspace.embedder.image, await request.body())
    except FormatError as error:
        raise NoPictureError(str(error)) from error
    return answered(await _searched(served, vector, asked))


async def _query(served: ServedWorkspace, asked: SearchRequest) -> Any:
    """A row, or a vector (d,)."""
    if asked.item is not None:
        return served.check_row(asked.item)
    if asked.text is not None:
        return await run_in_threadpool(served.workspace.embedder.text, asked.text)
    vector = np.array(asked.vector, dtype=np.float32)
    if vector.shape != (served.workspace.vectors.shape[1],):
        expected = served.workspace.vectors.shape[1]
        raise InvalidInputError(f"vector must have {expected} numbers, got {len(vector)}")
    return vector


async def _searched(served: ServedWorkspace, query: Any, asked: SearchOptions) -> dict[str, Any]:
    began = time.perf_counter()
    name, ranking = await _opened(served, asked)
    own = query if isinstance(query, int) else -1
    distances, rows = await _nearest(served, ranking, query, asked, asked.k + (own >= 0))
    kept = rows != own
    distances, rows = distances[kept][: asked.k], rows[kept][: asked.k]
    results = _results(served, ranking, query, distances, rows)
    described: Any = None
    if asked.details:
        for result, item in zip(results, served.describe(rows.tolist()), strict=True):
            result["item"] = item
        described = served.describe([own])[0] if own >= 0 else None
    return {
        "model": name,
        "bits": ranking.bits,
        "query": described,
        "weights_total": float(ranking.weights.sum()) if isinstance(ranking, CodeSearch) else None,
        "results": results,
        "milliseconds": round(1000 * (time.perf_counter() - began), 3),
    }


async def _opened(served: ServedWorkspace, asked: SearchOptions) -> tuple[int | str, Ranking]:
    """The ranking; where a file or the database must be asked for it, in a thread."""
    model: int | str | None = await served.current_soon() if asked.model is None else asked.model
    model = VECTORS if model is None else model
    is_open = model == VECTORS or served.versions.is_open(model)
    if is_open and asked.bits is None:
        return served.search_by(model)
    if is_open:
        return await run_in_threadpool(served.search_by, model, asked.bits)
    async with served.room_for_records:
        return await run_in_threadpool(served.search_by, model, asked.bits)


async def _nearest(
    served: ServedWorkspace, ranking: Ranking, query: Any, asked: SearchOptions, k: int
) -> tuple[Any, Any]:
    if asked.filters:
        rows = await run_in_threadpool(served.items.rows, asked.filters)
        return await run_in_threadpool(ranking.nearest, query, k, rows)
    if isinstance(ranking, VectorSearch):
        return await run_in_threadpool(ranking.nearest, query, k, None)
    k = min(k, len(ranking.codes))
    return await served.batcher.nearest(ranking, ranking.code_of(query), k)


def _results(served: ServedWorkspace, ranking: Ranking, query: Any, distances: Any, rows: Any) -> list[dict[str, Any]]:
    shown = rows.tolist()
    bits = ranking.differing(query, rows) if isinstance(ranking, CodeSearch) else [None] * len(shown)
    found = zip(shown, served.items.ids_of(shown), distances.tolist(), cast(list[Any], bits), strict=True)
    return [
        {
            "row": row,
            "id": identity,
            "distance": distance,
            "differing": None if which is None else len(which),
            "bits": which,
        }
        for row, identity, distance, which in found
    ]
