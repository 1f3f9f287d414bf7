"""L-BFGS without bounds, one evaluation at a time, so that several descents can be evaluated together.

The steps are those of L-BFGS-B (Zhu, Byrd, Lu, Nocedal 1997) where nothing is bounded: the same first step, line
search, memory and ends, but that a point is not looked at twice, and that a line on which a value is not finite is
given up. SciPy's asks for one evaluation after the other, each of a point alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import isfinite

import numpy as np

from .._arrays import Floats
from .line_search import LineSearch

_FLAT = 1e-5  # of the largest slope, at which a descent ends
_STILL = 2.220446049250313e-09  # of the value that a step gains
_ROUNDING = float(np.finfo(np.float64).eps)
_MOST_TRIALS = 20  # steps tried along one line


class Descent:
    """A way down from `x`: evaluate there and `tell` value and gradient, until `done`; `x` is the end then."""

    def __init__(self, x: Floats, max_iter: int, memory: int = 10) -> None:
        self.x, self.done = np.array(x, dtype=np.float64), False
        self._left = max_iter
        self._memory = Memory(memory, len(self.x))
        self._line: LineSearch | None = None

    def tell(self, value: float, gradient: Floats) -> None:
        """Take what was found at `x`, and move."""
        if self._line is None:
            self._start(value, gradient)
            return
        slope = float(gradient @ self._direction)
        if not isfinite(value) or not isfinite(slope):
            self._give_up()
        elif self._line.tell(value, slope):
            self._arrive(value, gradient)
        elif self._trials == _MOST_TRIALS:
            self._give_up()
        else:
            self._go(self._line.step)

    def _start(self, value: float, gradient: Floats) -> None:
        self._value, self._gradient, self._origin = value, gradient, self.x
        steepest = float(np.abs(gradient).max(initial=0.0))
        if steepest <= _FLAT or not isfinite(value) or not isfinite(steepest):
            self.done = True
        else:
            self._turn(first=True)

    def _turn(self, first: bool = False) -> None:
        """Begin the line along −H·gradient."""
        if not self._left:
            self.done, self.x = True, self._origin
            return
        self._direction = direction = -self._memory.times(self._gradient)
        slope = float(self._gradient @ direction)
        if not slope < 0.0:
            self._give_up()
            return
        step = min(1.0 / float(np.sqrt(direction @ direction)), 1e10) if first else 1.0
        self._line, self._trials = LineSearch(self._value, slope, step), 0
        self._slope = slope
        self._go(step)

    def _go(self, step: float) -> None:
        self._trials += 1
        self.x = self._origin + step * self._direction

    def _arrive(self, value: float, gradient: Floats) -> None:
        assert self._line is not None
        step, before = self._line.step, self._value
        s, y = step * self._direction, gradient - self._gradient
        curvature = float(s @ y)
        if curvature > -_ROUNDING * step * self._slope:
            self._memory.append(s, y, curvature)
        self._value, self._gradient, self._origin = value, gradient, self.x
        self._left -= 1
        still = before - value <= _STILL * max(abs(before), abs(value), 1.0)
        if still or np.abs(gradient).max(initial=0.0) <= _FLAT:
            self.done = True
        else:
            self._turn()

    def _give_up(self) -> None:
        """No step will do: begin again without memory, or end where the line began."""
        self.x = self._origin
        if not len(self._memory):
            self.done = True
            return
        self._memory.clear()
        self._turn()


class Memory:
    """H, what the last steps s and changes of gradient y = ∇after − ∇before tell of the inverse of the Hessian.

    In the compact form of Byrd, Nocedal and Schnabel (1994, eq. 3.13), which takes few products with matrices in place
    of many with vectors: with S and Y the steps and changes as columns, R the upper triangle of SᵀY and D its diagonal,
    H·g = γ·g + S·R⁻ᵀ((D + γ·YᵀY)·u − γ·Yᵀg) − γ·Y·u for u = R⁻¹·Sᵀg, and γ = s·y / y·y of the last.
    """

    def __init__(self, size: int, n: int) -> None:
        self._size = size
        self._first = self._end = 0  # of what counts in the arrays, which have room for twice as many
        self._vectors = np.empty((2, 2 * size, n))  # s, and y, the oldest first
        self._inverse, self._squares = np.zeros((2, 2 * size, 2 * size))  # R⁻¹ and YᵀY
        self._diagonal = np.empty(2 * size)

    def __len__(self) -> int:
        return self._end - self._first

    def clear(self) -> None:
        self._first = self._end = 0

    def append(self, s: Floats, y: Floats, curvature: float) -> None:
        """Take a step, and forget the oldest of too many."""
        if len(self) == self._size:
            self._first += 1
        if self._end == 2 * self._size:
            self._to_the_front()
        last, self._end = self._end, self._end + 1
        before, now = slice(self._first, last), slice(self._first, self._end)
        self._vectors[0, last], self._vectors[1, last] = s, y
        by_s, by_y = self._vectors[:, now] @ y
        self._diagonal[last] = curvature
        self._squares[last, now] = self._squares[now, last] = by_y
        self._inverse[before, last] = self._inverse[before, before] @ by_s[:-1] / -curvature
        self._inverse[last, before], self._inverse[last, last] = 0.0, 1.0 / curvature

    def _to_the_front(self) -> None:
        now, n = slice(self._first, self._end), len(self)
        self._vectors[:, :n], self._diagonal[:n] = self._vectors[:, now], self._diagonal[now]
        for square in (self._inverse, self._squares):
            square[:n, :n] = square[now, now]
        self._first, self._end = 0, n

    def times(self, g: Floats) -> Floats:
        """H·g."""
        if not len(self):
            return g
        now, last = slice(self._first, self._end), self._end - 1
        vectors, inverse, squares = self._vectors[:, now], self._inverse[now, now], self._squares[now, now]
        scale = self._diagonal[last] / self._squares[last, last]
        by_s, by_y = vectors @ g
        u = inverse @ by_s
        along = (self._diagonal[now] * u + scale * (squares @ u - by_y)) @ inverse
        return np.asarray(scale * (g - u @ vectors[1]) + along @ vectors[0])


def descend(
    evaluate: Callable[[list[Floats]], Sequence[tuple[float, Floats]]], starts: list[Floats], max_iter: int
) -> list[Floats]:
    """The ends of descents from several points, of which all that go on are evaluated together."""
    descents = [Descent(start, max_iter) for start in starts]
    while going := [descent for descent in descents if not descent.done]:
        for descent, found in zip(going, evaluate([descent.x for descent in going]), strict=True):
            descent.tell(*found)
    return [descent.x for descent in descents]
