"""`/api/jobs`: learning in the background."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import asdict
from typing import Any

import orjson
from fastapi import APIRouter, Request, Response
from fastapi.responses import StreamingResponse
from starlette.concurrency import run_in_threadpool

from ...workspace.records import ACTIVE_STATES, Job
from ..queues import TooManyError
from ..schemas import Failure, JobRequest, JobsOut, Nothing, OneJobOut
from ..served_workspace import NotThereError, ServedWorkspace
from . import REFUSED, Number, OfRecords, answered, workspace_of

router = APIRouter(prefix="/api/jobs", tags=["jobs"], responses=REFUSED, route_class=OfRecords)

_LOOK = 0.25  # seconds between two looks at a job
_STILL_HERE = 15.0  # seconds after which a silent stream says that it is still there
_MOST_STREAMS = 64


_BUSY: dict[int | str, dict[str, Any]] = {409: {"model": Failure, "description": "Another job is under way"}}


@router.post("", response_model=OneJobOut, status_code=202, responses=_BUSY)
def start(request: Request, wanted: JobRequest) -> Response:
    """Learn a new version from the answers, in a process of its own."""
    return answered({"job": _shown(workspace_of(request).jobs.start(wanted.model_dump()))}, 202)


@router.get("", response_model=JobsOut)
def jobs(request: Request) -> Response:
    """The last jobs, newest first."""
    served = workspace_of(request)
    found = served.records.jobs()
    return answered({"jobs": [_shown(served.jobs.look_after(j.id) if _runs(j) else j) for j in found]})


@router.get("/{number}", response_model=OneJobOut)
def job(request: Request, number: Number) -> Response:
    """A job as it is now."""
    served = workspace_of(request)
    _check(served, number)
    return answered({"job": _shown(served.jobs.look_after(number))})


@router.post("/{number}/cancel", response_model=OneJobOut)
def cancel(request: Request, number: Number, nothing: Nothing) -> Response:
    """Ask a job to end; one that has ended stays as it is."""
    served = workspace_of(request)
    _check(served, number)
    return answered({"job": _shown(served.jobs.cancel(number))})


@router.get(
    "/{number}/events",
    response_class=StreamingResponse,
    responses={200: {"content": {"text/event-stream": {}}, "description": "A job each time that it changes"}},
)
async def events(request: Request, number: Number) -> StreamingResponse:
    """The job each time that it changes, as server-sent events, until it has ended."""
    served = workspace_of(request)
    await run_in_threadpool(_check, served, number)
    state = request.app.state
    if state.streams >= _MOST_STREAMS:
        raise TooManyError("too many pages watch jobs at once: try again in a moment")
    return StreamingResponse(
        _stream(request, served, number), media_type="text/event-stream", headers={"cache-control": "no-store"}
    )


async def _stream(request: Request, served: ServedWorkspace, number: int) -> AsyncIterator[bytes]:
    state = request.app.state
    state.streams += 1
    try:
        last, silent = None, 0.0
        while not state.stopping and not await request.is_disconnected():
            async with served.room_for_records:
                found = await run_in_threadpool(served.jobs.look_after, number)
            if found != last:
                last, silent = found, 0.0
                yield b"data: " + orjson.dumps(_shown(found)) + b"\n\n"
            elif silent > _STILL_HERE:
                silent = 0.0
                yield b": still here\n\n"
            if not _runs(found):
                return
            await asyncio.sleep(_LOOK)
            silent += _LOOK
    finally:
        state.streams -= 1


def _check(served: ServedWorkspace, number: int) -> None:
    if not served.records.has_job(number):
        raise NotThereError(f"there is no job {number}")


def _runs(job: Job) -> bool:
    return job.state in ACTIVE_STATES


def _shown(job: Job) -> dict[str, Any]:
    return asdict(job)
