"""What a version knows: its certificate, its bits, precision and recall."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.slow


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
