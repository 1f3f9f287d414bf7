"""One file a kind of address."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Annotated, Any, cast

import orjson
from fastapi import Path, Query, Request, Response
from fastapi.routing import APIRoute

from ..schemas import MOST_NUMBER, WHOLE, Failure
from ..served_workspace import ServedWorkspace

__all__ = ["REFUSED", "Number", "OfRecords", "Start", "answered", "workspace_of"]

Number = Annotated[int, Path(ge=1, le=MOST_NUMBER), WHOLE]  # of a version or a job
Start = Annotated[int, Query(ge=0, le=MOST_NUMBER), WHOLE]  # of what is listed by pieces

# what OpenAPI says of every address that can refuse
REFUSED: dict[int | str, dict[str, Any]] = {
    status: {"model": Failure, "description": words}
    for status, words in {
        401: "A token is needed",
        403: "The request comes from another page",
        404: "There is no such thing",
        408: "The body did not come in time",
        409: "The request does not fit this workspace",
        413: "The request is too large",
        415: "Not JSON",
        422: "The request is not what the schema says",
        503: "Too many requests at once",
    }.items()
}


class OfRecords(APIRoute):
    """Addresses that ask the database, which another program may hold for long: they never take all threads."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def handled(request: Request) -> Response:
            async with workspace_of(request).room_for_records:
                return await handle(request)

        return handled


def workspace_of(request: Request) -> ServedWorkspace:
    return cast(ServedWorkspace, request.app.state.served)


def answered(content: Any, status: int = 200) -> Response:
    """JSON that needs no further check: it is ours, and the tests hold it against the schema."""
    return Response(orjson.dumps(content, option=orjson.OPT_SERIALIZE_NUMPY), status, media_type="application/json")
