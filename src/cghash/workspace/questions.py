"""Which question to ask next: one whose answer teaches most, and now and then one that only tests.

*Active* questions. The anchor is the one of a few drawn items that lies farthest from the anchors asked about before,
so that questions spread over the collection. Its two candidates are among the nearest items of the current model, about
equally far from the anchor (a small margin: the model does not know) and far from each other (they are different
things, so a person does): of many drawn pairs the one with the largest d(left, right) / (margin + a tenth of the mean
distance).

*Test* questions are drawn by a law that no model has a say in, and are never learned from: an anchor, and two of a
thousand drawn items whose ranks by Euclidean distance are log-uniform, since among items far away nothing can be told.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from .._arrays import Floats, Ints, Singles
from ..codes import unpack
from .versions import Ranking, VectorSearch

__all__ = ["PastQuestions", "Question", "Questioner"]

Rows = tuple[int, int, int]  # anchor and candidates
Asked = Rows  # the smaller candidate first

TEST_SHARE = 1 / 6
_DRAWN_ANCHORS = 20
_REMEMBERED = 300  # anchors that a new one keeps away from
_NEAREST = 100  # items that candidates are drawn from
_DRAWN_PAIRS = 400
_DRAWN_RANKED = 1000
_TRIES = 20
_SOFTENING = 0.1  # of the mean distance to the candidates


@dataclass(frozen=True)
class Question:
    """Is the anchor more like `left` or more like `right`?"""

    key: str
    anchor: int
    left: int
    right: int
    source: str  # "active" or "test"


class PastQuestions:
    """Questions that were answered: whether one was, and what the last ones were about."""

    def __init__(self, asked: Iterable[Sequence[int]] = ()) -> None:
        self.known: set[Asked] = set()
        self.anchors: list[int] = []  # of the last ones; replaced, never changed, since others may be reading
        for rows in asked:
            self.add(rows)

    def add(self, rows: Sequence[int]) -> None:
        """One more, as (anchor, left, right)."""
        self.known.add(_unordered(rows))
        self.anchors = [*self.anchors[1 - _REMEMBERED :], rows[0]]


class Questioner:
    """Chooses questions about items with vectors (n, d)."""

    def __init__(self, vectors: Singles, seed: int | None = None) -> None:
        self.vectors = vectors
        self.rng = np.random.default_rng(seed)

    def questions(self, search: Ranking, past: PastQuestions, count: int, skip: Collection[int] = ()) -> list[Question]:
        """Questions under the current model.

        Parameters
        ----------
        search : the current model, or the vectors where there is none
        past : the questions answered so far
        count : how many
        skip : anchors of questions that wait to be answered
        """
        if len(self.vectors) < 3:
            return []
        before = [*past.anchors, *skip]
        chosen: list[Question] = []
        new: set[Asked] = set()

        def is_known(rows: Rows) -> bool:
            return _unordered(rows) in past.known or _unordered(rows) in new

        for _ in range(count):
            active = self.rng.random() >= TEST_SHARE
            draw = (lambda: self.active(search, before, is_known)) if active else self.test
            rows = self._new(draw, is_known)
            left, right = rows[1:] if self.rng.random() < 0.5 else rows[:0:-1]
            chosen.append(Question(uuid.uuid4().hex, rows[0], left, right, "active" if active else "test"))
            before.append(rows[0])
            new.add(_unordered(rows))
        return chosen

    def active(self, search: Ranking, before: list[int], is_known: Callable[[Rows], bool] = lambda rows: False) -> Rows:
        """An anchor and two candidates, where an answer teaches most and none is known."""
        anchor = self._anchor(before)
        distances, rows = search.nearest(anchor, _NEAREST + 1, None)
        distances, rows = distances[rows != anchor], rows[rows != anchor]
        left, right = (self.rng.integers(0, len(rows), _DRAWN_PAIRS) for _ in range(2))
        right = np.where(right == left, (right + 1) % len(rows), right)
        margin = np.abs(distances[left] - distances[right])
        apart = _apart(search, rows, left, right)
        teaches = apart / (margin + _SOFTENING * distances.mean() + 1e-12)
        best_first = np.argsort(-teaches, kind="stable")
        pairs = zip(rows[left[best_first]].tolist(), rows[right[best_first]].tolist(), strict=True)
        drawn = [(anchor, left, right) for left, right in pairs]
        return next((rows for rows in drawn if not is_known(rows)), drawn[0])

    def test(self) -> Rows:
        """An anchor and two candidates by a law that knows no model."""
        n = len(self.vectors)
        drawn = self.rng.choice(n, min(n, _DRAWN_RANKED + 1), replace=False)
        anchor, others = int(drawn[0]), np.sort(drawn[1:])
        distances = np.linalg.norm(self.vectors[others] - self.vectors[anchor], axis=1)
        ranked = others[np.argsort(distances, kind="stable")]
        first, second = 0, 0
        while first == second:
            first, second = (np.exp(self.rng.random(2) * np.log(len(ranked) + 1)) - 1).astype(int).tolist()
        return anchor, int(ranked[first]), int(ranked[second])

    def _new(self, draw: Callable[[], Rows], is_known: Callable[[Rows], bool]) -> Rows:
        """A draw that was not asked before; in a small collection there may be none left."""
        for _ in range(_TRIES):
            rows = draw()
            if not is_known(rows):
                break
        return rows

    def _anchor(self, before: list[int]) -> int:
        drawn = self.rng.integers(0, len(self.vectors), _DRAWN_ANCHORS)
        if not before:
            return int(drawn[0])
        there, here = (np.asarray(self.vectors[rows], dtype=np.float64) for rows in (before, drawn))
        squared = (here**2).sum(axis=1)[:, None] - 2 * here @ there.T + (there**2).sum(axis=1)
        return int(drawn[np.argmax(squared.min(axis=1))])


def _unordered(rows: Sequence[int]) -> Asked:
    """A question, whichever candidate stands left."""
    return rows[0], min(rows[1:]), max(rows[1:])


def _apart(search: Ranking, rows: Ints, left: Ints, right: Ints) -> Floats:
    """Distances between the two candidates of each pair."""
    if isinstance(search, VectorSearch):
        vectors = np.asarray(search.vectors[rows], dtype=np.float64)
        apart: Floats = np.linalg.norm(vectors[left] - vectors[right], axis=1)
        return apart
    bits = unpack(search.codes[rows], search.bits)
    return np.asarray((bits[left] ^ bits[right]) @ search.weights)
