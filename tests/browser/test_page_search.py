"""Search by example in a real browser: by mouse, by keyboard, by image, by vector; filters, bits, two models."""

from __future__ import annotations

import re
from urllib.parse import parse_qs, urlsplit

import numpy as np
import pytest
from sklearn.datasets import load_digits

pytestmark = pytest.mark.slow


def rows_shown(page, column=0):
    """Row numbers of the results of a column, in their order."""
    page.wait_for_selector("#found:not([hidden]) .results .result")
    page.wait_for_selector("#columns:not([aria-busy])")
    lists = page.locator(".results")
    return [int(row) for row in lists.nth(column).locator(".result").evaluate_all("all => all.map(o => o.dataset.row)")]


def ranked(site, **asked):
    """What the API answers, to hold the page against."""
    return [result["row"] for result in site.post("/api/search", {"k": 24, **asked})["results"]]


def until(page, reached, seconds=60):
    """Wait for it; `wait_for_function` would need eval, which the page's policy forbids."""
    for _ in range(seconds * 20):
        if reached():
            return
        page.wait_for_timeout(50)
    raise AssertionError("it did not come to that")


def address(page):
    return {name: values[0] for name, values in parse_qs(urlsplit(page.url).query).items()}


def test_click_on_an_item_shows_its_neighbours(site, open_page):
    page = open_page("/")
    page.click('.cell[data-index="3"] a:has(img)')
    assert rows_shown(page) == ranked(site, item=3)
    assert address(page) == {"item": "3"}
    assert page.locator(".trail li").all_inner_texts() == ["All items", "digit-0003"]
    nearest = page.locator(".result").first
    assert re.search(r"\d+ bits? differs?", nearest.inner_text())


def test_results_lead_on_and_back_leads_back(site, open_page):
    page = open_page("/?item=3")
    second = rows_shown(page)[1]
    page.click(".result:nth-child(2) a")
    page.wait_for_url(f"**/?item={second}")
    assert rows_shown(page) == ranked(site, item=second)
    assert page.locator(".trail li").count() == 3
    page.go_back()
    assert rows_shown(page) == ranked(site, item=3)
    page.reload()
    assert rows_shown(page) == ranked(site, item=3)


def test_back_to_all_items_returns_to_where_one_was(open_page):
    page = open_page("/")
    page.wait_for_selector(".cell img")
    page.evaluate("scrollTo(0, 9000)")
    in_view = "[...document.querySelectorAll('.cell:has(img)')].find(cell => cell.getBoundingClientRect().top > 200)"
    until(page, lambda: page.evaluate(f"{in_view}?.dataset.index > 200"))  # not one of those at the top
    index = page.evaluate(f"{in_view}.dataset.index")
    page.locator(f'.cell[data-index="{index}"] a').click()
    rows_shown(page)
    page.go_back()
    page.wait_for_selector(f'.cell[data-index="{index}"] img')
    assert abs(page.evaluate("scrollY") - 9000) < 200


def test_search_by_keyboard_alone(site, open_page):
    page = open_page("/")
    page.wait_for_selector(".cell img")
    for _ in range(15):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.closest('.cell') !== null"):
            break
    columns = page.evaluate("getComputedStyle(document.querySelector('.grid')).gridTemplateColumns.split(' ').length")
    for key in ("ArrowRight", "ArrowDown", "ArrowDown", "ArrowUp"):
        page.keyboard.press(key)
    page.keyboard.press("Enter")
    assert rows_shown(page) == ranked(site, item=1 + columns)
    for _ in range(25):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.closest('.result') !== null"):
            break
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    chosen = page.evaluate("Number(document.activeElement.closest('.result').dataset.row)")
    assert chosen == rows_shown(page)[2]
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/?item={chosen}")
    assert rows_shown(page) == ranked(site, item=chosen)


def test_end_key_reaches_the_last_item(open_page):
    page = open_page("/")
    page.locator(".cell a:has(img)").first.focus()
    page.keyboard.press("End")
    page.wait_for_selector('.cell[data-index="1796"] img')
    assert page.evaluate("document.activeElement.textContent") == "digit-1796"
    assert page.evaluate("document.activeElement.closest('li').getAttribute('aria-posinset')") == "1797"


DROP = """async (row) => {
  const blob = await (await fetch(`/api/items/${row}/image?size=0`)).blob();
  const files = new DataTransfer();
  files.items.add(new File([blob], "dropped.png", { type: "image/png" }));
  for (const type of ["dragenter", "dragover", "drop"]) {
    document.body.dispatchEvent(new DragEvent(type, { dataTransfer: files, bubbles: true, cancelable: true }));
  }
}"""


