"""What must not be possible: each thing is tried."""

from __future__ import annotations

import hmac
import json
import os
import re
import shutil
import socket
from html.parser import HTMLParser
from types import SimpleNamespace
from urllib.parse import urlsplit

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from starlette.websockets import WebSocketDisconnect

from cghash.exceptions import InvalidInputError
from cghash.web import guard
from cghash.web import server as web_server
from cghash.web.app import create_app
from cghash.web.routes import jobs as job_routes
from cghash.web.routes import pages
from cghash.web.served_workspace import ServedWorkspace
from cghash.workspace import Workspace, create_workspace

from .workspaces import TOKEN, image_file, png, spoil, wait_for

BEARER = {"authorization": b"Bearer " + TOKEN.encode()}
PAGES = ("/", "/teach", "/learn", "/understand")
FORM = "application/x-www-form-urlencoded"
JSON = {"content-type": "application/json"}
HEADERS = {
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}


@pytest.fixture(scope="module")
def folder(few_digits, tmp_path_factory):
    return shutil.copytree(few_digits, tmp_path_factory.mktemp("safety") / "digits.ws")


@pytest.fixture(scope="module")
def api(folder, open_api):
    with open_api(folder) as client:
        yield client


@pytest.fixture(scope="module")
def locked(folder, open_api):
    """A server that asks for a token."""
    with open_api(folder, token=TOKEN) as client:
        yield client


@pytest.fixture
def at_once(monkeypatch):
    """Wrong tokens are refused without a wait."""
    monkeypatch.setattr(guard, "_SECONDS_AFTER_WRONG", 0)


@pytest.fixture(scope="module")
def server(few_digits, start_server, tmp_path_factory):
    """A real process on a real socket."""
    with start_server(shutil.copytree(few_digits, tmp_path_factory.mktemp("real") / "digits.ws")) as running:
        yield running


def raw(server, request):
    """What a server answers to bytes."""
    where = urlsplit(server.url)
    with socket.create_connection((where.hostname, where.port), 10) as connection:
        connection.sendall(request)
        answer = b""
        while piece := connection.recv(65536):
            answer += piece
    return answer


def get(server, target, *headers, host="127.0.0.1"):
    return raw(
        server, "\r\n".join([f"GET {target} HTTP/1.1", f"Host: {host}", "Connection: close", *headers, "", ""]).encode()
    )


# Who may reach it


@pytest.mark.parametrize(
    ("host", "safe"),
    [
        *((host, True) for host in ("127.0.0.1", "127.8.8.8", "localhost", "::1")),
        *((host, False) for host in ("0.0.0.0", "::", "192.168.1.4", "example.org")),
    ],
)
def test_which_addresses_others_can_reach(host, safe):
    assert web_server.is_loopback(host) == safe


def test_a_server_that_others_can_reach_must_have_a_token(folder):
    with Workspace.open(folder) as workspace, web_server.listen("0.0.0.0", 0) as everywhere:
        with pytest.raises(InvalidInputError, match=r"a server on 0\.0\.0\.0 must have a token"):
            web_server.serve(workspace, everywhere)
        with pytest.raises(InvalidInputError, match="token must have at least 16 characters, got 5"):
            web_server.serve(workspace, everywhere, token="short")


def test_the_server_listens_on_loopback_unless_told(server):
    import psutil

    listening = [c for c in psutil.Process(server.pid).net_connections("inet") if c.status == psutil.CONN_LISTEN]
    assert {c.laddr.ip for c in listening} == {"127.0.0.1"}


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.1:8000", "localhost", "LOCALHOST:1", "[::1]", "[::1]:8000"])
def test_names_of_loopback_are_answered(api, host):
    assert api.get("/healthz", headers={"host": host}).status_code == 200


