"""Every address of the HTTP API: what it gives is what its schema says, and what brute force finds."""

from __future__ import annotations

import io
import json
import math

import numpy as np
import pytest
from PIL import Image

from cghash.estimator import load
from cghash.web import schemas
from cghash.workspace import create_workspace
from cghash.workspace.records import ACTIVE_STATES, Answer

from .workspaces import wait_for

N = 200


@pytest.fixture(scope="module")
def api(few_digits, open_api, tmp_path_factory):
    """A server whose workspace is only read."""
    import shutil

    folder = shutil.copytree(few_digits, tmp_path_factory.mktemp("api") / "digits.ws")
    with open_api(folder) as client:
        yield client


@pytest.fixture
def own(digits, open_api):
    """A server whose workspace a test may change."""
    with open_api(digits) as client:
        yield client


TEXTS = [
    ("sea-1", "waves of the sea and a boat", "blue", 1990),
    ("sea-2", "a boat on the waves", "blue", 2001),
    ("hill-1", "grass on a green hill", "green", 1975),
    ("hill-2", "a hill with trees and grass", "green", 2010),
    ("town-1", "houses and streets of a town", "red", 1999),
    ("town-2", "a town with a market and streets", "red", None),
]


@pytest.fixture(scope="module")
def texts(open_api, tmp_path_factory):
    """A server over a few texts, without a model."""
    folder = tmp_path_factory.mktemp("texts")
    lines = [",".join(map(str, ["" if v is None else v for v in row])) for row in TEXTS]
    (folder / "items.csv").write_text("\n".join(["id,text,colour,year", *lines]))
    create_workspace(folder / "ws", folder / "items.csv", text_column="text").close()
    with open_api(folder / "ws") as client:
        yield client


@pytest.fixture(scope="module")
def bare(open_api, tmp_path_factory):
    """A server over three vectors."""
    folder = tmp_path_factory.mktemp("bare") / "ws"
    create_workspace(folder, np.array([[0.0, 0.0], [1.0, 0.0], [5.0, 0.0]])).close()
    with open_api(folder) as client:
        yield client


def got(client, address, schema=None, status=200, **options):
    """What GET gives, held against its schema."""
    return checked(client.get(address, **options), schema, status)


def sent(client, address, body, schema=None, status=200):
    return checked(client.post(address, json=body), schema, status)


def checked(response, schema, status):
    assert response.status_code == status, response.text
    found = response.json()
    if schema is not None:
        schema.model_validate(found, strict=True)
        assert set(found) == set(schema.model_fields), "no field more, and none less"
    return found


def refused(response, status, words):
    """One sentence that says why."""
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/json"
    error = response.json()
    assert list(error) == ["error"]
    assert words in error["error"], error
    assert "\n" not in error["error"]


def differing_of(client, version=1, bits=None):
    """(n, n, l) bits in which items differ, and weights, from the model file alone."""
    model = load(client.workspace.model_path(version))
    model = model if bits is None else model.truncate(bits)
    codes = model.transform(np.asarray(client.workspace.vectors))
    return codes[:, None, :] != codes[None, :, :], model.weights_


def brute(differing, weights, k, allowed=None, without=None):
    """(distance, row, bits) of the k nearest by distance, then by row."""
    found = []
    for row, bits in enumerate(differing):
        if row != without and (allowed is None or row in allowed):
            which = np.flatnonzero(bits).tolist()
            found.append((round(math.fsum(weights[which]), 9), row, which))
    return sorted(found)[:k]


def as_found(answer):
    return [(round(r["distance"], 9), r["row"], r["bits"]) for r in answer["results"]]


# What is there


def test_health_and_metrics(own):
    assert got(own, "/healthz", schemas.HealthOut) == {"status": "ok", "items": N, "model": 1}
    own.get("/api/items?count=1")
    own.get("/api/items/9999")
    text = own.get("/metrics").text
    assert own.get("/metrics").headers["content-type"].startswith("text/plain; version=0.0.4")
    assert 'cghash_requests_total{route="/api/items",status="200"} 1' in text
    assert 'cghash_requests_total{route="/api/items/{row}",status="404"} 1' in text
    assert 'cghash_request_seconds_bucket{route="/healthz",le="+Inf"} 1' in text
    assert "cghash_items 200\n" in text
    assert "cghash_model_version 1\n" in text


def test_the_workspace_says_what_it_holds(api, texts, bare):
    found = got(api, "/api/workspace", schemas.WorkspaceOut)
    assert (found["kind"], found["items"], found["dimension"], found["labels"]) == ("images", N, 64, "digit")
    assert (found["current"], found["queries"]) == (1, {"image": True, "text": False})
    assert [a["name"] for a in found["attributes"]] == ["digit", "ink"]
    found = got(texts, "/api/workspace", schemas.WorkspaceOut)
    assert (found["kind"], found["current"], found["queries"]) == ("texts", None, {"image": False, "text": True})
    colour, year = found["attributes"]
    assert (colour["kind"], sorted(colour["values"])) == ("text", ["blue", "green", "red"])
    assert (year["kind"], year["least"], year["most"]) == ("number", 1975, 2010)
    found = got(bare, "/api/workspace", schemas.WorkspaceOut)
    assert (found["kind"], found["queries"], found["labels"]) == ("vectors", {"image": False, "text": False}, None)


