"""A simulated curator on the digits: how good the codes are after so many answers, asked actively or at random.

She answers by the labels, and one answer in twenty, drawn at random, is wrong; where both candidates or neither are
of the anchor's class, she cannot tell. A new model is learned after every hundred answers that tell something, as the
page would: `active` asks as the page does, but for its test questions, `random` draws three different items, `near`
draws as the page draws its test questions (candidates of log-uniform rank by Euclidean distance).

Measured on all 1797 digits: mean average precision, each digit being searched for among the others, and held-out
agreement, the share of 20 000 random comparisons, none of them wrong, that the model orders right.

    python benchmarks/quality/curator.py [--seeds 5] [--answers 2000]
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_digits

sys.path.insert(0, str(Path(__file__).parents[1]))
from cghash import CGHash
from cghash.codes import unpack
from cghash.criteria import average_precision
from cghash.exceptions import CGHashWarning
from cghash.workspace.answer_triplets import training_set
from cghash.workspace.fitting import DEFAULT_C
from cghash.workspace.quality import agreement
from cghash.workspace.questions import Questioner
from cghash.workspace.versions import CodeSearch, coded_by
from common import write

WRONG = 0.05
BITS = 64
STEPS = (100, 200, 300, 500, 700, 1000, 1500, 2000)
EVERY = 100  # answers after which a new model is learned
POLICIES = ("active", "random", "near")


class Curator:
    """Answers by labels, and now and then wrongly."""

    def __init__(self, labels: np.ndarray, seed: int) -> None:
        self.labels, self.rng = labels, np.random.default_rng([seed, 1])

    def answer(self, rows: tuple[int, int, int], wrong: float = WRONG) -> tuple[int, int, int] | None:
        """(anchor, near, far), or None where she cannot tell."""
        anchor, left, right = rows
        like_left, like_right = self.labels[[left, right]] == self.labels[anchor]
        if like_left == like_right:
            return None
        near, far = (left, right) if like_left else (right, left)
        return (anchor, far, near) if self.rng.random() < wrong else (anchor, near, far)


def held_out(labels: np.ndarray, count: int = 20000) -> np.ndarray:
    """(count, 3) random comparisons that the labels decide."""
    curator, rng = Curator(labels, 10**6), np.random.default_rng(10**6)
    told = (curator.answer(tuple(rng.choice(len(labels), 3, replace=False).tolist()), 0.0) for _ in range(10 * count))
    return np.array([triplet for triplet in told if triplet is not None][:count])


def mean_average_precision(search: CodeSearch, labels: np.ndarray) -> float:
    bits = unpack(search.codes, search.bits).astype(np.float64)
    scaled = bits * search.weights
    distances = np.round(scaled.sum(axis=1)[:, None] + scaled.sum(axis=1) - 2 * scaled @ bits.T, 9)
    others = ~np.eye(len(labels), dtype=bool)
    relevant = labels[:, None] == labels
    shape = (len(labels), len(labels) - 1)
    return float(average_precision(distances[others].reshape(shape), relevant[others].reshape(shape)).mean())


def asking(policy: str, questioner: Questioner, n: int) -> Callable[[CodeSearch, list[int]], tuple[int, int, int]]:
    if policy == "active":
        return questioner.active
    if policy == "near":
        return lambda search, before: questioner.test()
    return lambda search, before: tuple(questioner.rng.choice(n, 3, replace=False).tolist())


def teach(policy: str, seed: int, most: int) -> list[dict[str, Any]]:
    """One curator's work with one way of asking: a row for each of STEPS."""
    X, labels = load_digits(return_X_y=True)
    X = X.astype(np.float32)
    questioner, curator, test = Questioner(X, seed), Curator(labels, seed), held_out(labels)
    ask = asking(policy, questioner, len(X))
    told: list[tuple[int, int, int]] = []
    search = learned(X, told, seed)
    anchors: list[int] = []
    rows = [measured(policy, seed, 0, 0, search, labels, test)]
    while len(told) < most:
        rows_asked = ask(search, anchors[-300:])
        anchors.append(rows_asked[0])
        given = curator.answer(rows_asked)
        told += [] if given is None else [given]
        if given is not None and len(told) % EVERY == 0 and (policy == "active" or len(told) in STEPS):
            search = learned(X, told, seed)
        if given is not None and len(told) in STEPS:
            rows.append(measured(policy, seed, len(told), len(anchors), search, labels, test))
            print(rows[-1], flush=True)
    return rows


def learned(X: np.ndarray, told: list[tuple[int, int, int]], seed: int) -> CodeSearch:
    """What the page would learn from these answers."""
    lesson = training_set(X, np.array(told, dtype=np.int64).reshape(-1, 3))
    model = CGHash(BITS, C=DEFAULT_C, random_state=seed, n_jobs=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CGHashWarning)
        return coded_by(model.fit(X, triplets=lesson.triplets), X, n_jobs=1)


def measured(
    policy: str, seed: int, answers: int, asked: int, search: CodeSearch, labels: np.ndarray, test: np.ndarray
) -> dict[str, Any]:
    return {
        "policy": policy,
        "seed": seed,
        "answers": answers,
        "asked": asked,
        "map": round(mean_average_precision(search, labels), 4),
        "agreement": round(agreement(search, test) or 0.0, 4),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--answers", type=int, default=2000)
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    began = time.perf_counter()
    work = [(policy, seed, options.answers) for seed in range(options.seeds) for policy in POLICIES]
    with ProcessPoolExecutor(options.workers) as pool:
        rows = [row for rows in pool.map(teach, *zip(*work, strict=True)) for row in rows]
    for policy in POLICIES:
        for step in (0, *STEPS):
            some = [row for row in rows if row["policy"] == policy and row["answers"] == step]
            if some:
                means = {name: np.mean([row[name] for row in some]) for name in ("asked", "map", "agreement")}
                print(f"{policy:7} {step:5} answers: {means['asked']:7.0f} asked, map {means['map']:.3f}, "
                      f"agreement {means['agreement']:.3f}")  # fmt: skip
    print(f"{time.perf_counter() - began:.0f} s")
    write("curator", f"python benchmarks/quality/curator.py --seeds {options.seeds}", rows)


if __name__ == "__main__":
    main()
