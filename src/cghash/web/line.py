"""Work that takes much memory: one piece at a time, in a thread of its own, so that who waits holds no other thread."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any, TypeVar

from .batching import TooManyError

__all__ = ["Line"]

Result = TypeVar("Result")


class Line:
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