@pytest.mark.parametrize(
    "host",
    ["evil.example", "evil.example:8000", "127.0.0.1.evil.example", "localhost.evil.example", "", "[::2]",
     "localhost@evil", "evil.example#localhost", "0.0.0.0"],
)  # fmt: skip
def test_a_foreign_name_that_points_here_is_refused(api, host):
    for address in ("/", "/healthz", "/api/items", "/static/style.css"):
        response = api.get(address, headers={"host": host})
        assert response.status_code == 421, address
        assert "not known by this name" in response.json()["error"]
    assert api.post("/api/search", json={"item": 1}, headers={"host": host}).status_code == 421


def test_a_name_that_was_allowed_is_answered(folder, open_api):
    with open_api(folder, hosts=frozenset({"photos.local"})) as client:
        assert client.get("/healthz", headers={"host": "Photos.local:8000"}).status_code == 200
        assert client.get("/healthz", headers={"host": "localhost"}).status_code == 421


# The token


def addresses(client, headers):
    document = client.get("/api/openapi.json", headers=headers).json()
    for path, methods in document["paths"].items():
        for method in methods:
            yield method.upper(), re.sub(r"\{\w+\}", "1", path)


def test_nothing_but_login_health_and_assets_is_open_without_the_token(locked):
    found = [*addresses(locked, BEARER), ("GET", "/api/openapi.json"), ("GET", "/api/nothing")]
    assert len(found) > 20
    for method, path in found:
        response = locked.request(method, path, json={} if method != "GET" else None)
        if path == "/healthz":
            assert response.status_code == 200
        else:
            assert response.status_code == 401, path
            assert response.headers["www-authenticate"] == "Bearer"
            assert "a token is needed" in response.json()["error"]
    for path in PAGES:
        response = locked.get(path)
        assert (response.status_code, response.headers["location"]) == (303, "/login")
        assert response.content == b""
    assert locked.get("/login").status_code == 200
    assert locked.get("/static/style.css").status_code == 200


def test_the_token_in_the_header_opens_everything(locked):
    assert locked.get("/api/items", headers=BEARER).status_code == 200
    assert locked.get("/", headers=BEARER).status_code == 200
    assert locked.get("/api/items", headers={"authorization": b"bearer  " + TOKEN.encode()}).status_code == 200


@pytest.mark.parametrize(
    "header",
    [b"", b"Bearer", b"Bearer ", b"Bearer wrong", b"Bearer " + TOKEN.encode()[:-1], b"Bearer " + TOKEN.encode() + b"x",
     b"Basic " + TOKEN.encode(), TOKEN.encode(), b"Bearer \xff\xfe"],
)  # fmt: skip
def test_a_wrong_token_opens_nothing(locked, at_once, header):
    assert locked.get("/api/items", headers={"authorization": header}).status_code == 401


def test_signing_in_gives_a_cookie_that_scripts_and_foreign_pages_cannot_use(folder, open_api, at_once):
    with open_api(folder, token=TOKEN) as client:
        wrong = client.post("/login", data={"token": "wrong"})
        assert wrong.status_code == 401
        assert "This is not the token." in wrong.text
        assert "set-cookie" not in wrong.headers
        assert client.post("/login", data={"other": TOKEN}).status_code == 401
        right = client.post("/login", data={"token": f" {TOKEN} "})
        assert (right.status_code, right.headers["location"]) == (303, "/")
        value, *flags = right.headers["set-cookie"].split("; ")
        assert {"HttpOnly", "SameSite=strict", "Path=/"} <= set(flags)
        assert "Secure" not in flags
        assert TOKEN not in value
        assert client.get("/").status_code == 200  # the client keeps the cookie
        assert client.get("/api/items").status_code == 200
        client.cookies.clear()
        assert client.get("/api/items").status_code == 401
    with open_api(folder, token=TOKEN, url="https://127.0.0.1:8000") as client:
        assert "Secure" in client.post("/login", data={"token": TOKEN}).headers["set-cookie"].split("; ")


