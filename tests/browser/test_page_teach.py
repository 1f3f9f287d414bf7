"""Teach by comparing: by mouse, by keys, with undo; and nothing answered is lost."""

from __future__ import annotations

import pytest

from .conftest import PHONE

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def site(serve):
    return serve()


def answers(site):
    """Answers that count, the newest first."""
    return [one for one in site.get("/api/answers?count=1000")["answers"] if not one["undone"]]


def saved(page):
    page.wait_for_selector(".sent.saved")


def question(page):
    """Names of anchor, left and right, once they can be answered."""
    page.wait_for_selector("#question:not([hidden]):not([aria-busy]) .candidate .title")
    return [page.locator(f"#{part} .title").inner_text() for part in ("anchor", "left", "right")]


def names(answer):
    return [f"digit-{answer[part]:04d}" for part in ("anchor", "left", "right")]


def test_click_on_a_candidate_is_an_answer(site, open_page):
    page = open_page("/teach")
    asked = question(page)
    before = len(answers(site))
    page.click("#right")
    assert question(page) != asked
    saved(page)
    newest = answers(site)[0]
    assert (names(newest), newest["choice"]) == (asked, "right")
    assert 0 < newest["seconds"] < 60
    assert len(answers(site)) == before + 1


@pytest.mark.parametrize(("key", "choice"), [("ArrowLeft", "left"), ("ArrowRight", "right"), ("ArrowDown", "unsure")])
def test_each_key_gives_its_answer(site, open_page, key, choice):
    page = open_page("/teach")
    asked = question(page)
    page.keyboard.press(key)
    saved(page)
    newest = answers(site)[0]
    assert (names(newest), newest["choice"]) == (asked, choice)


def test_undo_takes_back_and_asks_again(site, open_page):
    page = open_page("/teach")
    asked = question(page)
    before = len(answers(site))
    assert page.locator("#undo").is_disabled()
    page.keyboard.press("ArrowLeft")
    second = question(page)
    page.keyboard.press("z")
    assert question(page) == asked
    saved(page)
    assert len(answers(site)) == before
    page.keyboard.press("ArrowRight")  # the other way: stored, though the question is the same
    assert question(page) == second
    saved(page)
    newest = answers(site)[0]
    assert (names(newest), newest["choice"]) == (asked, "right")
    assert len(answers(site)) == before + 1


def test_a_burst_of_keys_is_stored_once_each(site, open_page):
    page = open_page("/teach")
    before = len(answers(site))
    for key in ["ArrowLeft", "ArrowRight"] * 6:
        question(page)
        page.keyboard.press(key)
    saved(page)
    assert len(answers(site)) == before + 12
    counts = page.locator("#counts dd").all_inner_texts()
    summary = site.get("/api/answers/summary")
    assert counts == [str(summary[name]) for name in ("answers", "unsure", "test", "since_model")]


def test_answers_that_could_not_be_sent_are_sent_by_the_next_visit(site, open_page):
    page = open_page("/teach")
    question(page)
    before = len(answers(site))
    page.visit.expected = ("Failed to load resource",)
    page.route("**/api/answers", lambda route: route.abort())
    page.keyboard.press("ArrowLeft")
    question(page)
    page.keyboard.press("ArrowRight")
    page.wait_for_selector(".sent:has-text('2 to send: the server does not answer')")
    assert len(answers(site)) == before
    page.unroute("**/api/answers")
    page.reload()
    saved(page)
    assert len(answers(site)) == before + 2


def test_undo_of_an_answer_that_never_left_sends_nothing(site, open_page):
    page = open_page("/teach")
    question(page)
    before = site.get("/api/answers")["total"]
    page.visit.expected = ("Failed to load resource",)
    page.route("**/api/answers", lambda route: route.abort())
    page.keyboard.press("ArrowLeft")  # under way, again and again
    second = question(page)
    page.keyboard.press("ArrowLeft")
    question(page)
    page.wait_for_selector(".sent:has-text('2 to send')")
    page.keyboard.press("z")
    assert question(page) == second
    page.wait_for_selector(".sent:has-text('1 to send')")
    page.unroute("**/api/answers")
    saved(page)
    assert site.get("/api/answers")["total"] == before + 1


def test_contradictions_are_shown_with_what_they_were_about(site, open_page):
    told = {"anchor": 10, "left": 11, "right": 12, "source": "active"}
    ids = [
        site.post("/api/answers", {"key": f"contradiction-{choice}", "choice": choice, **told})["answer"]["id"]
        for choice in ("left", "right")
    ]
    page = open_page("/teach")
    page.wait_for_selector("#contradictions:not([hidden])")
    page.click("#contradictions summary")
    said = page.locator("#contradictions .said", has_text=f"Take back {ids[1]}")
    said.wait_for()
    pictures = said.locator("img").evaluate_all("all => all.map(one => one.alt)")
    assert pictures == ["digit-0010", "digit-0012", "digit-0011"]  # the second said: right is nearer
    said.locator("button").click()
    said.wait_for(state="detached")
    assert ids[1] not in [one["id"] for one in answers(site)]
    assert ids[0] in [one["id"] for one in answers(site)]


def test_many_contradictions_are_counted_asked_for_together_and_shown_by_pieces(site, open_page):
    for pair in range(23):
        for choice in ("left", "right"):
            rows = {"anchor": 100 + 3 * pair, "left": 101 + 3 * pair, "right": 102 + 3 * pair}
            site.post("/api/answers", {"key": f"many-{pair}-{choice}", "choice": choice, "source": "active", **rows})
    total = site.get("/api/answers/summary")["contradictions"]
    assert total >= 23
    page = open_page("/teach")
    page.wait_for_selector("#contradictions:not([hidden])")
    assert page.locator("#contradictions summary").inner_text() == f"{total} contradictions"
    page.visit.requests.clear()
    page.click("#contradictions summary")
    rest = page.locator("#contradictions li.more")
    rest.wait_for()
    assert f"{total - 20} more contradiction" in rest.inner_text()
    assert page.locator("#contradictions li:not(.more)").count() == 20
    asked = [url for url in page.visit.requests if "/api/answers" in url]  # the next questions may be on their way
    assert [url.split("?")[0] for url in asked] == [f"{site.url}/api/answers/contradictions"]
    rest.locator("button").click()
    rest.wait_for(state="detached")
    assert page.locator("#contradictions li").count() == total


def test_the_two_candidates_stand_side_by_side_on_a_phone(site, open_page):
    page = open_page("/teach", PHONE)
    asked = question(page)
    left, right = page.locator("#left").bounding_box(), page.locator("#right").bounding_box()
    assert left["y"] == right["y"]
    assert left["x"] + left["width"] <= right["x"]
    assert page.locator("#anchor").bounding_box()["y"] < left["y"]
    page.tap("#left")
    saved(page)
    newest = answers(site)[0]
    assert (names(newest), newest["choice"]) == (asked, "left")
