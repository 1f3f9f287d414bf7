"""What computes a fit: declared once, and offered by each backend.

| backend | room                         | items and triplets lie …                        |
|---------|------------------------------|-------------------------------------------------|
| CPU     | `cghash.learning.cpu`        | in memory; native kernels, or their NumPy twins |
| GPU     | `cghash.device.learning`     | on a device of torch's                          |
| cluster | `cghash.cluster.learning`    | in partitions on the workers of Dask            |

`CGHash` puts the first two together by `Backend`; `cluster.fit`, whose comparisons are made on the workers, by itself.
Algorithm 1 (column_generation.py) asks `ColumnSums` and `PairWeights` and knows triplets through them alone; the search
for a hyperplane (projection.py) asks `ItemSums`. So both run wherever the items are. Only weights, directions and sums
come back, nothing as long as the items or the triplets. Values of items are floats and their sums are doubles, so that
a sum is the same to ten digits however the items are divided; items without a live pair add nothing to it.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from .._arrays import Array, Bools, Floats, Ints, Singles

if TYPE_CHECKING:
    from .column_generation import Problem
    from .families.base import Family
    from .losses import Loss
    from .triplets import TripletSet

Direction = tuple[Floats, float]  # v (d,), b
Solver = Callable[[Floats], Floats]  # right (d,) ↦ v (d,)
Nearest = Callable[[Any, Any, int, int, int], tuple[Ints, Ints]]  # as `cpu.neighbors.nearest`

MOST_CUTS = 255  # of a direction in one pass: places among them fit a byte
LEAST_RIDGE = 1e-12  # where all features are zero


class Backend(Protocol):
    """Where the steps of `CGHash.fit` are done."""

    def holds(self, X: Any) -> bool:
        """Whether items lie there already, in a form that scikit-learn does not check."""

    def checked(self, X: Any) -> Any:
        """Such items (n, d), checked."""

    def memory(self, X: Any, family: Family, n_slots: int, n_bits: int) -> AbstractContextManager[None]:
        """A context of a fit; an error says how much memory is lacking."""

    def put(self, X: Any) -> Any:
        """Checked items, there."""

    nearest: Nearest  # relevant (n, n_near) and irrelevant (n, n_far) items of each

    def family(self, family: Family) -> Family:
        """The same family, searched there."""

    def sums(self, triplets: TripletSet, problem: Problem, n_bits: int) -> tuple[ColumnSums, PairWeights]:
        """Columns over the triplets, and signed weights of their pairs and of the duplets."""


class ColumnSums(Protocol):
    """The columns found so far, and F(w) = Σ_i p_i f(ρ_i) with its derivatives; bits and slopes are only handed on."""

    loss: Loss
    n_triplets: int
    n_slots: int
    n_evaluations: int

    @property
    def triplets(self) -> TripletSet | None:
        """None where they are not in memory."""

    @property
    def n_columns(self) -> int: ...

    def append(self, bits: Any) -> None:
        """Add the column of a hash function, from its bit of each item."""

    def key(self, bits: Any) -> bytes:
        """The same for a function and its complement, which give the same column."""

    def evaluate(self, w: Floats) -> tuple[float, Floats]:
        """F(w) and ∇F(w) (m,); gain_j = −∂F/∂w_j."""

    def slopes(self, w: Floats) -> tuple[float, Any]:
        """F(w) and ∂F/∂D (n_slots,): Σ p u on near slots, −Σ p u on far slots, u from the KKT condition (eq. 10)."""

    def adjoint(self, slopes: Any) -> Floats:
        """Σ_slot slopes·bit_j (m,) for each column; −adjoint is the gains."""

    def counts(self, w: Floats) -> tuple[float, int]:
        """Share of triplets satisfied, by weight, and how many still have a multiplier."""

    def dual_value(self, w: Floats, scale: float) -> float:
        """−Σ p f*(−scale·u) for the multipliers u at w: the dual objective of a scaled u (eq. 9)."""


class PairWeights(Protocol):
    """Signed weights of the pairs; the rest is between a backend's pairs and its families."""

    @property
    def n_live(self) -> int: ...

    def set_slopes(self, slopes: Any, duplet: float) -> None:
        """Weights from slopes over the slots of triplets; the slots behind them, of duplets, get −duplet."""


class Pull(NamedTuple):
    """Where a target r (n_live,) pulls a hyperplane over features Z."""

    right: Array  # Zᵀr (d,)
    total: float  # Σ r
    absolute: float  # Σ |r|


class Moments(NamedTuple):
    """Of projections Z·V (n_live, m), each item weighing what its near pairs do."""

    weight: float  # Σ λ
    first: Floats  # Σ λ z (m,)
    second: Floats  # Σ λ z² (m,)


class ItemSums(Protocol):
    """Sums over the live items of one pricing problem, each from one or two passes over their features Z.

    L is the Laplacian of the signed pairs.
    """

    n_items: int  # all of them
    n_features: int
    n_bytes: int  # of the live items' features
    scale: float  # Σ|s|: no gain is larger

    def draw_gains(self, V: Singles, b: Singles) -> Array:
        """tᵀLt (m,) of t = tanh(Z·V + b) for each of m hyperplanes, V (d, m)."""

    def relaxed(self, points: Floats) -> tuple[Floats, Floats]:
        """tᵀLt (m,) for t = tanh(Z·v + b) at m points (m, d + 1), v with b behind; half its gradients (m, d + 1)."""

    def pull(self, direction: Direction, shift: float, signed: bool) -> Pull:
        """The pull of r = (L + shift·Λ)h, with h = Z·v + b or its signs; Λ = 2·Σ|s⁻| makes L + Λ convex."""

    def sign_gain(self, direction: Direction) -> float:
        """¼·hᵀLh for h = sign(Z·v + b)."""

    def moments(self, V: Singles) -> Moments:
        """How the projections on V (d, m) lie."""

    def cut_gains(self, V: Singles, cuts: Floats) -> Floats:
        """The true gain (m, T) of [Z·v > cut] for each direction (d, m) and each of its T cuts (m, T), rising."""

    def ridge(self, share: float) -> Solver:
        """Of (ZᵀZ + λI)·v = right, over all items, with λ such a share of the mean eigenvalue of ZᵀZ."""


def column_key(bits: Bools) -> bytes:
    """What tells a column from others: the same for a function and its complement, from its bits (n_items,)."""
    return np.packbits(bits ^ bits[0]).tobytes()