def test_the_cookie_among_those_of_others(locked, at_once):
    cookie = guard.Token(TOKEN).cookie
    good = [f"cghash={cookie}", f'a=b{{"x": 1}}; cghash={cookie}', f"; ;=; cghash={cookie}; c", f'cghash="{cookie}"']
    for header in good:
        assert locked.get("/api/items", headers={"cookie": header}).status_code == 200, header
    another = guard.Token("another token of many characters").cookie
    wrong = [f"cghash={value}".encode() for value in ("", TOKEN, cookie[:-1], another)]
    for header in (*wrong, b"cghash", f"other={cookie}".encode(), b"\xff"):
        assert locked.get("/api/items", headers={"cookie": header}).status_code == 401, header


def test_tokens_and_cookies_are_compared_in_constant_time(locked, at_once, monkeypatch):
    compared = []

    def watched(a, b):
        compared.append((a, b))
        return hmac.compare_digest(a, b)

    monkeypatch.setattr(guard, "hmac", SimpleNamespace(new=hmac.new, compare_digest=watched))
    locked.get("/api/items", headers={"authorization": "Bearer wrong", "cookie": "cghash=wrong"})
    assert (b"wrong", TOKEN.encode()) in compared
    assert (b"wrong", guard.Token(TOKEN).cookie.encode()) in compared


def test_without_a_token_there_is_nothing_to_sign_in_to(api):
    assert api.get("/login").headers["location"] == "/"
    assert api.post("/login", data={"token": "x"}).headers["location"] == "/"


# Requests of foreign pages

CHANGES = [
    ("POST", "/api/answers", {"key": "evil", "anchor": 0, "left": 1, "right": 2, "choice": "left"}),
    ("POST", "/api/answers/list", {"key": "evil", "item": 0, "row": 2, "wanted": "nearer", "shown": [1, 2]}),
    ("DELETE", "/api/answers/1", {}),
    ("POST", "/api/models/current", {"version": 1}),
    ("POST", "/api/jobs", {"bits": 4}),
    ("POST", "/api/jobs/1/cancel", {}),
    ("POST", "/api/search", {"item": 1}),
]


