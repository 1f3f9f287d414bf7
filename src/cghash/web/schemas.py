"""What goes into the API and what comes out, checked by pydantic and described in OpenAPI."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

MOST_RESULTS, MOST_ITEMS, MOST_QUESTIONS = 1000, 500, 20
MOST_FILTERS, MOST_TEXT, MOST_DIMENSION = 20, 20_000, 100_000
MOST_NUMBER = 2**53 - 1  # up to it, whole numbers are the same in every program's JSON
_LARGEST = 3.4028234663852886e38  # that single precision holds


def _whole(value: Any) -> Any:
    """JSON does not tell 3.0 from 3; of an address, `+3` and `3_0` are no numbers."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, str) and not re.fullmatch(r"-?[0-9]+(\.0+)?", value):
        raise PydanticCustomError("whole", "Input should be a valid integer")
    return value


WHOLE = BeforeValidator(_whole)
Row = Annotated[int, Field(ge=0, le=MOST_NUMBER, description="row number of an item"), WHOLE]
Number = Annotated[float, Field(ge=-_LARGEST, le=_LARGEST)]
Key = Annotated[str, Field(min_length=1, max_length=64, pattern=r"^[A-Za-z0-9_-]+$")]
Filter = Annotated[str, Field(min_length=1, max_length=500, examples=["colour=red", "year>=1990", "title~sea"])]
Version = Annotated[int, Field(ge=1, le=MOST_NUMBER), WHOLE]
ModelName = Version | Literal["vectors"]
Bits = Annotated[int, Field(ge=1, le=1024), WHOLE]


class Strict(BaseModel):
    """Unknown fields are errors: a misspelt option must not be ignored. Numbers are numbers, not text."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


class SearchOptions(Strict):
    """How to search."""

    k: Annotated[int, Field(ge=1, le=MOST_RESULTS), WHOLE] = 24
    model: ModelName | None = Field(None, description='a version, "vectors", or null for the current model')
    bits: Bits | None = Field(None, description="only the first bits of the model")
    filters: Annotated[list[Filter], Field(max_length=MOST_FILTERS)] = []
    details: bool = Field(False, description="with the items themselves")


class SearchByRow(SearchOptions):
    """An item, and how to search."""

    item: Row


def _only(name: str) -> dict[str, Any]:
    """The schema of an object with one of the queries."""
    others = {other: {"type": "null"} for other in _QUERIES if other != name}
    return {"required": [name], "properties": {name: {"not": {"type": "null"}}, **others}}


_QUERIES = ("item", "text", "vector")


class SearchRequest(SearchOptions):
    """One of `item`, `text` and `vector`, and how to search."""

    model_config = ConfigDict(json_schema_extra={"oneOf": [_only(name) for name in _QUERIES]})

    item: Row | None = None
    text: Annotated[str, Field(min_length=1, max_length=MOST_TEXT)] | None = None
    vector: Annotated[list[Number], Field(min_length=1, max_length=MOST_DIMENSION)] | None = None

    @model_validator(mode="after")
    def _check_queries(self) -> SearchRequest:
        if sum(getattr(self, name) is not None for name in _QUERIES) != 1:
            raise PydanticCustomError("queries", "a search must have exactly one of item, text and vector")
        return self


class AnswerRequest(Strict):
    """A person's answer: is the anchor more like `left` or more like `right`?"""

    key: Key
    anchor: Row
    left: Row
    right: Row
    choice: Literal["left", "right", "unsure"]
    source: Literal["active", "test", "list"] = "active"
    seconds: Annotated[float, Field(ge=0, le=1e9)] | None = None


class ListRequest(Strict):
    """`row`, in the results shown for `item`, should be nearer or farther."""

    key: Annotated[str, Field(min_length=1, max_length=60, pattern=r"^[A-Za-z0-9_-]+$")]
    item: Row
    row: Row
    wanted: Literal["nearer", "farther"]
    shown: Annotated[list[Row], Field(min_length=1, max_length=MOST_RESULTS)]


class CurrentRequest(Strict):
    """The version to use from now on."""

    version: Version


class JobRequest(Strict):
    """How to learn from the answers."""

    bits: Bits = 64
    C: Annotated[float, Field(gt=0, le=1e12)] | None = None
    hash_function: Literal["linear", "rbf", "stump", "tree"] = "linear"
    name: Annotated[str, Field(min_length=1, max_length=100)] | None = None


