"""Connections: how many there may be, and how long one may be silent or slow.

A connection is a stranger's until it brings the token; without a token, until its first request is whole. Strangers
have few places and little time: any one of them makes room for the next, so that nobody can keep all places, nor push
out by speed alone whoever is a moment away. Those who are known lose their place only when it is needed and they ask
for nothing.
"""

from __future__ import annotations

import asyncio
import random
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

__all__ = ["Connection", "Places"]

MOST_STRANGERS, MOST_KNOWN = 256, 512
_LOOK = 10.0  # seconds between two looks at a connection: a stranger has as many to ask, and again as many to go
_MOST_SILENT = 60.0  # seconds that a known one may be without a whole request
_MOST_UNREAD = 2**16  # bytes of a head, or of what stands between the pieces of a body
_LEAST_BODY = 2**12  # bytes of a body between two looks, of a stranger who is given more time
_MOST_WAITING = 16  # requests that one connection sends before the first of them is answered
_PIECE = 4096  # bytes that are looked through at a time: what one holds can be very many requests
_NO_WEBSOCKETS = b"HTTP/1.1 403 Forbidden\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"


class Places:
    """The connections that are open, in the order in which they came."""

    def __init__(self, most_strangers: int = MOST_STRANGERS, most_known: int = MOST_KNOWN) -> None:
        self.most_strangers, self.most_known = most_strangers, most_known
        self.strangers: dict[Connection, None] = {}
        self.known: dict[Connection, None] = {}

    def enter(self, connection: Connection) -> None:
        """A new connection, for which one of a stranger goes where all places are taken.

        The oldest would always be who needs the longest from connecting to asking, while others connect very fast.
        """
        if len(self.strangers) >= self.most_strangers:
            self._send_away(random.choice([*self.strangers]))
        self.strangers[connection] = None

    def admit(self, connection: Connection) -> bool:
        """Count a stranger among the known; False where each of these has a request that is being answered."""
        if connection not in self.strangers:
            return True  # it is known, or has gone
        if len(self.known) >= self.most_known:
            idle = next((other for other in self.known if other.idle), None)
            if idle is None:
                return False
            self._send_away(idle)
        del self.strangers[connection]
        self.known[connection] = None
        return True

    def leave(self, connection: Connection) -> None:
        self.strangers.pop(connection, None)
        self.known.pop(connection, None)

    def _send_away(self, connection: Connection) -> None:
        self.leave(connection)
        connection.transport.abort()


class Connection(HttpToolsProtocol):
    """One connection, as uvicorn serves it; requests find it in their scope's `state`."""

    def __init__(self, places: Places, **options: Any) -> None:
        super().__init__(**options)
        self.places = places
        self._in_head = True
        self._unread = 0  # bytes since the last that meant something
        self._body = 0  # bytes since the last look
        self._unsent = 0  # bytes, at the last look
        self._told_to_go = False

    @property
    def idle(self) -> bool:
        """Whether no request is being answered."""
        return self.cycle is None or self.cycle.response_complete

    def admit(self) -> bool:
        """Whether there is a place among the known; from now on this one has it."""
        return self.places.admit(self)

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.places.enter(self)
        self._active = self.loop.time()
        self._timer = self.loop.call_later(_LOOK, self._look)

    def connection_lost(self, error: Exception | None) -> None:
        self._timer.cancel()
        self.places.leave(self)
        self.pipeline.clear()
        super().connection_lost(error)

    def data_received(self, data: bytes) -> None:
        for start in range(0, len(data), _PIECE):
            if self.transport.is_closing():
                return
            piece = data[start : start + _PIECE]
            super().data_received(piece)
            self._unread += len(piece)
            if self._unread > _MOST_UNREAD or len(self.pipeline) > _MOST_WAITING:
                self.transport.abort()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._in_head, self._unread = True, 0
        self.scope["state"]["connection"] = self

    def on_header(self, name: bytes, value: bytes) -> None:
        """A line of the head; lines behind the body, of which there may be as many, nobody needs."""
        if self._in_head:
            super().on_header(name, value)
        else:
            self.transport.abort()

    def on_headers_complete(self) -> None:
        self._in_head, self._unread = False, 0
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._unread = 0
        self._body += len(body)
        super().on_body(body)

    def on_response_complete(self) -> None:
        self._active = self.loop.time()
        super().on_response_complete()

    def handle_websocket_upgrade(self) -> None:
        """There are none."""
        self.transport.write(_NO_WEBSOCKETS)
        self.transport.close()

    def _should_upgrade_to_ws(self) -> bool:
        return True

    def _look(self) -> None:
        """End the connection where nothing comes of it."""
        unsent, before = self.transport.get_write_buffer_size(), self._unsent
        sends = not self.idle and self._body >= _LEAST_BODY
        stranger = self in self.places.strangers and not sends
        silent = self.idle and self.loop.time() - self._active > _MOST_SILENT
        if (unsent and unsent == before) or (stranger and self._told_to_go):
            self.transport.abort()
            return
        if stranger or silent:
            self._told_to_go = True
            self.shutdown()  # now, or when what it asked for is answered
        self._unsent, self._body = unsent, 0
        self._timer = self.loop.call_later(_LOOK, self._look)
