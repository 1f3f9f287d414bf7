"""Connections that say nothing, little, or very much: they go, and whoever has the token gets in."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import socket
from urllib.parse import urlencode, urlsplit

import pytest
import uvicorn
from uvicorn.server import ServerState

from cghash.client import Client
from cghash.exceptions import ServerError
from cghash.web import connections, guard
from cghash.web.app import create_app
from cghash.web.connections import Connection, Places
from cghash.workspace import Workspace

TOKEN = "a token of many characters"  # a process gets it by its command, which not every system reads as UTF-8
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


@contextlib.asynccontextmanager
async def serving(app, places=None):
    """Gives `open_one(said)`, a connection to an application in this process: its reader and its writer."""
    config = uvicorn.Config(app, ws="none", log_level="critical", lifespan="off")
    config.load()
    state, places = ServerState(), places or Places()

    def connection():
        return Connection(places, config=config, server_state=state, app_state={})

    server = await asyncio.get_running_loop().create_server(connection, "127.0.0.1", 0)

    async def opened(said=b""):
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        writer.write(said)
        return reader, writer

    opened.places = places
    yield opened
    server.close()


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


async def until(condition):
    """Waits for a condition; `run` limits how long."""
    while not condition():
        await asyncio.sleep(0.01)


async def flood(reader, writer, piece, most=2**24):
    """Send a piece again and again until the connection ends, which it must do."""
    sent = 0
    with contextlib.suppress(ConnectionError):
        while not reader.at_eof():
            writer.write(piece)
            await writer.drain()
            sent += len(piece)
            assert sent < most
            if len(piece) == 1:
                await asyncio.sleep(0.01)
    assert await rest(reader) == b""


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
        async with serving(take_body if said.startswith(b"POST") else answer) as open_one:
            reader, _ = await open_one(said)
            found = await rest(reader)
            assert found.endswith(b"ok") if said == ASK else found == b""
            await until(lambda: not open_one.places.strangers)

    run(test())


@pytest.mark.parametrize("start", [b"GET / HTTP/1.1\r\nHost: ", POST], ids=["head", "body"])
def test_a_byte_now_and_then_keeps_no_place(hurried, start):
    async def test():
        async with serving(take_body) as open_one:
            await flood(*await open_one(start), b"x")
            await until(lambda: not open_one.places.strangers)

    run(test())


def test_a_body_that_comes_slowly_but_steadily_is_taken(monkeypatch):
    """Without a token its sender is a stranger until it is whole: 5000 bytes between two looks are enough."""
    monkeypatch.setattr(connections, "_LOOK", 3600)

    async def test():
        async with serving(take_body) as open_one:
            reader, writer = await open_one(POST.replace(b"1000", b"50000"))
            await until(lambda: open_one.places.strangers)
            [connection] = open_one.places.strangers
            for count in range(1, 11):
                writer.write(bytes(5000))
                if count < 10:
                    await until(lambda: connection._body >= 5000)
                    connection._look()
            assert (await reader.readuntil(b"ok")).startswith(b"HTTP/1.1 200")

    run(test())


def test_whoever_is_known_may_be_silent_for_a_while(hurried, monkeypatch):
    looks = []

    def counted(connection, look=Connection._look):
        looks.append(connection)
        look(connection)

    monkeypatch.setattr(Connection, "_look", counted)

    async def test():
        async with serving(welcome) as open_one:
            reader, writer = await open_one(ASK)
            assert (await reader.readuntil(b"ok")).startswith(b"HTTP/1.1 200")
            for _ in range(2):
                before = len(looks)
                await until(lambda: len(looks) >= before + 3)  # noqa: B023
                writer.write(ASK)
                assert (await reader.readuntil(b"ok")).startswith(b"HTTP/1.1 200")
            assert (len(open_one.places.strangers), len(open_one.places.known)) == (0, 1)
            monkeypatch.setattr(connections, "_MOST_SILENT", 0.1)
            writer.write(ASK[:-2])  # half of the next request
            assert await rest(reader) == b""

    run(test())


HEAD = b"GET / HTTP/1.1\r\n"
CHUNKED = b"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n"
LINE, LETTERS = b"x: " + b"y" * 1000 + b"\r\n", b"y" * 1000


@pytest.mark.parametrize(
    ("start", "piece"),
    [
        (HEAD, LETTERS),
        (HEAD, LINE),
        (CHUNKED + b"0\r\n", LINE),
        (CHUNKED + b"0\r\nx: ", LETTERS),
        (CHUNKED + b"1\r\nx\r\n0\r\nx", LETTERS),
        (CHUNKED + b"1;x=", LETTERS),
    ],
    ids=["head of one line", "head of lines", "trailer", "one line", "one name", "one extension"],
)
def test_a_head_and_what_stands_beside_a_body_are_not_kept_without_end(start, piece):
    heads = []

    async def take(scope, receive, send):
        heads.append([name for name, _ in scope["headers"]])
        await take_body(scope, receive, send)

    async def test():
        async with serving(take) as open_one:
            await flood(*await open_one(start), piece)
            assert heads == ([] if start == HEAD else [[b"host", b"transfer-encoding"]])

    run(test())


def test_a_long_body_is_no_long_head():
    async def test():
        async with serving(take_body) as open_one:
            reader, writer = await open_one(POST.replace(b"1000", b"1000000"))
            writer.write(bytes(1_000_000))
            writer.write(ASK)
            assert (await rest(reader) if reader.at_eof() else await reader.readuntil(b"ok")).endswith(b"ok")
            assert (await reader.readuntil(b"ok")).endswith(b"ok")

    run(test())


def test_a_long_body_in_chunks_is_taken():
    async def test():
        async with serving(take_body) as open_one:
            reader, writer = await open_one(CHUNKED)
            writer.write((b"3e8\r\n" + bytes(1000) + b"\r\n") * 1000 + b"0\r\n\r\n")
            assert (await reader.readuntil(b"ok")).endswith(b"ok")

    run(test())


def test_very_many_requests_at_once_are_not_kept():
    begun = []

    async def slow(scope, receive, send):
        begun.append(scope)
        await asyncio.sleep(3600)

    async def test():
        async with serving(slow) as open_one:
            reader, _ = await open_one(ASK * 10_000)
            assert await rest(reader) == b""
            assert len(begun) == 1
            assert not open_one.places.strangers

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
        async with serving(long) as open_one:
            _, writer = await open_one(ASK)
            await until(lambda: given_up)
            await until(lambda: not open_one.places.known)
            writer.close()

    run(test())


# Places


def test_a_stranger_makes_room_and_the_others_stay(monkeypatch):
    monkeypatch.setattr(connections.random, "choice", lambda strangers: strangers[1])

    async def test():
        async with serving(answer, Places(most_strangers=2)) as open_one:
            first, writer = await open_one()
            await until(lambda: len(open_one.places.strangers) == 1)
            second, _ = await open_one()
            await until(lambda: len(open_one.places.strangers) == 2)
            await open_one()
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
        async with serving(work, Places(most_known=2)) as open_one:
            idle, _ = await open_one(ASK)
            await idle.readuntil(b"ok")
            busy = [await open_one(ASK.replace(b"/ ", b"/long ")) for _ in range(2)]
            assert await rest(idle) == b""
            late, _ = await open_one(ASK)
            await late.readuntil(b"ok")
            assert len(refused) == 1
            finish.set()
            for reader, _ in busy:
                assert (await reader.readuntil(b"ok")).endswith(b"ok")

    run(test())


# Wrong tokens


class Asked:
    """A request to an application: what was answered, and a way to go before that."""

    def __init__(self, app, token=TOKEN, path="/api/items", method="GET", body=b"", more=False, **headers):
        given = {"authorization": "Bearer " + token} if token is not None else {}
        headers = {"host": "127.0.0.1"} | given | {name.replace("_", "-"): value for name, value in headers.items()}
        self.scope = {"type": "http", "method": method, "path": path, "query_string": b""}
        self.scope["headers"] = [(name.encode(), value.encode()) for name, value in headers.items()]
        self.messages, self.answered = asyncio.Queue(), []
        self.messages.put_nowait({"type": "http.request", "body": body, "more_body": more})
        self.task = asyncio.create_task(app(self.scope, self.messages.get, self.send))

    async def send(self, message):
        self.answered.append(message)

    async def status(self):
        await self.task
        return self.answered[0]["status"]

    def leave(self):
        self.messages.put_nowait({"type": "http.disconnect"})


@pytest.fixture
def locked_app(few_digits, tmp_path):
    """locked_app(test, …) runs a test of the application, as it is with a token."""

    def run_one(test, **options):
        with Workspace.open(shutil.copytree(few_digits, tmp_path / "ws")) as workspace:
            run(test(create_app(workspace, token=TOKEN, **options)))

    return run_one


FORM = {"content_type": "application/x-www-form-urlencoded", "method": "POST"}
COOKIE = {"token": None, "cookie": f"a=b; {guard.COOKIE}=wrong"}
WRONG = {
    "token": {"token": "wrong"},
    "cookie": COOKIE,
    "token, where none is needed": {"token": "wrong", "path": "/healthz"},
    "cookie, where none is needed": {**COOKIE, "path": "/healthz"},
    "token for a part of the page": {"token": "wrong", "path": "/static/style.css"},
    "token that is refused otherwise": {"token": "wrong", "method": "PUT"},
    "token with a form": {"token": "wrong", "path": "/login", **FORM},
    "cookie with a foreign form": {**COOKIE, "path": "/static/x", **FORM},
}


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG)
def test_a_wrong_token_waits_and_holds_up_nobody(locked_app, monkeypatch, wrong):
    monkeypatch.setattr(guard, "_SECONDS_AFTER_WRONG", 3600)

    async def test(app):
        waiting = [Asked(app, **wrong) for _ in range(100)]
        assert await Asked(app, path="/api/nothing").status() == 404
        assert not any(asked.task.done() or asked.answered for asked in waiting)
        for asked in waiting:
            asked.leave()
            if asked.scope["method"] == "POST":
                asked.task.cancel()
        await asyncio.gather(*(asked.task for asked in waiting), return_exceptions=True)  # who has gone is forgotten
        assert not any(asked.answered for asked in waiting)

    locked_app(test)


@pytest.mark.parametrize("kind", ["token", "cookie"])
def test_a_wrong_token_is_told_so_in_the_end(locked_app, monkeypatch, kind):
    monkeypatch.setattr(guard, "_SECONDS_AFTER_WRONG", 0.01)

    async def test(app):
        assert await Asked(app, **WRONG[kind]).status() == 401

    locked_app(test)


def test_whoever_gives_nothing_or_an_old_cookie_can_still_log_in(locked_app, monkeypatch):
    monkeypatch.setattr(guard, "_SECONDS_AFTER_WRONG", 0.01)

    async def test(app):
        body = urlencode({"token": TOKEN}).encode()
        for old in ({}, {"cookie": f"{guard.COOKIE}=of-yesterday"}):
            assert await Asked(app, None, "/login", body=body, **FORM, **old).status() == 303
        monkeypatch.setattr(guard, "_SECONDS_AFTER_WRONG", 3600)
        assert await Asked(app, None, "/healthz", cookie="another=1").status() == 200

    locked_app(test)


# Bodies

SEARCH = {"path": "/api/search", "method": "POST", "content_type": "application/json", "more": True}


def test_a_body_that_comes_too_slowly_is_refused(locked_app, monkeypatch):
    monkeypatch.setattr(guard, "_SECONDS_FOR_BODY", 0.05)

    async def test(app):
        assert await Asked(app, body=b"{", **SEARCH).status() == 408
        assert app._held == 0

    locked_app(test)


def test_more_large_bodies_than_memory_is_meant_for_are_turned_away(locked_app, monkeypatch):
    monkeypatch.setattr(guard, "_MOST_HELD", 2)

    async def test(app):
        waiting = [Asked(app, body=bytes(90), **SEARCH) for _ in range(2)]
        await until(lambda: app._held == 180)
        assert await Asked(app, body=bytes(90), **SEARCH).status() == 503
        for one in waiting:
            one.leave()
            await one.task
        assert app._held == 0

    locked_app(test, most_bytes=100)
