"""What a version knows: its certificate, its bits, precision and recall; and what every page must hold to."""

from __future__ import annotations

import pytest

from .conftest import DESKTOP, PHONE

pytestmark = pytest.mark.slow

PAGES = ["/", "/?item=17", "/?item=17&beside=vectors&filter=ink%3E%3D4", "/teach", "/learn", "/understand", "/nowhere"]
READY = {
    "/": ".cell img",
    "/?item=17": ".result img",
    "/?item=17&beside=vectors&filter=ink%3E%3D4": ".columns.two .result img",
    "/teach": "#question:not([hidden]) img",
    "/learn": "#versions:not([hidden])",
    "/understand": ".bit img",
    "/nowhere": ".empty",
}


def test_certificate_curve_and_bits_of_the_version_in_use(site, open_page):
    page = open_page("/understand")
    page.wait_for_selector(".bit img")
    current = site.get("/api/models")["current"]
    assert page.input_value("#version") == str(current)
    certificate = site.get(f"/api/models/{current}")["certificate"]
    assert f"{certificate['objective']:.3g}" in page.locator("#certificate-numbers").inner_text()
    assert page.locator("#certificate").inner_text().startswith("All bits that were asked for are in use")
    page.wait_for_selector("#curve .chart .curve")
    precision = site.get(f"/api/models/{current}/curve")["mean_average_precision"]
    assert f"Mean average precision {precision:.3g}".rstrip("0") in page.locator("#curve").inner_text()
    assert page.locator("#history .chart .curve").count() == 3  # objective and bound, share of triplets satisfied


def test_bits_come_heaviest_first_with_items_on_either_side(site, open_page):
    page = open_page("/understand")
    page.wait_for_selector(".bit img")
    current = site.get("/api/models")["current"]
    bits = site.get(f"/api/models/{current}/bits?count=8")["bits"]
    assert page.locator(".bit h3").all_inner_texts() == [f"Bit {one['bit']}" for one in bits]
    first = page.locator(".bit").first
    for side, name in enumerate(("zero", "one")):
        pictures = first.locator(".side").nth(side).locator("img").evaluate_all("all => all.map(one => one.alt)")
        assert pictures == [item["title"] for item in bits[0][name]]
    page.click("#more")
    page.wait_for_selector(".bit >> nth=23")
    assert page.locator(".bit").count() == 24


def test_another_version_is_chosen_and_kept_over_a_reload(open_page):
    page = open_page("/understand")
    page.wait_for_selector(".bit img")
    page.select_option("#version", "1")
    page.wait_for_selector("#certificate-numbers div:has(dt:text('bits')):has(dd:text-is('8'))")
    page.reload()
    page.wait_for_selector(".bit img")
    assert page.input_value("#version") == "1"
    assert page.locator(".bit").count() == 8


def test_picked_theme_outlives_the_page_and_overrules_the_system(open_page):
    page = open_page("/understand", scheme="dark")
    background = "getComputedStyle(document.body).backgroundColor"
    dark = page.evaluate(background)
    page.click("#theme")
    light = page.evaluate(background)
    assert light != dark
    page.goto(page.visit.site.url + "/teach")
    assert page.evaluate(background) == light


@pytest.mark.parametrize("path", PAGES)
@pytest.mark.parametrize(("size", "scheme"), [(DESKTOP, "light"), (PHONE, "dark")], ids=["light", "dark-phone"])
def test_every_page_is_accessible_and_fits(open_page, path, size, scheme):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="needs axe-playwright-python")
    page = open_page(path, size, scheme)
    page.visit.expected = ("Failed to load resource",) if path == "/nowhere" else ()
    page.wait_for_selector(READY[path])
    found = axe.Axe().run(page)
    assert not found.response["violations"], found.generate_report()
    wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    assert wide <= 0


def test_first_link_skips_to_the_content(open_page):
    page = open_page("/learn")
    page.wait_for_selector("#start:not([hidden])")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to content"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