def test_items_are_listed_in_the_order_of_their_rows(api):
    found = got(api, "/api/items", schemas.ItemsOut, params={"start": 190, "count": 60})
    assert (found["total"], found["start"]) == (N, 190)
    assert [item["row"] for item in found["items"]] == [*range(190, 200)]
    first = got(api, "/api/items", params={"count": 1})["items"][0]
    assert first == {
        "row": 0,
        "id": "digit-0000",
        "title": "digit-0000",
        "text": None,
        "image": "/api/items/0/image",
        "label": "0",
        "attributes": first["attributes"],
    }
    assert got(api, "/api/items", params={"start": 10**9})["items"] == []
    assert got(api, "/api/items", params={"count": 0}) == {"total": N, "start": 0, "items": []}


def test_items_pass_all_filters(api, texts):
    attributes = [item["attributes"] for item in got(api, "/api/items", params={"count": 500})["items"]]
    expected = [row for row, a in enumerate(attributes) if a["digit"] in (3, "3") and a["ink"] >= 4.5]
    found = got(api, "/api/items", schemas.ItemsOut, params={"filter": ["digit=3", "ink>=4.5"], "count": 500})
    assert [item["row"] for item in found["items"]] == expected
    assert found["total"] == len(expected) > 0
    for filters, rows in ((["year>=1990", "year<=2001"], [0, 1, 4]), (["colour=blue", "colour=red"], [])):
        found = got(texts, "/api/items", params={"filter": filters})
        assert [item["row"] for item in found["items"]] == rows, filters
    for wrong in ("colour", "price=3", "year>=soon", "colour>=blue", "=", "\u0000"):
        refused(texts.get("/api/items", params={"filter": wrong}), 409, "filter")


def test_a_long_text_is_cut_in_lists_and_whole_alone(open_api, tmp_path):
    text = "two words " * 50
    (tmp_path / "items.jsonl").write_text(
        "\n".join(json.dumps({"id": f"i{n}", "text": text + str(n)}) for n in range(5))
    )
    create_workspace(tmp_path / "ws", tmp_path / "items.jsonl", text_column="text").close()
    with open_api(tmp_path / "ws") as client:
        listed = got(client, "/api/items", schemas.ItemsOut)["items"][3]
        assert listed["text"] == (text + "3")[:200]
        assert got(client, "/api/items/3", schemas.ItemOut)["text"] == text + "3"
        assert len(listed["title"]) == 80


def test_pictures_in_the_sizes_that_pages_ask_for(api, texts):
    original = api.get("/api/items/5/image?size=0")
    path = api.workspace.picture(5)
    assert original.content == path.read_bytes()
    assert original.headers["content-type"] == "image/png"
    for size, side in ((96, 64), (160, 64)):
        response = api.get(f"/api/items/5/image?size={size}")
        assert Image.open(io.BytesIO(response.content)).size == (side, side)
        assert response.headers["content-type"] == "image/png"
        assert api.get(f"/api/items/5/image?size={size}").content == response.content  # the second is kept
    assert original.headers["cache-control"] == "private, no-cache"
    refused(api.get("/api/items/5/image?size=7"), 404, "size must be one of 0, 96, 160, 320, 640, got 7")
    refused(api.get("/api/items/200/image"), 404, "no item in row 200: rows are 0 to 199")
    refused(texts.get("/api/items/0/image"), 404, "item 0 has no picture")


def test_large_pictures_become_small_and_keep_their_shape(open_api, tmp_path):
    folder = tmp_path / "photos"
    folder.mkdir()
    rng = np.random.default_rng(0)
    for n, size in enumerate([(400, 200, 3), (300, 700, 4), (10, 900, 3)]):
        Image.fromarray(rng.integers(0, 255, size, dtype=np.uint8)).save(folder / f"{n}.png")
    create_workspace(tmp_path / "ws", folder).close()
    with open_api(tmp_path / "ws") as client:
        for row, shape, kind in (
            (0, (80, 160), "image/jpeg"),
            (1, (160, 69), "image/png"),
            (2, (160, 2), "image/jpeg"),
        ):
            response = client.get(f"/api/items/{row}/image")
            assert response.headers["content-type"] == kind
            width, height = Image.open(io.BytesIO(response.content)).size
            assert abs(width - shape[0]) <= 1
            assert abs(height - shape[1]) <= 1


# Search


