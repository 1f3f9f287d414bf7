"""Servers and workers killed in the middle: what was acknowledged is there, what was begun goes on."""

from __future__ import annotations

import contextlib
import json
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import httpx
import numpy as np
import psutil
import pytest

from cghash.client import Client
from cghash.estimator import load
from cghash.exceptions import CGHashError, InvalidInputError
from cghash.workspace import Workspace

from .workspaces import spoil, wait_for

pytestmark = pytest.mark.linux

BITS = 64


def burst(url, stop, acknowledged, number):
    """Answers as fast as the server takes them; what it acknowledged is written down."""
    page, rng = Client(url, timeout=30), np.random.default_rng(number)
    for count in range(10**6):
        if stop.is_set():
            return
        anchor, left, right = rng.permutation(200)[:3].tolist()
        question = {"key": f"t{number}-{count}", "anchor": anchor, "left": left, "right": right}
        try:
            stored = page.answer(question, ("left", "right", "unsure")[count % 3])
            if count % 5 == 4:
                page.undo(stored["id"])
        except CGHashError:
            return  # the server is gone
        acknowledged.append((stored["key"], anchor, left, right, stored["choice"], count % 5 == 4))


@pytest.mark.parametrize("kind", ["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)])
def test_every_acknowledged_answer_is_there_after_a_kill(kind, digits, start_server, request):
    database = [] if kind == "sqlite" else ["--database", request.getfixturevalue("postgres")()]
    acknowledged, stop = [], threading.Event()
    with start_server(digits, *database) as server:
        threads = [threading.Thread(target=burst, args=(server.url, stop, acknowledged, n)) for n in range(4)]
        for thread in threads:
            thread.start()
        wait_for(lambda: len(acknowledged) >= 60)
        server.send_signal(signal.SIGKILL)
        stop.set()
        for thread in threads:
            thread.join()
    assert len(acknowledged) >= 60
    with Workspace.open(digits, *database[1:]) as workspace:
        kept = {
            a.key: (a.key, a.anchor, a.left, a.right, a.choice, a.undone is not None)
            for a in workspace.records.answers()
        }
    for told in acknowledged:
        assert kept[told[0]] == told
    assert len(kept) <= len(acknowledged) + 4  # at most one more of each, stored but not yet acknowledged
    with start_server(digits, *database) as server:
        page = Client(server.url)
        assert page.answers()["total"] == len(kept)
        assert (
            page.answer({"key": acknowledged[0][0], "anchor": 0, "left": 1, "right": 2}, "left")["anchor"]
            == acknowledged[0][1]
        )


# Damaged rows

DAMAGE = [
    "UPDATE cghash_answers SET choice = 'both' WHERE id = 1",
    "UPDATE cghash_answers SET anchor = 'x' WHERE id = 2",
    "UPDATE cghash_answers SET anchor = 99999999 WHERE id = 3",
    "UPDATE cghash_answers SET choice = CAST(x'ff' AS TEXT) WHERE id = 4",
    "INSERT INTO cghash_jobs (workspace, state, parameters, progress, message, created, changed) "
    "SELECT workspace, 'running', '{', x'00', '', 'x', 'never' FROM cghash_current",
    "INSERT INTO cghash_models SELECT workspace, 'x', name, method, bits, answers, last_answer, job, report, ready, "
    "created FROM cghash_models",
    "INSERT INTO cghash_models SELECT workspace, 9223372036854775807, name, method, bits, answers, last_answer, job, "
    "report, ready, created FROM cghash_models WHERE version = 1",
    "UPDATE cghash_models SET report = '{' WHERE version = 1",
    "UPDATE cghash_format SET format = 'x'",
]
OF_ITEMS = [
    "UPDATE items SET id = x'00ff' WHERE row = 5",
    "UPDATE items SET a0 = x'00ff' WHERE row = 6",
    "DELETE FROM items WHERE row = 7",
    "UPDATE attributes SET \"values\" = '[' WHERE position = 0",
]
UNSPEAKABLE = {
    "a number of 24 digits": "1" + "0" * 23,
    "half a character": '"\\ud800"',
    "400 levels": "[" * 400 + "]" * 400,
    "100000 levels": "[" * 100_000,
    "bytes": None,
}


def test_a_server_over_damaged_rows_starts_and_serves_the_others(school, start_server):
    spoil(school / "answers.sqlite", *DAMAGE)
    spoil(school / "items.sqlite", *OF_ITEMS)
    with start_server(school) as server:
        page = Client(server.url)
        assert page.health()["model"] == 1
        assert len(page.search(item=1, k=150, details=True)["results"]) == 150
        assert [page.item(row)["id"] for row in (4, 5, 6, 7)] == [
            "digit-0004",
            *(f"damaged item {n}" for n in (5, 6, 7)),
        ]
        assert page.items(0, 200)["total"] == 200
        assert [a["id"] for a in page.answers(0, 100)["answers"]] == [*range(50, 4, -1)]
        assert page.summary()["active"] + page.summary()["test"] + page.summary()["unsure"] == 46
        assert page.answers()["total"] == 46
        assert len(page.questions()) == 3
        assert page.workspace()["attributes"]
        assert page.jobs() == []
        with pytest.raises(InvalidInputError, match="there is no answer 2"):
            page.undo(2)
        assert page.undo(5)
        assert [m["version"] for m in page.models()["models"]] == [1]
        assert page.learn(bits=4) == 2
        log = server.log.read_text()
    for words in ("answer 1 of the database is damaged", "job 1 of", "version x of", "item 5 is damaged"):
        assert words in log
    told = subprocess.run(
        [sys.executable, "-m", "cghash", "workspace", "info", str(school), "--json"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    found = json.loads(told.stdout)
    assert [sentence.split(":")[0] for sentence in found["damaged"]] == [
        *(f"answer {number}" for number in range(1, 5)), "job 1", "report of version 1",
        "version 9223372036854775807", "version x",
    ]  # fmt: skip
    assert found["answers"] == {"count": 46, "undone": 1}


@pytest.mark.parametrize("value", UNSPEAKABLE.values(), ids=UNSPEAKABLE)
def test_what_no_answer_could_say_is_passed_over(school, open_api, value):
    """JSON that Python reads, and no other program."""
    told = b"\xff" if value is None else f'{{"a": {value}}}'
    job = (
        "INSERT INTO cghash_jobs (workspace, state, parameters, progress, message, created, changed) "
        "SELECT workspace, 'done', '{}', ?, '', '2026-01-01', '2026-01-01T00:00:00+00:00' FROM cghash_current"
    )
    spoil(school / "answers.sqlite", ("UPDATE cghash_models SET report = ?", [told]), (job, [told]), (job, ["{}"]))
    values = told if value is None else f"[{value}]"
    spoil(school / "items.sqlite", ('UPDATE attributes SET "values" = ? WHERE position = 0', [values]))
    with open_api(school) as client:
        assert [model["report"] for model in client.get("/api/models").json()["models"]] == [None]
        assert client.get("/api/models/1").status_code == 200
        assert [job["id"] for job in client.get("/api/jobs").json()["jobs"]] == [2]
        assert client.get("/api/workspace").json()["attributes"][0]["values"] is None
        assert client.get("/api/answers/summary").status_code == 200


def connections_of(server):
    found = psutil.Process(server.pid).net_connections("inet")
    return sum(one.status == psutil.CONN_ESTABLISHED for one in found)


def test_what_needs_no_database_is_answered_while_another_program_holds_it(school, start_server):
    """45 answers wait for it, each in a thread, of which a server has 40."""
    with start_server(school) as server, contextlib.closing(sqlite3.connect(school / "answers.sqlite")) as other:
        page = Client(server.url, timeout=10)
        other.isolation_level = None
        other.execute("BEGIN IMMEDIATE")
        question = {"anchor": 1, "left": 2, "right": 3}
        answers = [
            threading.Thread(
                target=lambda n=n: Client(server.url, timeout=60).answer({"key": f"w{n}", **question}, "left")
            )
            for n in range(45)
        ]
        for thread in answers:
            thread.start()
        wait_for(lambda: connections_of(server) >= len(answers))
        assert page.search(item=1, k=3, filters=["digit=3"])["results"]
        assert page.items(0, 1)["total"] == 200
        assert page.workspace()["current"] == 1
        assert page.health()["status"] == "ok"
        assert httpx.get(f"{server.url}/static/style.css", timeout=10).status_code == 200
        assert httpx.get(f"{server.url}/api/items/3/image", timeout=10).status_code == 200
        other.execute("ROLLBACK")
        for thread in answers:
            thread.join()
        assert page.answers()["total"] == 50 + 45


def cut_short(path):
    path.write_bytes(path.read_bytes()[:100])


def made_a_folder(path):
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize("file", ["models/0001.cghash", "indexes/0001.index"])
@pytest.mark.parametrize("damage", [cut_short, Path.unlink, made_a_folder])
def test_a_server_without_the_file_of_its_model_does_all_that_needs_no_model(school, open_api, file, damage):
    damage(school / file)
    with open_api(school) as client:
        health = client.get("/healthz").json()
        assert (health["status"], health["model"]) == ("ok", 1)
        assert client.get("/api/items?count=3").json()["total"] == 200
        assert len(client.get("/api/search?item=1&model=vectors").json()["results"]) == 24
        failed = client.get("/api/search?item=1")
        assert (failed.status_code, "something went wrong here" in failed.json()["error"]) == (500, True)
        assert len(client.get("/api/questions?count=2").json()["questions"]) == 2
        answered = {"key": "one", "anchor": 1, "left": 2, "right": 3, "choice": "left"}
        assert client.post("/api/answers", json=answered).json()["summary"]["answers"] == 51


def test_a_server_whose_table_of_jobs_is_damaged_starts(school, open_api):
    table = "CREATE TABLE cghash_jobs (id INTEGER, workspace TEXT)"
    spoil(school / "answers.sqlite", "DROP TABLE cghash_jobs", table)
    with open_api(school) as client:
        assert client.get("/api/search?item=1").status_code == 200


# Jobs


@pytest.fixture(scope="module")
def expected(taught, start_server, tmp_path_factory):
    folder = shutil.copytree(taught, tmp_path_factory.mktemp("quiet") / "digits.ws")
    with start_server(folder) as server:
        assert Client(server.url).learn(bits=BITS) == 2
    return load(folder / "models" / "0002.cghash").weights_.tobytes()


def workers_of(server):
    return psutil.Process(server.pid).children()


def begun(page, bit=3):
    """A job that has learned some bits."""
    job = page.learn(bits=BITS, wait=False)
    wait_for(lambda: page.job(job["id"])["progress"].get("bit", 0) >= bit)
    return job["id"]


def learned(folder):
    return load(folder / "models" / "0002.cghash").weights_.tobytes()


@pytest.mark.slow
@pytest.mark.parametrize("worker_is_killed", [False, True], ids=["the server", "server and worker"])
def test_a_job_goes_on_though_its_server_is_killed(school, start_server, expected, worker_is_killed):
    with start_server(school) as server:
        number = begun(Client(server.url))
        [worker] = workers_of(server)
        server.send_signal(signal.SIGKILL)
        if worker_is_killed:
            worker.send_signal(signal.SIGKILL)
        server.wait()
        with contextlib.suppress(psutil.NoSuchProcess):
            if worker_is_killed:
                wait_for(lambda: not worker.is_running() or worker.status() == psutil.STATUS_ZOMBIE)
            else:
                assert worker.is_running()
    with start_server(school) as server:
        page = Client(server.url)
        assert page.wait(number) == 2
        assert page.job(number)["state"] == "done"
        if not worker_is_killed:
            assert workers_of(server) == []  # nobody began it anew
        assert [m["version"] for m in page.models()["models"]] == [1, 2]
    assert learned(school) == expected


@pytest.mark.slow
def test_a_server_that_is_stopped_stops_its_worker_and_takes_the_job_up_again(school, start_server, expected):
    with start_server(school) as server:
        page = Client(server.url)
        number = begun(page)
        [worker] = workers_of(server)
        server.terminate()
        server.wait(60)
        assert not worker.is_running()
    with Workspace.open(school) as workspace:
        job = workspace.records.job(number)
        assert job.state == "running"
        assert (school / "checkpoints" / f"job-{number}" / "state").exists()
        reached = job.progress["bit"]
    with start_server(school) as server:
        page = Client(server.url)
        bits = []
        assert page.wait(number, lambda found: bits.append(found["progress"].get("bit", 0))) == 2
        assert page.model(2)["answers"] == 40
    assert reached >= 3
    assert learned(school) == expected


def test_a_server_stops_soon_though_a_page_watches(school, start_server):
    """A stream that is open does not hold the server until its patience ends."""
    import urllib.request

    with start_server(school) as server:
        page = Client(server.url)
        number = begun(page, bit=1)
        stream = urllib.request.urlopen(f"{server.url}/api/jobs/{number}/events", timeout=60)
        assert stream.readline().startswith(b"data: ")
        server.terminate()
        rest = stream.read()  # ends when the stream does, without an error
        assert server.wait(60) is not None
        assert b"Traceback" not in server.log.read_bytes()
        assert b"Cancel" not in server.log.read_bytes()  # uvicorn's word for tasks that it had to end
        assert rest == b"" or rest.startswith((b"data", b"\n"))
