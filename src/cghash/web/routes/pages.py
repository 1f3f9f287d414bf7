"""The pages themselves, `/login`, `/healthz` and `/metrics`."""

from __future__ import annotations

from pathlib import Path
from typing import cast
from urllib.parse import parse_qs

from fastapi import APIRouter, Request, Response
from fastapi.responses import HTMLResponse, PlainTextResponse, RedirectResponse
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.concurrency import run_in_threadpool

from ..guard import COOKIE, Token, wait_after_wrong
from ..metrics import Metrics
from ..schemas import HealthOut
from ..served_workspace import ServedWorkspace
from . import answered, workspace_of

router = APIRouter()

HOME = Path(__file__).parents[1]
PAGES = {"/": "search", "/teach": "teach", "/learn": "learn", "/understand": "understand"}

# everything is escaped, whatever the name of the template; what a template does not know is an error
_templates = Environment(loader=FileSystemLoader(HOME / "templates"), autoescape=True, undefined=StrictUndefined)


def page(request: Request, name: str, status: int = 200, message: str | None = None) -> HTMLResponse:
    """A template with what every page knows."""
    about = workspace_of(request).workspace.about
    known = {"title": about["title"], "kind": about["kind"], "page": name, "message": message}
    return HTMLResponse(_templates.get_template(f"{name}.html").render(known), status)


@router.get("/", response_class=HTMLResponse, include_in_schema=False)
@router.get("/teach", response_class=HTMLResponse, include_in_schema=False)
@router.get("/learn", response_class=HTMLResponse, include_in_schema=False)
@router.get("/understand", response_class=HTMLResponse, include_in_schema=False)
async def pages(request: Request) -> HTMLResponse:
    return page(request, PAGES[request.url.path])


@router.get("/login", response_class=HTMLResponse, include_in_schema=False)
async def login(request: Request) -> Response:
    if request.app.state.token is None:
        return RedirectResponse("/", 303)
    return page(request, "login")


@router.post("/login", response_class=HTMLResponse, include_in_schema=False)
async def enter(request: Request) -> Response:
    """Exchange the token for a cookie that scripts cannot read and other pages cannot send."""
    token = cast(Token | None, request.app.state.token)
    body = await request.body()
    fields = parse_qs(body.decode("utf-8", "replace"))
    given = fields.get("token", [""])[0].strip().encode()
    if token is None:
        return RedirectResponse("/", 303)
    if not token.fits(given):
        await wait_after_wrong(request.receive)
        return page(request, "login", 401, "This is not the token.")
    response = RedirectResponse("/", 303)
    safe = request.url.scheme == "https"
    response.set_cookie(COOKIE, token.cookie, httponly=True, samesite="strict", secure=safe, max_age=30 * 86400)
    return response


@router.get("/healthz", response_model=HealthOut, tags=["state"])
async def health(request: Request) -> Response:
    """Whether the server answers, and with which model."""
    served = workspace_of(request)
    return answered({"status": "ok", "items": len(served.items), "model": await served.current_soon()})


@router.get("/metrics", response_class=PlainTextResponse, tags=["state"])
async def metrics(request: Request) -> PlainTextResponse:
    """Counts and times of requests, for Prometheus."""
    served = workspace_of(request)
    async with served.room_for_records:
        gauges = await run_in_threadpool(_gauges, served)
    text = cast(Metrics, request.app.state.metrics).text(gauges)
    return PlainTextResponse(text, media_type="text/plain; version=0.0.4")


def _gauges(served: ServedWorkspace) -> dict[str, float]:
    told, undone = served.records.count_answers()
    return {
        "items": float(len(served.items)),
        "answers": float(told - undone),
        "model_version": float(served.current or 0),
        "jobs_running": float(served.records.active_job() is not None),
    }
