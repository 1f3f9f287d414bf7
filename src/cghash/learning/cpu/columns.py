"""The columns found so far, as bits over pair slots in memory."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ... import _kernels
from ..._arrays import Bools, Floats, Ints
from ..backend import column_key
from ..losses import Loss, closed_dual, kernel_code
from ..triplets import TripletSet


class Columns:
    """Columns a_j over a triplet set, kept as bits over its pair slots (design §3.1)."""

    def __init__(self, triplets: TripletSet, loss: Loss, n_threads: int = 1, capacity: int = 0) -> None:
        self.triplets = triplets
        self.n_triplets, self.n_slots = triplets.n_triplets, triplets.n_slots
        self.loss = loss
        self.n_threads = n_threads
        self._code = kernel_code(loss)
        self._table = _kernels.PairTable(
            triplets.anchors,
            triplets.near_ptr,
            triplets.near,
            triplets.far_ptr,
            triplets.far,
            triplets.weights,
            triplets.n_items,
        )
        self._table.reserve(capacity)
        self.n_evaluations = 0

    @property
    def n_columns(self) -> int:
        return int(self._table.n_columns)

    def append(self, bits: Bools) -> None:
        """Add the column of a hash function, from its bit of each item (n_items,)."""
        self._table.append(np.ascontiguousarray(bits, dtype=np.uint8))

    key = staticmethod(column_key)

    def evaluate(self, w: Floats) -> tuple[float, Floats]:
        """F(w) and ∇F(w) (m,); gain_j = −∂F/∂w_j."""
        self.n_evaluations += 1
        if self._code is not None:
            value, gradient = self._table.evaluate(self._code, w, self.n_threads)
            return float(value), gradient
        value, slopes = self.slopes(w)
        return value, self.adjoint(slopes)

    def distances(self, w: Floats) -> Floats:
        """Weighted distance D (n_slots,) of each slot's pair."""
        return self._table.distances(w, self.n_threads)  # type: ignore[no-any-return]

    def slopes(self, w: Floats) -> tuple[float, Floats]:
        """F(w) and ∂F/∂D (n_slots,): Σ p u on near slots, −Σ p u on far slots, u from the KKT condition (eq. 10)."""
        D = self.distances(w)
        if self._code is not None:
            value, q = self._table.loss(self._code, D, self.n_threads)
            return float(value), q
        total, q = 0.0, np.zeros(self.triplets.n_slots)
        for margin, near, far, p in self.margins(D):
            total += float(p @ self.loss.value(margin).sum(axis=(1, 2)))
            u = -np.asarray(self.loss.derivative(margin))
            q[near] = p[:, None] * u.sum(axis=2)
            q[far] = -p[:, None] * u.sum(axis=1)
        return total, q

    def adjoint(self, slopes: Floats) -> Floats:
        """Σ_slot slopes·bit_j (m,) for each column; −adjoint is the gains."""
        return self._table.adjoint(slopes, self.n_threads)  # type: ignore[no-any-return]

    def counts(self, w: Floats) -> tuple[float, int]:
        """Share of triplets satisfied, by weight, and how many still have a multiplier."""
        D = self.distances(w)
        dead_above = float(getattr(self.loss, "dead_above", np.inf))
        share, live = self._table.counts(D, 0.0, dead_above, self.n_threads)
        return min(float(share), 1.0), int(live)

    def dual_value(self, w: Floats, scale: float) -> float:
        """−Σ p f*(−scale·u) for the multipliers u at w: the dual objective of a scaled u (eq. 9)."""
        D = self.distances(w)
        closed = closed_dual(self.loss)
        if closed is not None:
            value, q = self._table.loss(self._code, D, self.n_threads)
            return closed(scale, float(value), float(-q[q < 0].sum()), -float(q @ D))
        total = 0.0
        for margin, _, _, p in self.margins(D):
            u = -np.asarray(self.loss.derivative(margin))
            total -= float(p @ self.loss.conjugate(-scale * u).sum(axis=(1, 2)))
        return total

    def margins(self, D: Floats) -> Iterator[tuple[Floats, Ints, Ints, Floats]]:
        """Margins (b, K⁺, K⁻) of runs of blocks, with their near slots, far slots and weights."""
        t = self.triplets
        return _kernels.twins.block_margins(np.diff(t.near_ptr), np.diff(t.far_ptr), t.weights, D)