def test_dropped_image_finds_itself(open_page):
    page = open_page("/")
    page.wait_for_selector(".cell img")
    page.evaluate(DROP, 55)
    rows = rows_shown(page)
    page.select_option("#model", "vectors")  # of all items only this one has these pixels
    until(page, lambda: page.locator(".distance").first.inner_text().endswith("0"))
    assert 55 in rows
    assert rows_shown(page)[0] == 55
    assert page.locator(".wish").count() == 0  # there is no item to learn something about


def test_chosen_image_is_gone_after_a_reload_and_the_page_says_so(site, open_page):
    page = open_page("/")
    page.wait_for_selector("#ask-image:not([hidden])")
    page.set_input_files("#ask-file", site.folder / "items" / "000" / "000007.png")
    assert 7 in rows_shown(page)
    page.reload()
    page.wait_for_selector("#problem:not([hidden])")
    assert "choose or drop it again" in page.locator("#problem").inner_text()
    page.click("#problem button")
    page.wait_for_selector(".cell img")


def test_pasted_vector_finds_the_item_that_has_it(open_page):
    page = open_page("/?item=0&model=vectors")
    rows_shown(page)
    page.fill("#ask-text", " ".join(map(str, load_digits().data[7])))
    page.keyboard.press("Enter")
    until(page, lambda: page.locator(".distance").first.inner_text().endswith("0"))
    assert rows_shown(page)[0] == 7
    page.reload()
    assert rows_shown(page)[0] == 7


@pytest.mark.parametrize(
    ("words", "answer"),
    [("1, 2, 3", "A vector here has 64 numbers; these are 3."), ("a cat", "Words cannot be searched here")],
)
def test_what_cannot_be_searched_is_said(open_page, words, answer):
    page = open_page("/")
    page.wait_for_selector(".cell img")
    page.fill("#ask-text", words)
    page.keyboard.press("Enter")
    assert answer in page.locator(".toast").inner_text()


def test_filters_are_chosen_shown_and_removed(site, open_page):
    X, y = load_digits(return_X_y=True)
    ink = np.round(X.mean(axis=1), 2)
    page = open_page("/")
    page.click("#filters-open")
    page.select_option("#filters select", "3")
    until(page, lambda: page.inner_text("#browse-count").startswith(f"{(y == 3).sum()} of"))
    page.fill("#filters input >> nth=0", "5")
    page.keyboard.press("Tab")
    both = ((y == 3) & (ink >= 5)).sum()
    until(page, lambda: page.inner_text("#browse-count").startswith(f"{both} of"))
    chips = page.locator(".chip").all_inner_texts()
    assert [words.split(",")[0].strip() for words in chips] == ["digit is 3", "ink at least 5"]
    page.click('.cell[data-index="0"] a:has(img)')
    rows = rows_shown(page)
    assert rows == ranked(site, item=int(np.flatnonzero((y == 3) & (ink >= 5))[0]), filters=["digit=3", "ink>=5"])
    assert (y[rows] == 3).all()
    page.click(".chip >> nth=0")
    page.wait_for_selector(".chip >> nth=1", state="detached")
    rows_shown(page)
    assert "filter=ink" in page.url
    assert "digit" not in urlsplit(page.url).query


def test_a_late_answer_does_not_undo_a_filter(site, open_page):
    """The list of all items may come after that of the filter which was chosen meanwhile."""
    _, y = load_digits(return_X_y=True)
    page, held = open_page("/"), []
    page.click("#filters-open")

    def hold(route):
        if "filter" in route.request.url or held:
            route.continue_()
        else:
            held.append(route)  # of all items

    page.route(re.compile(r"/api/items\?.*count=1(&|$)"), hold)
    page.select_option("#filters select", "3")
    until(page, lambda: page.inner_text("#browse-count").startswith(f"{(y == 3).sum()} of"))
    page.click(".chip >> nth=0")
    until(page, lambda: held)
    page.select_option("#filters select", "5")
    until(page, lambda: page.inner_text("#browse-count").startswith(f"{(y == 5).sum()} of"))
    held[0].continue_()
    page.wait_for_timeout(500)
    assert page.inner_text("#browse-count").startswith(f"{(y == 5).sum()} of")


def test_filter_that_nothing_passes_leads_on(open_page):
    page = open_page("/?filter=ink%3E%3D999")
    page.wait_for_selector("#problem:not([hidden])")
    assert "No item passes the filters." in page.locator("#problem").inner_text()
    page.click("#problem button")
    page.wait_for_selector(".cell img")


