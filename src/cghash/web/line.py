"""Work that takes much memory: one piece at a time, in a thread of its own, so that who waits holds no other thread."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
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
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=what)

    async def result(self, work: Callable[..., Result], *arguments: Any) -> Result:
        """work(*arguments), when it is its turn."""
        if self._count >= self.most:
            raise TooManyError(f"too many {self.what} at once: try again in a moment")
        self._count += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread, work, *arguments)
        finally:
            self._count -= 1

    def close(self) -> None:
        self._thread.shutdown(wait=False, cancel_futures=True)
