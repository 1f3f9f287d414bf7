"""What every page must hold to: accessible, fit for a phone, light and dark; and the door of a server with a token."""

from __future__ import annotations

import pytest

from .conftest import DESKTOP, PHONE

pytestmark = pytest.mark.slow

TOKEN = "a-token-of-some-length"
READY = {
    "/": ".cell img",
    "/?item=17": ".result img",
    "/?item=17&beside=vectors&filter=ink%3E%3D4": ".columns.two .result img",
    "/teach": "#question:not([hidden]) img",
    "/learn": "#versions:not([hidden])",
    "/understand": ".bit img",
    "/nowhere": ".empty",
}


def violations(page):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="needs axe-playwright-python")
    found = axe.Axe().run(page)
    return [(one["id"], [node["html"] for node in one["nodes"]]) for one in found.response["violations"]]


@pytest.mark.parametrize("path", READY)
@pytest.mark.parametrize(("size", "scheme"), [(DESKTOP, "light"), (PHONE, "dark")], ids=["light", "dark-phone"])
def test_every_page_is_accessible_and_fits(open_page, path, size, scheme):
    page = open_page(path, size, scheme)
    page.visit.expected = ("Failed to load resource",) if path == "/nowhere" else ()
    page.wait_for_selector(READY[path])
    assert violations(page) == []
    assert page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") <= 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_what_opens_on_the_search_page_is_accessible_too(open_page, scheme):
    page = open_page("/?item=17", scheme=scheme)
    page.wait_for_selector(".result img")
    page.click("#filters-open")
    assert violations(page) == []
    page.keyboard.press("Escape")
    assert page.evaluate("document.activeElement.id") == "filters-open"
    page.click(".result:nth-child(3) .differ")
    assert violations(page) == []
    page.keyboard.press("Escape")
    page.fill("#ask-text", "words")
    page.keyboard.press("Enter")
    page.wait_for_selector(".toast")
    assert violations(page) == []


def test_picked_theme_outlives_the_page_and_overrules_the_system(open_page):
    page = open_page("/understand", scheme="dark")
    background = "getComputedStyle(document.body).backgroundColor"
    dark = page.evaluate(background)
    page.click("#theme")
    light = page.evaluate(background)
    assert light != dark
    page.goto(page.visit.site.url + "/teach")
    assert page.evaluate(background) == light


def test_first_link_skips_to_the_content(open_page):
    page = open_page("/learn")
    page.wait_for_selector("#start:not([hidden])")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to content"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"


def test_a_server_with_a_token_asks_for_it_once(open_page, serve):
    guarded = serve(TOKEN)
    page = open_page("/teach", PHONE, "dark", base=guarded)
    assert page.url == f"{guarded.url}/login"
    assert violations(page) == []
    page.visit.expected = ("Failed to load resource",)
    page.fill("input[name=token]", "another-token-of-some-length")
    page.click("text=Sign in >> nth=-1")
    assert "This is not the token." in page.locator("[role=alert]").inner_text()
    page.fill("input[name=token]", TOKEN)
    page.keyboard.press("Enter")
    page.wait_for_selector(".cell img")
    page.goto(f"{guarded.url}/teach")
    page.wait_for_selector("#question:not([hidden]) img")
    page.keyboard.press("ArrowLeft")
    page.wait_for_selector(".sent.saved")
