"""Index files and folders of vectors: changes through the log, save, and compact."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from cghash import VectorIndex, WeightedHammingIndex
from cghash.peers import SignBits

from .base import Change, Random, State, Writer, code_of

N_BITS, N_ITEMS = 64, 120
FILE, FOLDER = "items.index", "items.vectors"
N_DIM = N_BITS // 8


class Appended(Writer):
    """Add, update and remove on a writable index."""

    name, steps = "index append", 40

    def prepare(self, folder: Path) -> None:
        index = WeightedHammingIndex(N_BITS)
        index.add(_codes(range(N_ITEMS), 0), np.arange(N_ITEMS))
        index.save(folder / FILE)

    def open(self, folder: Path) -> WeightedHammingIndex:
        return WeightedHammingIndex.load(folder / FILE, writable=True)

    def change(self, thing: Any, folder: Path, state: State, number: int, rng: Random) -> Change:
        held = [int(key) for key in state]
        kind = rng.choice(["add", "add", "update", "remove"]) if len(held) > 10 else "add"
        if kind == "add":
            first = max(held, default=0) + 1
            ids = list(range(first, first + int(rng.integers(1, 5))))
            return Change(_effect(ids, 0), lambda: thing.add(self.rows(ids, 0), ids))
        ids = rng.choice(held, int(rng.integers(1, 5)), replace=False).tolist()
        if kind == "remove":
            return Change(dict.fromkeys(map(str, ids)), lambda: thing.remove(ids))
        revision = 1 + max(state[str(identity)] for identity in ids)
        return Change(_effect(ids, revision), lambda: thing.update(self.rows(ids, revision), ids))

    def state(self, folder: Path) -> State:
        WeightedHammingIndex.verify(folder / FILE)
        return self.memory(WeightedHammingIndex.load(folder / FILE))

    def memory(self, thing: Any) -> State:
        ids = thing.ids
        found = thing.reconstruct(ids)
        return {str(i): self.revision(int(i), row) for i, row in zip(ids, found, strict=True)}

    def rows(self, ids: Any, revision: int) -> np.ndarray:
        """What an index holds of items."""
        return _codes(ids, revision)

    def revision(self, identity: int, row: np.ndarray) -> int:
        """Which revision of an item it holds; -1 for none."""
        return next((r for r in range(100) if np.array_equal(self.rows([identity], r)[0], row)), -1)

    def verify(self, thing: Any, state: State, rng: Random) -> None:
        wanted = int(rng.choice([int(key) for key in state]))
        distances, ids = thing.search(self.rows([wanted], state[str(wanted)])[0], k=1)
        assert distances[0] == 0, f"what is held was not found: item {wanted}"
        assert str(ids[0]) in state, f"found item {ids[0]}, which is not held"
        assert len(thing) == len(state), f"it holds {len(state)} items, and says {len(thing)}"

    def close(self, thing: Any) -> None:
        thing.close()


class Saved(Appended):
    """`save` of a writable index to its own file, between changes."""

    name, steps = "index save", 16

    def change(self, thing: Any, folder: Path, state: State, number: int, rng: Random) -> Change:
        if number % 2:
            return Change({}, lambda: self.rewrite(thing, folder))
        return super().change(thing, folder, state, number, rng)

    def rewrite(self, thing: Any, folder: Path) -> None:
        thing.save(folder / FILE)


class Compacted(Saved):
    """`compact` of a writable index, between changes."""

    name = "index compact"

    def rewrite(self, thing: Any, folder: Path) -> None:
        thing.compact()


class VectorsAppended(Appended):
    """Add, update and remove on a writable folder of vectors."""

    name, steps = "vectors append", 30

    def prepare(self, folder: Path) -> None:
        model = SignBits(N_DIM, center=True).fit(self.rows(range(N_ITEMS), 0))
        index = VectorIndex(model, metric="euclidean", vectors="float32", candidates=1000)
        index.add(self.rows(range(N_ITEMS), 0), np.arange(N_ITEMS))
        index.save(folder / FOLDER)

    def open(self, folder: Path) -> VectorIndex:
        return VectorIndex.load(folder / FOLDER, writable=True)

    def state(self, folder: Path) -> State:
        VectorIndex.verify(folder / FOLDER)
        return self.memory(VectorIndex.load(folder / FOLDER))

    def rows(self, ids: Any, revision: int) -> np.ndarray:
        return _codes(ids, revision).astype(np.float32)


class VectorsCompacted(VectorsAppended):
    """`compact` of a writable folder of vectors, between changes."""

    name, steps = "vectors compact", 16

    def change(self, thing: Any, folder: Path, state: State, number: int, rng: Random) -> Change:
        if number % 2:
            return Change({}, thing.compact)
        return super().change(thing, folder, state, number, rng)


def _codes(ids: Any, revision: int) -> np.ndarray:
    return np.array([code_of(i, revision, N_BITS // 8) for i in ids])


def _effect(ids: list[int], revision: int) -> State:
    return {str(i): revision for i in ids}
