"""The parts put together: an ASGI application over one workspace."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import version
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.staticfiles import StaticFiles

from ..exceptions import CGHashError, InUseError, InvalidInputError, MissingDependencyError
from ..workspace.workspace import Workspace
from .guard import COOKIE, AllowedMethods, Guard, Token
from .metrics import Metrics
from .queues import TooManyError
from .routes import answered, answers, items, jobs, models, pages, search
from .served_workspace import NoPictureError, NotThereError, ServedWorkspace

__all__ = ["LOOPBACK", "create_app"]

LOOPBACK = frozenset({"localhost", "127.0.0.1", "[::1]"})
MOST_BYTES = 20 * 2**20  # of a request; a photograph fits
_MOST_WORDS = 500  # characters of an error
_NO_JSON = "the body of the request is not JSON"
_OURS = "something went wrong here; the server's log says what"

_log = logging.getLogger("cghash.web")


def create_app(
    workspace: Workspace,
    *,
    token: str | None = None,
    hosts: frozenset[str] | None = LOOPBACK,
    most_bytes: int = MOST_BYTES,
    n_jobs: int | None = None,
) -> Guard:
    """A server over a workspace, as an ASGI application.

    Parameters
    ----------
    workspace : Workspace
    token : what callers must know; None lets everyone in who can reach the server
    hosts : names by which it may be called; None is any
    most_bytes : of a request's body
    n_jobs : threads of a search; None is all cores
    """
    served = ServedWorkspace(workspace, n_jobs)
    app = _Api(
        title="cghash",
        version=version("cghash"),
        description="Search by example, teach by comparing, and learn binary codes from what people said.",
        docs_url=None,  # they would be fetched from elsewhere
        redoc_url=None,
        openapi_url="/api/openapi.json",
        lifespan=_lifespan,
    )
    app.state.served, app.state.metrics = served, Metrics()
    app.state.token = None if token is None else Token(token)
    app.state.streams, app.state.stopping = 0, False
    parts = (search, items, answers, models, jobs, pages)
    for part in parts:
        app.include_router(part.router)
    allowed = AllowedMethods([*app.routes, *(route for part in parts for route in part.router.routes)])
    app.mount("/static", StaticFiles(directory=pages.HOME / "static"), name="static")
    _handle_errors(app)
    return Guard(
        app,
        allowed=allowed,
        token=app.state.token,
        hosts=hosts,
        most_bytes=most_bytes,
        metrics=app.state.metrics,
    )


class _Api(FastAPI):
    """Says in its description what a token opens, where there is one."""

    def openapi(self) -> dict[str, Any]:
        document = super().openapi()
        if self.state.token is not None:
            document["components"]["securitySchemes"] = {
                "token": {"type": "http", "scheme": "bearer"},
                "cookie": {"type": "apiKey", "in": "cookie", "name": COOKIE},
            }
            document["security"] = [{"token": []}, {"cookie": []}]
            document["paths"]["/healthz"]["get"]["security"] = []
        return document


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    served: ServedWorkspace = app.state.served
    try:
        await run_in_threadpool(served.jobs.resume)
    except (CGHashError, OSError) as error:  # all but learning still works
        _log.error("the jobs cannot be taken up: %s", error)
    try:  # so that the first search need not wait
        await run_in_threadpool(served.search_by, None)
    except (CGHashError, OSError) as error:  # another model can still be chosen
        _log.error("the current model cannot be used: %s", error)
    yield
    await run_in_threadpool(served.close)


def _handle_errors(app: FastAPI) -> None:
    """Every error is one sentence; what a caller cannot mend is for the log."""
    known: dict[type[Exception], int] = {
        NoPictureError: 400,
        NotThereError: 404,
        InvalidInputError: 409,
        MissingDependencyError: 409,
        InUseError: 409,
        TooManyError: 503,
    }
    for kind, status in known.items():
        app.add_exception_handler(kind, _saying(status))
    app.add_exception_handler(CGHashError, _broken)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(Exception, _unexpected)


def _saying(status: int) -> Any:
    async def handler(request: Request, error: Exception) -> Response:
        response = _refusal(str(error), status)
        if isinstance(error, InUseError | TooManyError):
            response.headers["retry-after"] = "1"
        return response

    return handler


def _refusal(words: str, status: int) -> Response:
    """One line of a reasonable length; what callers sent may be quoted in it, and be anything."""
    line = " ".join(words.encode("utf-8", "replace").decode().split())
    return answered({"error": line if len(line) <= _MOST_WORDS else line[:_MOST_WORDS] + "…"}, status)


async def _invalid(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    if first["type"] == "json_invalid":
        return _refusal(_NO_JSON, 422)
    where = [str(part) for part in first["loc"] if part not in ("body", "query", "path")]
    known = [*where[:1], *(part for part in where[1:] if part.isidentifier() or part.isdigit())]  # not pydantic's own
    return _refusal(f"{'.'.join(known) or 'the request'}: {first['msg']}", 422)


async def _http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if error.status_code == 404 and not request.url.path.startswith("/api/"):
        return pages.page(request, "error", 404, "There is no such page.")
    if error.status_code == 400:  # FastAPI's, of a body that is not UTF-8
        return _refusal(_NO_JSON, 422)
    response = _refusal(str(error.detail).lower(), error.status_code)
    response.headers.update(error.headers or {})
    return response


async def _broken(request: Request, error: Exception) -> Response:
    """A file or a database of ours: its name is for the log."""
    _log.error("%s %s failed: %s", request.method, request.url.path, error)
    return _refusal(_OURS, 500)


async def _unexpected(request: Request, error: Exception) -> Response:
    _log.error("%s %s failed", request.method, request.url.path, exc_info=error)
    return _refusal(_OURS, 500)
