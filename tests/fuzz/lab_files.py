"""Plans of experiments, and raw results."""

from __future__ import annotations

import json
import random
from typing import Any

from mutations import lines_changed, text_changed
from running import Format, scratch

_VALUES = [
    "1", "-1", "0", "9" * 400, "1e400", "nan", "inf", "true", '""', '"x"', "[]", "[1, 2]", "[[1]]", "{}", "{a = 1}",
    '"../../x"', "1979-05-27", "07:32:00", "[" * 300 + "]" * 300, "{a = {}}", '"""', "'", '["a", 1, []]', '"LSH"',
]  # fmt: skip
_LINES = ["[[datasets]]", "[[methods]]", "[validation]", "[methods.on.digits]", "[methods.search]", 'like = "paper"',
          "bits = []", "bits = [[1]]", 'name = "digits"', 'estimator = "CGHash"', "parameters = {C = []}"]  # fmt: skip


def plans() -> list[bytes]:
    from cghash.lab.experiments.plan_files import built_in, source_of

    small = """
title = "Small"
bits = [8, 16]
splits = 2
protocols = ["seen", "heldout"]

[validation]
folds = 2
criterion = "map"

[[datasets]]
name = "digits"
train = 300
scaling = "unit"

[[methods]]
name = "ours"
estimator = "CGHash"
parameters = {C = 0.01, hash_function = "rbf"}
search = {n_neighbors = [5, 10]}
bits = [8]
on.digits = {C = 0.1}

[[methods]]
estimator = "LSH"
labels = false
pictures = true
"""
    return [*(source_of(name).encode() for name in built_in()), small.encode(), b'like = "digits"\nsplits = 3\n']


def plan_changed(data: bytes, rng: random.Random) -> bytes:
    """A TOML file with another value, line or byte."""
    lines = data.split(b"\n")
    at = rng.randrange(len(lines))
    kind = rng.randrange(8)
    if kind < 5:
        settings = [i for i, line in enumerate(lines) if b"=" in line]
        at = rng.choice(settings) if settings else at
        key = lines[at].partition(b"=")[0]
        lines[at] = key + b"= " + rng.choice(_VALUES).encode()
    elif kind == 5:
        lines[at:at] = [rng.choice(_LINES).encode()]
    else:
        return text_changed(_VALUES)(data, rng)
    return b"\n".join(lines)


def use_plan(data: bytes) -> None:
    """Read a plan; one that is taken can be listed, and its cells have fingerprints and places."""
    from cghash.lab.experiments.plan_files import read_experiment
    from cghash.lab.experiments.results import Store, fingerprint

    path = scratch() / "plan.toml"
    path.write_bytes(data)
    experiment = read_experiment(path)
    store = Store(scratch() / "results")
    for _, task in zip(range(20), experiment.tasks(), strict=False):
        fingerprint(experiment, task)
        store.path_of(task, max(experiment.bits)).name.encode()
        store.missing(experiment, task)
        task.name.encode()


def results() -> list[bytes]:
    from pathlib import Path

    kept = Path(__file__).parents[2] / "benchmarks" / "results" / "lab" / "paper.jsonl"
    lines = kept.read_bytes().splitlines()[::400] if kept.is_file() else []
    criteria = {"map": 0.5, "top": 0.5, "knn_error": 0.25}
    curve = {"recall": [0.5, 1.0], "precision": [0.5, 0.25]}
    cell = {"dataset": "digits", "protocol": "seen", "split": 0, "method": "LSH", "bits": 8, "status": "ok"}
    more = {"estimator": "LSH", "asked": "0", "criteria": criteria, "curve": curve, "seconds_fit": 0.5, "n_queries": 10}
    failed = cell | {"bits": 16, "status": "failed", "error": "ValueError: x", "trace": "x"}
    made = [json.dumps(one).encode() for one in (cell | more, cell | more | {"method": "PCAH", "split": 1}, failed)]
    return [b"\n".join(made), *([b"\n".join(lines)] if lines else [])]


def use_results(data: bytes) -> None:
    """Read, collect, and draw the report's tables."""
    from cghash.lab.experiments.results import collect, read_results
    from cghash.lab.reporting.charts import mean_curve
    from cghash.lab.reporting.page import _page
    from cghash.lab.reporting.tables import cells_csv, summary_csv
    from cghash.lab.reporting.text_sections import opening
    from cghash.lab.reporting.values import Measured

    path = scratch() / "results.jsonl"
    path.write_bytes(data)
    found = read_results(path)
    collect(path, scratch() / "collected.jsonl")
    read_results(scratch() / "collected.jsonl")
    measured = Measured(found)
    mean_curve(measured.good)
    _page(measured, _NoPlots(), "title", opening(measured, "title")).encode()
    summary_csv(measured).encode()
    cells_csv(measured).encode()


class _NoPlots:
    """Figures take seconds: the words and tables of the report are made alone."""

    def __getattr__(self, name: str) -> Any:
        return lambda: ""


FORMATS = [
    Format("plan", plans, use_plan, plan_changed, ("cghash.lab.experiments",)),
    Format("result", results, use_results, lines_changed, ("cghash.lab.experiments", "cghash.lab.reporting")),
]
