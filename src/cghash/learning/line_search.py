"""Steps along a line that satisfy the strong Wolfe conditions, by safeguarded cubic and quadratic interpolation.

J. J. Moré, D. J. Thuente: Line search algorithms with guaranteed sufficient decrease. ACM Transactions on Mathematical
Software 20(3), 1994; "section" below is one of theirs. Constants are those of L-BFGS-B (Zhu, Byrd, Lu, Nocedal 1997).
"""

from __future__ import annotations

from math import sqrt
from typing import NamedTuple

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
