"""Counts and times of requests, in the text format of Prometheus."""

from __future__ import annotations

import time
from bisect import bisect_left
from collections import Counter, defaultdict

__all__ = ["Metrics"]

_EDGES = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)  # seconds


class Metrics:
    """Written from the event loop alone."""

    def __init__(self) -> None:
        self.began = time.time()
        self._requests: Counter[tuple[str, int]] = Counter()
        self._buckets: dict[str, list[int]] = defaultdict(lambda: [0] * (len(_EDGES) + 1))
        self._seconds: Counter[str] = Counter()

    def count(self, route: str, status: int, seconds: float) -> None:
        """One more request of a route (its pattern, never the address itself: those are without number)."""
        self._requests[route, status] += 1
        self._buckets[route][bisect_left(_EDGES, seconds)] += 1
        self._seconds[route] += seconds  # type: ignore[assignment]

    def text(self, gauges: dict[str, float]) -> str:
        """Everything, with a few values of the moment."""
        lines = ["# TYPE cghash_requests_total counter"]
        for (route, status), n in sorted(self._requests.items()):
            lines.append(f'cghash_requests_total{{route="{route}",status="{status}"}} {n}')
        lines.append("# TYPE cghash_request_seconds histogram")
        for route, buckets in sorted(self._buckets.items()):
            lines += self._histogram(route, buckets)
        for name, value in {"start_time_seconds": self.began, **gauges}.items():
            lines += [f"# TYPE cghash_{name} gauge", f"cghash_{name} {value:g}"]
        return "\n".join(lines) + "\n"

    def _histogram(self, route: str, buckets: list[int]) -> list[str]:
        lines, total = [], 0
        for edge, n in zip([*map(str, _EDGES), "+Inf"], buckets, strict=True):
            total += n
            lines.append(f'cghash_request_seconds_bucket{{route="{route}",le="{edge}"}} {total}')
        lines.append(f'cghash_request_seconds_sum{{route="{route}"}} {self._seconds[route]:.6f}')
        return [*lines, f'cghash_request_seconds_count{{route="{route}"}} {total}']
