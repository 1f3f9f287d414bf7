"""`/api/search`: the nearest items of an item, a text, a vector or a picture."""

from __future__ import annotations

import time
from typing import Annotated, Any, cast

import numpy as np
from fastapi import APIRouter, Body, Query, Request, Response
from starlette.concurrency import run_in_threadpool

from ...exceptions import InvalidInputError
from ...workspace.versions import CodeSearch, VectorSearch
from ..schemas import MOST_FILTERS, MOST_RESULTS, Filter, SearchOut, SearchRequest
from ..service import Service
from . import REFUSED, answered, service_of

router = APIRouter(prefix="/api", tags=["search"], responses=REFUSED)

K = Annotated[int, Query(ge=1, le=MOST_RESULTS)]
Model = Annotated[str | None, Query(pattern=r"^([1-9][0-9]{0,15}|vectors|)$", description="a version, or vectors")]
Bits = Annotated[int | None, Query(ge=1, le=1024)]
Filters = Annotated[list[Filter], Query(max_length=MOST_FILTERS)]


@router.post("/search", response_model=SearchOut)
async def search(request: Request, asked: SearchRequest) -> Response:
    """The nearest items of one of `item`, `text` and `vector`."""
    service = service_of(request)
    if sum(value is not None for value in (asked.item, asked.text, asked.vector)) != 1:
        raise InvalidInputError("a search must have exactly one of item, text and vector")
    return answered(await _searched(service, await _query(service, asked), asked))


@router.get("/search", response_model=SearchOut)
async def search_by_row(
    request: Request,
    item: Annotated[int, Query(ge=0, lt=2**62)],
    k: K = 24,
    model: Model = None,
    bits: Bits = None,
    filter: Filters = [],  # noqa: A002, B006
    details: bool = False,
) -> Response:
    """The nearest items of an item; the same as POST, for the address line."""
    service = service_of(request)
    asked = _asked(k, model, bits, filter, details)
    return answered(await _searched(service, service.check_row(item), asked))


@router.post("/search/image", response_model=SearchOut)
async def search_by_image(
    request: Request,
    image: Annotated[bytes, Body(media_type="image/png", description="a picture's file")],
    k: K = 24,
    model: Model = None,
    bits: Bits = None,
    filter: Filters = [],  # noqa: A002, B006
    details: bool = False,
) -> Response:
    """The nearest items of a picture: JPEG, PNG, BMP, GIF, TIFF, PPM or WEBP."""
    service = service_of(request)
    vector = await run_in_threadpool(service.workspace.embedder.image, image)
    return answered(await _searched(service, vector, _asked(k, model, bits, filter, details)))


def _asked(k: int, model: str | None, bits: int | None, filters: list[str], details: bool) -> SearchRequest:
    named: Any = None if not model else model if model == "vectors" else int(model)
    return SearchRequest(k=k, model=named, bits=bits, filters=filters, details=details)


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
    if not np.isfinite(vector).all():
        raise InvalidInputError("vector must have numbers that single precision can hold")
    return vector


async def _searched(service: Service, query: Any, asked: SearchRequest) -> dict[str, Any]:
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


async def _opened(service: Service, asked: SearchRequest) -> tuple[int | str, CodeSearch | VectorSearch]:
    """The ranking; a version that is not open yet is opened in a thread."""
    model = service.current if asked.model is None else asked.model
    if asked.bits is None and service.versions.is_open(model):
        return service.search_by(model)
    return await run_in_threadpool(service.search_by, model, asked.bits)


async def _nearest(
    service: Service, ranking: CodeSearch | VectorSearch, query: Any, asked: SearchRequest, k: int
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
    bits = ranking.differing(query, rows) if isinstance(ranking, CodeSearch) else [None] * len(rows)
    found = zip(rows.tolist(), distances.tolist(), cast(list[Any], bits), strict=True)
    return [
        {
            "row": row,
            "id": service.titles(row),
            "distance": distance,
            "differing": None if which is None else len(which),
            "bits": which,
        }
        for row, distance, which in found
    ]
