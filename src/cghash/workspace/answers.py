"""The answers of a workspace in memory: how many, where they contradict each other, what they agree with."""

from __future__ import annotations

import threading
from collections import Counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .quality import agreement
from .records import LEARNED_FROM, Answer, Records
from .versions import CodeSearch, VectorSearch

__all__ = ["AnswerBook", "contradictions", "from_list"]

Ints = NDArray[np.int64]

_SHOWN = 20  # contradictions
_BESIDE = 3  # items of a result list that "nearer" or "farther" compares with


class AnswerBook:
    """All answers, read once and then only what is new; threads may share it."""

    def __init__(self, records: Records) -> None:
        self.records = records
        self._answers: list[Answer] = []
        self._undone = 0
        self._contradictions: tuple[tuple[int, int], list[dict[str, Any]]] | None = None
        self._lock = threading.Lock()

    def all(self) -> list[Answer]:
        """Answers in the order in which they came."""
        with self._lock:
            count, undone = self.records.count_answers()
            if count != len(self._answers):
                self._answers += self.records.answers_after(self._answers[-1].id if self._answers else 0)
            # some were taken back, or several wrote at once and a later number was there before an earlier one
            if undone != self._undone or count > len(self._answers):
                self._answers = self.records.answers()
            self._undone = sum(answer.undone is not None for answer in self._answers)
            return list(self._answers)

    def summary(self, search: CodeSearch | VectorSearch, last_learned: int) -> dict[str, Any]:
        """What the page says about the answers; `last_learned` is the newest answer that the current model knew."""
        known = self.all()
        answers = [answer for answer in known if answer.undone is None]
        told = [answer for answer in answers if answer.triplet is not None]
        sources = Counter(answer.source for answer in told)
        return {
            "answers": len(told),
            "unsure": len(answers) - len(told),
            "active": sources["active"],
            "test": sources["test"],
            "list": sources["list"],
            "imported": sources["import"],
            "agreement": {
                "test": _agreement(search, [a for a in told if a.source == "test"]),
                "training": _agreement(search, [a for a in told if a.source != "test"]),
            },
            "contradictions": self._contradicting(told, (len(known), len(answers))),
            "since_model": sum(a.id > last_learned and a.source in LEARNED_FROM for a in told),
        }

    def _contradicting(self, told: list[Answer], state: tuple[int, int]) -> list[dict[str, Any]]:
        if self._contradictions is None or self._contradictions[0] != state:
            self._contradictions = (state, contradictions(told)[:_SHOWN])
        return self._contradictions[1]


def _agreement(search: CodeSearch | VectorSearch, answers: list[Answer]) -> dict[str, Any]:
    return {"share": agreement(search, [a.triplet for a in answers]), "count": len(answers)}


def contradictions(answers: list[Answer]) -> list[dict[str, Any]]:
    """Sets of answers that no distance can satisfy together.

    An answer says that one pair of items is nearer than another pair. Pairs that are, by such steps, nearer than
    themselves contradict each other: the strongly connected components of the graph of pairs.

    >>> say = lambda number, a, near, far: Answer(str(number), a, near, far, "left", "active", id=number)
    >>> contradictions([say(1, 0, 1, 2), say(2, 0, 2, 1), say(3, 5, 6, 7)])
    [{'answers': [1, 2], 'reason': 'these two answers say opposite things'}]
    >>> contradictions([say(1, 0, 1, 2), say(2, 2, 0, 1), say(3, 1, 2, 0)])[0]["answers"]  # 01 < 02 < 21 < 10
    [1, 2, 3]
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    told = [(answer, answer.triplet) for answer in answers if answer.triplet is not None]
    if not told:
        return []
    rows = np.array([triplet for _, triplet in told])
    pairs = np.sort(np.concatenate([rows[:, [0, 1]], rows[:, [0, 2]]]), axis=1)
    nodes = np.unique(pairs, axis=0, return_inverse=True)[1].reshape(2, -1)  # near pairs, far pairs
    size = int(nodes.max()) + 1
    graph = coo_array((np.ones(len(rows)), (nodes[0], nodes[1])), shape=(size, size))
    component = connected_components(graph.tocsr(), connection="strong")[1]
    together: dict[int, list[int]] = {}
    for (answer, _), near, far in zip(told, component[nodes[0]], component[nodes[1]], strict=True):
        if near == far:
            together.setdefault(int(near), []).append(answer.id)
    return [{"answers": sorted(numbers), "reason": _reason(numbers)} for numbers in together.values()]


def _reason(numbers: list[int]) -> str:
    if len(numbers) == 2:
        return "these two answers say opposite things"
    return f"no order of nearness satisfies all of these {len(numbers)} answers"


def from_list(item: int, row: int, wanted: str, shown: list[int]) -> list[tuple[int, int, int]]:
    """The triplets of "row should be nearer to item" (or farther), said of a list of results.

    Nearer: than the few that stand directly above it; farther: than the few directly below.

    >>> from_list(9, 5, "nearer", [1, 2, 3, 4, 5, 6])
    [(9, 5, 4), (9, 5, 3), (9, 5, 2)]
    >>> from_list(9, 5, "farther", [1, 2, 3, 4, 5, 6])
    [(9, 6, 5)]
    """
    place = shown.index(row)
    above = [other for other in shown[:place] if other not in (item, row)]
    below = [other for other in shown[place + 1 :] if other not in (item, row)]
    if wanted == "nearer":
        return [(item, row, other) for other in above[: -_BESIDE - 1 : -1]]
    return [(item, other, row) for other in below[:_BESIDE]]
