"""A server over a workspace of digits, and a browser that looks at it.

Modules that teach or learn have a server of their own, so that what one teaches does not show in another.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import socket
import urllib.request
from pathlib import Path

import pytest

DESKTOP = {"width": 1280, "height": 800}
PHONE = {"width": 360, "height": 740}
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]


class Site:
    """`cghash serve` over a folder, at an address that stays the same when it is stopped and started again."""

    def __init__(self, folder: Path, start_server, token: str | None = None) -> None:
        self.folder, port = folder, str(_free_port())
        self.url = f"http://127.0.0.1:{port}"
        secret = {} if token is None else {"CGHASH_TOKEN": token}
        self._serve = lambda: start_server(folder, "--port", port, **secret)

    def start(self) -> None:
        self._running = contextlib.ExitStack()
        self._running.enter_context(self._serve())
        self.get("/healthz")  # answers once the server has come up: the socket listens already

    def stop(self) -> None:
        self._running.close()

    def get(self, path: str):
        return self._ask(urllib.request.Request(self.url + path))

    def post(self, path: str, body: dict):
        headers = {"Content-Type": "application/json"}
        return self._ask(urllib.request.Request(self.url + path, json.dumps(body).encode(), headers))

    def _ask(self, request: urllib.request.Request):
        with urllib.request.urlopen(request, timeout=30) as response:
            return json.load(response)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture(scope="session")
def digits_workspace(tmp_path_factory) -> Path:
    """The demo's digits with two small versions, the second in use."""
    pytest.importorskip("fastapi", reason="the page needs fastapi: pip install 'cghash[web]'")
    from cghash.workspace.demo import demo_workspace
    from cghash.workspace.fitting import first_model

    folder = tmp_path_factory.mktemp("template") / "digits"
    workspace = demo_workspace(folder)
    for bits in (8, 24):
        first_model(workspace, bits, n_jobs=1)
    workspace.close()
    return folder


@pytest.fixture(scope="session")
def serve(digits_workspace, start_server, tmp_path_factory):
    """serve(token) → a server over a copy of the digits, stopped at the end."""
    started = []

    def serve_one(token: str | None = None) -> Site:
        folder = tmp_path_factory.mktemp("site") / "digits"
        shutil.copytree(digits_workspace, folder)
        started.append(Site(folder, start_server, token))
        started[-1].start()
        return started[-1]

    yield serve_one
    for running in started:
        running.stop()


@pytest.fixture(scope="session")
def site(serve) -> Site:
    """For tests that leave it as it was; those that teach or learn have one of their own."""
    return serve()


@pytest.fixture(scope="module")
def browser():
    """One for a module, not for the session: Playwright keeps an event loop that other tests would trip over."""
    api = pytest.importorskip("playwright.sync_api", reason="browser tests need playwright")
    with api.sync_playwright() as playwright:
        own = playwright.chromium.executable_path
        found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
        if found is None and not Path(own).exists():
            pytest.skip("no Chromium: install it, or run `playwright install chromium`")
        launched = playwright.chromium.launch(executable_path=found, args=ARGUMENTS)
        yield launched
        launched.close()


class Visit:
    """What a page asked for and complained about while it was open."""

    def __init__(self, page, site: Site) -> None:
        self.requests, self.complaints = [], []
        self.expected = ()  # beginnings of complaints that a test provokes
        self.site = site
        page.on("request", lambda request: self.requests.append(request.url))
        page.on("console", lambda message: message.type in ("error", "warning") and self.complain(message.text))
        page.on("pageerror", lambda error: self.complain(str(error)))

    def complain(self, words: str) -> None:
        self.complaints.append(words)

    def check(self) -> None:
        """No request left the server, nothing broke, and the Content-Security-Policy held."""
        own = (self.site.url, "blob:", "data:")
        assert not [url for url in self.requests if not url.startswith(own)]
        assert not [words for words in self.complaints if not words.startswith(tuple(self.expected))]


@pytest.fixture
def open_page(browser, site):
    """open_page(path, size, scheme) → a page of the site; what it did is checked at the end."""
    opened = []

    def open_one(path: str = "/", size: dict = DESKTOP, scheme: str = "light", base: Site = site):
        context = browser.new_context(
            viewport=size,
            color_scheme=scheme,
            has_touch=size is PHONE,
            reduced_motion="reduce",  # places are compared: nothing may be on its way
        )
        context.set_default_timeout(30000)
        page = context.new_page()
        page.visit = Visit(page, base)
        opened.append((context, page.visit))
        page.goto(base.url + path)
        return page

    yield open_one
    for context, _ in opened:
        context.close()
    for _, visit in opened:
        visit.check()