def test_bits_slider_asks_for_the_first_bits(site, open_page):
    page = open_page("/?item=3")
    assert rows_shown(page) == ranked(site, item=3)
    assert page.locator("#bits-shown").inner_text() == "all 24"
    page.locator("#bits").fill("5")
    page.wait_for_url("**/?item=3&bits=5")
    wanted = ranked(site, item=3, bits=5)
    until(page, lambda: rows_shown(page) == wanted)
    assert page.locator("#bits-shown").inner_text() == "5 of 24"
    page.reload()
    assert rows_shown(page) == wanted


def test_two_models_beside_each_other_mark_what_only_one_finds(site, open_page):
    page = open_page("/?item=17")
    rows_shown(page)
    page.select_option("#beside", "vectors")
    page.wait_for_selector(".columns.two")
    left, right = rows_shown(page, 0), rows_shown(page, 1)
    assert left == ranked(site, item=17)
    assert right == ranked(site, item=17, model="vectors")
    marked = page.locator(".result.alone")
    alone = {int(row) for row in marked.evaluate_all("all => all.map(one => one.dataset.row)")}
    assert alone == set(left) ^ set(right)
    assert all("only here" in words for words in marked.all_inner_texts())  # in words, not by colour alone
    assert page.locator(".columns h2").all_inner_texts() == ["Version 2 24 bits", "Vectors (Euclidean)"]


def test_bits_that_differ_are_named(site, open_page):
    page = open_page("/?item=17")
    rows_shown(page)
    third = site.post("/api/search", {"item": 17})["results"][2]
    page.click(".result:nth-child(3) .differ")
    card = page.locator("#bits-card")
    assert re.findall(r"\d+", card.inner_text())[2:] == list(map(str, third["bits"]))
    assert card.locator(".code span").count() == 24
    assert card.locator(".differs").count() == third["differing"]
    page.keyboard.press("Escape")
    assert not card.is_visible()
    assert page.evaluate("document.activeElement.className").split()[-1] == "differ"


def test_should_be_nearer_becomes_answers_and_can_be_undone(site, open_page):
    page = open_page("/?item=17")
    rows_shown(page)
    assert page.locator(".wish >> nth=0").is_disabled()  # nothing stands before the first
    page.click(".result:nth-child(5) .wish >> nth=0")
    page.wait_for_selector(".toast")
    told = site.get("/api/answers/summary")["list"]
    assert told > 0
    assert f"noted as {told} answers" in page.locator(".toast").inner_text()
    page.click(".toast button >> nth=0")
    page.wait_for_selector(".toast:has-text('Undone')")
    assert site.get("/api/answers/summary")["list"] == 0


def test_slow_answers_do_not_overtake_later_ones(site, open_page):
    """Moving the slider on while a search is under way must end at the last position."""
    page = open_page("/?item=3")
    rows_shown(page)
    held = []
    hold = lambda route: held.append(route) if '"bits":2,' in route.request.post_data else route.continue_()  # noqa: E731
    page.route("**/api/search", hold)
    page.locator("#bits").fill("2")
    page.wait_for_url("**&bits=2")
    page.locator("#bits").fill("9")
    wanted = ranked(site, item=3, bits=9)
    until(page, lambda: rows_shown(page) == wanted)
    page.visit.expected = ("Failed to load resource",)
    for route in held:
        route.abort()
    assert rows_shown(page) == wanted


def test_names_with_html_are_shown_as_text(open_page):
    page = open_page("/?item=3")
    rows_shown(page)
    name = '<img src=x onerror="document.title = 1">&amp;'

    def renamed(route):
        body = route.fetch().json()
        for item in body["items"]:
            item["title"] = item["id"] = name
        route.fulfill(json=body)

    page.route("**/api/items?*", renamed)
    page.click(".trail a")
    page.wait_for_selector(".cell img")
    assert page.locator(".cell .title").first.inner_text() == name
    assert page.title().startswith("Search")


def test_server_that_fails_is_told_in_a_sentence(open_page):
    page = open_page("/?item=3")
    rows_shown(page)
    page.visit.expected = ("Failed to load resource",)
    page.route("**/api/search", lambda route: route.fulfill(status=500, json={"error": "something went wrong"}))
    page.locator("#bits").fill("2")
    page.wait_for_selector("#problem:not([hidden])")
    assert "Something went wrong." in page.locator("#problem").inner_text()
    page.click("#problem button")
    page.wait_for_selector(".cell img")


# ---- a million items, from an API that is made up

MILLION = 1_000_000