FOREIGN = [
    {"origin": "http://evil.example"},
    {"origin": "null"},
    {"origin": "https://127.0.0.1:8000"},
    {"origin": "http://127.0.0.1:9000"},
    {"origin": "http://localhost:8000"},
    {"sec-fetch-site": "cross-site"},
    {"sec-fetch-site": "same-site"},
    {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"},
]
OF_FORMS = [{"content-type": kind} for kind in (FORM, "text/plain", "multipart/form-data; boundary=x", "")]


@pytest.mark.parametrize("headers", [*FOREIGN, *OF_FORMS], ids=str)
def test_a_foreign_page_and_what_its_form_can_send_change_nothing(api, headers):
    status, words = (
        (415, "Content-Type must be") if headers in OF_FORMS else (403, "the request comes from another page")
    )
    for method, path, body in CHANGES:
        response = api.request(method, path, content=json.dumps(body), headers=JSON | headers)
        assert response.status_code == status, path
        assert words in response.json()["error"]
    if headers in FOREIGN:
        assert api.post("/login", data={"token": "x"}, headers=headers).status_code == 403
    assert api.get("/api/answers").json()["total"] == 0
    assert api.get("/api/jobs").json()["jobs"] == []


def test_the_login_form_takes_nothing_else(locked):
    assert locked.post("/login", json={"token": TOKEN}).status_code == 415


def test_our_own_page_and_programs_are_let_through(api):
    for headers in (
        {"origin": "http://127.0.0.1:8000", "sec-fetch-site": "same-origin"},
        {"sec-fetch-site": "none"},
        {},
        {"content-type": "application/json; charset=utf-8"},
    ):
        assert api.post("/api/search", json={"item": 1}, headers=headers).status_code == 200


def test_what_foreign_pages_embed_or_fetch_is_refused_but_links_work(api):
    foreign = {"sec-fetch-site": "cross-site"}
    for address in ("/api/items", "/api/items/1/image", "/static/style.css", "/"):
        assert api.get(address, headers=foreign | {"sec-fetch-mode": "no-cors"}).status_code == 403
        assert api.get(address, headers=foreign | {"sec-fetch-mode": "cors"}).status_code == 403
    assert api.get("/", headers=foreign | {"sec-fetch-mode": "navigate"}).status_code == 200


def test_no_answer_lets_other_origins_read_it(api):
    response = api.options(
        "/api/answers", headers={"origin": "http://evil.example", "access-control-request-method": "POST"}
    )
    assert response.status_code == 405
    for answer in (response, api.get("/api/items", headers={"origin": "http://evil.example"})):
        assert not [name for name in answer.headers if name.startswith("access-control")]


# What answers carry


def test_every_answer_carries_the_headers_that_keep_pages_apart(api, locked, monkeypatch):
    monkeypatch.setattr(ServedWorkspace, "summary", lambda self: 1 / 0)
    answers = [
        *(api.get(path) for path in (*PAGES, "/static/style.css", "/healthz", "/metrics", "/api/items")),
        api.get("/api/items/1/image"),
        api.get("/nothing"),
        api.get("/api/nothing"),
        api.get("/api/items/x"),
        api.get("/api/answers/summary"),
        api.get("/", headers={"host": "evil.example"}),
        api.post("/api/search", json={}, headers={"origin": "http://evil.example"}),
        api.post("/api/search", content=b"", headers={"content-type": "text/plain"}),
        api.put("/"),
        locked.get("/"),
        locked.get("/login"),
        locked.get("/api/items"),
    ]
    assert {a.status_code for a in answers} == {200, 303, 401, 403, 404, 405, 415, 421, 422, 500}
    for answer in answers:
        for name, value in HEADERS.items():
            assert answer.headers[name] == value
        policy = dict(part.split(" ", 1) for part in answer.headers["content-security-policy"].split("; "))
        assert policy["default-src"] == "'none'"
        assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == "'self'"
        assert policy["base-uri"] == policy["frame-ancestors"] == "'none'"
        assert policy["form-action"] == "'self'"
        assert "unsafe" not in answer.headers["content-security-policy"]
        assert "server" not in answer.headers


class Tags(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.tags, self.words, self.inside = [], [], None
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        self.inside = tag

    def handle_endtag(self, tag):
        self.inside = None

    def handle_data(self, data):
        if self.inside in ("script", "style") and data.strip():
            self.words.append(data)


def test_pages_have_no_inline_script_style_or_foreign_address(api, locked):
    for page in [*(api.get(path).text for path in PAGES), api.get("/nothing").text, locked.get("/login").text]:
        found = Tags(page)
        assert len(found.tags) > 10
        assert found.words == []
        for tag, attributes in found.tags:
            assert tag not in ("style", "base", "iframe", "object", "embed", "meta-refresh")
            assert "style" not in attributes
            assert not [name for name in attributes if name.startswith("on")]
            if tag == "script":
                assert attributes["src"].startswith("/static/")
            for name in ("href", "src", "action"):
                value = attributes.get(name)
                assert value is None or re.match(r"^(/(?!/)|#)", value), (tag, value)


def test_assets_make_no_html_from_text_and_name_no_other_machine():
    files = [path for path in (pages.HOME / "static").rglob("*") if path.is_file()]
    assert len(files) > 10
    for path in files:
        text = path.read_text()
        outside = set(re.findall(r"""(?:https?:)?//[a-z0-9.-]+\.[a-z]{2,}""", text)) - {"http://www.w3.org"}
        assert not outside, path.name
        if path.suffix == ".js":
            for word in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function"):
                assert word not in text, f"{path.name}: {word}"


def test_interactive_documents_that_load_from_elsewhere_are_not_there(api):
    for path in ("/docs", "/redoc", "/openapi.json", "/docs/oauth2-redirect"):
        assert api.get(path).status_code == 404


# Files that are not ours to give


WAYS_OUT = [
    *(f"/static/{path}" for path in (
        "../app.py", "../../exceptions.py", "%2e%2e/app.py", "..%2fapp.py", "%2e%2e%2fapp.py", "..%5capp.py",
        "....//app.py", "/etc/passwd", "%2fetc%2fpasswd", "..%00/app.py", "style.css%00", "%00",
        "style.css/../../app.py", ".", "..", "", "%252e%252e/app.py", "x" * 5000, "%ff%fe", "\\..\\app.py",
    )),
    "/api/items/../../etc/passwd", "/api/items/..%2f..%2fworkspace.json/image", "/api/items/-1/image",
    "/api/items/0x1/image", "/api/items/1%00/image", "/api/items/1/image?size=../../../workspace.json",
    "/api/items/1/image?size=-1",
    "/api/items/99999999999999999999/image", "/api/items/٣/image?size=5", "/items/000/000001.png", "/workspace.json",
    "/answers.sqlite", "/../answers.sqlite",
]  # fmt: skip


@pytest.mark.parametrize("target", WAYS_OUT)
def test_no_way_to_files_that_are_not_to_be_given(server, target):
    answer = get(server, target)
    assert int(answer.split(b" ", 2)[1]) in (400, 404, 405, 422), answer[:200]
    for words in (b"from __future__", b"root:", b"Traceback", b"cghash-workspace", b"SQLite format"):
        assert words not in answer


def test_a_picture_that_is_a_link_out_of_the_workspace_is_not_shown(digits, open_api, tmp_path):
    secret = tmp_path / "secret.png"
    Image.new("RGB", (20, 20), "red").save(secret)
    with Workspace.open(digits) as workspace:
        linked = workspace.picture(5)
    linked.unlink()
    os.symlink(secret, linked)
    files = {6: "../../secret.png", 7: str(secret), 8: "no/such/file.png"}
    spoil(digits / "items.sqlite", *(("UPDATE items SET file = ? WHERE row = ?", [files[row], row]) for row in files))
    with open_api(digits) as client:
        for row in (5, 6, 7, 8):
            for size in (0, 160):
                response = client.get(f"/api/items/{row}/image?size={size}")
                assert response.status_code == 404
                assert response.json() == {"error": f"the picture of item {row} cannot be shown"}


def test_a_picture_that_is_damaged_later_is_404(digits, open_api):
    with open_api(digits) as client:
        client.workspace.picture(9).write_bytes(b"no picture any more")
        assert client.get("/api/items/9/image").status_code == 404


# Sizes


def test_a_body_that_says_it_is_too_large_is_refused(folder, open_api):
    with open_api(folder, most_bytes=1000) as client:
        for path, kind in (("/api/search", "application/json"), ("/api/search/image", "image/png"), ("/login", FORM)):
            response = client.post(path, content=b"x" * 1001, headers={"content-type": kind})
            assert response.status_code == 413, path
            assert response.json() == {"error": "a request must be of at most 1000 bytes"}
        body = json.dumps({"text": "x"}).encode().ljust(1000)
        assert client.post("/api/search", content=body, headers=JSON).status_code == 409  # read, and understood


def test_a_body_that_grows_too_large_is_refused(folder, open_api):
    with open_api(folder, most_bytes=1000) as client:
        for path in ("/api/search", "/api/search/image", "/api/answers"):
            response = client.post(path, content=(b"x" * 100 for _ in range(50)), headers=JSON)
            assert "transfer-encoding" in response.request.headers
            assert response.status_code == 413, path
        assert client.post("/api/search", content=iter([b'{"item"', b": 1}"]), headers=JSON).status_code == 200


def test_a_chunked_body_without_end_is_refused_by_the_real_server(server):
    """21 MB in chunks, the last never sent."""
    head = "POST /api/search HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    where = urlsplit(server.url)
    chunk = b"%x\r\n" % 2**20 + b" " * 2**20 + b"\r\n"
    with socket.create_connection((where.hostname, where.port), 30) as connection:
        connection.sendall(f"{head}Transfer-Encoding: chunked\r\n\r\n".encode())
        answer = b""
        try:
            for _ in range(21):
                connection.sendall(chunk)
            answer = connection.recv(65536)
        except (BrokenPipeError, ConnectionResetError):
            pass
    assert b" 413 " in answer or answer == b""
    assert b"200 OK" in get(server, "/healthz")


def test_lengths_that_are_no_numbers_do_not_get_in(server):
    for told in ("-1", "1e3", "99999999999999999999999999", "abc"):
        answer = raw(
            server,
            f"POST /api/search HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
            f"Content-Length: {told}\r\nConnection: close\r\n\r\n".encode(),
        )
        assert re.match(rb"HTTP/1.1 4\d\d ", answer), told


# Pictures


def pictures():
    """One small picture in each format that is read."""
    image = Image.fromarray(np.arange(64, dtype=np.uint8).reshape(8, 8))
    return [image_file(image, kind) for kind in ("PNG", "JPEG", "GIF", "BMP", "TIFF", "PPM", "WEBP")]


PICTURE = {"content": png(8, 8), "headers": {"content-type": "image/png"}}


def by_image(client, data):
    return client.post("/api/search/image?k=1", content=data, headers={"content-type": "image/png"})


def test_every_format_is_read(api):
    assert [by_image(api, data).status_code for data in pictures()] == [200] * 7


def test_a_picture_with_damaged_words_of_its_camera_is_read_as_it_lies(api):
    image = Image.fromarray(np.arange(192, dtype=np.uint8).reshape(8, 8, 3))
    for words in (b"Exif\x00\x00MM\x01*\x00\x00\x00\x08", b"Exif\x00\x00II*\x00\xff\xff\xff\xff", b"Exif\x00\x00"):
        assert by_image(api, image_file(image, "JPEG", exif=words)).status_code == 200


@pytest.mark.filterwarnings("ignore::UserWarning")  # of Pillow, about what is broken
@given(data=st.data())
@settings(max_examples=60)
def test_broken_pictures_are_an_answer_or_a_refusal(api, data):
    whole = bytearray(data.draw(st.sampled_from(pictures())))
    for _ in range(data.draw(st.integers(1, 6))):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(whole)))
    assert by_image(api, bytes(whole[:cut])).status_code in (200, 400)


