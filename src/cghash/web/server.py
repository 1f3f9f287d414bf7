"""Running the server."""

from __future__ import annotations

import gc
import socket
from collections.abc import Iterable
from functools import partial
from typing import Any, cast

import uvicorn
from fastapi import FastAPI

from ..exceptions import InvalidInputError
from ..workspace.workspace import Workspace
from .app import LOOPBACK, create_app
from .connections import Connection, Places

__all__ = ["LEAST_TOKEN", "is_loopback", "listen", "serve"]

LEAST_TOKEN = 16  # characters


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach a server bound to this address.

    >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("0.0.0.0")
    (True, True, False)
    """
    return host in ("localhost", "::1") or host.startswith("127.")


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens; port 0 takes a free one."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
        listening.listen(1024)  # whoever comes before the server is ready waits for it
    except OSError as error:
        listening.close()
        words = f"cannot listen on {host}, port {port}: {error.strerror}; --port 0 takes a free one"
        raise InvalidInputError(words) from error
    return listening


def serve(
    workspace: Workspace,
    listening: socket.socket,
    *,
    token: str | None = None,
    allowed: Iterable[str] = (),
    n_jobs: int | None = None,
) -> None:
    """Serve a workspace until Ctrl-C.

    Parameters
    ----------
    workspace : Workspace
    listening : what `listen` gave
    token : needed for any address but loopback
    allowed : further host names by which the server may be called, behind a proxy for instance; these, and no others
    n_jobs : threads of a search
    """
    host = listening.getsockname()[0]
    if token is None and not is_loopback(host):
        raise InvalidInputError(f"a server on {host} must have a token: others can reach it")
    if token is not None and len(token) < LEAST_TOKEN:
        raise InvalidInputError(f"token must have at least {LEAST_TOKEN} characters, got {len(token)}")
    names = frozenset(name.lower() for name in allowed)
    if names and token is None:
        raise InvalidInputError("a server that is called by other names must have a token: others can reach it")
    hosts = LOOPBACK | names if names or is_loopback(host) else None
    app = create_app(workspace, token=token, hosts=hosts, n_jobs=n_jobs)
    config = uvicorn.Config(
        app,
        http=cast(Any, partial(Connection, Places())),
        ws="none",
        log_level="warning",
        access_log=False,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=5,
        server_header=False,
    )
    # what is loaded by now stays: looking through it for garbage would hold all requests up by 100 ms each second
    gc.collect()
    gc.freeze()
    try:
        _Server(config, cast(FastAPI, app.app)).run(sockets=[listening])
    finally:
        gc.unfreeze()  # else the index outlives the interpreter, and the kernels complain of a leak


class _Server(uvicorn.Server):
    """Tells the streams that pages watch to end before it waits for them."""

    def __init__(self, config: uvicorn.Config, app: FastAPI) -> None:
        super().__init__(config)
        self.app = app

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self.app.state.stopping = True
        await super().shutdown(sockets)
