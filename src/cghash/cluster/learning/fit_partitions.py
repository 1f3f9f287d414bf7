"""What a worker holds of a fit: the items of a partition, their triplets and their columns, and sums over them."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from ..._arrays import Array, Bools, Floats, Ints, Singles
from ...exceptions import NothingToLearnError
from ...hasher import CGHash
from ...learning.backend import Direction
from ...learning.cpu.columns import Columns
from ...learning.cpu.features import Features, are_bytes
from ...learning.cpu.item_sums import CpuItemSums
from ...learning.cpu.pairs import SignedPairs
from ...learning.losses import loss_of
from ...learning.triplets import TripletSet, from_rows
from ..partitions import Partition
from .feature_maps import FeatureMap, Planes, Prepared, RBFFeatureMap
from .tree_sums import Sums


@dataclass(frozen=True)
class Source:
    """Where a partition's items come from; with `near` and `far`, row i of the three is a triplet of the user's own."""

    number: int
    items: Partition
    near: Partition | None = None
    far: Partition | None = None

    def read(self) -> tuple[Array, Array | None]:
        """Items (n, d) and labels; of three partitions, the anchors, then the near ones, then the far ones."""
        first = self.items.read()
        if self.near is None or self.far is None:
            return first.X, first.y
        return np.concatenate([first.X, self.near.read().X, self.far.read().X]), None

    def own_triplets(self) -> TripletSet:
        """Anchor, near and far item of each row of three partitions."""
        t = np.arange(self.items.n_rows)
        return from_rows(np.stack([t, t + len(t), t + 2 * len(t)], axis=1), 3 * len(t)) if len(t) else _no_triplets(0)


@dataclass(frozen=True)
class Plan:
    """What decides a partition besides its items."""

    model: CGHash  # not fitted: its parameters
    seed: int
    in_memory: bool  # else items are read anew for each sum


@dataclass(frozen=True)
class History:
    """All that happened to the partitions so far, so that a lost one can be made again."""

    feature_map: FeatureMap | None = None
    n_triplets: int = 0  # of all partitions together
    planes: Planes | None = None
    weights: Floats | None = None  # at which slopes were taken last


class FitPartition:
    """One partition of a fit; every method named in `backend.py` answers with sums over its items or triplets."""

    def __init__(self, source: Source, plan: Plan, n_threads: int) -> None:
        self.source, self.plan, self.n_threads = source, plan, n_threads
        self.step = 0  # how many of the calls that change a partition it has seen
        self.feature_map: FeatureMap | None = None
        X, y = source.read()
        self.n_items = len(X)
        self.triplets = self._compared(X, y)
        self._items = X if plan.in_memory else None
        self._prepared: Prepared | None = None
        self._item_sums: CpuItemSums | None = None

    def restore(self, history: History) -> None:
        """Go through what happened before."""
        if history.feature_map is not None:
            self.begin(history.feature_map, history.n_triplets)
        if history.planes is not None:
            self.append(history.planes)
        if history.weights is not None:
            self.slopes(history.weights)

    # before the first column

    def about(self) -> dict[str, Any]:
        """Counts, and the extremes of each feature (d,)."""
        X, t = self.items(), self.triplets
        return {
            "n_items": self.n_items,
            "n_triplets": t.n_triplets,
            "n_slots": t.n_slots,
            "low": X.min(axis=0).astype(np.float64) if len(X) else np.full(X.shape[1], np.inf),
            "high": X.max(axis=0).astype(np.float64) if len(X) else np.full(X.shape[1], -np.inf),
        }

    def are_bytes(self) -> bool:
        return are_bytes(self.items())

    def item_sum(self) -> Sums:
        return (self.items().sum(axis=0, dtype=np.float64),)

    def square_sum(self, mean: Floats) -> Sums:
        """Σ (x − mean)² (d,)."""
        X = self.items()
        blocks = (X[first : first + 8192] for first in range(0, len(X), 8192))
        return (sum((np.sum((block - mean) ** 2, axis=0) for block in blocks), np.zeros(X.shape[1])),)

    def rows(self, numbers: list[Ints]) -> Array:
        """Some items, by the rows that each partition is asked for."""
        return self.items()[numbers[self.source.number]]

    def bump_sum(self, feature_map: RBFFeatureMap) -> Sums:
        """Σ of the bumps (m,)."""
        return (feature_map.bumps(self.items()).sum(axis=0, dtype=np.float64),)

    def bump_square(self, feature_map: RBFFeatureMap) -> Sums:
        """Σ of the squared bumps of all landmarks."""
        return (float(np.sum(feature_map.bumps(self.items()) ** 2, dtype=np.float64)),)

    # what changes a partition

    def begin(self, feature_map: FeatureMap, n_triplets: int) -> Sums:
        """The features are known, and what one triplet of `n_triplets` weighs."""
        self.feature_map = feature_map
        if self.plan.in_memory:
            self._prepared, self._items = feature_map.prepared(self.items(), self.n_threads), None
        t = self.triplets
        weights = t.weights * (t.n_triplets / n_triplets)  # so that the weights of all partitions sum to 1
        t = TripletSet(t.anchors, t.near, t.near_ptr, t.far, t.far_ptr, weights, t.n_items)
        model = self.plan.model
        self.columns = Columns(t, loss_of(model.loss), self.n_threads, min(model.n_bits, 256))
        self.pairs = SignedPairs(*t.slots(), t.n_items, self.n_threads)
        return ()

    def append(self, planes: Planes) -> Sums:
        if self.triplets.n_triplets:
            columns = planes.bits(self.prepared().matrix, self.n_threads).T
        else:  # nothing to read for: the columns are only counted
            columns = np.zeros((len(planes.intercept), self.n_items), dtype=bool)
        for column in columns:
            self.columns.append(column)
        return ()

    def slopes(self, w: Floats) -> Sums:
        """F(w), the slopes' adjoint (m,), Σ|s|, live items; the pricing problem is then the one at w."""
        self._item_sums = None
        value, q = self.columns.slopes(w)
        self.pairs.set_slopes(q, 0.0)
        return value, self.columns.adjoint(q), self.pairs.scale, self.pairs.n_live

    # the master problem

    def evaluate(self, w: Floats) -> Sums:
        return self.columns.evaluate(w)

    def counts(self, w: Floats) -> Sums:
        return self.columns.counts(w)

    def dual_value(self, w: Floats, scale: float) -> Sums:
        return (self.columns.dual_value(w, scale),)

    # the pricing problem

    def candidates(self, planes: Planes) -> Sums:
        """The true gain of each plane (m,), and two numbers (m, 2) that tell its bits, and their complements."""
        bits = planes.bits(self.prepared().matrix, self.n_threads)
        gains = np.array([self.pairs.gain(column) for column in bits.T])
        number = str(self.source.number).encode()
        known = [[_told(number, column), _told(number, ~column)] for column in bits.T]
        return gains, np.array(known, dtype=object)

    def draw_gains(self, V: Singles, b: Singles) -> Sums:
        return (self.item_sums().draw_gains(V, b).astype(np.float64),)

    def relaxed(self, points: Floats) -> Sums:
        return self.item_sums().relaxed(points)

    def pull(self, direction: Direction, shift: float, signed: bool) -> Sums:
        return tuple(self.item_sums().pull(direction, shift, signed))

    def sign_gain(self, direction: Direction) -> Sums:
        return (self.item_sums().sign_gain(direction),)

    def moments(self, V: Singles) -> Sums:
        return tuple(self.item_sums().moments(V))

    def cut_gains(self, V: Singles, cuts: Floats) -> Sums:
        return (self.item_sums().cut_gains(V, cuts),)

    def gram(self) -> Sums:
        return (self.prepared().features.gram(),)

    # items and features, which stay where memory allows

    def items(self) -> Array:
        return self.source.read()[0] if self._items is None else self._items

    def prepared(self) -> Prepared:
        assert self.feature_map is not None
        return self.feature_map.prepared(self.items(), self.n_threads) if self._prepared is None else self._prepared

    def item_sums(self) -> CpuItemSums:
        """Over the live items of the last slopes; where there are none, nothing is read."""
        if self._item_sums is not None:
            return self._item_sums
        made = CpuItemSums(self.prepared().features if self.pairs.n_live else self._no_features(), self.pairs)
        self._item_sums = made if self.plan.in_memory else None
        return made

    def _no_features(self) -> Features:
        assert self.feature_map is not None
        return Features(np.zeros((0, self.feature_map.n_features), np.float32), None, self.n_threads)

    def _compared(self, X: Array, y: Array | None) -> TripletSet:
        """The triplets among these items; none where there are too few items or classes to compare."""
        if self.source.near is not None:
            return self.source.own_triplets()
        seed = np.random.default_rng([self.plan.seed, 2**31 + 2, self.source.number]).integers(2**31 - 1)
        try:
            # the other cores are other workers'
            model: CGHash = clone(self.plan.model).set_params(n_jobs=self.n_threads)
            return model._triplets(X, y, None, None, int(seed))
        except NothingToLearnError:
            return _no_triplets(len(X))


def _no_triplets(n_items: int) -> TripletSet:
    none, pointers = np.zeros(0, np.int64), np.zeros(1, np.int64)
    return TripletSet(none, none, pointers, none, pointers, np.zeros(0), n_items)


def _told(number: bytes, bits: Bools) -> int:
    """A number that tells the bits of a partition; such numbers are added up."""
    return int.from_bytes(hashlib.blake2b(number + b" " + np.packbits(bits).tobytes(), digest_size=16).digest())