# Texts that look like HTML

EVIL = "<script>alert(1)</script>\"'&<img src=x onerror=alert(1)>"


def test_html_in_titles_ids_and_texts_is_text(open_api, tmp_path):
    rows = [{"id": f"{EVIL}{n}", "text": f"{EVIL} words and {n} more", EVIL: EVIL} for n in range(4)]
    (tmp_path / "items.jsonl").write_text("\n".join(map(json.dumps, rows)))
    create_workspace(tmp_path / "ws", tmp_path / "items.jsonl", text_column="text", title=EVIL).close()
    with open_api(tmp_path / "ws", token=TOKEN) as client:
        for path in (*PAGES, "/login", "/nothing", f"/{EVIL}"):
            text = client.get(path, headers=BEARER).text
            assert "<script>alert" not in text
            assert "<img" not in text
            assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text
        found = client.get("/api/items", headers=BEARER)
        assert found.headers["content-type"] == "application/json"
        first = found.json()["items"][0]
        assert (first["id"], first["attributes"][EVIL]) == (f"{EVIL}0", EVIL)
        assert first["text"] == f"{EVIL} words and 0 more"
        assert client.get("/api/workspace", headers=BEARER).json()["title"] == EVIL
        filtered = client.get("/api/items", params={"filter": f"{EVIL}={EVIL}"}, headers=BEARER)
        assert filtered.json()["total"] == 4
        wrong = client.get("/api/items", params={"filter": "<b>=1"}, headers=BEARER)
        assert wrong.headers["content-type"] == "application/json"
        name = client.post("/api/jobs", json={"bits": 1, "name": EVIL}, headers=BEARER).json()["job"]
        assert name["parameters"]["name"] == EVIL
        client.post(f"/api/jobs/{name['id']}/cancel", json={}, headers=BEARER)


