"""Take the pictures of the page that the documentation shows, into docs/images.

A curator is simulated on the demo's digits: she answers by what they are. Run it again after a change of the page:

    python docs/screenshots.py
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
import tempfile
import urllib.request
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

IMAGES = Path(__file__).parent / "images"
SIZE = {"width": 1280, "height": 800}
ANSWERS = 600


class Server:
    """`cghash serve --demo` on a free port, for as long as the block lasts."""

    def __init__(self, folder: Path) -> None:
        self.command = [sys.executable, "-m", "cghash", "serve", "--demo", str(folder), "--port", "0"]

    def __enter__(self) -> Server:
        self.process = subprocess.Popen(self.command, stderr=subprocess.PIPE, text=True)
        assert self.process.stderr is not None
        for line in self.process.stderr:
            if found := re.search(r"at (http://\S+)", line):
                self.url = found[1]
                return self
        raise SystemExit("the server did not start")

    def __exit__(self, *error: object) -> None:
        self.process.terminate()
        self.process.wait()

    def ask(self, path: str, body: dict | None = None) -> dict:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request) as response:
            return json.load(response)


def teach(server: Server, answers: int) -> None:
    """Answer questions by label: the candidate of the anchor's digit; where both or none is, it cannot be told."""
    for _ in range(answers // 20):
        for question in server.ask("/api/questions?count=20")["questions"]:
            anchor, left, right = (question[part] for part in ("anchor", "left", "right"))
            same = [item["label"] == anchor["label"] for item in (left, right)]
            choice = "unsure" if same[0] == same[1] else "left" if same[0] else "right"
            rows = {"anchor": anchor["row"], "left": left["row"], "right": right["row"]}
            server.ask("/api/answers", {"key": question["key"], "choice": choice, "source": question["source"], **rows})


def take(page: Page, url: str, name: str, ready: str) -> None:
    page.goto(url)
    page.wait_for_selector(ready)
    picture(page, name)


def picture(page: Page, name: str) -> None:
    """The page once all of its images are there."""
    while not page.evaluate("[...document.images].every((image) => image.complete)"):
        page.wait_for_timeout(50)
    page.wait_for_timeout(300)
    page.screenshot(path=IMAGES / f"page-{name}.png")


def learn(page: Page, url: str) -> None:
    """Press Learn, wait for the report, show it, and use the new version."""
    page.goto(f"{url}/learn")
    page.click("#learn-button")
    page.wait_for_selector("#report:not([hidden]) .change img", timeout=300_000)
    page.evaluate("scrollTo(0, document.querySelector('#report').offsetTop - 80)")
    picture(page, "learn")
    page.click("#report .primary")
    page.wait_for_selector("#report .current")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--answers", type=int, default=ANSWERS, help="questions that the simulated curator is asked")
    parser.add_argument("--browser", default=shutil.which("chromium"), help="path of Chromium")
    chosen = parser.parse_args()
    IMAGES.mkdir(exist_ok=True)
    with (
        tempfile.TemporaryDirectory() as folder,
        Server(Path(folder) / "demo.ws") as server,
        sync_playwright() as playwright,
    ):
        browser = playwright.chromium.launch(executable_path=chosen.browser, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page(viewport=SIZE, color_scheme="light")
        teach(server, chosen.answers)
        learn(page, server.url)
        take(page, f"{server.url}/?item=17&beside=1", "search", ".columns.two .result img")
        take(page, f"{server.url}/teach", "teach", "#question:not([hidden]) .candidate img")
        take(page, f"{server.url}/understand", "understand", ".bit img")
        browser.close()


if __name__ == "__main__":
    main()
