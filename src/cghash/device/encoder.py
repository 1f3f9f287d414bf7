"""Items to packed codes on a device: linear and RBF hash functions, and items from host memory in blocks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from typing import Any

import numpy as np

from .._arrays import Codes, Floats
from .._tensors import device_of, import_torch, memory_for
from ..exceptions import InvalidInputError

Tensor = Any

_AT_ONCE = 1 << 24  # numbers that a block of items is multiplied to
BLOCK_BYTES = 1 << 26  # of items, copied at once
_LOWER = "encode fewer items at once"


class Encoder(ABC):
    """Hash functions on a device."""

    n_bits: int
    n_features: int

    def __init__(self, device: Any) -> None:
        self.device = device_of(device)

    def codes(self, X: Tensor) -> Tensor:
        """Packed codes (n, ⌈ℓ/8⌉) uint8 of items (n, d) on the device, float16, bfloat16, float32 or float64."""
        torch = import_torch()
        if not X.is_floating_point():
            X = X.float()
        if X.stride(-1) != 1:
            X = X.contiguous()
        needed = len(X) * -(-self.n_bits // 32) * 4
        with memory_for(f"encoding {len(X)} items", needed, self.device, _LOWER):
            words = self._words(X)
        return words.view(torch.uint8)[:, : -(-self.n_bits // 8)].contiguous()

    @abstractmethod
    def _words(self, X: Tensor) -> Tensor:
        """Codes as int32 words (n, ⌈ℓ/32⌉)."""


class LinearEncoder(Encoder):
    """Signs of X·coefᵀ + intercept; each function is scaled by a power of two, which changes no sign."""

    def __init__(self, coef: Floats, intercept: Floats, device: Any) -> None:
        super().__init__(device)
        self.n_bits, self.n_features = coef.shape
        largest = np.maximum(np.abs(coef).max(axis=1, initial=0.0), np.abs(intercept) * 2.0**-60)
        scale = np.ldexp(1.0, -np.frexp(largest)[1])
        self.coef, self.intercept = self._put(coef * scale[:, None]), self._put(intercept * scale)
        self._parts: dict[Any, tuple[Tensor, Tensor]] = {}

    def _put(self, array: Floats) -> Tensor:
        return import_torch().from_numpy(np.ascontiguousarray(array)).to(self.device)

    def _words(self, X: Tensor) -> Tensor:
        torch = import_torch()
        if self.device.type == "cuda" and X.dtype != torch.float64:
            from .signs import encode

            return encode(self, X)
        bits = []
        for rows in X.split(max(1, _AT_ONCE // self.n_features)):
            values = rows.double() @ self.coef.T + self.intercept
            check_finite(bool(values.isfinite().all()))
            bits.append(values > 0)
        return packed_words(torch.cat(bits) if bits else torch.zeros((0, self.n_bits), dtype=torch.bool))


class RBFEncoder(Encoder):
    """Signs of Σ_k coef_k·(exp(−γ‖x − landmark_k‖²) − mean_k) + intercept, in float32, or float64 for such items."""

    def __init__(
        self, coef: Floats, intercept: Floats, landmarks: Floats, gamma: float, mean: Floats, device: Any
    ) -> None:
        super().__init__(device)
        self.n_bits, self.n_features = len(coef), landmarks.shape[1]
        centre = landmarks.mean(axis=0)
        moved = landmarks - centre
        self.gamma = gamma
        arrays = coef, intercept - coef @ mean, centre, moved, (moved * moved).sum(axis=1)
        self._arrays = [import_torch().from_numpy(np.ascontiguousarray(a)).to(self.device) for a in arrays]

    def _words(self, X: Tensor) -> Tensor:
        torch = import_torch()
        dtype = torch.float64 if X.dtype == torch.float64 else torch.float32
        coef, intercept, centre, landmarks, squares = (array.to(dtype) for array in self._arrays)
        bits = []
        for rows in X.split(max(1, _AT_ONCE // len(landmarks))):
            A = rows.to(dtype) - centre
            check_finite(bool(A.isfinite().all()))
            apart = ((A * A).sum(dim=1)[:, None] + squares - 2.0 * A @ landmarks.T).clamp_(min=0.0)
            bits.append(torch.exp(-self.gamma * apart) @ coef.T + intercept > 0)
        return packed_words(torch.cat(bits) if bits else torch.zeros((0, self.n_bits), dtype=torch.bool))


def encoder_of(functions: Any, device: Any) -> Encoder:
    """Linear or RBF functions on a device; others have no products to be done there."""
    family = getattr(functions, "family", type(functions).__name__)
    if family == "linear":
        return LinearEncoder(functions.coef, functions.intercept, device)
    if family == "rbf":
        f = functions
        return RBFEncoder(f.coef, f.intercept, f.landmarks, float(f.gamma[0]), f.mean, device)
    raise InvalidInputError(f"device must be None for {family} functions: linear and RBF ones run on a device")


def packed_words(bits: Tensor) -> Tensor:
    """Bits (n, ℓ) as int32 words (n, ⌈ℓ/32⌉), bit j at place j % 32 of word j // 32."""
    torch = import_torch()
    n, width = bits.shape
    whole = torch.nn.functional.pad(bits, (0, -width % 8)).view(n, -1, 8)
    places = torch.tensor([1, 2, 4, 8, 16, 32, 64, 128], dtype=torch.uint8, device=bits.device)
    octets = (whole * places).sum(dim=2, dtype=torch.uint8)
    return torch.nn.functional.pad(octets, (0, -octets.shape[1] % 4)).contiguous().view(torch.int32)