@pytest.mark.parametrize("k", [1, 7, 199, 1000])
def test_search_by_an_item_is_brute_force_over_codes(api, k):
    differing, weights = differing_of(api)
    for item in (0, 57, 199):
        found = sent(api, "/api/search", {"item": item, "k": k}, schemas.SearchOut)
        assert as_found(found) == brute(differing[item], weights, k, without=item)
        assert [r["differing"] for r in found["results"]] == [len(r["bits"]) for r in found["results"]]
        assert [r["id"] for r in found["results"]] == [f"digit-{r['row']:04d}" for r in found["results"]]
        assert (found["model"], found["bits"]) == (1, 16)
        assert found["weights_total"] == pytest.approx(weights.sum())


def test_search_by_fewer_bits_is_the_model_as_it_was_then(api):
    for bits in (1, 5, 16):
        differing, weights = differing_of(api, bits=bits)
        found = sent(api, "/api/search", {"item": 3, "k": 30, "bits": bits}, schemas.SearchOut)
        assert as_found(found) == brute(differing[3], weights, 30, without=3)
        assert found["bits"] == bits


def test_search_among_items_that_pass_filters(api):
    labels = api.workspace.labels
    allowed = set(np.flatnonzero(labels == "4").tolist())
    differing, weights = differing_of(api)
    for item in (4, 5):  # one among them, one not
        found = sent(api, "/api/search", {"item": item, "k": 10, "filters": ["digit=4"]}, schemas.SearchOut)
        assert as_found(found) == brute(differing[item], weights, 10, allowed, without=item)
    nothing = sent(api, "/api/search", {"item": 4, "filters": ["digit=77"]}, schemas.SearchOut)
    assert nothing["results"] == []
    only = sent(api, "/api/search", {"item": 4, "k": 1000, "filters": ["digit=4"], "model": "vectors"})
    assert {r["row"] for r in only["results"]} == allowed - {4}


def test_search_by_vectors_is_brute_force_over_distances(api):
    X = np.asarray(api.workspace.vectors, dtype=np.float64)
    for item in (0, 100):
        distances = np.linalg.norm(X - X[item], axis=1)
        expected = [row for row in np.lexsort((np.arange(N), distances)).tolist() if row != item][:20]
        found = sent(api, "/api/search", {"item": item, "k": 20, "model": "vectors"}, schemas.SearchOut)
        assert [r["row"] for r in found["results"]] == expected
        assert [r["distance"] for r in found["results"]] == pytest.approx(distances[expected].tolist())
        assert found["model"] == "vectors"
        assert found["bits"] is found["weights_total"] is None
        assert found["results"][0]["bits"] is found["results"][0]["differing"] is None


def test_search_by_a_vector_or_a_picture_is_search_by_its_code(api):
    model = load(api.workspace.model_path(1))
    codes = model.transform(np.asarray(api.workspace.vectors))
    vector = np.linspace(0, 16, 64)
    expected = brute(codes != model.transform(vector[None])[0], model.weights_, 9)
    found = sent(api, "/api/search", {"vector": vector.tolist(), "k": 9}, schemas.SearchOut)
    assert as_found(found) == expected
    picture = api.get("/api/items/11/image?size=0").content
    found = checked(
        api.post("/api/search/image?k=5&details=true", content=picture, headers={"content-type": "image/png"}),
        schemas.SearchOut,
        200,
    )
    assert found["results"][0]["row"] == 11  # a picture is no item: its twin is found
    assert found["results"][0]["distance"] == 0
    assert found["query"] is None
    filtered = api.post(
        "/api/search/image?k=5&filter=digit=7&model=vectors&bits=",
        content=picture,
        headers={"content-type": "image/png"},
    )
    assert {r["id"] for r in filtered.json()["results"]} <= {f"digit-{r:04d}" for r in range(N)}
    assert filtered.json()["model"] == "vectors"


def test_search_by_a_text(texts):
    found = sent(texts, "/api/search", {"text": "a boat on the sea", "k": 2, "details": True}, schemas.SearchOut)
    assert {r["row"] for r in found["results"]} == {0, 1}
    assert found["model"] == "vectors"  # where there is no model
    assert found["results"][0]["item"]["text"] in ("waves of the sea and a boat", "a boat on the waves")
    assert found["query"] is None


def test_the_address_line_searches_as_post_does(api):
    body = {"item": 9, "k": 6, "model": 1, "bits": 8, "filters": ["ink>=2", "digit<=8"], "details": True}
    address = "/api/search?item=9&k=6&model=1&bits=8&filter=ink>=2&filter=digit<=8&details=true"
    one, other = sent(api, "/api/search", body), got(api, address, schemas.SearchOut)
    assert one.pop("milliseconds") >= 0
    assert other.pop("milliseconds") >= 0
    assert one == other
    assert one["query"]["row"] == 9
    assert got(api, "/api/search?item=9&model=&bits=&k=24") | {"milliseconds": 0} == sent(
        api, "/api/search", {"item": 9}
    ) | {"milliseconds": 0}


