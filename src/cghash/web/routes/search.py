"""`/api/search`: the nearest items of an item, a text, a vector or a picture."""

from __future__ import annotations

import time
from typing import Any, cast

import numpy as np
from fastapi import APIRouter, Request, Response
from starlette.concurrency import run_in_threadpool

from ...exceptions import FormatError, InvalidInputError
from ...workspace.versions import VECTORS, CodeSearch, VectorSearch
from ..schemas import Failure, SearchByRow, SearchOptions, SearchOut, SearchRequest
from ..service import NoPictureError, Service
from . import REFUSED, answered, service_of
from .parameters import described, parameters_of

router = APIRouter(prefix="/api", tags=["search"], responses=REFUSED)

_PICTURE = {
    "required": True,
    "content": {"image/*": {"schema": {"type": "string", "format": "binary", "description": "a picture's file"}}},
}

_NO_PICTURE: dict[int | str, dict[str, Any]] = {400: {"model": Failure, "description": "The picture cannot be read"}}


@router.get("/search", response_model=SearchOut, openapi_extra=described(SearchByRow))
async def search_by_row(request: Request) -> Response:
    """The nearest items of an item; the same as POST, for the address line."""
    service, asked = service_of(request), parameters_of(request, SearchByRow)
    return answered(await _searched(service, service.check_row(asked.item), asked))


@router.post("/search", response_model=SearchOut)
async def search(request: Request, asked: SearchRequest) -> Response:
    """The nearest items of one of `item`, `text` and `vector`."""
    service = service_of(request)
    return answered(await _searched(service, await _query(service, asked), asked))


@router.post(
    "/search/image",
    response_model=SearchOut,
    responses=_NO_PICTURE,
    openapi_extra={**described(SearchOptions), "requestBody": _PICTURE},
)
async def search_by_image(request: Request) -> Response:
    """The nearest items of a picture: JPEG, PNG, BMP, GIF, TIFF, PPM or WEBP."""
    service, asked = service_of(request), parameters_of(request, SearchOptions)
    try:
        vector = await service.pictures.result(service.workspace.embedder.image, await request.body())
    except FormatError as error:
        raise NoPictureError(str(error)) from error
    return answered(await _searched(service, vector, asked))


async def _query(service: Service, asked: SearchRequest) -> Any:
    """A row, or a vector (d,)."""
    if asked.item is not None:
        return service.check_row(asked.item)
    if asked.text is not None:
        return await run_in_threadpool(service.workspace.embedder.text, asked.text)
    vector = np.array(asked.vector, dtype=np.float32)
    if vector.shape != (service.workspace.vectors.shape[1],):
        expected = service.workspace.vectors.shape[1]
        raise InvalidInputError(f"vector must have {expected} numbers, got {len(vector)}")
    return vector


async def _searched(service: Service, query: Any, asked: SearchOptions) -> dict[str, Any]:
    began = time.perf_counter()
    name, ranking = await _opened(service, asked)
    own = query if isinstance(query, int) else -1
    distances, rows = await _nearest(service, ranking, query, asked, asked.k + (own >= 0))
    kept = rows != own
    distances, rows = distances[kept][: asked.k], rows[kept][: asked.k]
    results = _results(service, ranking, query, distances, rows)
    described: Any = None
    if asked.details:
        for result, item in zip(results, service.describe(rows.tolist()), strict=True):
            result["item"] = item
        described = service.describe([own])[0] if own >= 0 else None
    return {
        "model": name,
        "bits": ranking.bits,
        "query": described,
        "weights_total": float(ranking.weights.sum()) if isinstance(ranking, CodeSearch) else None,
        "results": results,
        "milliseconds": round(1000 * (time.perf_counter() - began), 3),
    }


async def _opened(service: Service, asked: SearchOptions) -> tuple[int | str, CodeSearch | VectorSearch]:
    """The ranking; where a file or the database must be asked for it, in a thread."""
    model: int | str | None = await service.current_soon() if asked.model is None else asked.model
    model = VECTORS if model is None else model
    is_open = model == VECTORS or service.versions.is_open(model)
    if is_open and asked.bits is None:
        return service.search_by(model)
    if is_open:
        return await run_in_threadpool(service.search_by, model, asked.bits)
    async with service.room_for_records:
        return await run_in_threadpool(service.search_by, model, asked.bits)


async def _nearest(
    service: Service, ranking: CodeSearch | VectorSearch, query: Any, asked: SearchOptions, k: int
) -> tuple[Any, Any]:
    if asked.filters:
        rows = await run_in_threadpool(service.items.rows, asked.filters)
        return await run_in_threadpool(ranking.nearest, query, k, rows)
    if isinstance(ranking, VectorSearch):
        return await run_in_threadpool(ranking.nearest, query, k, None)
    k = min(k, len(ranking.codes))
    return await service.batcher.nearest(ranking, ranking.code_of(query), k)


def _results(
    service: Service, ranking: CodeSearch | VectorSearch, query: Any, distances: Any, rows: Any
) -> list[dict[str, Any]]:
    shown = rows.tolist()
    bits = ranking.differing(query, rows) if isinstance(ranking, CodeSearch) else [None] * len(shown)
    found = zip(shown, service.items.ids_of(shown), distances.tolist(), cast(list[Any], bits), strict=True)
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