def check_finite(is_finite: bool) -> None:
    if not is_finite:
        raise InvalidInputError("X must hold finite numbers whose products are finite, got NaN, infinity or too large")


def encode_blocks(encoder: Encoder, blocks: Iterable[Any]) -> Iterator[Codes]:
    """The codes of blocks of items (n, d), in order.

    Each block is written to one of two buffers that the device reads by itself, and is on its way while the codes of
    the block before are computed.
    """
    lanes = [_Lane(encoder) for _ in range(2)]
    before: _Lane | None = None
    for i, block in enumerate(blocks):
        lane = lanes[i % 2]
        lane.send(block)
        if before is not None:
            yield before.codes()
        before = lane
    if before is not None:
        yield before.codes()


def rows_of(X: Any) -> Iterator[Any]:
    """Items in host memory, mapped or not, in blocks."""
    step = max(1, BLOCK_BYTES // max(1, X.shape[1] * X.dtype.itemsize))
    for first in range(0, X.shape[0], step):
        yield X[first : first + step]


class _Lane:
    """A buffer on either side, and the stream that copies between them."""

    def __init__(self, encoder: Encoder) -> None:
        self.encoder = encoder
        self.on_gpu = encoder.device.type == "cuda"
        self.stream: Any = import_torch().cuda.Stream(encoder.device) if self.on_gpu else None
        self.buffer: Tensor | None = None
        self.items: Tensor | None = None

    def send(self, block: Any) -> None:
        torch = import_torch()
        values = np.asarray(block)
        values = values if values.dtype in (np.float16, np.float32, np.float64) else values.astype(np.float32)
        dtype = torch.from_numpy(np.empty(0, dtype=values.dtype)).dtype
        if self.buffer is None or self.buffer.dtype != dtype or len(self.buffer) < len(values):
            self.buffer = torch.empty(values.shape, dtype=dtype, pin_memory=self.on_gpu)
        host = self.buffer[: len(values)]
        np.copyto(host.numpy(), values)
        with self._in_stream():
            self.items = host.to(self.encoder.device, non_blocking=True)

    def codes(self) -> Codes:
        """The codes of what was sent last; the lane is free after that."""
        torch = import_torch()
        with self._in_stream():
            codes = self.encoder.codes(self.items).to("cpu", non_blocking=True)
        if self.on_gpu:
            torch.cuda.current_stream(self.encoder.device).wait_stream(self.stream)
            self.stream.synchronize()
        self.items = None
        return np.asarray(codes.numpy())

    def _in_stream(self) -> Any:
        return nullcontext() if self.stream is None else import_torch().cuda.stream(self.stream)