def test_many_searches_at_once_are_each_answered(api):
    from concurrent.futures import ThreadPoolExecutor

    differing, weights = differing_of(api)

    def ask(item):
        return as_found(sent(api, "/api/search", {"item": item, "k": 5 + item % 3}))

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(ask, range(60)))
    assert found == [brute(differing[item], weights, 5 + item % 3, without=item) for item in range(60)]


SEARCHES = [
    ({}, 422, "exactly one of item, text and vector"),
    ({"item": 1, "text": "a"}, 422, "exactly one of item, text and vector"),
    ({"item": 200}, 404, "no item in row 200"),
    ({"item": -1}, 422, "item: Input should be greater than or equal to 0"),
    ({"item": "1"}, 422, "item: Input should be a valid integer"),
    ({"item": True}, 422, "item: Input should be a valid integer"),
    ({"item": 1, "k": 0}, 422, "k: Input should be greater than or equal to 1"),
    ({"item": 1, "k": 1001}, 422, "k: Input should be less than or equal to 1000"),
    ({"item": 1, "bits": 17}, 409, "bits must be at most 16, the bits of version 1, got 17"),
    ({"item": 1, "model": 9}, 404, "there is no model version 9"),
    ({"item": 1, "model": 9, "bits": 4}, 404, "there is no model version 9"),
    ({"item": 1, "model": "vectors", "bits": 4}, 409, "bits must be left out of a search"),
    ({"item": 1, "model": "lsh"}, 422, "model: Input should be"),
    ({"item": 1.5}, 422, "item: Input should be a valid integer"),
    ({"item": 1, "filters": ["price=3"]}, 409, "filter must be an attribute"),
    ({"item": 1, "kk": 3}, 422, "kk: Extra inputs are not permitted"),
    ({"text": "a boat"}, 409, "got a text"),
    ({"vector": [1.0]}, 409, "vector must have 64 numbers, got 1"),
    ({"vector": [1e300] * 64}, 422, "vector.0: Input should be less than or equal to"),
    ([1], 422, "valid dictionary"),
]
ANSWERS = [
    ({"right": 1}, 409, "three different items, got"),
    ({"left": 200}, 404, "no item in row 200"),
    ({"choice": "both"}, 422, "choice: "),
    ({"source": "import"}, 422, "source: "),
    ({"key": ""}, 422, "key: "),
    ({"key": "a b"}, 422, "key: "),
    ({"key": "x" * 65}, 422, "key: "),
    ({"seconds": -1}, 422, "seconds: "),
    ({"anchor": 1.5}, 422, "anchor: "),
]
JOBS = [
    ({"bits": 0}, 422, "bits: "),
    ({"bits": 1025}, 422, "bits: "),
    ({"C": 0}, 422, "C: "),
    ({"hash_function": "magic"}, 422, "hash_function: "),
    ({"name": ""}, 422, "name: "),
    ({"depth": 1}, 422, "depth: Extra inputs are not permitted"),
]
ANSWER = {"key": "k", "anchor": 0, "left": 1, "right": 2, "choice": "left"}


@pytest.mark.parametrize(
    ("address", "body", "status", "words"),
    [
        *(("search", *case) for case in SEARCHES),
        *(("answers", ANSWER | change, *told) for change, *told in ANSWERS),
        *(("jobs", *case) for case in JOBS),
    ],
)
def test_what_cannot_be_is_refused_in_one_sentence_and_changes_nothing(api, address, body, status, words):
    refused(api.post(f"/api/{address}", json=body), status, words)
    assert got(api, "/api/answers")["total"] == 0
    assert got(api, "/api/jobs", schemas.JobsOut)["jobs"] == []


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"", "the request: Field required"),
        (b"{", "the body of the request is not JSON"),
        (b'{"item": NaN}', "item"),
        (b'{"vector": [NaN]}', "vector.0: Input should be a finite number"),
        (b'{"\\ud800": 1, "item": 1}', "valid string"),
        (b'{"text": "\\ud800"}', "text: Input should be a valid string"),
        (b'{"item": 1, "' + b"x" * 5000 + b'": 1}', "xxx"),
        (b"[" * 100_000, "the body"),
        (b'{"item": ' + b"9" * 5000 + b"}", "body"),
        (b'{"item": 99999999999999999999}', "item: Input should be less than"),
    ],
)
def test_bodies_of_any_bytes_are_refused_in_one_short_sentence(api, body, words):
    response = api.post("/api/search", content=body, headers={"content-type": "application/json"})
    refused(response, response.status_code, words)
    assert response.status_code in (400, 422)
    assert len(response.json()["error"]) < 600