# Errors


@pytest.mark.parametrize("address", ["/api/answers/summary", "/api/search?item=1", "/", "/healthz"])
def test_what_goes_wrong_here_is_for_the_log(folder, open_api, monkeypatch, caplog, address):
    def fail(*_, **__):
        raise RuntimeError("secret words in /a/secret/place")

    with open_api(folder) as client:
        for name in ("summary", "search_by", "check_row", "current", "current_soon"):
            monkeypatch.setattr(ServedWorkspace, name, fail if name != "current" else property(fail))
        monkeypatch.setattr(pages, "page", fail)
        response = client.get(address)
        assert response.status_code == 500
        assert response.json() == {"error": "something went wrong here; the server's log says what"}
        assert "secret words" in caplog.text
        assert [status for _, status in client.app.metrics._requests] == [500]


# Other protocols, and too many at once


def test_websockets_are_refused(api, server):
    with pytest.raises(WebSocketDisconnect), api.websocket_connect("/api/items"):
        pass
    answer = get(
        server, "/", "Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Version: 13",
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
    )  # fmt: skip
    assert b" 403 " in answer.split(b"\r\n")[0]


def test_more_watchers_than_allowed_are_turned_away(api, monkeypatch):
    job = api.workspace.records.add_job({"bits": 4})
    monkeypatch.setattr(job_routes, "_MOST_STREAMS", 0)
    response = api.get(f"/api/jobs/{job.id}/events")
    assert response.status_code == 503
    assert "try again in a moment" in response.json()["error"]
    api.workspace.records.change_job(job.id, state="cancelled")


