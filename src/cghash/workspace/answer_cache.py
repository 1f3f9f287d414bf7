"""The answers of a workspace in memory: how many, where they contradict each other, what they agree with."""

from __future__ import annotations

import threading
import time
from bisect import bisect_right
from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np

from .quality import agreement
from .questions import PastQuestions
from .records import LEARNED_FROM, Answer, Records
from .versions import Ranking

__all__ = ["AnswerCache", "Contradiction", "contradictions", "from_list"]


_MANY = 2000  # answers from which on contradictions are not looked for after each
_NOW_AND_THEN = 10.0  # seconds
_BESIDE = 3  # items of a result list that "nearer" or "farther" compares with


@dataclass(frozen=True)
class Contradiction:
    """Answers that cannot all hold."""

    answers: list[Answer]

    @property
    def numbers(self) -> list[int]:
        return [answer.id for answer in self.answers]

    @property
    def reason(self) -> str:
        if len(self.answers) == 2:
            return "these two answers say opposite things"
        return f"no order of nearness satisfies all of these {len(self.answers)} answers"


class AnswerCache:
    """All answers, read once and then only what is new, and what there is to say of them; threads may share it."""

    def __init__(self, records: Records) -> None:
        self.records = records
        self._lock = threading.RLock()
        self._forget()

    def past(self) -> PastQuestions:
        """The questions that were answered; not to be changed."""
        with self._lock:
            self._refresh()
            return self._past

    def summary(self, search: Ranking, last_learned: int) -> dict[str, Any]:
        """What the page says about the answers; `last_learned` is the newest answer that the current model knew."""
        with self._lock:
            self._refresh()
            counts = self._counts
            return {
                "answers": sum(counts.values()) - counts["unsure"],
                "unsure": counts["unsure"],
                "active": counts["active"],
                "test": counts["test"],
                "list": counts["list"],
                "imported": counts["import"],
                "agreement": {name: told.agreement(search) for name, told in self._told.items()},
                "contradictions": len(self._contradicting()),
                "since_model": len(self._learnable) - bisect_right(self._learnable, last_learned),
            }

    def contradicting(self, start: int, count: int) -> tuple[int, list[Contradiction]]:
        """How many contradictions there are, and some of them."""
        with self._lock:
            self._refresh()
            found = self._contradicting()
            return len(found), found[start : start + count]

    def _forget(self) -> None:
        self._answers: list[Answer] = []
        self._undone = 0
        self._past = PastQuestions()
        self._counts: Counter[str] = Counter()
        self._told = {"test": _AgreementCount(), "training": _AgreementCount()}
        self._learnable: list[int] = []  # numbers of the answers that a fit may learn from
        self._contradictions: tuple[int, float, list[Contradiction]] = (0, 0.0, [])

    def _refresh(self) -> None:
        count, undone = self.records.count_answers()
        if count > len(self._answers):
            self._read(self.records.answers_after(self._answers[-1].id if self._answers else 0))
        # some were taken back, or several wrote at once and a later number was there before an earlier one
        if undone != self._undone or count > len(self._answers):
            self._forget()
            self._read(self.records.answers())

    def _read(self, answers: list[Answer]) -> None:
        for answer in answers:
            self._answers.append(answer)
            self._past.add((answer.anchor, answer.left, answer.right))
            if answer.undone is not None:
                self._undone += 1
            elif answer.triplet is None:
                self._counts["unsure"] += 1
            else:
                self._counts[answer.source] += 1
                self._told["test" if answer.source == "test" else "training"].triplets.append(answer.triplet)
                self._learnable += [answer.id] if answer.source in LEARNED_FROM else []

    def _contradicting(self) -> list[Contradiction]:
        """The contradictions; those of very many answers are looked for now and then only."""
        count, when, found = self._contradictions
        if count != len(self._answers) and (count < _MANY or time.monotonic() - when > _NOW_AND_THEN):
            found = contradictions([answer for answer in self._answers if answer.undone is None])
            self._contradictions = (len(self._answers), time.monotonic(), found)
        return found


class _AgreementCount:
    """Comparisons, and how many of them the ranking that was asked about last satisfies."""

    def __init__(self) -> None:
        self.triplets: list[tuple[int, int, int]] = []
        self._search: object = None
        self._looked_at, self._satisfied = 0, 0.0

    def agreement(self, search: Ranking) -> dict[str, Any]:
        """The share that a ranking satisfies; only comparisons that are new to it are looked at."""
        if search is not self._search:
            self._search, self._looked_at, self._satisfied = search, 0, 0.0
        new = self.triplets[self._looked_at :]
        self._satisfied += len(new) * (agreement(search, new) or 0.0)
        self._looked_at += len(new)
        share = self._satisfied / len(self.triplets) if self.triplets else None
        return {"share": share, "count": len(self.triplets)}


def contradictions(answers: list[Answer]) -> list[Contradiction]:
    """Sets of answers that no distance can satisfy together.

    An answer says that one pair of items is nearer than another pair. Pairs that are, by such steps, nearer than
    themselves contradict each other: the strongly connected components of the graph of pairs.

    >>> say = lambda number, a, near, far: Answer(str(number), a, near, far, "left", "active", id=number)
    >>> [found] = contradictions([say(1, 0, 1, 2), say(2, 0, 2, 1), say(3, 5, 6, 7)])
    >>> found.numbers, found.reason
    ([1, 2], 'these two answers say opposite things')
    >>> contradictions([say(1, 0, 1, 2), say(2, 2, 0, 1), say(3, 1, 2, 0)])[0].numbers  # 01 < 02 < 21 < 10
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
    together: dict[int, list[Answer]] = {}
    for (answer, _), near, far in zip(told, component[nodes[0]], component[nodes[1]], strict=True):
        if near == far:
            together.setdefault(int(near), []).append(answer)
    return [Contradiction(sorted(found, key=lambda answer: answer.id)) for found in together.values()]


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