def test_pictures_that_are_none_are_refused(api, texts):
    kinds = {"content-type": "image/png"}
    whole = api.get("/api/items/1/image?size=0").content
    for body in (b"", b"no picture", whole[:60], whole[:-40], b"<svg xmlns='http://www.w3.org/2000/svg'/>"):
        refused(api.post("/api/search/image", content=body, headers=kinds), 400, "must be a whole picture")
    refused(texts.post("/api/search/image", content=whole, headers=kinds), 409, "got a picture")
    refused(api.post("/api/search/image?k=0", content=whole, headers=kinds), 422, "k: ")


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("/api/search", "item: Field required"),
        ("/api/search?item=x", "item: "),
        ("/api/search?item=1&model=lsh", "model"),
        ("/api/search?item=1&colour=red", "colour: Extra inputs are not permitted"),
        ("/api/search?item=1&filters=digit=3", "filters"),
        ("/api/search?item=1&filters=digit=3&filter=digit=3", "filters"),
        ("/api/items?count=501", "count: "),
        ("/api/items?start=-1", "start: "),
        ("/api/items/x", "row: "),
        ("/api/questions?count=21", "count: "),
        ("/api/questions?skip=x", "skip"),
        ("/api/answers?count=1001", "count: "),
        ("/api/models/0", "number: "),
        ("/api/models/1/bits?count=0", "count: "),
        ("/api/jobs/0", "number: "),
    ],
)
def test_parameters_that_are_wrong_are_named(api, address, words):
    refused(api.get(address), 422, words)


def test_what_is_not_there_is_404(api, bare):
    for address in ("/api/items/200", "/api/models/9", "/api/models/9/bits", "/api/models/9/curve", "/api/jobs/9"):
        refused(api.get(address), 404, "there is no")
    refused(api.get("/api/models/1/changes?against=9"), 404, "there is no model version 9")
    refused(api.get("/api/jobs/9/events"), 404, "there is no job 9")
    refused(api.get("/api/nothing"), 404, "not found")
    refused(api.post("/api/models/current", json={"version": 9}), 404, "there is no model version 9")
    refused(api.request("DELETE", "/api/answers/9", json={}), 404, "there is no answer 9")
    refused(api.post("/api/jobs/9/cancel", json={}), 404, "there is no job 9")
    wrong = api.put("/api/items/1", json={})
    refused(wrong, 405, "method not allowed")
    assert wrong.headers["allow"] == "GET"
    page = api.get("/nothing")
    assert page.status_code == 404
    assert "There is no such page." in page.text


# Questions and answers


def ask(client, count=3, **more):
    return got(client, "/api/questions", schemas.QuestionsOut, params={"count": count, **more})["questions"]


def tell(client, key, rows, choice="left", status=201, **more):
    body = {"key": key, "anchor": rows[0], "left": rows[1], "right": rows[2], "choice": choice, **more}
    return sent(client, "/api/answers", body, schemas.AnsweredOut, status)


def test_questions_come_with_their_items(api, bare):
    found = ask(api, 20)
    assert len({q["key"] for q in found}) == 20
    for q in found:
        assert len({q[side]["row"] for side in ("anchor", "left", "right")}) == 3
        assert q["anchor"]["image"].startswith("/api/items/")
    assert len(ask(api, 1, skip=[1, 2, 10**9, -5])) == 1
    assert {tuple(sorted(q[s]["row"] for s in ("anchor", "left", "right"))) for q in ask(bare, 5)} == {(0, 1, 2)}


def test_an_answer_is_stored_once_counted_and_taken_back(own):
    question = ask(own, 1)[0]
    rows = [question[side]["row"] for side in ("anchor", "left", "right")]
    first = tell(own, question["key"], rows, "right", source=question["source"], seconds=2)
    again = tell(own, question["key"], rows, "left", source=question["source"])
    assert again["answer"] == first["answer"]
    answer = first["answer"]
    assert [answer[side] for side in ("anchor", "left", "right")] == rows
    assert (answer["choice"], answer["seconds"], answer["model"], answer["undone"]) == ("right", 2.0, 1, False)
    assert first["summary"]["answers"] == first["summary"][question["source"]] == 1
    assert got(own, "/api/answers/summary", schemas.SummaryOut) == first["summary"]
    undone = checked(own.request("DELETE", f"/api/answers/{answer['id']}", json={}), schemas.UndoneOut, 200)
    assert undone["summary"]["answers"] == 0
    assert checked(own.request("DELETE", f"/api/answers/{answer['id']}", json={}), schemas.UndoneOut, 200) == undone
    listed = got(own, "/api/answers", schemas.AnswersOut)
    assert listed == {"total": 1, "answers": [answer | {"undone": True}]}


