"""A fit with a checkpoint: stopped anywhere, it goes on and gives the same model."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
from ledger import Ledger

from cghash import CGHash
from cghash.checkpoints import read_checkpoint

from .base import Change, Random, Writer

N_BITS, N_ITEMS, N_FEATURES = 10, 60, 6
FILE = "fit.checkpoint"


class Checkpoints(Writer):
    """`CGHash.fit` with `checkpoint=`; a bit is acknowledged when `on_bit` tells of it."""

    name = "checkpoint"

    def prepare(self, folder: Path) -> None:
        (folder / "expected").write_text(_digest(_fit(folder / "elsewhere.checkpoint")))
        (folder / "elsewhere.checkpoint").unlink()

    def work(self, child: Any, folder: Path, rng: Random) -> None:
        model = _model(folder / FILE)
        child.say(bits=0)
        child.begin()
        for _ in range(9):  # two interrupts and an error at most, and one more
            outcome = child.attempt(Change({}, lambda: _learn(model, lambda bit, record: child.say(bits=bit))))
            assert outcome != "refused", "a fit that was stopped does not go on"
            if outcome == "done" and model.result_.status != "interrupted":
                break
        child.end()
        expected = (folder / "expected").read_text()
        assert _digest(model) == expected, "the model that came out is another"

    def problems(self, folder: Path, ledger: Ledger, rng: Random) -> list[tuple[str, str]]:
        problems = []
        told = ledger.last.get("bits", 0)
        kept = len(read_checkpoint(folder / FILE)[0].records) if (folder / FILE).exists() else 0
        if kept < told:
            problems.append(("lost", f"{told} bits were told, {kept} are kept"))
        if _digest(_fit(folder / FILE)) != (folder / "expected").read_text():
            problems.append(("lost", f"from {kept} bits another model came out"))
        return problems + [("left", name) for name in self.strays(folder)]


def _model(checkpoint: Path) -> CGHash:
    return CGHash(N_BITS, random_state=0, checkpoint=checkpoint, n_jobs=1)


def _learn(model: CGHash, told: Any = None) -> CGHash:
    X = np.random.default_rng(0).standard_normal((N_ITEMS, N_FEATURES))
    return model.fit(X, (X[:, 0] > 0).astype(int) + 2 * (X[:, 1] > 0), on_bit=told)


def _fit(checkpoint: Path) -> CGHash:
    return _learn(_model(checkpoint))


def _digest(model: CGHash) -> str:
    parts = [model.weights_.tobytes(), *(array.tobytes() for _, array in sorted(model.functions_.arrays().items()))]
    return hashlib.sha256(b"".join(parts)).hexdigest()
