"""Work that waits for its turn and holds no thread meanwhile.

`SearchBatcher`: searches that wait at the same time are answered in one pass over the index. One thread searches; while
it does, further queries gather, and the next pass takes all of them. A server that is idle answers at once, a busy one
in larger and larger passes, which the index answers faster than one after the other.

`WorkQueue`: work that takes much memory is done one piece at a time, in a thread of its own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from .._arrays import Floats, Ints
from ..workspace.versions import CodeSearch

__all__ = ["SearchBatcher", "TooManyError", "WorkQueue"]

Result = TypeVar("Result")
Found = tuple[Floats, Ints]
Asked = list[tuple[NDArray[np.uint8], "asyncio.Future[Found]"]]

_MOST_WAITING = 400  # the server takes 512 connections of those who are known
_MOST_AT_ONCE = 256


class TooManyError(Exception):
    """More searches wait than can be answered in time."""


class SearchBatcher:
    """Gathers searches; all its methods are called from the event loop."""

    def __init__(self) -> None:
        self._waiting: dict[tuple[int, int], tuple[CodeSearch, Asked]] = {}
        self._count = 0
        self._running: asyncio.Task[None] | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="search")  # a search is ended before the program is

    async def nearest(self, search: CodeSearch, code: NDArray[np.uint8], k: int) -> Found:
        """Distances and rows of the k nearest items of a code."""
        if self._count >= _MOST_WAITING:
            raise TooManyError("too many searches at once: try again in a moment")
        future: asyncio.Future[Found] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault((id(search), k), (search, []))[1].append((code, future))
        self._count += 1
        if self._running is None:
            self._running = asyncio.create_task(self._run())
        return await future

    def close(self) -> None:
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def _run(self) -> None:
        try:
            while self._waiting:
                waiting, self._waiting, self._count = self._waiting, {}, 0
                for (_, k), (search, asked) in waiting.items():
                    for start in range(0, len(asked), _MOST_AT_ONCE):
                        await self._answer(search, k, asked[start : start + _MOST_AT_ONCE])
        finally:
            self._running = None

    async def _answer(self, search: CodeSearch, k: int, asked: Asked) -> None:
        codes = np.stack([code for code, _ in asked])
        loop = asyncio.get_running_loop()
        try:
            distances, rows = await loop.run_in_executor(self._thread, search.index.search, codes, k)
        except Exception as error:  # whatever it is, those who wait must hear of it
            for _, future in _still_waiting(asked):
                future.set_exception(error)
        else:
            for i, future in _still_waiting(asked):
                future.set_result((distances[i], rows[i]))


def _still_waiting(asked: Asked) -> list[tuple[int, asyncio.Future[Found]]]:
    """Places and futures; whoever asked may have gone."""
    return [(i, future) for i, (_, future) in enumerate(asked) if not future.done()]


class WorkQueue:
    """Pieces of work in the order in which they came; its methods are called from the event loop.

    Parameters
    ----------
    what : what the pieces are, for messages
    most : so many wait; more are turned away
    """

    def __init__(self, what: str, most: int) -> None:
        self.what, self.most, self._count = what, most, 0
        self._waiting: SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None] = SimpleQueue()
        Thread(target=self._work, name=what, daemon=True).start()  # the end of the program does not wait for it

    async def result(self, work: Callable[..., Result], *arguments: Any) -> Result:
        """work(*arguments), when it is its turn."""
        if self._count >= self.most:
            raise TooManyError(f"too many {self.what} at once: try again in a moment")
        self._count += 1
        try:
            future: Future[Result] = Future()
            self._waiting.put((future, partial(work, *arguments)))
            return await asyncio.wrap_future(future)
        finally:
            self._count -= 1

    def close(self) -> None:
        """What has not begun never does; what has may go on."""
        with suppress(Empty):
            while (piece := self._waiting.get_nowait()) is not None:
                piece[0].cancel()
        self._waiting.put(None)

    def _work(self) -> None:
        while (piece := self._waiting.get()) is not None:
            future, work = piece
            if future.set_running_or_notify_cancel():
                _do(future, work)


def _do(future: Future[Any], work: Callable[[], Any]) -> None:
    try:
        done = work()
    except BaseException as error:  # whatever it is, who waits must hear of it
        future.set_exception(error)
    else:
        future.set_result(done)
