"""The client against a real server: every method, and errors in the server's own words."""

from __future__ import annotations

import shutil
import socketserver
import subprocess
import sys
import threading

import numpy as np
import pytest

from cghash.client import Client
from cghash.exceptions import CGHashError, InUseError, InvalidInputError, ServerError

TOKEN = "a token of many characters"


@pytest.fixture(scope="module")
def page(few_digits, start_server, tmp_path_factory):
    folder = shutil.copytree(few_digits, tmp_path_factory.mktemp("client") / "digits.ws")
    with start_server(folder, CGHASH_TOKEN=TOKEN) as server:
        yield Client(server.url + "/", TOKEN)


def test_what_is_there(page):
    assert page.health() == {"status": "ok", "items": 200, "model": 1}
    assert page.workspace()["kind"] == "images"
    found = page.items(start=3, count=2, filters=["ink>=0", "digit<=9"])
    assert (found["total"], [item["row"] for item in found["items"]]) == (200, [3, 4])
    assert page.item(7)["id"] == "digit-0007"
    assert page.picture(7).startswith(b"\x89PNG")
    assert page.picture(7, size=96) != b""


def test_search_in_every_way(page, tmp_path):
    nearest = page.search(item=5, k=3)
    assert len(nearest["results"]) == 3
    assert 5 not in [r["row"] for r in nearest["results"]]
    assert "item" not in nearest["results"][0] or nearest["results"][0]["item"] is None
    assert page.search(item=5, details=True)["query"]["row"] == 5
    assert page.search(item=5, model="vectors")["bits"] is None
    assert page.search(item=5, bits=4, model=1)["bits"] == 4
    only = page.search(item=5, filters=["digit=3"], k=500, details=True)["results"]
    assert {r["item"]["label"] for r in only} == {"3"}
    picture = page.picture(9)
    (tmp_path / "nine.png").write_bytes(picture)
    by_image = page.search(image=picture, k=4, filters=["ink>=0"], details=True)
    assert by_image["results"][0]["row"] == 9
    assert page.search(image=tmp_path / "nine.png", k=4)["results"][0]["row"] == 9
    assert len(page.search(vector=np.zeros(64), k=1)["results"]) == 1
    with pytest.raises(InvalidInputError, match="got a text"):
        page.search(text="a boat")


def test_questions_answers_and_second_thoughts(page):
    before = page.summary()["answers"]
    question = page.questions(count=1, skip=[1, 2])[0]
    first = page.answer(question, "left", seconds=1.5)
    assert page.answer(question, "left") == first
    assert (first["anchor"], first["choice"], first["key"]) == (question["anchor"]["row"], "left", question["key"])
    own = page.answer({"anchor": 1, "left": 2, "right": 3}, "right")
    assert own["source"] == "active"
    shown = [r["row"] for r in page.search(item=0, k=5)["results"]]
    told = page.answer_list(0, shown[3], "nearer", shown)
    assert [a["right"] for a in told] == [shown[2], shown[1], shown[0]]
    assert page.summary()["answers"] == before + 5
    assert page.answers(count=1)["answers"][0]["id"] == told[-1]["id"]
    for answer in (first, own, *told):
        summary = page.undo(answer["id"])
    assert summary["answers"] == before


def test_learning_using_and_going_back(page):
    seen = []
    version = page.learn(bits=4, name="mine", on_progress=seen.append)
    assert version == 2
    assert seen[-1]["state"] == "done"
    assert page.job(seen[-1]["id"]) == page.jobs()[0] == seen[-1]
    assert page.models()["current"] == 1
    assert page.use(2)["current"] == 2
    assert page.model(2)["name"] == "mine"
    assert len(page.bits(2, count=3)) == 3
    assert 0 < page.curve(2)["mean_average_precision"] <= 1
    assert len(page.changes(2, against=1, count=4)) == 4
    assert page.changes(2)[0]["overlap"] <= 1
    assert page.use(1)["current"] == 1


def test_a_job_that_is_cancelled(page):
    job = page.learn(bits=800, wait=False)
    with pytest.raises(InUseError, match="another job is under way"):
        page.learn(bits=4)
    page.cancel(job["id"])
    with pytest.raises(ServerError, match=f"job {job['id']} has cancelled"):
        page.wait(job["id"])


@pytest.mark.parametrize(
    ("ask", "kind", "words"),
    [
        (lambda page: page.item(9999), InvalidInputError, "there is no item in row 9999: rows are 0 to 199"),
        (lambda page: page.items(filters=["price=1"]), InvalidInputError, "filter must be an attribute"),
        (lambda page: page.search(item=1, k=0), InvalidInputError, "k: Input should be greater than or equal to 1"),
        (lambda page: page.search(item=1, text="b"), InvalidInputError, "exactly one of item, text, vector and image"),
        (lambda page: page.search(), InvalidInputError, "exactly one of item, text, vector and image"),
        (lambda page: page.search(item=1, image=b"x"), InvalidInputError, "exactly one of"),
        (lambda page: page.search(image=b"no picture"), InvalidInputError, "must be a whole picture"),
        (lambda page: page.search(vector=[float("nan")] * 64), InvalidInputError, "plain numbers and texts"),
        (lambda page: page.answer({"anchor": 1, "left": 1, "right": 2}, "left"), InvalidInputError, "three different"),
        (lambda page: page.use(99), InvalidInputError, "there is no model version 99"),
        (lambda page: page.undo(9999), InvalidInputError, "there is no answer 9999"),
        (lambda page: page.learn(hash_function="magic"), InvalidInputError, "hash_function: "),
        (lambda page: page.job(99), InvalidInputError, "there is no job 99"),
        (lambda page: Client(page.url).items(), ServerError, "a token is needed"),
        (lambda page: Client(page.url, "wrong").items(), ServerError, "a token is needed"),
        (lambda page: Client("http://127.0.0.1:1").items(), ServerError, "cannot be reached"),
        (lambda page: Client("ftp://here"), InvalidInputError, "url must be the http address of a server"),
        (lambda page: Client("here:8000"), InvalidInputError, "url must be the http address of a server"),
    ],
)
def test_errors_are_the_servers_own_sentences(page, ask, kind, words):
    with pytest.raises(kind, match=words) as error:
        ask(page)
    assert isinstance(error.value, CGHashError)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n<p/>", "something else than JSON"),
        (b"HTTP/1.1 502 Bad\r\nContent-Length: 4\r\n\r\n<p/>", "the server answered with status 502"),
        (b"HTTP/1.1 500 Bad\r\nContent-Length: 2\r\n\r\n[]", "the server answered with status 500"),
        (b"HTTP/1.1 302 Moved\r\nLocation: http://evil.example/\r\nContent-Length: 0\r\n\r\n", "status 302"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 400\r\n\r\n{", "cannot be reached"),
        (b"nonsense\r\n\r\n", "cannot be reached"),
        (b"", "cannot be reached"),
    ],
)
def test_servers_that_are_something_else(answer, words):
    class Odd(socketserver.StreamRequestHandler):
        def handle(self):
            while self.rfile.readline().strip():
                pass
            self.wfile.write(answer)

    with socketserver.TCPServer(("127.0.0.1", 0), Odd) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        with pytest.raises(ServerError, match=words):
            Client(f"http://127.0.0.1:{server.server_address[1]}", TOKEN).summary()
        server.shutdown()


def test_the_client_needs_nothing_but_python():
    code = "import sys, cghash.client; print({'numpy', 'fastapi', 'httpx', 'click'} & set(sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "set()\n"
