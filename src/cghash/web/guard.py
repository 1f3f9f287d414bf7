"""What every request passes first, and what every answer carries.

1. *Host*: a server on loopback answers only to names of loopback, so that a foreign page cannot reach it through a name
   of its own that suddenly points here (DNS rebinding).
2. *Token*, where there is one: `Authorization: Bearer …`, or the cookie that `/login` sets; compared in constant time.
3. *Origin*: what a browser sends for a foreign page is refused; a request that changes something must also be of a
   content type that a form of a foreign page cannot send.
4. *Size*: a body that is too large is refused before, or while, it is read.

Answers carry a Content-Security-Policy without inline script, and headers that keep other pages from framing, sniffing
or embedding them.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from starlette.requests import cookie_parser

from .metrics import Metrics

__all__ = ["COOKIE", "Guard", "Token"]

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

COOKIE = "cghash"
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
_CHANGING = {"POST", "PUT", "PATCH", "DELETE"}


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
        cookie = cookie_parser(headers.get(b"cookie", b"").decode("latin-1")).get(COOKIE, "")
        return hmac.compare_digest(cookie.encode(), self.cookie.encode())


class Guard:
    """The outermost layer of the server.

    Parameters
    ----------
    app : what answers the requests that pass
    token : Token, or None where everyone who reaches the server may use it
    hosts : names that a request may call the server by; None admits any
    most_bytes : of a request's body
    metrics : counts what passes through
    """

    def __init__(
        self, app: App, *, token: Token | None, hosts: frozenset[str] | None, most_bytes: int, metrics: Metrics
    ) -> None:
        self.app, self.token, self.hosts = app, token, hosts
        self.most_bytes, self.metrics = most_bytes, metrics

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
                fresh = FRESH if scope["path"].startswith("/static/") else ()
                message["headers"] = [*message.get("headers", ()), *HEADERS, *fresh]
            await send(message)

        try:
            await self._pass_on(scope, receive, sending)
        finally:
            route = scope.get("route")
            self.metrics.count(getattr(route, "path", "other"), status, time.perf_counter() - began)

    async def _pass_on(self, scope: Scope, receive: Receive, send: Send) -> None:
        refusal = self._refusal(scope, dict(scope["headers"]))
        if refusal is None and scope["method"] in _CHANGING:
            body = await _body(receive, self._most(scope))
            if body is None:
                return  # the caller has gone
            receive = _again(body, receive)
            refusal = self._too_large(scope, len(body))
        if refusal is not None:
            await _refuse(scope, send, *refusal)
        else:
            await self.app(scope, receive, send)

    def _refusal(self, scope: Scope, headers: dict[bytes, bytes]) -> tuple[int, str] | None:
        """Status and reason, where the request is not let through."""
        host = headers.get(b"host", b"").decode("latin-1").lower()
        if self.hosts is not None and _name(host) not in self.hosts:
            return 421, "the server is not known by this name; --allow-host NAME lets it be called so"
        guarded = scope["path"] not in OPEN and not scope["path"].startswith("/static/")
        if self.token is not None and guarded and not self.token.admits(headers):
            return 401, "a token is needed: Authorization: Bearer TOKEN"
        if _foreign(scope, headers, host):
            return 403, "the request comes from another page"
        if scope["method"] in _CHANGING and not _of_ours(scope, headers):
            return 415, "Content-Type must be application/json, or an image for a search by image"
        told = headers.get(b"content-length", b"0")
        return self._too_large(scope, int(told) if told.isdigit() else 0)

    def _most(self, scope: Scope) -> int:
        return min(_MOST_FORM, self.most_bytes) if scope["path"] == "/login" else self.most_bytes

    def _too_large(self, scope: Scope, size: int) -> tuple[int, str] | None:
        most = self._most(scope)
        return (413, f"a request must be of at most {most} bytes") if size > most else None


async def _body(receive: Receive, most: int) -> bytes | None:
    """The body, or as much of it as shows that it is too large; None where the caller goes meanwhile."""
    body, more = bytearray(), True
    while more and len(body) <= most:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        body += message.get("body", b"")
        more = message.get("more_body", False)
    return bytes(body)


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
    """Whether the content type is one that forms cannot send, or that of the one form there is."""
    kind = headers.get(b"content-type", b"").split(b";")[0].strip().lower()
    if scope["path"] == "/login":
        return kind == b"application/x-www-form-urlencoded"
    return kind == b"application/json" or kind.startswith(b"image/")


def _name(host: str) -> str:
    """A host without its port: `[::1]:8000` is `[::1]`."""
    name, bracket, _ = host.partition("]")
    return name + bracket if bracket else host.partition(":")[0]


async def _refuse(scope: Scope, send: Send, status: int, reason: str) -> None:
    if status == 401 and scope["method"] == "GET" and not scope["path"].startswith("/api/"):
        await send({"type": "http.response.start", "status": 303, "headers": [(b"location", b"/login")]})
        await send({"type": "http.response.body", "body": b""})
        return
    headers = [(b"content-type", b"application/json")]
    if status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": json.dumps({"error": reason}).encode()})
