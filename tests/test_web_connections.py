"""Connections that say nothing, little, or very much: they go, and whoever has the token gets in."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import socket
from urllib.parse import urlsplit

import pytest
import uvicorn
from uvicorn.server import ServerState

from cghash.client import Client
from cghash.exceptions import ServerError
from cghash.web import connections, guard
from cghash.web.app import create_app
from cghash.web.connections import Connection, Places
from cghash.workspace import Workspace

TOKEN = "a token of many characters"
ASK = b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
POST = b"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1000\r\n\r\n"


@pytest.fixture(scope="module")
def server(few_digits, start_server, tmp_path_factory):
    """A real process that asks for a token."""
    folder = shutil.copytree(few_digits, tmp_path_factory.mktemp("locked") / "digits.ws")
    with start_server(folder, "--token", TOKEN) as running:
        yield running


def crowd(server, count, said=b""):
    """Connections that all say the same and wait."""
    where = urlsplit(server.url)
    opened = contextlib.ExitStack()
    for _ in range(count):
        connection = opened.enter_context(socket.create_connection((where.hostname, where.port), 20))
        with contextlib.suppress(ConnectionError):  # it has made room for others
            connection.sendall(said)
    return opened


@pytest.mark.parametrize(
    "said",
    [
        b"",
        b"GET /api/items HT",
        b"POST /login HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/x-www-form-urlencoded\r\n"
        b"Content-Length: 1000\r\n\r\ntok",
        b"GET /api/items HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer wrong\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
    ],
    ids=["nothing", "half a request", "half a form", "a wrong token", "no token"],
)
def test_strangers_in_any_number_keep_nobody_with_the_token_out(server, said):
    with crowd(server, 520, said):
        page = Client(server.url, TOKEN, timeout=60)
        assert len(page.search(item=1, k=3)["results"]) == 3
        assert page.health()["status"] == "ok"
        with pytest.raises(ServerError, match="a token is needed"):
            Client(server.url, "another token", timeout=60).items()
    assert server.poll() is None


# One connection


class Served:
    """Connections to an application, in this process."""

    def __init__(self, app, places):
        self.app, self.places = app, places

    async def __aenter__(self):
        config = uvicorn.Config(self.app, ws="none", log_level="critical", lifespan="off")
        config.load()
        state = ServerState()

        def connection():
            return Connection(self.places, config=config, server_state=state, app_state={})

        self.server = await asyncio.get_running_loop().create_server(connection, "127.0.0.1", 0)
        return self

    async def __aexit__(self, *error):
        self.server.close()

    async def open(self, said=b""):
        reader, writer = await asyncio.open_connection(*self.server.sockets[0].getsockname())
        writer.write(said)
        return reader, writer


async def answer(scope, receive, send):
    headers = [(b"content-length", b"2")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": b"ok"})


async def welcome(scope, receive, send):
    assert scope["state"]["connection"].admit()
    await answer(scope, receive, send)


async def take_body(scope, receive, send):
    while (message := await receive())["type"] != "http.disconnect" and message["more_body"]:
        pass
    if message["type"] != "http.disconnect":
        await answer(scope, receive, send)


def run(test):
    async def limited():
        async with asyncio.timeout(60):
            await test

    asyncio.run(limited())


async def rest(reader):
    """What comes until the end; a connection may end by a reset."""
    with contextlib.suppress(ConnectionError):
        return await reader.read()
    return b""


@pytest.fixture
def hurried(monkeypatch):
    monkeypatch.setattr(connections, "_LOOK", 0.05)


@pytest.mark.parametrize("said", [b"", b"G", ASK[:-2], POST, POST + b"{", ASK], ids=repr)
def test_a_stranger_that_goes_no_further_is_sent_away(hurried, said):
    async def test():
        async with Served(take_body if said.startswith(b"POST") else answer, Places()) as served:
            reader, _ = await served.open(said)
            found = await rest(reader)
            assert found.endswith(b"ok") if said == ASK else found == b""
            assert not served.places.strangers

    run(test())


@pytest.mark.parametrize("start", [b"GET / HTTP/1.1\r\nHost: ", POST], ids=["head", "body"])
def test_a_byte_now_and_then_keeps_no_place(hurried, start):
    async def test():
        async with Served(take_body, Places()) as served:
            reader, writer = await served.open(start)
            with contextlib.suppress(ConnectionError):
                while not reader.at_eof():
                    writer.write(b"x")
                    await writer.drain()
                    await asyncio.sleep(0.01)
            assert not served.places.strangers

    run(test())


def test_a_body_that_comes_slowly_but_steadily_is_taken(hurried):
    """Without a token its sender is a stranger until it is whole."""

    async def test():
        async with Served(take_body, Places()) as served:
            reader, writer = await served.open(POST.replace(b"1000", b"200000"))
            for _ in range(40):  # 10 looks
                writer.write(bytes(5000))
                await asyncio.sleep(0.0125)
            assert (await reader.readuntil(b"ok")).startswith(b"HTTP/1.1 200")

    run(test())


def test_whoever_is_known_may_be_silent_for_a_while(hurried, monkeypatch):
    async def test():
        async with Served(welcome, Places()) as served:
            reader, writer = await served.open(ASK)
            assert (await reader.readuntil(b"ok")).startswith(b"HTTP/1.1 200")
            for _ in range(2):
                await asyncio.sleep(0.3)
                writer.write(ASK)
                assert (await reader.readuntil(b"ok")).startswith(b"HTTP/1.1 200")
            assert (len(served.places.strangers), len(served.places.known)) == (0, 1)
            monkeypatch.setattr(connections, "_MOST_SILENT", 0.1)
            writer.write(ASK[:-2])  # half of the next request
            assert await rest(reader) == b""

    run(test())


@pytest.mark.parametrize("piece", [b"x" * 1000, b"x: " + b"y" * 1000 + b"\r\n"], ids=["one line", "lines"])
def test_a_head_without_end_is_not_kept(piece):
    async def test():
        async with Served(answer, Places()) as served:
            reader, writer = await served.open(b"GET / HTTP/1.1\r\n")
            sent = 0
            with contextlib.suppress(ConnectionError):
                while not reader.at_eof() and sent < 2**24:
                    writer.write(piece)
                    await writer.drain()
                    sent += len(piece)
            assert sent < 2**24
            assert await rest(reader) == b""

    run(test())


def test_a_long_body_is_no_long_head():
    async def test():
        async with Served(take_body, Places()) as served:
            reader, writer = await served.open(POST.replace(b"1000", b"1000000"))
            writer.write(bytes(1_000_000))
            writer.write(ASK)
            assert (await rest(reader) if reader.at_eof() else await reader.readuntil(b"ok")).endswith(b"ok")
            assert (await reader.readuntil(b"ok")).endswith(b"ok")

    run(test())


CHUNKED = b"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    ("start", "piece"),
    [
        (b"0\r\n", b"x: " + b"y" * 1000 + b"\r\n"),
        (b"0\r\nx: ", b"y" * 1000),
        (b"1\r\nx\r\n0\r\nx", b"y" * 1000),
        (b"1;x=", b"y" * 1000),
    ],
    ids=["lines", "one line", "one name", "one extension"],
)
def test_what_stands_beside_a_body_without_end_is_not_kept(start, piece):
    heads = []

    async def take(scope, receive, send):
        heads.append(scope["headers"])
        await take_body(scope, receive, send)

    async def test():
        async with Served(take, Places()) as served:
            reader, writer = await served.open(CHUNKED + start)
            sent = 0
            with contextlib.suppress(ConnectionError):
                while not reader.at_eof() and sent < 2**24:
                    writer.write(piece)
                    await writer.drain()
                    sent += len(piece)
            assert sent < 2**24
            assert await rest(reader) == b""
            assert [name for name, _ in heads[0]] == [b"host", b"transfer-encoding"]

    run(test())


def test_a_long_body_in_chunks_is_taken():
    async def test():
        async with Served(take_body, Places()) as served:
            reader, writer = await served.open(CHUNKED)
            writer.write((b"3e8\r\n" + bytes(1000) + b"\r\n") * 1000 + b"0\r\n\r\n")
            assert (await reader.readuntil(b"ok")).endswith(b"ok")

    run(test())


def test_very_many_requests_at_once_are_not_kept():
    begun = []

    async def slow(scope, receive, send):
        begun.append(scope)
        await asyncio.sleep(3600)

    async def test():
        async with Served(slow, Places()) as served:
            reader, _ = await served.open(ASK * 10_000)
            assert await rest(reader) == b""
            assert len(begun) == 1
            assert not served.places.strangers

    run(test())


def test_an_answer_that_nobody_takes_is_given_up(hurried):
    given_up = []

    async def long(scope, receive, send):
        connection = scope["state"]["connection"]
        connection.admit()
        await send({"type": "http.response.start", "status": 200, "headers": []})
        while not connection.transport.is_closing():
            await send({"type": "http.response.body", "body": bytes(2**20), "more_body": True})
        given_up.append(connection)

    async def test():
        async with Served(long, Places()) as served:
            _, writer = await served.open(ASK)
            while not given_up:
                await asyncio.sleep(0.01)
            assert not served.places.known
            writer.close()

    run(test())


def test_websockets_are_refused_without_a_protocol_of_theirs():
    ask = b"GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"

    async def test():
        async with Served(answer, Places()) as served:
            reader, _ = await served.open(ask + b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")
            assert (await rest(reader)).startswith(b"HTTP/1.1 403 ")

    run(test())


# Places


def test_a_stranger_makes_room_and_the_others_stay(monkeypatch):
    monkeypatch.setattr(connections.random, "choice", lambda strangers: strangers[1])

    async def test():
        async with Served(answer, Places(most_strangers=2)) as served:
            first, writer = await served.open()
            while len(served.places.strangers) < 1:
                await asyncio.sleep(0.01)
            second, _ = await served.open()
            while len(served.places.strangers) < 2:
                await asyncio.sleep(0.01)
            await served.open()
            assert await rest(second) == b""
            writer.write(ASK)
            assert (await first.readuntil(b"ok")).endswith(b"ok")

    run(test())


class Gone:
    """A connection that is only counted."""

    def __init__(self):
        self.transport, self.gone = self, False

    def abort(self):
        self.gone = True


def test_whoever_connects_fast_does_not_push_out_the_others_in_turn():
    """Of 100 that came first, a share of (1 − 1/256)^256, about 37, is still there after 256 more; never none."""
    places = Places(most_strangers=256)
    first = [Gone() for _ in range(100)]
    for connection in (*first, *(Gone() for _ in range(156 + 256))):
        places.enter(connection)
    assert len(places.strangers) == 256
    assert 10 < sum(not connection.gone for connection in first) < 70


def test_of_the_known_those_who_ask_for_nothing_make_room_and_those_who_do_stay():
    finish, refused = asyncio.Event(), []

    async def work(scope, receive, send):
        if not scope["state"]["connection"].admit():
            refused.append(scope)
        elif scope["path"] == "/long":
            await finish.wait()
        await answer(scope, receive, send)

    async def test():
        async with Served(work, Places(most_known=2)) as served:
            idle, _ = await served.open(ASK)
            await idle.readuntil(b"ok")
            busy = [await served.open(ASK.replace(b"/ ", b"/long ")) for _ in range(2)]
            assert await rest(idle) == b""
            late, _ = await served.open(ASK)
            await late.readuntil(b"ok")
            assert len(refused) == 1
            finish.set()
            for reader, _ in busy:
                assert (await reader.readuntil(b"ok")).endswith(b"ok")

    run(test())


# Wrong tokens


class Asked:
    """A request to an application: what was answered, and a way to go before that."""

    def __init__(self, app, token, path="/api/items", method="GET", body=b"", **headers):
        given = {"authorization": "Bearer " + token} if token is not None else {}
        headers = {"host": "127.0.0.1"} | given | {name.replace("_", "-"): value for name, value in headers.items()}
        self.scope = {"type": "http", "method": method, "path": path, "query_string": b""}
        self.scope["headers"] = [(name.encode(), value.encode()) for name, value in headers.items()]
        self.messages, self.answered = asyncio.Queue(), []
        self.messages.put_nowait({"type": "http.request", "body": body, "more_body": False})
        self.task = asyncio.create_task(app(self.scope, self.messages.get, self.send))

    async def send(self, message):
        self.answered.append(message)

    def leave(self):
        self.messages.put_nowait({"type": "http.disconnect"})


FORM = {"content_type": "application/x-www-form-urlencoded", "method": "POST"}
WRONG = {
    "token": {"token": "wrong"},
    "cookie": {"token": None, "cookie": f"a=b; {guard.COOKIE}=wrong"},
    "token, where none is needed": {"token": "wrong", "path": "/healthz"},
    "cookie, where none is needed": {"token": None, "cookie": f"{guard.COOKIE}=wrong", "path": "/healthz"},
    "token for a part of the page": {"token": "wrong", "path": "/static/style.css"},
    "token that is refused otherwise": {"token": "wrong", "method": "PUT"},
    "token with a form": {"token": "wrong", "path": "/login", **FORM},
    "cookie with a foreign form": {"token": None, "cookie": f"{guard.COOKIE}=wrong", "path": "/static/x", **FORM},
}


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG)
def test_a_wrong_token_waits_and_holds_up_nobody(few_digits, tmp_path, monkeypatch, wrong):
    monkeypatch.setattr(guard, "_SECONDS_AFTER_WRONG", 3600)

    async def test(app):
        waiting = [Asked(app, **wrong) for _ in range(100)]
        right = Asked(app, TOKEN, "/api/nothing")
        await right.task
        assert right.answered[0]["status"] == 404
        await asyncio.sleep(0.1)
        assert not any(asked.task.done() or asked.answered for asked in waiting)
        for asked in waiting:
            asked.leave()
            if asked.scope["method"] == "POST":
                asked.task.cancel()
        await asyncio.gather(*(asked.task for asked in waiting), return_exceptions=True)  # who has gone is forgotten
        assert not any(asked.answered for asked in waiting)

    with Workspace.open(shutil.copytree(few_digits, tmp_path / "ws")) as workspace:
        run(test(create_app(workspace, token=TOKEN)))


@pytest.mark.parametrize("kind", ["token", "cookie"])
def test_a_wrong_token_is_told_so_in_the_end(few_digits, tmp_path, monkeypatch, kind):
    monkeypatch.setattr(guard, "_SECONDS_AFTER_WRONG", 0.01)

    async def test(app):
        asked = Asked(app, **WRONG[kind])
        await asked.task
        assert asked.answered[0]["status"] == 401

    with Workspace.open(shutil.copytree(few_digits, tmp_path / "ws")) as workspace:
        run(test(create_app(workspace, token=TOKEN)))


def test_whoever_gives_nothing_or_an_old_cookie_can_still_log_in(few_digits, tmp_path, monkeypatch):
    monkeypatch.setattr(guard, "_SECONDS_AFTER_WRONG", 0.01)

    async def test(app):
        body = f"token={TOKEN}".replace(" ", "+").encode()
        for old in ({}, {"cookie": f"{guard.COOKIE}=of-yesterday"}):
            asked = Asked(app, None, "/login", body=body, **FORM, **old)
            await asked.task
            assert asked.answered[0]["status"] == 303
        monkeypatch.setattr(guard, "_SECONDS_AFTER_WRONG", 3600)
        asked = Asked(app, None, "/healthz", cookie="another=1")
        await asked.task
        assert asked.answered[0]["status"] == 200

    with Workspace.open(shutil.copytree(few_digits, tmp_path / "ws")) as workspace:
        run(test(create_app(workspace, token=TOKEN)))


# Bodies


def test_a_body_that_comes_too_slowly_is_refused(few_digits, tmp_path, monkeypatch):
    monkeypatch.setattr(guard, "_SECONDS_FOR_BODY", 0.05)

    async def test(app):
        asked = Asked(app, TOKEN, "/api/search")
        asked.scope |= {"method": "POST", "headers": [*asked.scope["headers"], (b"content-type", b"application/json")]}
        asked.messages.get_nowait()
        asked.messages.put_nowait({"type": "http.request", "body": b"{", "more_body": True})
        await asked.task
        assert asked.answered[0]["status"] == 408
        assert app._held == 0

    with Workspace.open(shutil.copytree(few_digits, tmp_path / "ws")) as workspace:
        run(test(create_app(workspace, token=TOKEN)))


def test_more_large_bodies_than_memory_is_meant_for_are_turned_away(few_digits, tmp_path, monkeypatch):
    monkeypatch.setattr(guard, "_MOST_HELD", 2)

    async def test(app):
        def asked(size):
            found = Asked(app, TOKEN, "/api/search")
            kind = (b"content-type", b"application/json")
            found.scope |= {"method": "POST", "headers": [*found.scope["headers"], kind]}
            found.messages.get_nowait()
            found.messages.put_nowait({"type": "http.request", "body": bytes(size), "more_body": True})
            return found

        waiting = [asked(90), asked(90)]
        await asyncio.sleep(0.05)
        third = asked(90)
        await third.task
        assert third.answered[0]["status"] == 503
        for one in waiting:
            one.leave()
            await one.task
        assert app._held == 0

    with Workspace.open(shutil.copytree(few_digits, tmp_path / "ws")) as workspace:
        run(test(create_app(workspace, token=TOKEN, most_bytes=100)))