def test_the_summary_counts_agreement_and_contradictions(own):
    X = np.asarray(own.workspace.vectors)
    model = load(own.workspace.model_path(1))
    codes = model.transform(X)

    def margin(anchor, near, far):
        return ((codes[anchor] != codes[far]) @ model.weights_) - ((codes[anchor] != codes[near]) @ model.weights_)

    rng = np.random.default_rng(0)
    triplets = [rng.permutation(N)[:3].tolist() for _ in range(12)]
    for number, rows in enumerate(triplets):
        tell(own, f"k{number}", rows, "left", source="test" if number < 5 else "active")
    tell(own, "u", [1, 2, 3], "unsure")
    opposite = tell(own, "o", [triplets[7][0], triplets[7][2], triplets[7][1]], "left")
    summary = opposite["summary"]
    assert {name: summary[name] for name in ("answers", "unsure", "active", "test", "list", "imported")} == {
        "answers": 13, "unsure": 1, "active": 8, "test": 5, "list": 0, "imported": 0
    }  # fmt: skip
    held_out = [margin(*rows) for rows in triplets[:5]]
    assert summary["agreement"]["test"] == {
        "share": pytest.approx(np.mean([(m > 1e-12) + (abs(m) <= 1e-12) / 2 for m in held_out])),
        "count": 5,
    }
    assert summary["agreement"]["training"]["count"] == 8
    assert summary["contradictions"] == 1
    found = got(own, "/api/answers/contradictions", schemas.ContradictionsOut)
    [contradiction] = found["contradictions"]
    assert [a["id"] for a in contradiction["answers"]] == [8, opposite["answer"]["id"]]
    assert [item["row"] for item in found["items"]] == sorted(triplets[7])
    assert summary["since_model"] == 8


def test_contradictions_come_by_pieces_and_all_are_counted(own):
    for pair in range(25):  # each with items of its own
        for near, far in ((1, 2), (2, 1)):
            tell(own, f"{pair}-{near}", [3 * pair, 3 * pair + near, 3 * pair + far], "left")
    ring = list(range(100, 114))  # each nearer to item 99 than the next one, and the last nearer than the first
    for one, other in zip(ring, [*ring[1:], ring[0]], strict=True):
        tell(own, f"ring-{one}", [99, one, other], "left")
    assert got(own, "/api/answers/summary", schemas.SummaryOut)["contradictions"] == 26
    seen = []
    for start in (0, 20, 40):
        found = got(own, "/api/answers/contradictions", schemas.ContradictionsOut, params={"start": start})
        assert found["total"] == 26
        known = {item["row"] for item in found["items"]}
        assert known == {a[side] for one in found["contradictions"] for a in one["answers"]
                         for side in ("anchor", "left", "right")}  # fmt: skip
        seen += found["contradictions"]
    assert len(seen) == 26
    assert [(one["count"], len(one["answers"])) for one in seen if one["count"] > 2] == [(14, 12)]


def test_answers_are_listed_newest_first(own):
    for number in range(5):
        tell(own, f"k{number}", [number, 10, 11])
    found = got(own, "/api/answers", schemas.AnswersOut, params={"start": 1, "count": 2})
    assert found["total"] == 5
    assert [a["anchor"] for a in found["answers"]] == [3, 2]


def test_a_word_about_a_list_of_results_becomes_comparisons(own):
    shown = [r["row"] for r in sent(own, "/api/search", {"item": 0, "k": 10})["results"]]
    body = {"key": "list-1", "item": 0, "row": shown[5], "wanted": "nearer", "shown": shown}
    found = sent(own, "/api/answers/list", body, schemas.ListAnsweredOut, 201)
    told = [(a["anchor"], a["left"], a["right"], a["choice"], a["source"]) for a in found["answers"]]
    assert told == [(0, shown[5], other, "left", "list") for other in (shown[4], shown[3], shown[2])]
    assert found["summary"]["list"] == 3
    assert sent(own, "/api/answers/list", body, status=201)["answers"] == found["answers"]
    farther = sent(own, "/api/answers/list", body | {"key": "list-2", "wanted": "farther"}, status=201)
    assert [a["left"] for a in farther["answers"]] == shown[6:9]
    for change, words in [
        ({"row": shown[0]}, f"row {shown[0]} is the first of the shown rows: nothing there says nearer"),
        ({"row": shown[-1], "wanted": "farther"}, "the last of the shown rows"),
        ({"row": 0}, "row must be one of the shown rows"),
        ({"row": 199, "shown": [1, 2]}, "row must be one of the shown rows"),
    ]:
        refused(own.post("/api/answers/list", json=body | {"key": "x"} | change), 409, words)
    refused(own.post("/api/answers/list", json=body | {"key": "y", "shown": [10**6, shown[5]]}), 404, "no item in row")


# Models


def test_a_version_with_its_certificate_and_history(api):
    found = got(api, "/api/models", schemas.ModelsOut)
    assert found["current"] == 1
    [model] = found["models"]
    assert (model["version"], model["method"], model["bits"], model["answers"]) == (1, "CGHash", 16, 0)
    whole = got(api, "/api/models/1", schemas.ModelDetailOut)
    assert {name: whole[name] for name in model} == model
    result = load(api.workspace.model_path(1)).result_
    assert whole["certificate"]["objective"] == pytest.approx(result.objective)
    assert whole["certificate"]["message"] == result.message
    assert len(whole["history"]["objective"]) == len(whole["history"]["satisfied"]) == 16


