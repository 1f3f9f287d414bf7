"""Signed pair weights on a device: `PairWeights` there, with the Laplacian of the live items."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._arrays import Ints
from ..._tensors import import_torch
from .columns import DeviceColumns

Tensor = Any

_MOSTLY_LIVE = 0.8  # from this share on all items are kept: copying their features would cost more
_ROWS, _STEP = 16, 32  # items, and entries of each, that a program takes at once


class DevicePairs:
    """Signed weights over the slots of columns, then over duplets; they change with each column.

    `items` are the live items, those that some pair of non-zero weight mentions, or None when nearly all are live.
    """

    def __init__(self, columns: DeviceColumns, duplets: Ints, n_items: int) -> None:
        torch = import_torch()
        self.n_items, self.device = n_items, columns.device
        more = torch.from_numpy(np.ascontiguousarray(duplets.T)).to(self.device)
        self.first, self.second = torch.cat([columns.first, more[0]]), torch.cat([columns.second, more[1]])
        ends, others = torch.cat([self.first, self.second]), torch.cat([self.second, self.first])
        ends, order = torch.sort(ends, stable=True)
        self._others = others[order].int()
        self._slots = (order % max(1, len(self.first))).int()
        self._starts = torch.searchsorted(ends, torch.arange(n_items + 1, device=self.device))
        self.items: Tensor | None = None
        self.n_live, self.scale = 0, 0.0

    def set_slopes(self, slopes: Tensor, duplet: float) -> None:
        """Weights from a master's slopes over the slots of triplets; those of duplets get −duplet."""
        torch = import_torch()
        rest = slopes.new_full((len(self.first) - len(slopes),), -duplet)
        self.weights = torch.cat([-slopes, rest])
        self.scale = float(self.weights.abs().sum())
        entries = self.weights[self._slots].float()
        keep = entries != 0
        before = torch.nn.functional.pad(keep.cumsum(0), (1, 0))  # (entries + 1,)
        starts = before[self._starts]
        live = starts[1:] > starts[:-1]
        self.n_live = n_live = int(live.sum())
        self.row_weights, others = entries[keep], self._others[keep]
        self._row = None
        if n_live < _MOSTLY_LIVE * self.n_items or not n_live:
            self.items = live.nonzero().view(-1)
            self._row = (live.cumsum(0) - 1).int()
            starts = torch.cat([starts[:1], starts[1:][live]])
            others = self._row[others]
        else:
            self.items, self.n_live = None, self.n_items
        self.row_others, self.row_starts = others, starts

    def live_slots(self) -> tuple[Tensor, Tensor, Tensor]:
        """The two rows among the live items, and the weight, of each live slot."""
        live = self.weights.nonzero().view(-1)
        first, second = self.first[live], self.second[live]
        if self._row is not None:
            first, second = self._row[first], self._row[second]
        return first, second, self.weights[live]

    def gains(self, bits: Tensor) -> Tensor:
        """The true gains (m,) of hash functions, from their bits of every item (m, n_items)."""
        return import_torch().stack([(one[self.first] ^ one[self.second]).double() @ self.weights for one in bits])

    def laplacian(self, t: Tensor) -> Tensor:
        """L·t for values t (n_live,) of the live items, in floats."""
        return self._row_sums(self.row_weights, t, t)

    def near_weight(self) -> Tensor:
        """What the near pairs of each live item weigh (n_live,)."""
        torch = import_torch()
        ones = torch.ones(self.n_live, device=self.device)
        return self._row_sums((-self.row_weights).clamp(min=0.0), ones, torch.zeros_like(ones))

    def _row_sums(self, weights: Tensor, own: Tensor, values: Tensor) -> Tensor:
        """Σ weights·(own_i − values[other]) (n_live,) over the entries of each row."""
        torch = import_torch()
        if self.device.type == "cuda":
            from .. import pair_kernels

            out = torch.empty_like(own)
            pair_kernels.row_sums[(-(-self.n_live // _ROWS),)](
                self.row_starts, self.row_others, weights, own, values, out, self.n_live, ROWS=_ROWS, STEP=_STEP
            )
            return out
        rows = torch.repeat_interleave(torch.arange(self.n_live), self.row_starts.diff())
        terms = weights * (own[rows] - values[self.row_others])
        return torch.zeros_like(own).index_add_(0, rows, terms)
