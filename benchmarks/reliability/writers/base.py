"""What a writer is to this program."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from disk import ONCE, ONWARD, SHORT
from ledger import Ledger, applied

Random = np.random.Generator
State = dict[str, Any]


class Change(NamedTuple):
    """A change, and what it must leave behind: values by key, None for what is gone."""

    effect: State
    make: Callable[[], object]


class Writer:
    """Something that writes files and acknowledges it by returning."""

    name: str
    steps = 10  # changes that may be hit; some follow
    faults = ("kill", "interrupt", "io-error", "full-disk")
    patience = 20.0  # seconds after which a child is stuck
    journals = False  # whether an engine keeps a journal: what fails after the change is in it is done again, unheard
    modes: tuple[int, ...] = (ONCE, ONWARD, SHORT)  # ways in which its disk fails
    disk: Path | None = None  # the folder that fails, where it is not that of the moment

    def start(self, folder: Path) -> None:
        """Before anything else: a server that outlives the moments."""

    def stop(self) -> None:
        """After everything."""

    def prepare(self, folder: Path) -> None:
        """Write what is there at first; it is copied for each moment."""
        raise NotImplementedError

    def work(self, child: Any, folder: Path, rng: Random) -> None:
        """What the child does; by default one change after another."""
        from child import changes

        changes(child, self, folder, rng)

    def fresh(self, folder: Path) -> None:
        """Complete the copy of what was prepared."""

    def open(self, folder: Path) -> Any:
        """The object that writes."""
        raise NotImplementedError

    def change(self, thing: Any, folder: Path, state: State, number: int, rng: Random) -> Change:
        """The next change of this object."""
        raise NotImplementedError

    def state(self, folder: Path) -> State:
        """What a fresh process finds; an error when it cannot be read."""
        raise NotImplementedError

    def memory(self, thing: Any) -> State | None:
        """What the object itself says it holds; None where it does not know."""
        return None

    def verify(self, thing: Any, state: State, rng: Random) -> None:
        """Raise AssertionError when the object gives wrong answers."""

    def close(self, thing: Any) -> None:
        """Let go of the object."""

    def problems(self, folder: Path, ledger: Ledger, rng: Random) -> list[tuple[str, str]]:
        """What a fresh process finds wrong after a moment: (kind, words) each."""
        from child import differences

        found = self.state(folder)
        problems = []
        if found not in ledger.allowed:
            problems.append(("lost", differences(found, ledger.allowed)))
        thing = self.open(folder)
        change = self.change(thing, folder, found, self.steps + 10, rng)
        change.make()
        self.close(thing)
        if (after := self.state(folder)) != applied(found, change.effect):
            problems.append(("lost", f"one more change: {differences(after, [applied(found, change.effect)])}"))
        return problems + [("left", name) for name in self.strays(folder)]

    def strays(self, folder: Path) -> list[str]:
        """Files that nobody knows, after one more change."""
        return sorted(name for name in os.listdir(folder) if name.startswith(".") or name.endswith((".tmp", ".part")))


def code_of(identity: int, revision: int, n_bytes: int) -> np.ndarray:
    """The packed code (n_bytes,) that an item has at a revision."""
    return np.random.default_rng([identity, revision]).integers(0, 256, n_bytes).astype(np.uint8)