def test_bits_with_items_on_either_side(api):
    model = load(api.workspace.model_path(1))
    codes = model.transform(np.asarray(api.workspace.vectors))
    found = got(api, "/api/models/1/bits?count=5", schemas.BitsOut)["bits"]
    assert [b["weight"] for b in found] == pytest.approx(sorted(model.weights_, reverse=True)[:5])
    for b in found:
        column = codes[:, b["bit"]]
        assert b["ones"] == pytest.approx(column.mean())
        assert b["share_of_weight"] == pytest.approx(model.weights_[b["bit"]] / model.weights_.sum())
        assert [len(b["zero"]), len(b["one"])] == [8, 8]
        assert {int(column[item["row"]]) for item in b["zero"]} == {0}
        assert {int(column[item["row"]]) for item in b["one"]} == {1}
        for side, labels in ((0, b["zero_labels"]), (1, b["one_labels"])):
            labelled = api.workspace.labels
            expected = {d for d in set(labelled) if np.mean(column[labelled == d] == side) >= 0.8}
            assert set(labels) == expected
    assert len(got(api, "/api/models/1/bits?count=1024")["bits"]) == 16


def test_precision_and_recall_by_labels(api, bare):
    found = got(api, "/api/models/1/curve", schemas.CurveOut)
    assert len(found["recall"]) == len(found["precision"])
    assert found["recall"] == sorted(found["recall"])
    assert found["recall"][-1] == pytest.approx(1)
    assert 0.3 < found["mean_average_precision"] <= 1
    assert found["queries"] == 40
    refused(bare.get("/api/models/1/curve"), 404, "there is no model version 1")


def test_a_curve_is_measured_once_for_each_version(own, monkeypatch):
    from cghash.web import served_workspace
    from cghash.workspace.fitting import first_model

    measured, measure = [], served_workspace.retrieval

    def counted(search, labels):
        measured.append(search.bits)
        return measure(search, labels)

    monkeypatch.setattr(served_workspace, "retrieval", counted)
    first = got(own, "/api/models/1/curve")
    assert got(own, "/api/models/1/curve") == first
    assert measured == [16]
    first_model(own.workspace, bits=4, n_jobs=1)
    assert got(own, "/api/models/2/curve") != first
    assert measured == [16, 4]


def test_what_a_version_changed(api):
    found = got(api, "/api/models/1/changes?count=3", schemas.ChangesOut)["changes"]  # against the vectors
    assert len(found) == 3
    differing, weights = differing_of(api)
    X = np.asarray(api.workspace.vectors, dtype=np.float64)
    for change in found:
        row = change["item"]["row"]
        after = [r for _, r, _ in brute(differing[row], weights, 10, without=row)]
        before = [r for r in np.lexsort((np.arange(N), np.linalg.norm(X - X[row], axis=1))).tolist() if r != row][:10]
        assert [item["row"] for item in change["after"]] == after[:8]
        assert [item["row"] for item in change["before"]] == before[:8]
        assert change["overlap"] == pytest.approx(len(set(after) & set(before)) / 10)
    same = got(api, "/api/models/1/changes?against=1")["changes"]
    assert {change["overlap"] for change in same} == {1.0}


# Learning


def ended(client, number):
    """A job once it has ended."""

    def found():
        job = got(client, f"/api/jobs/{number}", schemas.OneJobOut)["job"]
        return None if job["state"] in ACTIVE_STATES else job

    return wait_for(found)


def test_learning_from_answers_to_a_new_model_and_back(own):
    labels = own.workspace.labels
    rng = np.random.default_rng(0)
    true = [t for t in (rng.permutation(N)[:3] for _ in range(900)) if labels[t[0]] == labels[t[1]] != labels[t[2]]]
    own.workspace.records.add_answers(
        [Answer(f"k{i}", *t.tolist(), "left", "test" if i % 4 == 0 else "active") for i, t in enumerate(true[:40])]
    )
    job = sent(own, "/api/jobs", {"bits": 6, "name": "mine"}, schemas.OneJobOut, 202)["job"]
    assert job["parameters"] == {"bits": 6, "C": None, "hash_function": "linear", "name": "mine"}
    refused(own.post("/api/jobs", json={}), 409, "another job is under way")

    stream = own.get(f"/api/jobs/{job['id']}/events")  # ends with the job
    assert stream.headers["content-type"].startswith("text/event-stream")
    events = [json.loads(part[6:]) for part in stream.text.split("\n\n") if part.startswith("data: ")]
    for event in events:
        schemas.JobOut.model_validate(event, strict=True)
    assert events[-1]["state"] == "done"
    assert [e["progress"].get("bit", 0) for e in events] == sorted(e["progress"].get("bit", 0) for e in events)
    again = own.get(f"/api/jobs/{job['id']}/events").text  # whoever comes late sees the end
    assert json.loads(again.removeprefix("data: "))["state"] == "done"

    done = ended(own, job["id"])
    assert done == events[-1]
    assert done["version"] == 2
    assert got(own, "/api/jobs", schemas.JobsOut)["jobs"] == [done]
    assert got(own, "/api/models")["current"] == 1  # not used before someone says so
    model = got(own, "/api/models/2", schemas.ModelDetailOut)
    assert (model["name"], model["answers"], model["job"], model["bits"]) == ("mine", 30, job["id"], 6)
    assert model["report"]["held_out"]["count"] == 10

    assert got(own, "/api/answers/summary")["since_model"] == 30
    assert sent(own, "/api/models/current", {"version": 2}, schemas.ModelsOut)["current"] == 2
    assert got(own, "/api/answers/summary")["since_model"] == 0
    found = sent(own, "/api/search", {"item": 8, "k": 12}, schemas.SearchOut)
    differing, weights = differing_of(own, version=2)
    assert found["model"] == 2
    assert as_found(found) == brute(differing[8], weights, 12, without=8)
    assert sent(own, "/api/models/current", {"version": 1})["current"] == 1
    assert got(own, "/healthz")["model"] == 1
    assert sent(own, "/api/search", {"item": 8, "k": 12})["model"] == 1
    assert sent(own, "/api/search", {"item": 8, "k": 12, "model": 2})["results"] == found["results"]


