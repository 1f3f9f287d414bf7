"""A client for a server that `cghash serve` runs; needs nothing but Python.

::

    from cghash.client import Client

    page = Client("http://127.0.0.1:8000")
    for question in page.questions(count=5):
        page.answer(question, "left")
    version = page.learn(bits=64, on_progress=lambda job: print(job["progress"]))
    page.use(version)
    for result in page.search(item=17, k=5)["results"]:
        print(result["id"], result["distance"])
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable, Iterable, Mapping
from http.client import HTTPException
from pathlib import Path
from typing import Any, Literal, overload
from urllib.error import HTTPError
from urllib.parse import urlencode, urlsplit
from urllib.request import HTTPRedirectHandler, ProxyHandler, Request, build_opener

from .exceptions import CGHashError, InUseError, InvalidInputError, ServerError

__all__ = ["Client"]

Object = dict[str, Any]
Watcher = Callable[[Object], None]

_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_ACTIVE = ("queued", "running", "cancelling")
_LOOK = 0.25  # seconds between two looks at a job


class Client:
    """The HTTP API of a server, in Python's own values; its OpenAPI document says what each field means.

    What a server refuses is raised with the server's own sentence: `InvalidInputError` where the request cannot be,
    `InUseError` where another job is under way, `ServerError` where the token is wrong or the server fails.

    Parameters
    ----------
    url : where the server is, as it says when it starts
    token : what it asks for, if it does
    timeout : seconds that one request may take
    """

    def __init__(self, url: str, token: str | None = None, timeout: float = 60.0) -> None:
        where = urlsplit(url)
        if where.scheme not in ("http", "https") or not where.hostname:
            raise InvalidInputError(f"url must be the http address of a server, got {url!r}")
        self.url, self.timeout = url.rstrip("/"), timeout
        self._headers = {} if token is None else {"Authorization": f"Bearer {token}".encode().decode("latin-1")}
        proxies = [ProxyHandler({})] if where.hostname in _LOOPBACK else []
        self._opener = build_opener(_NoRedirect, *proxies)

    # What is there

    def health(self) -> Object:
        """Whether the server answers, how many items it has, and which version it uses."""
        return self._get("/healthz")

    def workspace(self) -> Object:
        """Title, kind, attributes and what can be searched for."""
        return self._get("/api/workspace")

    def items(self, start: int = 0, count: int = 60, filters: Iterable[str] = ()) -> Object:
        """Some of the items that pass all filters (`colour=red`, `year>=1990`), and how many do."""
        return self._get("/api/items", start=start, count=count, filter=list(filters))

    def item(self, row: int) -> Object:
        """One item, with the whole of its text."""
        return self._get(f"/api/items/{row:d}")

    def picture(self, row: int, size: int = 0) -> bytes:
        """The file of an item's picture: 96, 160, 320 or 640 pixels, or 0, the original."""
        return self._ask("GET", f"/api/items/{row:d}/image?size={size:d}")

    # Search

    def search(
        self,
        *,
        item: int | None = None,
        text: str | None = None,
        vector: Iterable[float] | None = None,
        image: bytes | str | Path | None = None,
        k: int = 24,
        model: int | Literal["vectors"] | None = None,
        bits: int | None = None,
        filters: Iterable[str] = (),
        details: bool = False,
    ) -> Object:
        """The nearest items of one of `item`, `text`, `vector` and `image`.

        Parameters
        ----------
        item : its row; it is left out of the results
        text, vector : where the workspace can be searched by them
        image : a picture's bytes, or the path of its file
        k : how many results
        model : a version, "vectors", or None, the current model
        bits : only the first bits of the model
        filters : conditions that all results meet
        details : with the items themselves
        """
        if sum(query is not None for query in (item, text, vector, image)) != 1:
            raise InvalidInputError("a search must have exactly one of item, text, vector and image")
        asked = {"k": k, "model": model, "bits": bits, "details": details}
        if image is not None:
            data = image if isinstance(image, bytes) else Path(image).read_bytes()
            address = "/api/search/image" + _query(asked | {"filter": list(filters)})
            return _read(self._ask("POST", address, data, "image/png"))  # of whatever kind: the server looks at it
        numbers = None if vector is None else [float(value) for value in vector]
        return self._post("/api/search", asked | {"item": item, "text": text, "vector": numbers, "filters": [*filters]})

    # Questions and answers

    def questions(self, count: int = 3, skip: Iterable[int] = ()) -> list[Object]:
        """Questions to ask next; `skip` are the anchors of those that wait to be answered."""
        found: list[Object] = self._get("/api/questions", count=count, skip=list(skip))["questions"]
        return found

    def answer(self, question: Mapping[str, Any], choice: str, seconds: float | None = None) -> Object:
        """Answer a question of `questions`: "left", "right" or "unsure". Twice is once: its key tells.

        Another program's own question is a mapping with `anchor`, `left` and `right` as rows.
        """
        rows = {side: _row(question[side]) for side in ("anchor", "left", "right")}
        told = {"key": question.get("key") or uuid.uuid4().hex, "source": question.get("source", "active")}
        stored: Object = self._post("/api/answers", rows | told | {"choice": choice, "seconds": seconds})["answer"]
        return stored

    def answer_list(self, item: int, row: int, wanted: str, shown: Iterable[int]) -> list[Object]:
        """Say that `row`, in the results `shown` for `item`, should be "nearer" or "farther"."""
        told = {"key": uuid.uuid4().hex, "item": item, "row": row, "wanted": wanted, "shown": list(shown)}
        stored: list[Object] = self._post("/api/answers/list", told)["answers"]
        return stored

    def undo(self, answer: int) -> Object:
        """Take an answer back by its number; gives the summary."""
        summary: Object = _read(self._ask("DELETE", f"/api/answers/{answer:d}", b"{}"))["summary"]
        return summary

    def answers(self, start: int = 0, count: int = 50) -> Object:
        """Answers, newest first, and how many there are."""
        return self._get("/api/answers", start=start, count=count)

    def summary(self) -> Object:
        """How many answers, what they agree with, and where they contradict each other."""
        return self._get("/api/answers/summary")

    # Models

    def models(self) -> Object:
        """All versions, and which is used."""
        return self._get("/api/models")

    def model(self, version: int) -> Object:
        """One version, with its certificate and how its fit went."""
        return self._get(f"/api/models/{version:d}")

    def bits(self, version: int, count: int = 12) -> list[Object]:
        """The heaviest bits of a version, and items on either side of each."""
        found: list[Object] = self._get(f"/api/models/{version:d}/bits", count=count)["bits"]
        return found

    def curve(self, version: int) -> Object:
        """Precision and recall by the labels of the workspace."""
        return self._get(f"/api/models/{version:d}/curve")

    def changes(self, version: int, against: int | None = None, count: int = 8) -> list[Object]:
        """Queries whose results differ most from those of another version, or of the vectors."""
        found: list[Object] = self._get(f"/api/models/{version:d}/changes", against=against, count=count)["changes"]
        return found

    def use(self, version: int) -> Object:
        """Search and ask by a version from now on."""
        return self._post("/api/models/current", {"version": version})

    # Learning

    @overload
    def learn(
        self, *, bits: int = ..., C: float | None = ..., hash_function: str = ..., name: str | None = ...,
        wait: Literal[True] = ..., on_progress: Watcher | None = ...,
    ) -> int: ...  # fmt: skip

    @overload
    def learn(
        self, *, bits: int = ..., C: float | None = ..., hash_function: str = ..., name: str | None = ...,
        wait: Literal[False], on_progress: None = ...,
    ) -> Object: ...  # fmt: skip

    def learn(
        self,
        *,
        bits: int = 64,
        C: float | None = None,
        hash_function: str = "linear",
        name: str | None = None,
        wait: bool = True,
        on_progress: Watcher | None = None,
    ) -> int | Object:
        """Learn a version from the answers; it is used once `use` says so.

        Parameters
        ----------
        bits, C, hash_function : as of `CGHash`
        name : what people see of the version
        wait : until it is learned, and give its number; else give the job at once
        on_progress : is called with the job each time that it changes
        """
        asked = {"bits": bits, "C": C, "hash_function": hash_function, "name": name}
        job: Object = self._post("/api/jobs", asked)["job"]
        return self.wait(job["id"], on_progress) if wait else job

    def wait(self, job: int, on_progress: Watcher | None = None) -> int:
        """Wait until a job has ended; the version that it learned."""
        seen: Object | None = None
        while (found := self.job(job))["state"] in _ACTIVE:
            if on_progress is not None and found != seen:
                on_progress(found)
            seen = found
            time.sleep(_LOOK)
        if on_progress is not None:
            on_progress(found)
        if found["state"] != "done":
            raise ServerError(f"job {job} has {found['state']}: {found['message']}")
        return int(found["version"])

    def job(self, job: int) -> Object:
        """A job as it is now."""
        found: Object = self._get(f"/api/jobs/{job:d}")["job"]
        return found

    def jobs(self) -> list[Object]:
        """The last jobs, newest first."""
        found: list[Object] = self._get("/api/jobs")["jobs"]
        return found

    def cancel(self, job: int) -> Object:
        """Ask a job to end."""
        found: Object = self._post(f"/api/jobs/{job:d}/cancel", {})["job"]
        return found

    # Requests

    def _get(self, address: str, **parameters: Any) -> Object:
        return _read(self._ask("GET", address + _query(parameters)))

    def _post(self, address: str, body: Object) -> Object:
        try:
            data = json.dumps(body, allow_nan=False).encode()
        except (TypeError, ValueError) as error:
            raise InvalidInputError(f"a request must be of plain numbers and texts: {error}") from error
        return _read(self._ask("POST", address, data))

    def _ask(self, method: str, address: str, body: bytes | None = None, kind: str = "application/json") -> bytes:
        headers = self._headers if body is None else self._headers | {"Content-Type": kind}
        request = Request(self.url + address, body, headers, method=method)
        try:
            with self._opener.open(request, timeout=self.timeout) as response:
                data: bytes = response.read()
                return data
        except HTTPError as error:
            with error:
                raise _refused(error.code, error.read(), "Retry-After" in error.headers) from error
        except (OSError, HTTPException) as error:
            reason = getattr(error, "reason", None) or error
            raise ServerError(f"the server at {self.url} cannot be reached: {reason}") from error


class _NoRedirect(HTTPRedirectHandler):
    """The API never sends anyone elsewhere, and a token must not follow."""

    def redirect_request(self, *_: Any) -> None:
        return None


def _refused(status: int, body: bytes, later: bool) -> CGHashError:
    """The error that a server's refusal means; `later` says that the same may be possible then."""
    try:
        words = str(json.loads(body)["error"])
    except (ValueError, KeyError, TypeError):
        words = f"the server answered with status {status}"
    if status == 409 and later:
        return InUseError(words)
    return InvalidInputError(words) if status in (400, 404, 409, 413, 415, 422) else ServerError(words)


def _read(data: bytes) -> Object:
    try:
        found: Object = json.loads(data)
    except ValueError as error:
        raise ServerError("the server answered with something else than JSON: is it cghash?") from error
    return found


def _query(parameters: Object) -> str:
    given = {name: value for name, value in parameters.items() if value is not None and value != []}
    return f"?{urlencode(given, doseq=True)}" if given else ""


def _row(item: Any) -> int:
    """The row of an item, or a row itself."""
    return int(item["row"]) if isinstance(item, Mapping) else int(item)
