"""`/api/workspace`, `/api/items`: what is there to see."""

from __future__ import annotations

from pathlib import Path as FilePath
from typing import Annotated

from fastapi import APIRouter, Path, Query, Request, Response
from fastapi.responses import FileResponse
from starlette.concurrency import run_in_threadpool

from ...exceptions import CGHashError
from ..schemas import MOST_FILTERS, MOST_ITEMS, MOST_NUMBER, WHOLE, Filter, ItemOut, ItemsOut, WorkspaceOut
from ..served_workspace import NotThereError, ServedWorkspace
from ..thumbnails import SIZES, kept_thumbnail, picture_type, thumbnail
from . import REFUSED, Start, answered, workspace_of

router = APIRouter(prefix="/api", tags=["items"], responses=REFUSED)

RowPath = Annotated[int, Path(ge=0, le=MOST_NUMBER), WHOLE]
Filters = Annotated[list[Filter], Query(max_length=MOST_FILTERS, description="colour=red, year>=1990, title~sea")]


@router.get("/workspace", response_model=WorkspaceOut)
async def workspace(request: Request) -> Response:
    """What this workspace holds."""
    served = workspace_of(request)
    about, embedder = served.workspace.about, await run_in_threadpool(lambda: served.workspace.embedder)
    attributes = [
        {"name": a.name, "kind": a.kind, "values": a.values, "least": a.least, "most": a.most}
        for a in served.items.attributes
    ]
    return answered(
        {
            "key": about["key"],
            "title": about["title"],
            "kind": about["kind"],
            "items": len(served.items),
            "dimension": about["dimension"],
            "vectors": about["vectors"]["source"],
            "labels": about["labels"],
            "attributes": attributes,
            "current": await served.current_soon(),
            "queries": {"image": embedder.takes_image, "text": embedder.takes_text},
        }
    )


@router.get("/items", response_model=ItemsOut)
def items(
    request: Request,
    start: Start = 0,
    count: Annotated[int, Query(ge=0, le=MOST_ITEMS), WHOLE] = 60,
    filter: Filters = [],  # noqa: A002, B006  FastAPI copies it
) -> Response:
    """Some of the items that pass all filters, in the order of their rows."""
    served = workspace_of(request)
    rows = served.items.rows(filter)
    shown = served.describe(rows[start : start + count].tolist())
    return answered({"total": len(rows), "start": start, "items": shown})


@router.get("/items/{row}", response_model=ItemOut)
def item(request: Request, row: RowPath) -> Response:
    """One item, with the whole of its text."""
    served = workspace_of(request)
    return answered(served.describe([served.check_row(row)], cut=None)[0])


@router.get(
    "/items/{row}/image",
    response_class=Response,
    responses={200: {"content": {"image/*": {}}, "description": "The picture"}, 304: {"description": "As it was"}},
)
async def image(request: Request, row: RowPath, size: Annotated[int, Query(), WHOLE] = SIZES[1]) -> Response:
    """An item's picture, at most `size` pixels wide and high (96, 160, 320, 640).

    0 is the original where browsers can show it, the largest copy where not.
    """
    served = workspace_of(request)
    served.check_row(row)
    if size not in (0, *SIZES):
        raise NotThereError(f"size must be one of 0, {', '.join(map(str, SIZES))}, got {size}")
    # another workspace may be served here tomorrow: browsers ask whether what they kept is still this one's
    tag = f'"{served.workspace.about["key"]}-{row}-{size}"'
    headers = {"cache-control": "private, no-cache", "etag": tag}
    if request.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers=headers)
    try:
        found = await run_in_threadpool(_made, served, row, size)
        if found is None:
            found = await served.thumbnails.result(thumbnail, served.workspace, row, size or SIZES[-1])
    except (CGHashError, OSError) as error:
        raise NotThereError(f"the picture of item {row} cannot be shown") from error
    shown, media = found
    if isinstance(shown, bytes):
        return Response(shown, media_type=media, headers=headers)
    return FileResponse(shown, media_type=media, headers=headers)  # in pieces: it may be of any size


def _made(served: ServedWorkspace, row: int, size: int) -> tuple[bytes | FilePath, str] | None:
    """The original or a thumbnail that was made before, where there is one to show."""
    path = served.workspace.picture(row)
    if path is None:
        raise NotThereError(f"item {row} has no picture")
    media = picture_type(path)
    if size == 0 and media is not None:
        return path, media
    return kept_thumbnail(served.workspace, row, size or SIZES[-1])
