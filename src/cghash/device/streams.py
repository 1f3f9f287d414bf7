"""Items from host memory through a device, block after block: one is copied while the one before is encoded."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from typing import Any

import numpy as np

from .._arrays import Codes
from .._tensors import import_torch
from .encoding import Encoder, Tensor

BLOCK_BYTES = 1 << 26  # of items, copied at once


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
