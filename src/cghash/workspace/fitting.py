"""From answers to a new model version: the fit, and the report that says what it changed."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .._arrays import Ints
from ..exceptions import CGHashWarning, InvalidInputError
from ..hasher import CGHash
from ..learning.result import ColumnRecord
from .answer_triplets import TrainingSet, training_set
from .quality import agreement, most_changed, retrieval
from .records import Version
from .versions import CodeSearch, Ranking, VectorSearch, Versions, add_model, coded_by

if TYPE_CHECKING:
    from .workspace import Workspace

__all__ = ["PARAMETERS", "check_parameters", "first_model", "learn"]

ProgressCallback = Callable[[dict[str, Any]], None]

PARAMETERS: dict[str, Any] = {"bits": 64, "C": None, "hash_function": "linear", "name": None}
FAMILIES = ("linear", "rbf", "stump", "tree")
DEFAULT_C = 0.1  # chosen on the digits: 0.03 gives 0.06 less mean average precision after 500 answers, 0.2 the same
_FIRST_ITEMS = 4000  # that the first model, of no answer, is learned from


def check_parameters(parameters: dict[str, Any]) -> dict[str, Any]:
    """Parameters of a fit, those missing by their defaults; an error names what is wrong."""
    unknown = set(parameters) - set(PARAMETERS)
    if unknown:
        raise InvalidInputError(f"parameters must be of {', '.join(PARAMETERS)}, got {', '.join(sorted(unknown))}")
    chosen = PARAMETERS | parameters
    if chosen["hash_function"] not in FAMILIES:
        raise InvalidInputError(f"hash_function must be one of {', '.join(FAMILIES)}, got {chosen['hash_function']!r}")
    bits = chosen["bits"]
    if not isinstance(bits, int) or isinstance(bits, bool) or not 1 <= bits <= 1024:
        raise InvalidInputError(f"bits must be a whole number from 1 to 1024, got {bits!r}")
    C = chosen["C"]
    if C is not None and not (isinstance(C, int | float) and 0 < C < float("inf")):
        raise InvalidInputError(f"C must be a positive number, got {C!r}")
    return chosen


def first_model(workspace: Workspace, bits: int = 64, n_jobs: int | None = None) -> Version:
    """A version to begin with, learned from which vectors lie near each other."""
    training = training_set(workspace.vectors, np.empty((0, 3), dtype=np.int64), most=_FIRST_ITEMS)
    model = _fitted(workspace, training, PARAMETERS | {"bits": bits}, None, lambda progress: None, n_jobs)
    return add_model(workspace, model, "from the vectors alone", use=True)


def learn(
    workspace: Workspace,
    answers: Ints,
    parameters: dict[str, Any],
    *,
    about: dict[str, Any] | None = None,
    checkpoint: Path | None = None,
    tell: ProgressCallback = lambda progress: None,
) -> Version:
    """Learn a version from answers (t, 3) and compare it with the current one; it is not yet used.

    Parameters
    ----------
    workspace : Workspace
    answers : (t, 3) row numbers (anchor, near, far)
    parameters : as `PARAMETERS`
    about : fields of the `Version` that the caller knows: `last_answer`, `job`
    checkpoint : file from which a fit that was stopped goes on
    tell : is called with what there is to show, again and again
    """
    chosen = check_parameters(parameters)
    tell({"stage": "finding neighbours", "bit": 0, "bits": chosen["bits"]})
    training = training_set(workspace.vectors, answers)
    model = _fitted(workspace, training, chosen, checkpoint, tell)
    tell({"stage": "comparing with the model in use", "bit": model.n_bits_, "bits": model.n_bits_})
    coded = coded_by(model, workspace.vectors, n_jobs=1)
    report = _report(workspace, coded)
    name = chosen["name"] or (f"from {len(answers)} answers" if len(answers) else "from the vectors alone")
    told = {"answers": len(answers), "report": report} | (about or {})
    return add_model(workspace, model, name, about=told, coded=coded)


def _fitted(
    workspace: Workspace,
    training: TrainingSet,
    chosen: dict[str, Any],
    checkpoint: Path | None,
    tell: ProgressCallback,
    n_jobs: int | None = 1,
) -> CGHash:
    C = DEFAULT_C if chosen["C"] is None else chosen["C"]
    model = CGHash(
        chosen["bits"],
        C=C,
        hash_function=chosen["hash_function"],
        random_state=0,
        checkpoint=checkpoint,
        n_jobs=n_jobs,
    )
    X = np.asarray(workspace.vectors[training.rows])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CGHashWarning)  # fewer bits are no fault here
        model.fit(X, triplets=training.triplets, on_bit=_Progress(chosen["bits"], tell))
    if model.result_.status == "interrupted":  # the bits so far are in the checkpoint
        raise KeyboardInterrupt
    return model


class _Progress:
    """Turns the bits of a fit into what the page shows."""

    def __init__(self, bits: int, tell: ProgressCallback) -> None:
        self.bits, self.tell = bits, tell
        self.began, self.first = time.monotonic(), 0

    def __call__(self, bit: int, record: ColumnRecord) -> None:
        seconds = time.monotonic() - self.began
        self.first = self.first or bit  # a resumed fit begins with bits that took it no time
        each = seconds / (bit - self.first + 1)
        self.tell(
            {
                "stage": "learning",
                "bit": bit,
                "bits": self.bits,
                "objective": record.objective,
                "gap": record.gap,
                "satisfied": record.satisfied,
                "seconds": seconds,
                "seconds_left": each * (self.bits - bit),
            }
        )


def _report(workspace: Workspace, after: CodeSearch) -> dict[str, Any]:
    """What the model would change: on held-out answers, on results, and by labels where there are any."""
    current = workspace.records.current
    before = VectorSearch(workspace.vectors) if current is None else Versions(workspace, n_jobs=1).at(current)
    held_out = np.array(workspace.records.triplets(["test"]), dtype=np.int64).reshape(-1, 3)
    changed, mean_overlap = most_changed(before, after, workspace.vectors, 12)
    return {
        "against": current,
        "held_out": {
            "before": agreement(before, held_out),
            "after": agreement(after, held_out),
            "count": len(held_out),
        },
        "mean_overlap": mean_overlap,
        "changed": [{"row": row, "overlap": overlap} for row, overlap in changed],
        "mean_average_precision": _precisions(workspace, before, after),
    }


def _precisions(workspace: Workspace, before: Ranking, after: CodeSearch) -> dict[str, float] | None:
    found = [retrieval(search, workspace.labels) for search in (before, after)]
    values = [one.map for one in found if one is not None]
    return dict(zip(("before", "after"), values, strict=True)) if values else None