def test_watchers_that_leave_make_room(server):
    where = urlsplit(server.url)

    def post(path, body):
        data = json.dumps(body)
        head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nConnection: close\r\n"
        answer = raw(server, f"{head}Content-Length: {len(data)}\r\n\r\n{data}".encode())
        return json.loads(answer.split(b"\r\n\r\n", 1)[1])

    number = post("/api/jobs", {"bits": 1000})["job"]["id"]
    request = f"GET /api/jobs/{number}/events HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode()

    def watch():
        connection = socket.create_connection((where.hostname, where.port), 20)
        connection.sendall(request)
        return connection, connection.recv(12)

    watchers = [watch() for _ in range(job_routes._MOST_STREAMS)]
    assert {status for _, status in watchers} == {b"HTTP/1.1 200"}
    late, status = watch()
    assert status == b"HTTP/1.1 503"
    for connection, _ in [*watchers, (late, b"")]:
        connection.close()

    def admitted():
        connection, status = watch()
        connection.close()
        return status == b"HTTP/1.1 200"

    wait_for(admitted)
    post(f"/api/jobs/{number}/cancel", {})


@pytest.mark.parametrize(
    ("limit", "address", "sent", "words"),
    [
        ("queues._MOST_WAITING", "/api/search", {"json": {"item": 1}}, "too many searches at once"),
        ("served_workspace._MOST_PICTURES", "/api/search/image", PICTURE, "too many pictures"),
        ("served_workspace._MOST_THUMBNAILS", "/api/items/1/image", None, "too many thumbnails"),
    ],
)
def test_more_than_can_wait_are_turned_away(digits, open_api, monkeypatch, limit, address, sent, words):
    monkeypatch.setattr(f"cghash.web.{limit}", 0)
    with open_api(digits) as client:
        response = client.get(address) if sent is None else client.post(address, **sent)
    assert (response.status_code, response.headers["retry-after"]) == (503, "1")
    assert words in response.json()["error"]


def test_addresses_that_do_not_exist_do_not_fill_the_memory(folder):
    with Workspace.open(folder) as workspace:
        app = create_app(workspace)
        for number in range(100):
            app.metrics.count("other", 404, 0.1)
            app.metrics.count("/api/items/{row}", 404, number)
        assert len(app.metrics._requests) == 2


def test_other_names_need_a_token(folder):
    listening = web_server.listen("127.0.0.1", 0)
    with Workspace.open(folder) as workspace, pytest.raises(InvalidInputError, match="must have a token"):
        web_server.serve(workspace, listening, allowed=["photos.example"])
    listening.close()


def test_the_form_that_asks_for_the_token_is_small(locked):
    body = b"token=" + b"x" * 5000
    assert locked.post("/login", content=body, headers={"content-type": FORM}).status_code == 413
