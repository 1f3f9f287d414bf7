"""Convex losses of a margin: value, derivative and Fenchel conjugate.

A loss falls as the margin grows. Any object with `value`, `derivative` and `conjugate`, each from arrays to arrays, is
a loss; `smooth = False` on it asks for the solver of non-smooth problems.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

import numpy as np

from .._arrays import Floats
from .._validation import did_you_mean
from ..exceptions import InvalidInputError

ClosedDual = Callable[[float, float, float, float], float]  # scale, Σ p f(ρ), Σ p u, Σ p u ρ


@runtime_checkable
class Loss(Protocol):
    """What the method asks of a loss f."""

    def value(self, margin: Floats) -> Floats:
        """f(ρ), convex and not increasing."""

    def derivative(self, margin: Floats) -> Floats:
        """f'(ρ) ≤ 0, or a subgradient where f has a kink."""

    def conjugate(self, slope: Floats) -> Floats:
        """f*(v) = sup_ρ vρ − f(ρ), ∞ where unbounded."""


class _BuiltIn:
    """A loss with a name; `code` is its number in the kernels, None where these do not know it."""

    code: int | None = None
    name: str
    smooth = True
    dead_above = np.inf  # margins from here on have no multiplier

    closed_dual: ClosedDual | None = None  # −Σ p f*(−scale·u), where these sums say it

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class SquaredHinge(_BuiltIn):
    """f(ρ) = max(0, 1 − ρ)².

    >>> SquaredHinge().value(np.array([0.0, 0.5, 2.0]))
    array([1.  , 0.25, 0.  ])
    """

    code, name, dead_above = 0, "squared_hinge", 1.0

    def value(self, margin: Floats) -> Floats:
        return np.maximum(1.0 - margin, 0.0) ** 2

    def derivative(self, margin: Floats) -> Floats:
        return -2.0 * np.maximum(1.0 - margin, 0.0)

    def conjugate(self, slope: Floats) -> Floats:
        return np.where(slope <= 0.0, slope + slope**2 / 4.0, np.inf)

    @staticmethod
    def closed_dual(scale: float, value: float, total: float, moment: float) -> float:
        return scale * total - scale**2 * value  # f*(−v) = −v + v²/4, and u²/4 = f


class Hinge(_BuiltIn):
    """f(ρ) = max(0, 1 − ρ).

    >>> Hinge().derivative(np.array([0.0, 2.0]))
    array([-1., -0.])
    """

    code, name, smooth, dead_above = 1, "hinge", False, 1.0

    def value(self, margin: Floats) -> Floats:
        return np.maximum(1.0 - margin, 0.0)

    def derivative(self, margin: Floats) -> Floats:
        return -(margin < 1.0).astype(np.float64)

    def conjugate(self, slope: Floats) -> Floats:
        return np.where((slope <= 0.0) & (slope >= -1.0), slope, np.inf)

    @staticmethod
    def closed_dual(scale: float, value: float, total: float, moment: float) -> float:
        return scale * total  # f*(−v) = −v on [0, 1]


class Logistic(_BuiltIn):
    """f(ρ) = log(1 + exp(−ρ)).

    >>> float(Logistic().value(np.array(0.0)).round(4))
    0.6931
    """

    code, name = 2, "logistic"

    def value(self, margin: Floats) -> Floats:
        return np.logaddexp(0.0, -margin)

    def derivative(self, margin: Floats) -> Floats:
        small = np.exp(-np.abs(margin))
        return -np.where(margin > 0, small, 1.0) / (1.0 + small)

    def conjugate(self, slope: Floats) -> Floats:
        u = -np.asarray(slope, dtype=np.float64)
        inside = (u >= 0.0) & (u <= 1.0)
        u = np.where(inside, u, 0.0)
        return np.where(inside, _entropy(u) + _entropy(1.0 - u), np.inf)


class Exponential(_BuiltIn):
    """f(ρ) = exp(−ρ).

    >>> Exponential().derivative(np.array([0.0]))
    array([-1.])
    """

    code, name = 3, "exponential"

    def value(self, margin: Floats) -> Floats:
        return np.exp(-margin)

    def derivative(self, margin: Floats) -> Floats:
        return -np.exp(-margin)

    def conjugate(self, slope: Floats) -> Floats:
        u = np.maximum(-np.asarray(slope, dtype=np.float64), 0.0)
        return np.where(np.asarray(slope) <= 0.0, _entropy(u) - u, np.inf)

    @staticmethod
    def closed_dual(scale: float, value: float, total: float, moment: float) -> float:
        log_scale = float(np.log(scale)) if scale > 0 else 0.0
        return scale * (moment + total - log_scale * total)  # f*(−v) = v log v − v with log u = −ρ


def _entropy(u: Floats) -> Floats:
    """u·log u, 0 at 0."""
    return u * np.log(np.where(u > 0.0, u, 1.0))


LOSSES = {loss.name: loss for loss in (SquaredHinge(), Hinge(), Logistic(), Exponential())}


def kernel_code(loss: Loss) -> int | None:
    """The number by which the kernels know a loss; None for one that they do not, also one derived from another."""
    return loss.code if type(loss) in {type(known) for known in LOSSES.values()} else None  # type: ignore[attr-defined]


def closed_dual(loss: Loss) -> ClosedDual | None:
    """That of a built-in loss, where it has one; None for all others, whose formulas are their own."""
    return None if kernel_code(loss) is None else loss.closed_dual  # type: ignore[attr-defined]


def loss_of(loss: Any) -> Loss:
    """The loss object that a parameter means: a name, or the user's own object."""
    if isinstance(loss, str):
        if loss not in LOSSES:
            raise InvalidInputError(
                f"loss must be one of {sorted(LOSSES)} or a loss object, got {loss!r}{did_you_mean(loss, LOSSES)}"
            )
        return LOSSES[loss]
    missing = [name for name in ("value", "derivative", "conjugate") if not callable(getattr(loss, name, None))]
    if missing or isinstance(loss, type):
        raise InvalidInputError(
            f"loss must be one of {sorted(LOSSES)} or an object with methods value, derivative and conjugate; "
            f"got {loss!r}, without {', '.join(missing) or 'being an instance'}"
        )
    return loss  # type: ignore[no-any-return]
