"""In the process that is hit: a writer at work, and a line on a pipe for each change that was acknowledged."""

from __future__ import annotations

import json
import os
import signal
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
from disk import Disk
from ledger import Ledger
from writers.base import Change, State, Writer

from cghash.exceptions import CGHashError

AFTERWARDS = 3  # changes after the phase in which a writer is hit
CONTENT = ("write", "pwrite", "fsync", "fdatasync", "ftruncate", "sendfile", "copy_file_range")  # must not go unheard
EXPECTED = (KeyboardInterrupt, OSError, CGHashError)  # in answer to a fault


class Child:
    """Attempts changes, and tells what became of them."""

    def __init__(self, pipe: int, disk: Disk) -> None:
        self.disk, self.ledger = disk, Ledger()
        self.hits = 0  # interrupts that came inside a change
        self._pipe = pipe

    def say(self, **line: Any) -> None:
        self.ledger.note(line)
        whole = json.dumps(line).encode() + b"\n"
        while whole:
            whole = whole[os.write(self._pipe, whole) :]

    def begin(self) -> None:
        """From now on the child is hit."""
        self.say(begin=time.monotonic())
        self.disk.arm()

    def end(self) -> None:
        self.disk.disarm()
        self.say(end=time.monotonic(), seen=self.disk.seen)

    def attempt(self, change: Change) -> str:
        """Make a change: "done", "failed" by a fault, or "refused" without one."""
        hits, failed = self.hits, self.disk.failed
        self.say(attempt=change.effect)
        try:
            _within(change.make)
        except EXPECTED as error:
            hit = self.hits > hits or self.disk.failed > failed
            self.disk.disarm()
            self.say(failed=type(error).__name__, words=str(error), refused=not hit)
            return "failed" if hit else "refused"
        unheard = self.disk.what if self.disk.failed > failed else ""
        self.say(done=True, unheard=unheard if unheard.startswith(CONTENT) else "")
        return "done"

    def interrupted(self, number: int, frame: FrameType | None) -> None:
        """Ctrl-C, where it comes inside a change; elsewhere it would hit this program."""
        while frame is not None:
            if frame.f_code is _within.__code__:
                self.hits += 1
                self.say(hit=self.hits)
                raise KeyboardInterrupt
            frame = frame.f_back


def _within(make: Callable[[], object]) -> None:
    make()


def run(writer: Writer, folder: Path, seed: int, pipe: int, disk: Disk) -> None:
    """What a child does: changes that are hit, a few after them, and the end."""
    child = Child(pipe, disk)
    signal.signal(signal.SIGINT, child.interrupted)
    try:
        writer.work(child, folder, np.random.default_rng(seed))
        child.say(finished=True)
    except AssertionError as error:
        child.say(wrong=str(error) or traceback.format_exc())
    except BaseException:
        child.say(wrong=traceback.format_exc())


def changes(child: Child, writer: Writer, folder: Path, rng: np.random.Generator) -> None:
    """The plain way to be hit: one change after another on the same object."""
    thing, state = _opened(child, writer, folder)
    child.begin()
    for number in range(writer.steps):
        thing, state = _step(child, writer, thing, state, folder, number, rng)
    child.end()
    for number in range(writer.steps, writer.steps + AFTERWARDS):
        thing, state = _step(child, writer, thing, state, folder, number, rng)
        writer.verify(thing, state, rng)
    writer.close(thing)


def _opened(child: Child, writer: Writer, folder: Path) -> tuple[Any, State]:
    thing = writer.open(folder)
    known = writer.memory(thing)
    state = writer.state(folder) if known is None else known
    child.say(state=state)
    return thing, state


def _step(
    child: Child, writer: Writer, thing: Any, state: State, folder: Path, number: int, rng: np.random.Generator
) -> tuple[Any, State]:
    try:
        change = writer.change(thing, folder, state, number, rng)
        outcome = child.attempt(change)
    except EXPECTED as error:  # it looks before it changes
        child.say(refused=True, words=str(error))
        outcome = "refused"
    if outcome == "done":
        return thing, child.ledger.allowed[0]
    if outcome == "refused":
        writer.close(thing)
        allowed = child.ledger.allowed
        thing, state = _opened(child, writer, folder)
        if state not in allowed:
            raise AssertionError(f"opened anew after it refused to go on, it has {differences(state, allowed)}")
        return thing, state
    try:
        known = writer.memory(thing)
    except EXPECTED:  # it refuses to say
        return thing, state
    if known is None:
        return thing, state
    if known not in child.ledger.allowed:
        raise AssertionError(f"in memory after an error: {differences(known, child.ledger.allowed)}")
    child.say(now=known)
    writer.verify(thing, known, rng)
    return thing, known


def differences(found: State, allowed: list[State]) -> str:
    """How a state differs from the nearest that may be found."""

    def told(state: State) -> list[str]:
        keys = sorted(found.keys() | state.keys())
        return [
            f"{key}: {found.get(key)} instead of {state.get(key)}" for key in keys if found.get(key) != state.get(key)
        ]

    return "; ".join(min((told(state) for state in allowed), key=len)[:8])
