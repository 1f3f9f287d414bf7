"""The workspace as the routes see it: items, searches, answers, questions, models and jobs, in plain values."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Sequence
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from starlette.concurrency import run_in_threadpool

from .._arrays import Ints
from ..criteria import Retrieval
from ..exceptions import CGHashError, InvalidInputError
from ..workspace.answer_cache import AnswerCache
from ..workspace.item_table import Item
from ..workspace.jobs import Jobs
from ..workspace.quality import retrieval
from ..workspace.questions import Questioner
from ..workspace.versions import VECTORS, CodeSearch, Ranking, Versions
from ..workspace.workspace import Workspace
from .queues import SearchBatcher, WorkQueue

__all__ = ["NoPictureError", "NotThereError", "ServedWorkspace"]

_log = logging.getLogger("cghash.web")

_CUT = 200  # characters of a text in lists
_MOST_PICTURES = 16  # that wait to be decoded, each held in memory as it was sent
_MOST_THUMBNAILS = 400  # that wait to be made
_MOST_ON_RECORDS = (
    16  # requests that ask the database at a time: while another program holds it, the others need threads
)
_FRESH = 0.5  # seconds for which the current version is believed; another process may change it


class NotThereError(Exception):
    """What was asked for does not exist."""


class NoPictureError(Exception):
    """What was sent is no picture that can be read."""


class ServedWorkspace:
    """One workspace, open for many requests."""

    def __init__(self, workspace: Workspace, n_jobs: int | None = None) -> None:
        self.workspace = workspace
        self.items, self.records = workspace.items, workspace.records
        self.versions = Versions(workspace, n_jobs)
        self.answer_cache = AnswerCache(self.records)
        self.questioner = Questioner(workspace.vectors)
        self.jobs = Jobs(workspace)
        self.batcher = SearchBatcher()
        self.pictures = WorkQueue("pictures to search by", _MOST_PICTURES)
        self.thumbnails = WorkQueue("thumbnails", _MOST_THUMBNAILS)
        self.room_for_records = asyncio.Semaphore(_MOST_ON_RECORDS)
        self._current: tuple[float, int | None] = (-np.inf, None)  # when it was looked up
        self._looking = False
        self._retrievals: WeakKeyDictionary[CodeSearch, Retrieval | None] = WeakKeyDictionary()

    def close(self) -> None:
        self.jobs.stop()
        for waiting in (self.batcher, self.pictures, self.thumbnails):
            waiting.close()

    # Items

    def check_row(self, row: int) -> int:
        if not 0 <= row < len(self.items):
            raise NotThereError(f"there is no item in row {row}: rows are 0 to {len(self.items) - 1}")
        return row

    def describe(self, rows: Sequence[int] | Ints, *, cut: int | None = _CUT) -> list[dict[str, Any]]:
        """Items as the API shows them, their texts cut after so many characters."""
        return [self._described(item, cut) for item in self.items.get(rows)]

    def _described(self, item: Item, cut: int | None) -> dict[str, Any]:
        text = None if item.text is None else item.text[:cut]
        label = self.workspace.about["labels"]
        value = None if label is None else item.attributes.get(label)
        return {
            "row": item.row,
            "id": item.id,
            "title": item.id if item.text is None or item.file is not None else item.text[:80],
            "text": text,
            "image": None if item.file is None else f"/api/items/{item.row}/image",
            "label": None if value is None else str(value),
            "attributes": item.attributes,
        }

    # Models

    @property
    def current(self) -> int | None:
        """The version in use."""
        if time.monotonic() - self._current[0] > _FRESH:
            self._look()
        return self._current[1]

    async def current_soon(self) -> int | None:
        """The version in use, for the event loop: what is known, while one thread looks whether it is still so.

        Were each request to look for itself, all that come in that moment would wait for each other.
        """
        seen, version = self._current
        if seen == -np.inf:
            return await run_in_threadpool(lambda: self.current)
        if time.monotonic() - seen > _FRESH and not self._looking:
            self._looking = True
            asyncio.get_running_loop().run_in_executor(None, self._look)
        return version

    def _look(self) -> None:
        before = self._current
        try:
            found = self.records.current
            if self._current is before:  # else `use` was faster, and knows better
                self._current = (time.monotonic(), found)
        finally:
            self._looking = False

    def use(self, version: int) -> None:
        self.check_version(version)
        self.records.use(version)
        self._current = (time.monotonic(), version)

    def check_version(self, version: int) -> int:
        if all(v.version != version for v in self.records.versions()):
            raise NotThereError(f"there is no model version {version}")
        return version

    def search_by(self, model: int | str | None, bits: int | None = None) -> tuple[int | str, Ranking]:
        """The model that was asked for, the current one where none was, the vectors where there is none."""
        chosen = self.current if model is None else model
        if chosen is None or chosen == VECTORS:
            if bits is not None:
                raise InvalidInputError("bits must be left out of a search by vectors, which have none")
            return VECTORS, self.versions.vectors
        version = int(chosen)
        try:
            return version, self.versions.at(version, bits)
        except InvalidInputError:
            self.check_version(version)
            raise

    def retrieval(self, version: int) -> Retrieval | None:
        """Precision and recall of a version by the labels; measured once while it is open, as neither changes."""
        search = self.versions.at(self.check_version(version))
        if search not in self._retrievals:
            self._retrievals[search] = retrieval(search, self.workspace.labels)
        return self._retrievals[search]

    # Answers

    def summary(self) -> dict[str, Any]:
        current = self.current
        last = 0 if current is None else self.records.version(current).last_answer
        return self.answer_cache.summary(self.usable(), last)

    def usable(self) -> Ranking:
        """The current model, or the vectors where it cannot be read: who answers must not wait for its mending."""
        try:
            return self.search_by(None)[1]
        except (CGHashError, OSError) as error:
            _log.error("the current model cannot be read: %s", error)
            return self.versions.vectors
