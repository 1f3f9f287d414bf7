"""Press Learn and see the ranking change: to the end, over a reload, over a restart, and back again."""

from __future__ import annotations

import re

import numpy as np
import pytest
from sklearn.datasets import load_digits

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def site(serve):
    return serve()


@pytest.fixture(scope="module", autouse=True)
def _taught(site):
    """Answers by the digits themselves: 80 to learn from, 20 to test with."""
    y = load_digits().target
    rng = np.random.default_rng(0)
    for number in range(100):
        anchor = int(rng.integers(len(y)))
        same, other = (int(rng.choice(np.flatnonzero(like))) for like in (y == y[anchor], y != y[anchor]))
        if same == anchor:
            continue
        told = {"anchor": anchor, "left": same, "right": other, "choice": "left"}
        site.post(
            "/api/answers", {"key": f"taught-{number}", "source": "test" if number % 5 == 0 else "active", **told}
        )


def learn(page, bits):
    page.wait_for_selector("#start:not([hidden])")
    page.fill("#bits", str(bits))
    page.click("#learn-button")
    page.wait_for_selector("#running:not([hidden])")


def learn_for_minutes(page):
    """A job that is not done before the test has looked at it: at the usual price these answers need 126 bits."""
    page.wait_for_selector("#start:not([hidden])")
    page.click("#start summary")
    page.fill("#C", "0.000001")
    learn(page, 1024)


def done(page):
    """The version that the report is about."""
    page.wait_for_selector("#report:not([hidden]) .change", timeout=90000)
    return int(page.locator("#report-title").inner_text().split()[1])


def in_use(page):
    return int(page.locator("tr:has(.current)").get_attribute("data-version"))


def test_learn_to_the_end_use_it_and_roll_back(site, open_page):
    page = open_page("/learn")
    before = site.get("/api/models")["current"]
    summary = site.get("/api/answers/summary")
    page.wait_for_selector("#start:not([hidden])")
    taught = summary["answers"] - summary["test"]
    assert page.locator("#learn-from").inner_text().startswith(f"{taught} answers to learn from")
    learn(page, 12)
    version = done(page)
    [model] = [one for one in site.get("/api/models")["models"] if one["version"] == version]
    held_out = model["report"]["held_out"]
    assert model["bits"] == 12
    told = page.locator("#report .numbers").inner_text()
    assert f"{round(100 * held_out['before'])} % → {round(100 * held_out['after'])} %" in told
    assert f"of {summary['test']} held-out answers" in told
    assert page.locator(".change >> nth=0").locator(".faces").count() == 2
    assert in_use(page) == before

    page.click("text=Use this model")
    page.wait_for_selector(f"text=Go back to version {before}")
    assert in_use(page) == version
    assert site.get("/api/workspace")["current"] == version

    page.click(f"text=Go back to version {before}")
    page.wait_for_selector("#report >> text=Use this model")
    assert in_use(page) == before
    assert site.get("/api/workspace")["current"] == before


def test_any_version_can_be_used_and_compared_from_the_table(site, open_page):
    page = open_page("/learn")
    page.wait_for_selector("#versions:not([hidden])")
    current = site.get("/api/models")["current"]
    other = 1 if current != 1 else 2
    page.click(f"tr[data-version='{other}'] >> text=Compare")
    page.wait_for_selector(f"#report >> text=against version {current}")
    page.click(f"tr[data-version='{other}'] >> text=Use")
    page.wait_for_selector(f".toast:has-text('Version {other} is in use.')")
    assert site.get("/api/models")["current"] == other
    page.click(".toast >> text=Undo")
    page.wait_for_selector(f"tr[data-version='{current}'] .current")
    assert site.get("/api/models")["current"] == current


def test_reload_in_the_middle_goes_on_and_cancel_ends_it(site, open_page):
    page = open_page("/learn")
    versions = len(site.get("/api/models")["models"])
    learn_for_minutes(page)
    page.wait_for_selector("#running-chart .chart .curve", timeout=60000)
    page.reload()
    page.wait_for_selector("#running:not([hidden])")
    assert page.locator("#start").is_hidden()
    page.wait_for_selector("#running-chart .chart .curve")  # what was drawn before is still there
    assert "of 1024" in page.locator("#running-stage").inner_text()
    page.click("#cancel")
    page.wait_for_selector(".toast:has-text('Cancelled: no version was made.')", timeout=60000)
    page.wait_for_selector("#start:not([hidden])")
    assert site.get("/api/jobs")["jobs"][0]["state"] == "cancelled"
    assert len(site.get("/api/models")["models"]) == versions


def test_server_restart_in_the_middle_is_survived(site, open_page):
    page = open_page("/learn")
    learn(page, 96)
    page.wait_for_selector("#running-chart .chart .curve", timeout=60000)
    page.visit.expected = ("Failed to load resource",)
    site.stop()
    page.wait_for_selector("#connection:not([hidden])")
    assert "Connection lost, trying again." in page.locator("#connection").inner_text()
    site.start()
    page.wait_for_selector("#connection", state="hidden", timeout=60000)
    version = done(page)
    [model] = [one for one in site.get("/api/models")["models"] if one["version"] == version]
    assert model["bits"] <= 96
    assert site.get("/api/jobs")["jobs"][0]["state"] == "done"


def test_a_stream_that_is_refused_is_no_lost_connection(site, open_page):
    """The server answers, only not with a stream: the job is looked at again and again, and its words are shown."""
    refusals = {}

    def refuse(route):
        status = refusals.get("events" if route.request.url.endswith("events") else "job")
        told = {"error": "there is no job 7" if status == 404 else "too many pages watch jobs at once"}
        route.fulfill(status=status, json=told) if status else route.continue_()

    page = open_page("/learn")
    page.visit.expected = ("Failed to load resource",)
    page.route("**/api/jobs/*/events", refuse)
    page.route(re.compile(r"/api/jobs/\d+$"), refuse)
    refusals["events"] = 503
    learn_for_minutes(page)
    page.wait_for_selector("#running-stage:has-text('bit')", timeout=60000)
    assert page.locator("#connection").is_hidden()
    refusals["job"] = 503
    page.wait_for_selector("#connection:has-text('Too many pages watch jobs at once. Trying again.')")
    refusals["job"] = None
    page.wait_for_selector("#connection", state="hidden")
    refusals["job"] = 404
    page.wait_for_selector(".toast:has-text('It cannot be followed any more: There is no job 7.')")
    page.wait_for_selector("#start:not([hidden])")
    assert page.locator("#running").is_hidden()
    [going] = [job for job in site.get("/api/jobs")["jobs"] if job["state"] in ("running", "queued")]
    site.post(f"/api/jobs/{going['id']}/cancel", {})


def test_a_wrong_price_is_refused_before_it_is_sent(site, open_page):
    page = open_page("/learn")
    jobs = len(site.get("/api/jobs")["jobs"])
    page.wait_for_selector("#start:not([hidden])")
    page.click("#start summary")
    page.fill("#C", "cheap")
    page.click("#learn-button")
    page.wait_for_selector(".toast:has-text('C must be a positive number, or empty.')")
    page.fill("#C", "-1")
    page.click("#learn-button")
    page.visit.expected = ("Failed to load resource",)
    page.wait_for_selector(".toast:has-text('greater than 0')")
    assert len(site.get("/api/jobs")["jobs"]) == jobs
