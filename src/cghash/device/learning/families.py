"""Linear and RBF functions whose features lie on a device."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np

from ..._arrays import Array, Bools, Ints
from ..._tensors import import_torch
from ...learning.backend import Direction
from ...learning.cpu.features import scaler_of
from ...learning.families.base import Candidate, Functions
from ...learning.families.linear import LinearFamily, LinearFunctions
from ...learning.families.projection import HyperplaneFamily, ProjectionPricing
from ...learning.families.rbf import SAMPLE, RBFFamily, RBFFunctions, drawn_items, gamma_for, pricing_over_bumps
from .item_sums import DeviceItemSums
from .pairs import DevicePairs

Tensor = Any

_AT_ONCE = 1 << 24  # float64 numbers at a time


class DeviceFamily(HyperplaneFamily):
    """Hyperplanes over float32 features on a device."""

    features: Tensor  # (n, d)

    def item_sums(self, pairs: DevicePairs) -> DeviceItemSums:
        return DeviceItemSums(self.features, pairs)

    def candidates(self, directions: list[Direction], pairs: DevicePairs) -> list[Candidate]:
        functions = [self.function(direction) for direction in directions]
        bits = self._bits([self.direction(function) for function in functions])
        gains = pairs.gains(bits).tolist()
        return [Candidate(*one) for one in zip(functions, bits.cpu().numpy(), gains, strict=True)]

    def training_bits(self, function: Functions) -> Bools:
        return self._bits([self.direction(function)]).cpu().numpy()[0]  # type: ignore[no-any-return]

    @abstractmethod
    def function(self, direction: Direction) -> Functions:
        """The hash function of a direction over the features."""

    @abstractmethod
    def direction(self, function: Any) -> Direction:
        """The inverse of `function`."""

    def _bits(self, directions: list[Direction]) -> Tensor:
        """The bits (m, n) of directions, from products in doubles."""
        torch = import_torch()
        V = torch.from_numpy(np.stack([v for v, _ in directions])).to(self.features.device)  # (m, d)
        b = torch.from_numpy(np.array([b for _, b in directions])).to(self.features.device)
        parts = [rows.double() @ V.T + b > 0 for rows in _blocks(self.features)]
        return torch.cat(parts).T.contiguous()


class DeviceLinear(DeviceFamily):
    """All hyperplanes over standardised items."""

    def __init__(self, family: LinearFamily) -> None:
        self.pricing = ProjectionPricing(family.refined)

    def prepare(self, X: Tensor, rng: np.random.Generator, n_threads: int) -> None:
        torch = import_torch()
        n = len(X)
        mean = sum(rows.double().sum(dim=0) for rows in _blocks(X)) / n
        variance = sum((rows.double() - mean).square_().sum(dim=0) for rows in _blocks(X)) / n
        found = (mean, variance, X.amin(dim=0).double(), X.amax(dim=0).double())
        exact = X.dtype == torch.float64
        self.scaler = scaler_of(*(values.cpu().numpy() for values in found), exact)  # type: ignore[call-arg]
        scale = torch.from_numpy(self.scaler.scale).to(X.device)
        self.features = torch.empty(X.shape, dtype=torch.float32, device=X.device)
        for rows, out in zip(_blocks(X), _blocks(self.features), strict=True):
            torch.div(rows.double() - mean, scale, out=out)

    def function(self, direction: Direction) -> LinearFunctions:
        return LinearFunctions.along([direction], self.scaler)

    def direction(self, function: Any) -> Direction:
        coef = function.coef[0]
        scale = np.where(np.isfinite(self.scaler.scale), self.scaler.scale, 0.0)
        return coef * scale, float(function.intercept[0] + self.scaler.mean @ coef)


class DeviceRBF(DeviceFamily):
    """Hyperplanes over Gaussian bumps around landmarks."""

    def __init__(self, family: RBFFamily) -> None:
        self.host = family
        self.pricing = pricing_over_bumps(family.refined)

    def prepare(self, X: Tensor, rng: np.random.Generator, n_threads: int) -> None:
        """As `RBFFamily.prepare`; landmarks are chosen on the host, where k-means is."""
        torch = import_torch()
        host = _Rows(X) if self.host.choose_landmarks is drawn_items else X.cpu().numpy()
        self.landmarks = self.host.choose_landmarks(host, self.host.n_landmarks, rng)
        sample = _Rows(X)[np.sort(rng.choice(len(X), min(SAMPLE, len(X)), replace=False))]
        self.gamma = gamma_for(sample, self.landmarks, self.host.width)
        self.features = torch.empty((len(X), len(self.landmarks)), dtype=torch.float32, device=X.device)
        self._fill(X)
        mean = sum(rows.sum(dim=0, dtype=torch.float64) for rows in _blocks(self.features)) / len(X)
        self.mean = mean.cpu().numpy()
        self._fill(X, mean)
        square = sum(rows.double().square_().sum() for rows in _blocks(self.features))
        self.size = float(np.sqrt(float(square) / len(X))) or 1.0
        self.features /= self.size

    def function(self, direction: Direction) -> RBFFunctions:
        v, b = direction
        gamma = np.array([self.gamma])
        return RBFFunctions(v[None, :] / self.size, np.array([b]), self.landmarks, gamma, self.mean)

    def direction(self, function: Any) -> Direction:
        return function.coef[0] * self.size, float(function.intercept[0])

    def _fill(self, X: Tensor, mean: Tensor | float = 0.0) -> None:
        """features ← exp(−γ‖x − landmark‖²) − mean, by products in doubles about the landmarks' centre."""
        torch = import_torch()
        landmarks = torch.from_numpy(self.landmarks).to(X.device)
        centre = landmarks.mean(dim=0)
        B = landmarks - centre
        squares = (B * B).sum(dim=1)
        step = max(1, _AT_ONCE // max(B.shape))
        for rows, out in zip(X.split(step), self.features.split(step), strict=True):
            A = rows.double() - centre
            apart = ((A * A).sum(dim=1)[:, None] + squares - 2.0 * A @ B.T).clamp_(min=0.0)
            out.copy_(torch.exp(-self.gamma * apart) - mean)


class _Rows:
    """Items on a device of which some rows are wanted on the host."""

    def __init__(self, X: Tensor) -> None:
        self.X = X

    def __len__(self) -> int:
        return len(self.X)

    def __getitem__(self, rows: Ints) -> Array:
        torch = import_torch()
        return self.X[torch.from_numpy(rows).to(self.X.device)].cpu().numpy()  # type: ignore[no-any-return]


def _blocks(X: Tensor) -> Any:
    return X.split(max(1, _AT_ONCE // X.shape[1]))
