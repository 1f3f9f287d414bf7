"""The exact neighbour graph of items on a device, by the steps of `learning.cpu.neighbors`.

1. Blocks of float32 scores |y|²/2 - x·y, and some more candidates of each item than asked for. On a GPU each number is
   split into two halves, and their products, all but the least, are added up in float32 by the matrix units.
2. The float64 distances of all candidates decide, ties by the lower id.
3. Where rounding may have left a nearer item outside the candidates, the scores of that item are computed again in
   float64, with many more candidates; and where that is not enough (many copies of an item), on the host.

Items are taken class by class, so that the relevant ones of a block of rows stand together.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from ..._arrays import Bools, Ints
from ..._tensors import import_torch
from ...learning.cpu.neighbor_blocks import SPARE
from ...learning.cpu.neighbor_bounds import Slack, least_unseen, slack_of
from ...learning.cpu.neighbor_items import DenseItems, power_of_two, relevance_between
from ...learning.cpu.neighbors import by_rows

Tensor = Any

SCORES = 1 << 27  # held at a time
_NUMBERS = 1 << 25  # float64 numbers gathered at a time for distances
_SPARES = SPARE, 100  # candidates beyond those asked for, in float32 and in float64
_UNITS = 2.0**-24, 2.0**-53
_GROUP = 64  # columns of scores
_HALF_SCALE = 2.0**10  # of numbers up to 1, before they are split: their halves are small only where they hardly count


def nearest(X: Tensor, relevance: Any, n_near: int, n_far: int, n_threads: int) -> tuple[Ints, Ints]:
    """The nearest relevant and the nearest irrelevant items of each item, as `learning.cpu.neighbors.nearest`.

    Parameters
    ----------
    X : (n, d) float32 or float64 tensor
    relevance, n_near, n_far : as there
    n_threads : of what is left to the host
    """
    items = _Items(X, relevance)
    lists = [_List(items.n, n_near, True, X.device), _List(items.n, n_far, False, X.device)]
    wanted = [one for one in lists if one.k]
    rows = import_torch().arange(items.n, device=X.device)
    if items.n > 1 and wanted:
        for step in range(2):
            rows = items.settle(rows, wanted, step)
            if not len(rows):
                break
    near, far = (one.ids.cpu().numpy() for one in lists)
    if items.n > 1 and wanted and len(rows):
        _on_host(X, relevance, items.order[rows].cpu().numpy(), near, far)
    return near, far


def _on_host(X: Tensor, relevance: Any, rows: Ints, near: Ints, far: Ints) -> None:
    items = DenseItems(X.cpu().numpy())
    by_rows(items, relevance_between(relevance, items.n), rows, near, far)


class _List:
    """The k nearest of a kind, for each item as they came; and of each sorted item what tells whether that is so."""

    def __init__(self, n: int, k: int, relevant: bool, device: Any) -> None:
        torch = import_torch()
        self.k, self.relevant = k, relevant
        self.ids = torch.full((n, k), -1, dtype=torch.int64, device=device)
        self.last = torch.empty(n, dtype=torch.float64, device=device)  # score of the candidates; ∞ where they are all
        self.kth = torch.empty_like(self.last)  # distance


class _Items:
    """Items class by class, centred and scaled by a power of two as on the host."""

    def __init__(self, X: Tensor, relevance: Any) -> None:
        torch = import_torch()
        self.n, self.d = X.shape
        self.device = X.device
        labels, self._marks = _relevance_on(relevance, self.n, X.device)
        self.codes, self.order = torch.sort(labels, stable=True)
        self.X = X[self.order]
        self._shift, self.scale = self._place()
        self.singles = torch.empty((self.n, self.d), dtype=torch.float32, device=X.device)
        squares = []
        for rows, out in zip(self._parts(), self.singles.split(self._step), strict=True):
            placed = (rows.double() - self._shift).mul_(self.scale)
            out.copy_(placed)
            squares.append(placed.square_().sum(dim=1))
        self.squares = torch.cat(squares)  # (n,)
        self.norms = self.squares.sqrt()
        self.largest = float(self.norms.max())
        self._halves = _split(self.singles) if X.device.type == "cuda" else None

    @property
    def _step(self) -> int:
        return max(1, _NUMBERS // max(1, int(self.d)))

    def _parts(self) -> Any:
        return self.X.split(self._step)

    def _place(self) -> tuple[Tensor, float]:
        low, high = self.X.amin(dim=0).double(), self.X.amax(dim=0).double()
        first = self.X[0].double()
        shift = first + sum((rows.double() - first).sum(dim=0) for rows in self._parts()) / self.n
        if bool((self.X.round() == self.X).all()):
            shift = shift.round()
        return shift, power_of_two(float((high - shift).maximum(shift - low).max()))

    def settle(self, rows: Tensor, lists: list[_List], step: int) -> Tensor:
        """Fill the lists of some rows by scores in float32 (step 0) or float64; the rows that these cannot tell."""
        torch = import_torch()
        for some in rows.split(max(1, SCORES // (self.n * (1 + step)))):
            for one, (scores, ids) in zip(lists, self._candidates(some, lists, step), strict=True):
                self._fill(some, scores, ids, one)
        undecided = [self._may_lack(rows, one, step) for one in lists]
        return rows[torch.from_numpy(np.logical_or.reduce(undecided)).to(self.device)]

    def _candidates(self, rows: Tensor, lists: list[_List], step: int) -> list[tuple[Tensor, Tensor]]:
        """The least scores of each kind, rising, and their items (r, m)."""
        torch = import_torch()
        scores = self._scores(rows, step)
        scores[torch.arange(len(rows), device=self.device), rows] = torch.inf
        low, high, relevant = self._relevant(rows)
        among = scores[:, low:high]
        found = []
        for one in lists:
            if one.relevant:
                values, at = _least(among.masked_fill(~relevant, torch.inf), one.k + _SPARES[step])
                found.append((values, at + low))
            else:
                among.masked_fill_(relevant, torch.inf)
                found.append(_least(scores, one.k + _SPARES[step]))
        return found

    def _scores(self, rows: Tensor, step: int) -> Tensor:
        """|y|²/2 - x·y (r, n)."""
        torch = import_torch()
        if step == 0:
            half = (self.squares / 2).float()
            if self._halves is None:
                return torch.addmm(half, self.singles[rows], self.singles.T, alpha=-1.0)
            high, low, both = self._halves
            own = torch.cat([high[rows], high[rows], low[rows]], dim=1)
            products = torch.mm(own, both.T, out_dtype=torch.float32)
            return torch.sub(half, products, alpha=_HALF_SCALE**-2, out=products)
        own = (self.X[rows].double() - self._shift) * self.scale
        products = [own @ ((part.double() - self._shift) * self.scale).T for part in self._parts()]
        return self.squares / 2 - torch.cat(products, dim=1)

    def _relevant(self, rows: Tensor) -> tuple[int, int, Tensor]:
        """Between which items the relevant ones of rising rows stand, and which of those are relevant to each."""
        torch = import_torch()
        if self._marks is not None:
            return 0, self.n, self._marks[rows] @ self._marks.T > 0  # one class: their order is as it was
        own = self.codes[rows]
        low = int(torch.searchsorted(self.codes, own[:1]))
        high = int(torch.searchsorted(self.codes, own[-1:], right=True))
        return low, high, own[:, None] == self.codes[low:high]

    def _fill(self, rows: Tensor, scores: Tensor, ids: Tensor, one: _List) -> None:
        """Fill the list of some rows from candidates (r, m)."""
        torch = import_torch()
        missing = torch.isinf(scores)
        apart = self._distances(rows, ids).masked_fill_(missing, torch.inf)
        named, by_id = torch.where(missing, self.n, self.order[ids]).sort(dim=1)  # the ids that decide ties
        apart, nearest_first = apart.gather(1, by_id).sort(dim=1, stable=True)
        chosen = named.gather(1, nearest_first)[:, : one.k]
        one.ids[self.order[rows], : chosen.shape[1]] = torch.where(chosen == self.n, -1, chosen)
        if scores.shape[1] <= one.k:
            one.last[rows] = torch.inf  # all there are
        else:
            one.last[rows], one.kth[rows] = scores[:, -1].double(), apart[:, one.k - 1]

    def _may_lack(self, rows: Tensor, one: _List, step: int) -> Bools:
        """Which rows may lack a nearer item."""
        own, last, kth = (values[rows].cpu().numpy() for values in (self.norms, one.last, one.kth))
        full = np.isfinite(last)
        own, last, kth = own[full], last[full], kth[full]
        unseen = least_unseen(own, last, self.largest, self._slack(step))
        full[full] = ~(kth * (self.scale**2 / 2) - own**2 / 2 + 2.0**-40 * own**2 < unseen)
        return np.asarray(full)

    def _slack(self, step: int) -> Slack:
        """A bound on what rounding did to a score, from the two norms.

        Of halves: three times as many products, whose sums may be cut off instead of rounded, so six times as much; the
        product left out and what both halves lack of a number are 2⁻²² of it each, four units of float32, and are
        covered by that too; what falls under the least half is at most 2⁻³⁵ of the largest number.
        """
        if step or self._halves is None:
            return slack_of(self.d, _UNITS[step])
        most, lost = slack_of(self.d, 6 * _UNITS[0]), 2.0**-34 * np.sqrt(self.d)
        return lambda own, other: most(own, other) + lost * (own + other + lost)

    def _distances(self, rows: Tensor, ids: Tensor) -> Tensor:
        """Σ(x - y)² (r, m), in float64."""
        torch = import_torch()
        step = max(1, _NUMBERS // max(1, ids.shape[1] * self.d))
        parts = [
            (self.X[some].double()[:, None, :] - self.X[others].double()).square_().sum(dim=2)
            for some, others in zip(rows.split(step), ids.split(step), strict=True)
        ]
        return torch.cat(parts)


def _least(scores: Tensor, m: int) -> tuple[Tensor, Tensor]:
    """The m least of each row, rising, and their columns; fewer where there are not so many.

    They stand in the m groups of columns with the least minima: only these are looked into.
    """
    torch = import_torch()
    n = scores.shape[1]
    if n < 4 * m * _GROUP:
        found = scores.topk(min(m, n), largest=False)
        return found.values, found.indices
    whole = n - n % _GROUP
    minima = scores[:, :whole].unflatten(1, (-1, _GROUP)).amin(dim=2)
    groups = minima.topk(m, largest=False, sorted=False).indices
    columns = (groups[:, :, None] * _GROUP + torch.arange(_GROUP, device=scores.device)).flatten(1)
    rest = torch.arange(whole, n, device=scores.device).expand(len(scores), -1)
    columns = torch.cat([columns, rest], dim=1)
    found = scores.gather(1, columns).topk(m, largest=False)
    return found.values, columns.gather(1, found.indices)


def _split(singles: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Numbers as sums of two halves (n, d), (n, d); and (high, low, high) of each item beside each other, (n, 3d).

    The matrix units take numbers by eights, so items get zeros at their end.
    """
    torch = import_torch()
    scaled = torch.nn.functional.pad(singles, (0, -singles.shape[1] % 8)) * _HALF_SCALE
    high = scaled.half()
    low = (scaled - high.float()).half()
    return high, low, torch.cat([high, low, high], dim=1)


def _relevance_on(relevance: Any, n: int, device: Any) -> tuple[Tensor, Tensor | None]:
    """Class numbers (n,) on the device, and marks (n, L) of several labels an item."""
    torch = import_torch()
    if relevance is None:
        return torch.zeros(n, dtype=torch.int64, device=device), None
    if relevance.ndim == 1:
        return torch.from_numpy(np.unique(relevance, return_inverse=True)[1].reshape(-1)).to(device), None
    dense = relevance.toarray() if sparse.issparse(relevance) else np.asarray(relevance)
    marks = torch.from_numpy((dense != 0).astype(np.float32)).to(device)
    return torch.zeros(n, dtype=torch.int64, device=device), marks
