"""`/api/questions`, `/api/answers`: what people are asked, and what they say."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request, Response

from ...exceptions import InvalidInputError
from ...workspace.answer_cache import from_list
from ...workspace.records import Answer
from ..schemas import (
    MOST_NUMBER,
    MOST_QUESTIONS,
    WHOLE,
    AnsweredOut,
    AnswerRequest,
    AnswersOut,
    ContradictionsOut,
    ListAnsweredOut,
    ListRequest,
    QuestionsOut,
    SummaryOut,
    UndoneOut,
)
from ..served_workspace import NotThereError, ServedWorkspace
from . import REFUSED, OfRecords, Start, answered, workspace_of

router = APIRouter(prefix="/api", tags=["answers"], responses=REFUSED, route_class=OfRecords)

Answers = Annotated[int, Query(ge=0, le=1000), WHOLE]  # how many are listed at once
Contradictions = Annotated[int, Query(ge=0, le=100), WHOLE]
_MOST_SKIPPED = 100
_MOST_CONTRADICTING = 12  # answers that are shown of one contradiction
_CUT = 600  # characters of a text that is asked about


@router.get("/questions", response_model=QuestionsOut)
def questions(
    request: Request,
    count: Annotated[int, Query(ge=1, le=MOST_QUESTIONS), WHOLE] = 3,
    skip: Annotated[
        list[Annotated[int, WHOLE]], Query(max_length=_MOST_SKIPPED, description="anchors that are being asked")
    ] = [],  # noqa: B006
) -> Response:
    """Questions to ask next: most where an answer teaches most, some that only test."""
    served = workspace_of(request)
    known = [row for row in skip if 0 <= row < len(served.items)]
    chosen = served.questioner.questions(served.usable(), served.answer_cache.past(), count, known)
    shown = [(q, served.describe([q.anchor, q.left, q.right], cut=_CUT)) for q in chosen]
    return answered(
        {
            "questions": [
                {"key": q.key, "anchor": a, "left": left, "right": right, "source": q.source}
                for q, (a, left, right) in shown
            ]
        }
    )


@router.post("/answers", response_model=AnsweredOut, status_code=201)
def answer(request: Request, given: AnswerRequest) -> Response:
    """Store an answer; when this returns, it is on the disk. The same key again changes nothing."""
    served = workspace_of(request)
    stored = _stored(served, [_answer(served, given)])
    return answered({"answer": stored[0], "summary": served.summary()}, 201)


@router.post("/answers/list", response_model=ListAnsweredOut, status_code=201)
def answer_list(request: Request, given: ListRequest) -> Response:
    """Store "this should be nearer" (or farther), said of a list of results, as comparisons with those beside it."""
    served = workspace_of(request)
    if given.row not in given.shown or given.row == given.item:
        raise InvalidInputError("row must be one of the shown rows, and not the item itself")
    triplets = from_list(given.item, given.row, given.wanted, list(dict.fromkeys(given.shown)))
    if not triplets:
        where = "first" if given.wanted == "nearer" else "last"
        raise InvalidInputError(f"row {given.row} is the {where} of the shown rows: nothing there says {given.wanted}")
    answers = [
        Answer(f"{given.key}-{i}", *_rows(served, triplet), "left", "list", served.current)
        for i, triplet in enumerate(triplets)
    ]
    return answered({"answers": _stored(served, answers), "summary": served.summary()}, 201)


@router.get("/answers", response_model=AnswersOut)
def answers(request: Request, start: Start = 0, count: Answers = 50) -> Response:
    """Answers, newest first, those taken back among them."""
    records = workspace_of(request).records
    found = [_shown(a) for a in records.answers(start, count, newest_first=True)]
    return answered({"total": records.count_answers()[0], "answers": found})


@router.get("/answers/summary", response_model=SummaryOut)
def summary(request: Request) -> Response:
    """How many answers there are, what they agree with, and where they contradict each other."""
    return answered(workspace_of(request).summary())


@router.get("/answers/contradictions", response_model=ContradictionsOut)
def contradictions(request: Request, start: Start = 0, count: Contradictions = 20) -> Response:
    """Sets of answers that cannot all hold, and the items that they are about."""
    served = workspace_of(request)
    total, found = served.answer_cache.contradicting(start, count)
    shown: list[dict[str, Any]] = [
        {
            "reason": one.reason,
            "count": len(one.answers),
            "answers": [_shown(a) for a in one.answers[:_MOST_CONTRADICTING]],
        }
        for one in found
    ]
    rows = sorted({a[side] for one in shown for a in one["answers"] for side in ("anchor", "left", "right")})
    return answered({"total": total, "contradictions": shown, "items": served.describe(rows)})


@router.delete("/answers/{number}", response_model=UndoneOut)
def undo(request: Request, number: Annotated[int, Path(ge=0, le=MOST_NUMBER), WHOLE]) -> Response:
    """Take an answer back; it is kept, but nothing is learned from it."""
    served = workspace_of(request)
    if served.records.answer(number) is None:
        raise NotThereError(f"there is no answer {number}")
    served.records.undo(number)
    return answered({"summary": served.summary()})


def _answer(served: ServedWorkspace, given: AnswerRequest) -> Answer:
    rows = _rows(served, (given.anchor, given.left, given.right))
    return Answer(given.key, *rows, given.choice, given.source, served.current, given.seconds)


def _rows(served: ServedWorkspace, rows: tuple[int, int, int]) -> tuple[int, int, int]:
    for row in rows:
        served.check_row(row)
    if len(set(rows)) < 3:
        raise InvalidInputError(f"an answer must be about three different items, got {rows}")
    return rows


def _stored(served: ServedWorkspace, answers: list[Answer]) -> list[dict[str, Any]]:
    return [_shown(a) for a in served.records.add_answers(answers)]


def _shown(a: Answer) -> dict[str, Any]:
    names = ("id", "key", "anchor", "left", "right", "choice", "source", "created", "model", "seconds")
    return {name: getattr(a, name) for name in names} | {"undone": a.undone is not None}