def test_a_version_chosen_while_the_old_one_is_looked_up_is_used(own, monkeypatch):
    """Someone looks which version is used, and chooses another before the database has answered."""
    from cghash.web.served_workspace import ServedWorkspace
    from cghash.workspace.versions import Versions, add_model

    add_model(own.workspace, Versions(own.workspace).at(1).model, "the same again")
    service = ServedWorkspace(own.workspace)
    use, records = service.use, type(service.records)
    was = records.current.fget

    def slow(self):
        found = was(self)
        use(2)
        return found

    monkeypatch.setattr(records, "current", property(slow))
    assert service.current == 2
    service.close()


def test_a_job_is_cancelled(own):
    job = sent(own, "/api/jobs", {"bits": 500}, schemas.OneJobOut, 202)["job"]
    cancelled = sent(own, f"/api/jobs/{job['id']}/cancel", {}, schemas.OneJobOut)["job"]
    assert cancelled["state"] in ("cancelling", "cancelled")
    assert ended(own, job["id"])["state"] == "cancelled"
    assert [m["version"] for m in got(own, "/api/models")["models"]] == [1]
    assert sent(own, f"/api/jobs/{job['id']}/cancel", {})["job"]["state"] == "cancelled"


# The description of the API


def test_openapi_names_every_address(api):
    document = got(api, "/api/openapi.json")
    assert document["openapi"].startswith("3.")
    found = {(method.upper(), path) for path, methods in document["paths"].items() for method in methods}
    assert found == {
        ("GET", "/healthz"), ("GET", "/metrics"), ("GET", "/api/workspace"),
        ("GET", "/api/items"), ("GET", "/api/items/{row}"), ("GET", "/api/items/{row}/image"),
        ("GET", "/api/search"), ("POST", "/api/search"), ("POST", "/api/search/image"),
        ("GET", "/api/questions"), ("POST", "/api/answers"), ("GET", "/api/answers"), ("POST", "/api/answers/list"),
        ("GET", "/api/answers/summary"), ("GET", "/api/answers/contradictions"), ("DELETE", "/api/answers/{number}"),
        ("GET", "/api/models"), ("POST", "/api/models/current"), ("GET", "/api/models/{number}"),
        ("GET", "/api/models/{number}/bits"), ("GET", "/api/models/{number}/curve"),
        ("GET", "/api/models/{number}/changes"),
        ("POST", "/api/jobs"), ("GET", "/api/jobs"), ("GET", "/api/jobs/{number}"),
        ("POST", "/api/jobs/{number}/cancel"), ("GET", "/api/jobs/{number}/events"),
    }  # fmt: skip
    for path, methods in document["paths"].items():
        for method, about in methods.items():
            assert about.get("summary"), (method, path)


def test_pictures_kept_by_a_browser_are_asked_about(api):
    """The same address may be another workspace's tomorrow."""
    tag = api.get("/api/items/3/image?size=96").headers["etag"]
    again = api.get("/api/items/3/image?size=96", headers={"if-none-match": tag})
    assert (again.status_code, again.content) == (304, b"")
    assert api.workspace.about["key"] in tag
    assert api.get("/api/items/4/image?size=96", headers={"if-none-match": tag}).status_code == 200


def test_a_job_whose_worker_died_does_not_keep_the_next_from_beginning(own, monkeypatch):
    from cghash.workspace import jobs

    dead = own.workspace.records.add_job({"bits": 4})
    monkeypatch.setattr(jobs, "_COMING_UP", jobs.timedelta(0))
    job = sent(own, "/api/jobs", {"bits": 4}, schemas.OneJobOut, 202)["job"]
    assert job["id"] == dead.id + 1
    assert own.workspace.records.job(dead.id).state == "failed"
    sent(own, f"/api/jobs/{job['id']}/cancel", {})