class Nothing(Strict):
    """An empty object: the request itself says all."""


class Failure(BaseModel):
    error: str


class ItemOut(BaseModel):
    row: int
    id: str
    title: str
    text: str | None
    image: str | None
    label: str | None
    attributes: dict[str, Any]


class ItemsOut(BaseModel):
    total: int
    start: int
    items: list[ItemOut]


class ResultOut(BaseModel):
    row: int
    id: str
    distance: float
    differing: int | None
    bits: list[int] | None
    item: ItemOut | None = None


class SearchOut(BaseModel):
    model: int | Literal["vectors"]
    bits: int | None
    query: ItemOut | None
    weights_total: float | None
    results: list[ResultOut]
    milliseconds: float


class QuestionOut(BaseModel):
    key: str
    anchor: ItemOut
    left: ItemOut
    right: ItemOut
    source: Literal["active", "test"]


class QuestionsOut(BaseModel):
    questions: list[QuestionOut]


class AnswerOut(BaseModel):
    id: int
    key: str
    anchor: int
    left: int
    right: int
    choice: str
    source: str
    created: str
    model: int | None
    seconds: float | None
    undone: bool


class AgreementOut(BaseModel):
    share: float | None
    count: int


class SummaryOut(BaseModel):
    answers: int
    unsure: int
    active: int
    contradictions: int = Field(description="how many sets of answers there are that cannot all hold")
    test: int
    imported: int
    agreement: dict[Literal["test", "training"], AgreementOut]
    since_model: int
    list: int


class AnsweredOut(BaseModel):
    answer: AnswerOut
    summary: SummaryOut


class ListAnsweredOut(BaseModel):
    answers: list[AnswerOut]
    summary: SummaryOut


class AnswersOut(BaseModel):
    total: int
    answers: list[AnswerOut]


class ContradictionOut(BaseModel):
    reason: str
    count: int = Field(description="answers that cannot all hold")
    answers: list[AnswerOut] = Field(description="the first of them")


class ContradictionsOut(BaseModel):
    total: int
    contradictions: list[ContradictionOut]
    items: list[ItemOut] = Field(description="that the answers are about, each once")


class UndoneOut(BaseModel):
    summary: SummaryOut


class ModelOut(BaseModel):
    version: int
    name: str
    method: str
    bits: int
    answers: int
    created: str
    job: int | None
    report: dict[str, Any] | None


class ModelsOut(BaseModel):
    current: int | None
    models: list[ModelOut]


class CertificateOut(BaseModel):
    message: str
    status: str
    exact: bool
    objective: float
    bound: float | None
    gap: float | None


class ModelDetailOut(ModelOut):
    certificate: CertificateOut | None
    history: dict[str, list[float | None]] | None


class BitOut(BaseModel):
    bit: int
    weight: float
    share_of_weight: float
    ones: float
    zero: list[ItemOut]
    one: list[ItemOut]
    zero_labels: list[str] | None
    one_labels: list[str] | None


class BitsOut(BaseModel):
    version: int
    bits: list[BitOut]


class CurveOut(BaseModel):
    recall: list[float]
    precision: list[float]
    mean_average_precision: float
    queries: int


class ChangeOut(BaseModel):
    item: ItemOut
    overlap: float
    before: list[ItemOut]
    after: list[ItemOut]


class ChangesOut(BaseModel):
    changes: list[ChangeOut]


class JobOut(BaseModel):
    id: int
    state: Literal["queued", "running", "cancelling", "done", "failed", "cancelled"]
    parameters: dict[str, Any]
    progress: dict[str, Any]
    version: int | None
    message: str
    created: str
    changed: str


class OneJobOut(BaseModel):
    job: JobOut


class JobsOut(BaseModel):
    jobs: list[JobOut]


class AttributeOut(BaseModel):
    name: str
    kind: Literal["number", "text"]
    values: list[Any] | None
    least: float | None
    most: float | None


class WorkspaceOut(BaseModel):
    key: str
    title: str
    kind: Literal["images", "texts", "vectors"]
    items: int
    dimension: int
    vectors: str
    labels: str | None
    attributes: list[AttributeOut]
    current: int | None
    queries: dict[Literal["image", "text"], bool]


class HealthOut(BaseModel):
    status: Literal["ok"]
    items: int
    model: int | None
