"""What must be there after what was acknowledged: keys and values, and the states that may be found."""

from __future__ import annotations

from typing import Any

State = dict[str, Any]


def applied(state: State, effect: State) -> State:
    """A state after a change; None takes a key away."""
    return {key: value for key, value in (state | effect).items() if value is not None}


class Ledger:
    """The states that may be found on the disk.

    A change that was acknowledged is there. One that failed, or was under way, is there whole or not at all.
    """

    def __init__(self) -> None:
        self.allowed: list[State] = [{}]
        self.lines: list[dict[str, Any]] = []
        self._now: State | None = None  # what the object itself says it holds
        self._under_way: State | None = None

    def note(self, line: dict[str, Any]) -> None:
        """Take in a line that a child said."""
        self.lines.append(line)
        if "state" in line:
            self.allowed, self._now, self._under_way = [line["state"]], None, None
        elif "attempt" in line:
            self._under_way = line["attempt"]
        elif "done" in line:
            before, effect = self.allowed if self._now is None else [self._now], self._effect()
            self.allowed, self._now = _different([applied(state, effect) for state in before]), None
        elif "failed" in line:
            self._both()
        elif "now" in line:
            self._now = line["now"]

    def said(self, word: str) -> list[Any]:
        """What the lines with a word say."""
        return [line[word] for line in self.lines if word in line]

    @property
    def last(self) -> dict[str, Any]:
        """What was said last by each word."""
        return {word: value for line in self.lines for word, value in line.items()}

    def end(self) -> None:
        """The child has ended, by a kill perhaps: a change may have been under way."""
        if self._under_way is not None:
            self._both()

    def _both(self) -> None:
        effect = self._effect()
        self.allowed = _different([*self.allowed, *(applied(state, effect) for state in self.allowed)])

    def _effect(self) -> State:
        effect, self._under_way = self._under_way, None
        assert effect is not None
        return effect


def _different(states: list[State]) -> list[State]:
    return [state for i, state in enumerate(states) if state not in states[:i]]
