"""L-BFGS without bounds, one evaluation at a time, so that several descents can be evaluated together.

The steps are those of L-BFGS-B (Zhu, Byrd, Lu, Nocedal 1997) where nothing is bounded: the same first step, line
search, memory and ends, but that a point is not looked at twice, and that a line on which a value is not finite is
given up. SciPy's asks for one evaluation after the other, each of a point alone.

Steps along a line satisfy the strong Wolfe conditions, by safeguarded cubic and quadratic interpolation: J. J. Moré,
D. J. Thuente, Line search algorithms with guaranteed sufficient decrease, ACM Transactions on Mathematical Software
20(3), 1994; "section" below is one of theirs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import isfinite, sqrt
from typing import NamedTuple

import numpy as np

from .._arrays import Floats

_FLAT = 1e-5  # of the largest slope, at which a descent ends
_STILL = 2.220446049250313e-09  # of the value that a step gains
_ROUNDING = float(np.finfo(np.float64).eps)
_MOST_TRIALS = 20  # steps tried along one line
_DECREASE, _CURVATURE, _NARROW = 1e-3, 0.9, 0.1
_LONGEST = 1e10
_SHRINK = 0.66  # what two steps must at least shrink an interval to, or it is halved


class Point(NamedTuple):
    """A point of the line."""

    step: float
    value: float
    slope: float

    def tilted(self, slope: float) -> Point:
        """The same point of φ(step) − slope·step."""
        return Point(self.step, self.value - slope * self.step, self.slope - slope)


class LineSearch:
    """Evaluate at `step` and `tell` what was found, until that says that the step will do."""

    def __init__(self, value: float, slope: float, step: float) -> None:
        self.step = step
        self._start = self._best = self._other = Point(0.0, value, slope)
        self._bracketed = self._lower = False  # between two points; once below the line of sufficient decrease
        self._widths = (2.0 * _LONGEST, _LONGEST)  # of the interval, before and now
        self._low, self._high = 0.0, 5.0 * step

    def tell(self, value: float, slope: float) -> bool:
        """Take φ and φ′ at `step`; True where this step is the one, else `step` is the next to look at."""
        here, tilt = Point(self.step, value, slope), _DECREASE * self._start.slope
        falls = value <= self._start.value + tilt * self.step
        self._lower = self._lower or (falls and slope >= 0.0)
        if self._is_end(here, falls, tilt):
            return True
        if not self._lower and not falls and value <= self._best.value:  # section 3: of φ(step) − tilt·step
            self._move(here.tilted(tilt), tilt)
        else:
            self._move(here, 0.0)
        self._narrow()
        return self._bracketed and self.step == here.step  # no need to look there again

    def _is_end(self, here: Point, falls: bool, tilt: float) -> bool:
        stuck = self._bracketed and (
            not self._low < here.step < self._high or self._high - self._low <= _NARROW * self._high
        )
        longest = here.step == _LONGEST and falls and here.slope <= tilt
        nowhere = here.step == 0.0 and (not falls or here.slope >= tilt)
        return stuck or longest or nowhere or (falls and abs(here.slope) <= -_CURVATURE * self._start.slope)

    def _move(self, here: Point, tilt: float) -> None:
        """The next step and interval, of a line tilted by so much."""
        best, other = self._best.tilted(tilt), self._other.tilted(tilt)
        step, bracketed = _next_step(best, other, here, self._bracketed, self._low, self._high)
        if here.value > best.value:
            other = here
        else:
            other = best if here.slope * _sign(best.slope) < 0.0 else other
            best = here
        self.step, self._bracketed = step, bracketed
        self._best, self._other = best.tilted(-tilt), other.tilted(-tilt)

    def _narrow(self) -> None:
        ends = self._best.step, self._other.step
        if self._bracketed:
            width = abs(ends[1] - ends[0])
            if width >= _SHRINK * self._widths[0]:
                self.step = ends[0] + 0.5 * (ends[1] - ends[0])
            self._widths = self._widths[1], width
            self._low, self._high = min(ends), max(ends)
        else:
            ahead = self.step - ends[0]
            self._low, self._high = self.step + 1.1 * ahead, self.step + 4.0 * ahead
        self.step = min(max(self.step, 0.0), _LONGEST)
        narrow = self._high - self._low <= _NARROW * self._high
        if self._bracketed and (narrow or not self._low < self.step < self._high):
            self.step = ends[0]  # the best there is


def _next_step(best: Point, other: Point, here: Point, bracketed: bool, low: float, high: float) -> tuple[float, bool]:
    """Section 4: the step to look at next, and whether a minimiser is between two points now."""
    apart = here.step - best.step
    if here.value > best.value:  # case 1
        cubic = _cubic(best, here)
        quadratic = best.step + best.slope / ((best.value - here.value) / apart + best.slope) / 2.0 * apart
        nearer = abs(cubic - best.step) < abs(quadratic - best.step)
        return (cubic if nearer else cubic + (quadratic - cubic) / 2.0), True
    secant = here.step + here.slope / (here.slope - best.slope) * -apart if here.slope != best.slope else high
    if here.slope * _sign(best.slope) < 0.0:  # case 2
        cubic = _cubic(here, best)
        return (cubic if abs(cubic - here.step) > abs(secant - here.step) else secant), True
    if abs(here.slope) < abs(best.slope):  # case 3
        ahead = _cubic_ahead(best, here)
        cubic = ahead if ahead is not None else (high if apart > 0.0 else low)
        nearer = abs(cubic - here.step) < abs(secant - here.step)
        step = cubic if nearer == bracketed else secant
        if not bracketed:
            return min(max(step, low), high), False
        limit = here.step + _SHRINK * (other.step - here.step)
        return (min(step, limit) if apart > 0.0 else max(step, limit)), True
    if bracketed:  # case 4
        return _cubic(here, other), True
    return (high if apart > 0.0 else low), False


def _cubic(a: Point, b: Point) -> float:
    """The minimiser of the cubic through two points between which it has one, counted from a."""
    theta, gamma = _cubic_terms(a, b)
    gamma = -gamma if b.step < a.step else gamma
    return a.step + _share(gamma - a.slope + theta, 2.0 * gamma - a.slope + b.slope) * (b.step - a.step)


def _cubic_ahead(best: Point, here: Point) -> float | None:
    """The minimiser of the cubic beyond `here`; None where it falls for ever, or that lies behind."""
    theta, gamma = _cubic_terms(best, here)
    gamma = -gamma if here.step > best.step else gamma
    share = _share(gamma - here.slope + theta, 2.0 * gamma - here.slope + best.slope)
    return here.step + share * (best.step - here.step) if share < 0.0 and gamma != 0.0 else None


def _cubic_terms(a: Point, b: Point) -> tuple[float, float]:
    theta = 3.0 * (a.value - b.value) / (b.step - a.step) + a.slope + b.slope
    size = max(abs(theta), abs(a.slope), abs(b.slope))
    return theta, size * sqrt(max(0.0, _share(theta, size) ** 2 - _share(a.slope, size) * _share(b.slope, size)))


def _share(part: float, whole: float) -> float:
    return part / whole if whole else 0.0


def _sign(value: float) -> float:
    return -1.0 if value < 0.0 else 1.0


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