def open_million(open_page):
    page = open_page("/understand")  # a page without a grid: the routes must stand before the first request
    asked = []

    def items(route):
        query = {name: values[0] for name, values in parse_qs(urlsplit(route.request.url).query).items()}
        start, count = int(query["start"]), int(query["count"])
        asked.append(start)
        some = range(start, min(start + count, MILLION))
        found = [
            {
                "row": r,
                "id": f"n{r}",
                "title": f"n{r}",
                "text": None,
                "image": None,
                "label": None,
                "attributes": {"a": r},
            }
            for r in some
        ]
        route.fulfill(json={"total": MILLION, "start": start, "items": found})

    workspace = {
        "title": "A million", "kind": "vectors", "items": MILLION, "dimension": 4, "vectors": "given", "labels": None,
        "attributes": [{"name": "a", "kind": "number", "values": None, "least": 0, "most": MILLION}],
        "current": None, "queries": {"image": False, "text": False},
    }  # fmt: skip
    page.route("**/api/workspace", lambda route: route.fulfill(json=workspace))
    page.route("**/api/items?*", items)
    page.goto(page.visit.site.url)
    page.wait_for_selector(".cell b")
    return page, asked


def test_a_million_items_scroll_to_the_last_one(open_page):
    page, _ = open_million(open_page)
    height = page.evaluate("document.documentElement.scrollHeight")
    assert height < 16_000_000  # what browsers can lay out
    page.evaluate("scrollTo(0, document.documentElement.scrollHeight)")
    page.wait_for_selector(f'.cell:has-text("n{MILLION - 1}")')
    last = page.locator(f'.cell:has-text("n{MILLION - 1}")').bounding_box()
    assert 0 < last["y"] < 800 - last["height"]
    assert page.locator(".cell").count() < 300
    assert page.locator(".cell").last.get_attribute("aria-setsize") == str(MILLION)


def test_flinging_through_a_million_items_asks_for_few_of_them(open_page):
    page, asked = open_million(open_page)
    before = len(asked)
    most = page.evaluate(
        """async () => {
          const frame = () => new Promise(requestAnimationFrame);
          let most = 0;
          for (let step = 1; step <= 40; step++) {
            scrollTo(0, step * 90000);
            await frame();
            most = Math.max(most, document.querySelectorAll(".cell").length);
          }
          return most;
        }"""
    )
    page.wait_for_selector(".cell b")
    page.wait_for_timeout(300)
    assert most < 300
    assert len(asked) - before < 20  # 40 places were passed


def test_a_small_step_moves_as_far_as_on_any_page(open_page):
    """In the middle a pixel of the scroll bar stands for several of the list; a turn of the wheel must not."""
    page, _ = open_million(open_page)
    page.evaluate("scrollTo(0, 2_000_000)")
    page.wait_for_selector(".cell b")
    seen = []

    def settled():
        cell = page.locator(".cell:has(b)").nth(30)
        seen.append((cell.inner_text(), cell.bounding_box()["y"]))
        return seen[-5:] == [seen[-1]] * 5

    until(page, settled)
    name, before = seen[-1]
    page.mouse.move(600, 400)
    page.mouse.wheel(0, 120)
    cell = page.locator(f'.cell:has-text("{name}")')
    until(page, lambda: before - cell.bounding_box()["y"] == pytest.approx(120, abs=2))


def test_keys_go_from_the_first_of_a_million_to_the_last(open_page):
    page, _ = open_million(open_page)
    page.locator(".cell a").first.focus()
    page.keyboard.press("End")
    page.wait_for_selector(f'.cell:has-text("n{MILLION - 1}")')
    assert page.evaluate("document.activeElement.closest('li').dataset.index") == str(MILLION - 1)
    page.keyboard.press("Home")
    page.wait_for_selector('.cell[data-index="0"] b')
    assert page.evaluate("document.activeElement.closest('li').dataset.index") == "0"
    assert page.evaluate("scrollY") < 400


CHECK_MAP = """async () => {
  const { ScrollMap } = await import("/static/scrolling.js");
  const wrong = [];
  for (const [real, view] of [[500, 800], [9000, 800], [3_999_999, 700], [4_000_001, 700], [5e6, 1200], [8e8, 600]]) {
    const map = new ScrollMap();
    map.resize(real, view);
    let last = -1;
    for (let step = 0; step <= 1000; step++) {
      const physical = (map.reach * step) / 1000;
      const virtual = map.toVirtual(physical);
      if (virtual < last) wrong.push(`falls at ${physical} of ${real}`);
      if (Math.abs(map.toPhysical(virtual) - physical) > 1e-3) wrong.push(`no inverse at ${physical} of ${real}`);
      last = virtual;
    }
    if (Math.abs(last - Math.max(0, real - view)) > 1e-3) wrong.push(`${real} ends at ${last}`);
    if (map.height > map.cap) wrong.push(`${real} is too high`);
  }
  return wrong;
}"""


def test_scroll_map_rises_from_the_first_item_to_the_last(open_page):
    page = open_page("/understand")
    assert page.evaluate(CHECK_MAP) == []
