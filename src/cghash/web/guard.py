"""What every request passes first, and what every answer carries.

1. *Host*: a server on loopback answers only to names of loopback, so that a foreign page cannot reach it through a name
   of its own that suddenly points here (DNS rebinding).
2. *Token*, where there is one: `Authorization: Bearer …`, or the cookie that `/login` sets; compared in constant time.
   Who gives another one waits for the answer, even where none is needed: the right one would be known by what follows.
3. *Origin*: what a browser sends for a foreign page is refused; a request that changes something must also be of a
   content type that a form of a foreign page cannot send.
4. *Method*: what an address does not take is refused, with those that it takes in `Allow`.
5. *Place*: the connection is counted among those of whoever may use the server, and no longer among strangers'.
6. *Size*: a body that is too large, or comes too slowly, is refused before, or while, it is read.

Answers carry a Content-Security-Policy without inline script, and headers that keep other pages from framing, sniffing
or embedding them.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import re
import time
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from contextlib import suppress
from typing import Any, NamedTuple

from starlette.requests import cookie_parser
from starlette.routing import BaseRoute, Route

from .metrics import Metrics

__all__ = ["COOKIE", "AllowedMethods", "Guard", "Token", "wait_after_wrong"]

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

COOKIE = "cghash"
STATIC = "/static/"
OPEN = ("/login", "/healthz")  # without a token
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; "
    "font-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = [
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=()"),
]
FRESH = [(b"cache-control", b"no-cache")]  # parts of the page: asked about, so that none is of another version
_MOST_FORM = 4096  # bytes of the form that asks for the token: anyone may send it
_MOST_HELD = 10  # bodies of the largest size that are held in memory at a time, or as much of smaller ones
_SECONDS_FOR_BODY = 120.0
_SECONDS_AFTER_WRONG = 0.5  # that a wrong token costs
_CHANGING = {"POST", "PUT", "PATCH", "DELETE"}
_AGAIN = ((b"retry-after", b"1"),)


class Refusal(NamedTuple):
    """Why a request is not let through."""

    status: int
    reason: str
    headers: tuple[tuple[bytes, bytes], ...] = ()


class Token:
    """What a caller must know."""

    def __init__(self, secret: str) -> None:
        self._secret = secret.encode()
        self.cookie = hmac.new(self._secret, b"cookie of the page", hashlib.sha256).hexdigest()

    def fits(self, given: bytes) -> bool:
        """Whether this is the token; takes as long for any wrong one."""
        return hmac.compare_digest(given, self._secret)

    def admits(self, headers: dict[bytes, bytes]) -> bool:
        """Whether the headers of a request carry the token or its cookie."""
        kind, _, given = headers.get(b"authorization", b"").partition(b" ")
        if kind.lower() == b"bearer" and self.fits(given.strip()):
            return True
        return hmac.compare_digest((_cookie(headers) or "").encode(), self.cookie.encode())


def _cookie(headers: dict[bytes, bytes]) -> str | None:
    """Our cookie, where a request has one."""
    return cookie_parser(headers.get(b"cookie", b"").decode("latin-1")).get(COOKIE)


async def wait_after_wrong(receive: Receive) -> bool:
    """Let whoever gave a wrong token wait; whether they did. What they send meanwhile is dropped."""
    with suppress(TimeoutError):
        async with asyncio.timeout(_SECONDS_AFTER_WRONG):
            while (await receive())["type"] != "http.disconnect":
                pass
            return False
    return True


class AllowedMethods:
    """Which methods each address takes: what `Allow` says, and what else is answered with 405.

    An address without parameters stands for itself alone: `/api/answers/list` is no answer with the number "list".

    >>> async def page(request): ...
    >>> known = AllowedMethods([Route("/a", page, methods=["POST"]), Route("/{name}", page), Route("/a", page)])
    >>> known.methods("/a"), known.methods("/b"), known.methods("/b/c")
    (['GET', 'HEAD', 'POST'], ['GET', 'HEAD'], [])
    """

    def __init__(self, routes: Iterable[BaseRoute]) -> None:
        self._plain: dict[str, set[str]] = {}
        self._patterns: dict[re.Pattern[str], set[str]] = {}
        for route in routes:
            if isinstance(route, Route) and route.methods is not None:
                if route.param_convertors:
                    self._patterns.setdefault(route.path_regex, set()).update(route.methods)
                else:
                    self._plain.setdefault(route.path, set()).update(route.methods)

    def methods(self, path: str) -> list[str]:
        """What an address takes, by alphabet; nothing where there is no such address."""
        if path.startswith(STATIC):
            return ["GET", "HEAD"]
        if path in self._plain:
            return sorted(self._plain[path])
        return sorted(set().union(*(methods for regex, methods in self._patterns.items() if regex.match(path))))


class Guard:
    """The outermost layer of the server.

    Parameters
    ----------
    app : what answers the requests that pass
    allowed : the methods that each address takes
    token : Token, or None where everyone who reaches the server may use it
    hosts : names that a request may call the server by; None admits any
    most_bytes : of a request's body
    metrics : counts what passes through
    """

    def __init__(
        self,
        app: App,
        *,
        allowed: AllowedMethods,
        token: Token | None,
        hosts: frozenset[str] | None,
        most_bytes: int,
        metrics: Metrics,
    ) -> None:
        self.app, self.allowed, self.token, self.hosts = app, allowed, token, hosts
        self.most_bytes, self.metrics = most_bytes, metrics
        self._held = 0  # bytes of bodies

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return
        began, status = time.perf_counter(), 500  # unless an answer says otherwise

        async def sending(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                fresh = FRESH if scope["path"].startswith(STATIC) else ()
                message["headers"] = [*message.get("headers", ()), *HEADERS, *fresh]
            await send(message)

        try:
            await self._pass_on(scope, receive, sending)
        finally:
            route = scope.get("route")
            self.metrics.count(getattr(route, "path", "other"), status, time.perf_counter() - began)

    async def _pass_on(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = dict(scope["headers"])
        known = self.token is None or self.token.admits(headers)
        refusal = self._refusal(scope, headers, known)
        if refusal is None and known and self.token is not None:
            refusal = _place(scope)
        has_body = refusal is None and scope["method"] in _CHANGING
        if not known and (b"authorization" in headers or _cookie(headers) is not None):
            if has_body:
                await asyncio.sleep(_SECONDS_AFTER_WRONG)
            elif not await wait_after_wrong(receive):
                return
        if refusal is not None:
            await _refuse(scope, send, refusal)
        elif has_body:
            await self._pass_on_body(scope, receive, send, known)
        else:
            await self._answer(scope, receive, send, known)

    async def _pass_on_body(self, scope: Scope, receive: Receive, send: Send, known: bool) -> None:
        body = bytearray()
        try:
            refusal = await self._read(scope, receive, body)
            if refusal is not None:
                await _refuse(scope, send, refusal)
            else:
                await self._answer(scope, _again(bytes(body), receive), send, known)
        except _GoneError:
            return
        finally:
            self._held -= len(body)

    async def _answer(self, scope: Scope, receive: Receive, send: Send, known: bool) -> None:
        refusal = _place(scope) if known else None
        if refusal is not None:
            await _refuse(scope, send, refusal)
        else:
            await self.app(scope, receive, send)

    async def _read(self, scope: Scope, receive: Receive, body: bytearray) -> Refusal | None:
        """Read the body, or as much of it as shows that it cannot be taken."""
        try:
            async with asyncio.timeout(_SECONDS_FOR_BODY):
                more = True
                while more:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise _GoneError
                    piece, more = message.get("body", b""), message.get("more_body", False)
                    body += piece
                    self._held += len(piece)
                    if (refusal := self._too_large(scope, len(body))) is not None:
                        return refusal
                    if self._held > _MOST_HELD * self.most_bytes:
                        return Refusal(503, "too many large requests at once: try again in a moment", _AGAIN)
        except TimeoutError:
            words = f"the body of a request must come within {_SECONDS_FOR_BODY:g} seconds"
            return Refusal(408, words, ((b"connection", b"close"),))
        return None

    def _refusal(self, scope: Scope, headers: dict[bytes, bytes], known: bool) -> Refusal | None:
        """Why the request is not let through, where its head says so."""
        host = headers.get(b"host", b"").decode("latin-1").lower()
        if self.hosts is not None and _name(host) not in self.hosts:
            return Refusal(421, "the server is not known by this name; --allow-host NAME lets it be called so")
        if not known and scope["path"] not in OPEN and not scope["path"].startswith(STATIC):
            return Refusal(401, "a token is needed: Authorization: Bearer TOKEN", ((b"www-authenticate", b"Bearer"),))
        if _foreign(scope, headers, host):
            return Refusal(403, "the request comes from another page")
        methods = self.allowed.methods(scope["path"])
        if methods and scope["method"] not in methods:
            return Refusal(405, "method not allowed", ((b"allow", ", ".join(methods).encode()),))
        if methods and scope["method"] in _CHANGING and not _of_ours(scope, headers):
            return Refusal(415, "Content-Type must be application/json, or an image for a search by image")
        told = headers.get(b"content-length", b"0")
        return self._too_large(scope, int(told) if told.isdigit() else 0)

    def _most(self, scope: Scope) -> int:
        return min(_MOST_FORM, self.most_bytes) if scope["path"] == "/login" else self.most_bytes

    def _too_large(self, scope: Scope, size: int) -> Refusal | None:
        most = self._most(scope)
        return Refusal(413, f"a request must be of at most {most} bytes") if size > most else None


class _GoneError(Exception):
    """Whoever asked has gone."""


def _place(scope: Scope) -> Refusal | None:
    """Count the connection among those of whoever may use the server, unless all are busy."""
    connection = scope.get("state", {}).get("connection")
    if connection is None or connection.admit():
        return None
    return Refusal(503, "too many requests at once: try again in a moment", (*_AGAIN, (b"connection", b"close")))


def _again(body: bytes, receive: Receive) -> Receive:
    """Gives a body that was read, and then whatever else comes."""
    waiting = [{"type": "http.request", "body": body, "more_body": False}]

    async def receiving() -> Message:
        return waiting.pop() if waiting else await receive()

    return receiving


def _foreign(scope: Scope, headers: dict[bytes, bytes], host: str) -> bool:
    """Whether a foreign page made the request; following a link from one is allowed."""
    changes = scope["method"] in _CHANGING
    origin = headers.get(b"origin", b"").decode("latin-1").lower()
    if changes and origin and origin != f"{scope.get('scheme', 'http')}://{host}":
        return True
    if headers.get(b"sec-fetch-site", b"none") in (b"same-origin", b"none"):
        return False
    return changes or headers.get(b"sec-fetch-mode") != b"navigate"


def _of_ours(scope: Scope, headers: dict[bytes, bytes]) -> bool:
    """Whether the content type is one that forms cannot send, or that of the one form there is.

    Forms cannot send DELETE, which needs no body.
    """
    if scope["method"] == "DELETE" and b"content-type" not in headers:
        return True
    kind = headers.get(b"content-type", b"").split(b";")[0].strip().lower()
    if scope["path"] == "/login":
        return kind == b"application/x-www-form-urlencoded"
    return kind == b"application/json" or kind.startswith(b"image/")


def _name(host: str) -> str:
    """A host without its port: `[::1]:8000` is `[::1]`."""
    name, bracket, _ = host.partition("]")
    return name + bracket if bracket else host.partition(":")[0]


async def _refuse(scope: Scope, send: Send, refusal: Refusal) -> None:
    headers = [(b"content-type", b"application/json"), *refusal.headers]
    status, body = refusal.status, json.dumps({"error": refusal.reason}).encode()
    if status == 401 and scope["method"] == "GET" and not scope["path"].startswith(("/api/", "/metrics")):
        status, headers, body = 303, [(b"location", b"/login")], b""
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
