"""Which methods an address takes: what `Allow` says, and what else is answered with 405."""

from __future__ import annotations

import re
from collections.abc import Iterable

from starlette.routing import BaseRoute, Route

__all__ = ["Addresses"]

STATIC, OF_STATIC = "/static/", ("GET", "HEAD")


class Addresses:
    """The addresses of the server.

    An address without parameters stands for itself alone: `/api/answers/list` is no answer with the number "list".

    >>> async def page(request): ...
    >>> known = Addresses([Route("/a", page, methods=["POST"]), Route("/{name}", page), Route("/a", page)])
    >>> known.methods("/a"), known.methods("/b"), known.methods("/b/c")
    (['GET', 'HEAD', 'POST'], ['GET', 'HEAD'], [])
    """

    def __init__(self, routes: Iterable[BaseRoute]) -> None:
        self._plain: dict[str, set[str]] = {}
        self._patterns: dict[re.Pattern[str], set[str]] = {}
        for route in routes:
            if isinstance(route, Route) and route.methods is not None:
                if route.param_convertors:
                    self._patterns.setdefault(route.path_regex, set()).update(route.methods)
                else:
                    self._plain.setdefault(route.path, set()).update(route.methods)

    def methods(self, path: str) -> list[str]:
        """What an address takes, by alphabet; nothing where there is no such address."""
        if path.startswith(STATIC):
            return [*OF_STATIC]
        if path in self._plain:
            return sorted(self._plain[path])
        return sorted(set().union(*(methods for regex, methods in self._patterns.items() if regex.match(path))))
