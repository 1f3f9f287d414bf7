"""What the search for a hyperplane asks of items on a device: `ItemSums` there, each answer in one transfer."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._arrays import Array, Floats, Singles
from ..._tensors import import_torch
from ...learning.backend import LEAST_RIDGE, Direction, Moments, Pull, Solver
from .pairs import DevicePairs

Tensor = Any

_AT_ONCE = 1 << 24  # numbers gathered for pairs


class DeviceItemSums:
    """Sums over float32 features Z (n, d) of the live items of one pricing problem."""

    def __init__(self, Z: Tensor, pairs: DevicePairs) -> None:
        self.Z, self.pairs, self.device = Z, pairs, Z.device
        self.live = Z if pairs.items is None else Z[pairs.items]
        self.n_items, self.n_features = Z.shape
        self.n_bytes = self.live.nbytes
        self.scale = pairs.scale
        self._near_weight: Tensor | None = None
        self._recorded: dict[int, Any] = {}  # by the number of points

    def draw_gains(self, V: Singles, b: Singles) -> Array:
        t = import_torch().tanh(self.live @ self._put(V) + self._put(b))
        return self._pair_gains(t)

    def relaxed(self, points: Floats) -> tuple[Floats, Floats]:
        torch = import_torch()
        if self.device.type == "cuda":
            return self._recorded_for(len(points)).relaxed(points)  # type: ignore[no-any-return]
        x = self._put(points.astype(np.float32))
        t = (self.live @ x[:, :-1].T + x[:, -1]).tanh_().T.contiguous()  # (m, n_live)
        Lt = torch.stack([self.pairs.laplacian(one) for one in t])
        slope = torch.addcmul(Lt, Lt * t, t, value=-1.0)  # Lt·(1 − t²), ½·∂/∂z
        by_v = torch.stack([self._feature_sums(one) for one in slope])
        values = (t.double() * Lt.double()).sum(dim=1)
        by_b = slope.sum(dim=1, dtype=torch.float64)
        return values.numpy(), torch.column_stack([by_v, by_b]).numpy()

    def _recorded_for(self, n_points: int) -> Any:
        from .recorded import RecordedRelaxed

        if n_points not in self._recorded:
            self._recorded[n_points] = RecordedRelaxed(self.live, self.pairs, n_points)
        return self._recorded[n_points]

    def pull(self, direction: Direction, shift: float, signed: bool) -> Pull:
        torch = import_torch()
        h = self._values(direction)
        h = _signs(h) if signed else h
        target = self.pairs.laplacian(h)
        if shift:
            target = torch.addcmul(target, self._near(), h, value=2.0 * shift)
        sums = torch.stack([target.sum(dtype=torch.float64), target.abs().sum(dtype=torch.float64)])
        both = torch.cat([self._feature_sums(target), sums]).cpu().numpy()
        return Pull(both[:-2], float(both[-2]), float(both[-1]))

    def sign_gain(self, direction: Direction) -> float:
        h = _signs(self._values(direction))
        return float((h.double() * self.pairs.laplacian(h).double()).sum()) / 4.0

    def moments(self, V: Singles) -> Moments:
        weight = self._near().double()
        values = (self.live @ self._put(V)).double()
        torch = import_torch()
        sums = torch.cat([weight.sum().view(1), weight @ values, weight @ (values * values)]).cpu().numpy()
        m = V.shape[1]
        return Moments(float(sums[0]), sums[1 : 1 + m], sums[1 + m :])

    def cut_gains(self, V: Singles, cuts: Floats) -> Floats:
        """A pair gains at the cuts between its two places: its weight begins at one and ends at the other.

        Weights are added as whole numbers, 2⁻⁵⁰ of all of them together, so that their order does not matter.
        """
        torch = import_torch()
        m, T = cuts.shape
        values = (self.live @ self._put(V)).T.contiguous()  # (m, n_live)
        places = torch.searchsorted(self._put(cuts.astype(np.float32)), values)  # (m, n_live), 0 … T
        first, second, weights = self.pairs.live_slots()
        unit = np.ldexp(1.0, int(np.frexp(self.scale)[1]) - 50)
        whole = (weights / unit).round().long()
        steps = torch.zeros((m, T + 1), dtype=torch.int64, device=self.device)
        if self.device.type == "cuda":
            from .recorded import cut_steps

            cut_steps(first, second, whole, places, steps)
        else:
            for line, place in zip(steps, places, strict=True):
                a, b = place[first], place[second]
                line.scatter_add_(0, torch.minimum(a, b), whole)
                line.scatter_add_(0, torch.maximum(a, b), -whole)
        return (steps.cumsum(1)[:, :T].double() * unit).cpu().numpy()  # type: ignore[no-any-return]

    def ridge(self, share: float) -> Solver:
        """By the inverse, which λ keeps far from singular: a product is quicker there than two solutions."""
        torch = import_torch()
        gram = self._gram()
        gram.diagonal().add_(share * gram.trace() / len(gram) + LEAST_RIDGE)
        inverse = torch.cholesky_inverse(torch.linalg.cholesky(gram))
        return lambda right: (inverse @ torch.from_numpy(right).to(inverse.device)).cpu().numpy()

    def _gram(self) -> Tensor:
        """ZᵀZ (d, d) over all items."""
        torch = import_torch()
        total = torch.zeros((self.n_features, self.n_features), dtype=torch.float64, device=self.device)
        for rows in self.Z.split(max(1, _AT_ONCE // self.n_features)):
            block = rows.double()
            total += block.T @ block
        return total

    def _pair_gains(self, t: Tensor) -> Array:
        """Σ s·(t_i − t_j)² (m,) for values t (n_live, m)."""
        torch = import_torch()
        if self.device.type == "cuda":
            from .recorded import pair_gains

            m = t.shape[1]
            whole = torch.nn.functional.pad(t, (0, (1 << (m - 1).bit_length()) - m))
            return pair_gains(self.pairs, whole)[:m].cpu().numpy()  # type: ignore[no-any-return]
        first, second, weights = self.pairs.live_slots()
        total = torch.zeros(t.shape[1], dtype=torch.float64, device=self.device)
        step = max(1, _AT_ONCE // t.shape[1])
        for begin in range(0, len(weights), step):
            some = slice(begin, begin + step)
            apart = t[first[some]] - t[second[some]]
            total += weights[some].float() @ apart.square_()
        return total.cpu().numpy()  # type: ignore[no-any-return]

    def _values(self, direction: Direction) -> Tensor:
        v, b = direction
        return (self.live @ self._put(v.astype(np.float32))).add_(np.float32(b).item())

    def _near(self) -> Tensor:
        if self._near_weight is None:
            self._near_weight = self.pairs.near_weight()
        return self._near_weight

    def _feature_sums(self, r: Tensor) -> Tensor:
        """Zᵀr (d,) over the live items, in doubles."""
        if self.device.type != "cuda":
            return (self.live.T @ r).double()
        from .recorded import feature_sums

        return feature_sums(self.live, r)

    def _put(self, array: Array) -> Tensor:
        return import_torch().from_numpy(np.ascontiguousarray(array)).to(self.device, non_blocking=True)


def _signs(values: Tensor) -> Tensor:
    return (values > 0).float().mul_(2.0).sub_(1.0)
