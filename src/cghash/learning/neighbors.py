"""The exact neighbour graph: for each item its nearest relevant items, and its nearest irrelevant ones.

Distances are those of a float64 brute force: Σ(x - y)² as NumPy sums it, ties to the lower id. Almost all of
the work is done in float32 nevertheless:

1. Items are centred, scaled by a power of two and rounded to float32. Blocks of products x·y on and above the
   diagonal serve both directions; item j's score for item i is |y|²/2 - x·y, half its squared distance less a
   constant of i.
   Of many items with many features only the products over their leading axes are computed, which bound the
   whole ones from above; the few pairs whose score may still enter a list are multiplied out (`_LeadingAxes`).
2. Each item keeps some more candidates than asked for. A bound on all rounding errors tells which runs of its
   list may be out of order: these, and only these, are sorted by their float64 distances.
3. Where such a run may reach past the candidates kept, all scores of that item are computed again in float64,
   and the candidates that their bound leaves open are sorted as in 2.

Whole numbers of moderate size (pixels, counts, one-hot features) give exact products: their bound is zero.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from threadpoolctl import threadpool_limits

from .. import _kernels
from ..exceptions import InvalidInputError

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Singles = NDArray[np.float32]
Bools = NDArray[np.bool_]
Slack = Callable[[Floats, Floats], Floats]

BLOCK = 2048  # items on a side of a block of products
SPARE = 6  # candidates kept beyond those asked for
_NUMBERS = 1 << 16  # float64 numbers gathered at a time for distances: they stay in cache
_SCORES = 1 << 23  # float64 scores held at a time
_LEADING_FROM = 16384, 192  # items and features from which leading axes can pay
_LEADING_SHARE = 0.93  # of the variance that they must hold
_LEADING_MOST = 1 / 3  # of the features that they may be
_FINISHED_MOST = 0.04  # of a block's products, in each direction: above it, whole products are cheaper
_SINGLE, _DOUBLE = 2.0**-24, 2.0**-53  # unit roundoff


def nearest(X: Any, relevance: ArrayLike | Any | None, n_near: int, n_far: int, n_threads: int) -> tuple[Ints, Ints]:
    """The nearest relevant and the nearest irrelevant items of each item, by (Euclidean distance, id).

    Parameters
    ----------
    X : (n, d) array or sparse matrix
    relevance : (n,) integer labels (relevant: the same label), (n, L) 0/1 indicator matrix, dense or sparse
        (relevant: a label in common), or None: all items are relevant to each other, and `n_far` must be 0
    n_near, n_far : how many of each
    n_threads : threads of the selection; the matrix products take what BLAS takes

    Returns
    -------
    near (n, n_near), far (n, n_far) : row numbers, -1 where there are fewer

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[0.0], [1.0], [3.0], [4.0]])
    >>> near, far = nearest(X, [0, 1, 0, 1], n_near=1, n_far=2, n_threads=1)
    >>> near.ravel().tolist(), far.tolist()
    ([2, 3, 0, 1], [[1, 3], [0, 2], [3, 1], [2, 0]])
    """
    items = _SparseItems(X) if sparse.issparse(X) else _DenseItems(X)
    relevant = _relevance_of(relevance, items.n)
    _check_counts(relevance, n_near, n_far)
    near = np.full((items.n, n_near), -1, dtype=np.int64)
    far = np.full((items.n, n_far), -1, dtype=np.int64)
    if items.n > 1 and n_near + n_far > 0:
        if isinstance(items, _DenseItems):
            undecided = _by_blocks(items, relevant, near, far, n_threads)
        else:
            undecided = np.arange(items.n)
        _by_rows(items, relevant, undecided, near, far)
    return near, far


def _check_counts(relevance: Any, n_near: int, n_far: int) -> None:
    for name, count in (("n_near", n_near), ("n_far", n_far)):
        if count < 0:
            raise InvalidInputError(f"{name} must not be negative, got {count}")
    if relevance is None and n_far > 0:
        raise InvalidInputError(f"n_far must be 0 without relevance: no item is irrelevant; got {n_far}")


# --- relevance ----------------------------------------------------------------------------------------------


class _Labels:
    """Items are relevant to those of their label."""

    def __init__(self, labels: NDArray[Any]) -> None:
        self.codes = np.unique(labels, return_inverse=True)[1].astype(np.int32).reshape(-1)  # (n,)

    def block(self, rows: slice, columns: slice) -> None:
        return None  # the kernel compares the codes

    def rows(self, rows: Ints) -> Bools:
        return np.asarray(self.codes[rows][:, None] == self.codes)


class _SharedLabel:
    """Items are relevant to those with which they have a label in common."""

    def __init__(self, indicator: Any) -> None:
        self.codes = np.zeros(indicator.shape[0], dtype=np.int32)  # not used by the kernel
        marked = indicator.astype(bool).astype(np.float32)  # (n, L)
        self._labels = marked if isinstance(marked, np.ndarray) else marked.tocsr()

    def block(self, rows: slice, columns: slice) -> NDArray[np.uint8]:
        shared = _dense(self._labels[rows] @ self._labels[columns].T)
        return np.ascontiguousarray(shared > 0).view(np.uint8)

    def rows(self, rows: Ints) -> Bools:
        return np.asarray(_dense(self._labels[rows] @ self._labels.T) > 0)


def _relevance_of(relevance: Any, n: int) -> _Labels | _SharedLabel:
    if relevance is None:
        return _Labels(np.zeros(n, dtype=np.int32))
    if not sparse.issparse(relevance):
        relevance = np.asarray(relevance)
    if relevance.ndim not in (1, 2) or relevance.shape[0] != n:
        raise InvalidInputError(
            f"relevance must be ({n},) labels or an ({n}, L) indicator matrix, got shape {relevance.shape}"
        )
    return _Labels(relevance) if relevance.ndim == 1 else _SharedLabel(relevance)


def _dense(matrix: Any) -> Any:
    return matrix if isinstance(matrix, np.ndarray) else matrix.toarray()


# --- items --------------------------------------------------------------------------------------------------


class _DenseItems:
    """Dense items, as they came, and (x - shift)·scale of some of them at a time."""

    def __init__(self, X: Any) -> None:
        self._X = np.asarray(X)
        if self._X.ndim != 2:
            raise InvalidInputError(f"X must be (n, d), got shape {self._X.shape}")
        self.n, self.d = self._X.shape
        self.whole = all(bool(np.all(part == np.rint(part))) for _, part in self._parts())
        self._shift, largest = self._centre()
        self.scale = _power_of_two(largest)
        self.squares = np.empty(self.n)  # |x|² after shift and scale
        for rows, part in self._parts():
            part = self._place(part)
            self.squares[rows] = np.einsum("ij,ij->i", part, part)

    def _parts(self) -> Iterator[tuple[slice, Floats]]:
        step = max(1, 16 * _NUMBERS // max(1, self.d))
        for first in range(0, self.n, step):
            yield slice(first, first + step), self._X[first : first + step].astype(np.float64)

    def _centre(self) -> tuple[Floats, float]:
        """About the mean of each feature, and the largest |x - mean|: zero for a constant feature."""
        if self.n == 0 or self.d == 0:
            return np.zeros(self.d), 0.0
        total, low, high = np.zeros(self.d), np.full(self.d, np.inf), np.full(self.d, -np.inf)
        first = self._X[0].astype(np.float64)
        for _, part in self._parts():
            low, high = np.minimum(low, part.min(axis=0)), np.maximum(high, part.max(axis=0))
            total += (part - first).sum(axis=0)
        shift = first + total / self.n
        if self.whole:
            shift = np.rint(shift)
        return shift, float(np.maximum(high - shift, shift - low).max())

    def _place(self, part: Floats) -> Floats:
        part -= self._shift
        part *= self.scale
        return part

    def singles(self) -> tuple[Singles, Floats]:
        """Placed items rounded to float32 (n, d), and their |x|² (n,)."""
        rounded, squares = np.empty((self.n, self.d), dtype=np.float32), np.empty(self.n)
        for rows, part in self._parts():
            rounded[rows] = self._place(part)
            part = rounded[rows].astype(np.float64)
            squares[rows] = np.einsum("ij,ij->i", part, part)
        return rounded, squares

    def values(self, rows: Ints) -> Floats:
        return np.array(self._X[rows], dtype=np.float64, order="C")  # (r, d)

    def contents(self) -> Iterator[bytes]:
        for _, part in self._parts():
            part += 0.0  # -0 and 0 are the same
            yield from (row.tobytes() for row in part)

    def products(self, rows: Ints) -> Floats:
        placed = self._place(self.values(rows))  # (r, d)
        dots = np.empty((rows.size, self.n))
        for columns, part in self._parts():
            dots[:, columns] = placed @ self._place(part).T
        return dots


class _SparseItems:
    """Sparse items, as they came, and scaled; centring would fill them."""

    def __init__(self, X: Any) -> None:
        self._X: Any = sparse.csr_array(X, dtype=np.float64)
        self.n, self.d = self._X.shape
        values = self._X.data
        self.whole = bool(np.all(values == np.rint(values)))
        self.scale = _power_of_two(float(np.abs(values).max(initial=0.0)))
        self._placed: Any = self._X * self.scale
        self._placed.sum_duplicates()
        self._placed.eliminate_zeros()
        self.squares = np.asarray(self._placed.multiply(self._placed).sum(axis=1), dtype=np.float64).reshape(-1)

    def values(self, rows: Ints) -> Floats:
        return np.ascontiguousarray(self._X[rows].toarray())  # (r, d)

    def contents(self) -> Iterator[bytes]:
        rows = self._placed.indptr
        for first, last in itertools.pairwise(rows):
            yield self._placed.indices[first:last].tobytes() + self._placed.data[first:last].tobytes()

    def products(self, rows: Ints) -> Floats:
        return np.asarray((self._placed[rows] @ self._placed.T).toarray())  # (r, n)


_Items = _DenseItems | _SparseItems


def _is_exact(items: _Items, mantissa: int) -> bool:
    """Are all products, scores and distances whole numbers of at most so many bits?"""
    return items.whole and bool(4 * items.squares.max() <= items.scale**2 * 2.0**mantissa)


def _power_of_two(largest: float) -> float:
    """The scale that brings `largest` to between 1/2 and 1."""
    exponent = int(np.frexp(largest)[1]) if largest > 0 and np.isfinite(largest) else 0
    return 2.0 ** -max(exponent, -1000)


def _first_copies(items: _Items) -> Ints:
    """For each item, the first one equal to it."""
    seen: dict[bytes, int] = {}
    keys = (hashlib.blake2b(content, digest_size=24).digest() for content in items.contents())
    return np.fromiter((seen.setdefault(key, i) for i, key in enumerate(keys)), dtype=np.int64, count=items.n)


def _distances(items: _Items, rows: Ints, others: Ints, first_copy: Ints | None) -> Floats:
    """Σ(x - y)² of each pair of items, in float64: what decides. Copies of an item are computed once."""
    if first_copy is not None:
        keys, which = np.unique(rows * items.n + first_copy[others], return_inverse=True)
        return _distances(items, keys // items.n, keys % items.n, None)[which]
    out = np.empty(rows.size)
    step = max(1, _NUMBERS // max(1, items.d))
    for first in range(0, rows.size, step):
        some = slice(first, first + step)
        difference = items.values(rows[some])
        difference -= items.values(others[some])
        out[some] = np.square(difference, out=difference).sum(axis=1)
    return out


# --- what rounding may have done ----------------------------------------------------------------------------


def _slack_of(d: int, unit: float) -> Slack:
    """A bound on |score computed - half the distance that decides + |x|²/2|, from the two norms.

    With N = |x| + |y| and γ = d·unit / (1 - d·unit), in any order of summation: the product errs by γ|x||y|,
    |y|²/2 and the difference by unit·N²/2 each, rounding x and y by unit·N². The float64 sums (|y|², and the
    distance itself) err by γN²/2 each, γ here of float64. The small terms are doubled, which covers their own
    rounding, and what underflow could lose is added.
    """
    product = d * unit / (1 - d * unit) if d * unit < 0.5 else np.inf
    rest = 4 * unit + 2 * (d + 8) * _DOUBLE
    underflow = (d + 1) * (2.0**-100 if unit == _SINGLE else 2.0**-1000)

    def slack(own: Floats, other: Floats) -> Floats:
        return product * own * other + rest * (own + other) ** 2 + underflow

    return slack


def _unseen(own: Floats, last: Floats, largest: float, slack: Slack) -> Floats:
    """A lower bound on the scores of items outside a full list, from its last score.

    Items of norm at most `reach` err by slack(own, reach); all others are at least reach - own away, so that
    one item far out does not weaken the bound for all.
    """
    apart = np.sqrt(np.maximum(2 * last + own**2, 0.0))  # distance of the last in the list
    reach = np.minimum(own + 2 * apart, largest)
    error = slack(own, reach)
    beyond = np.where(reach < largest, ((0.9 * (reach - own)) ** 2 - own**2) / 2 - error, np.inf)
    return np.minimum(last - error, beyond)


def _settle(
    items: _Items,
    rows: Ints,
    ids: Ints,
    scores: Floats,
    error: Floats,
    unseen: Floats,
    k: int,
    first_copy: Ints | None = None,
) -> tuple[Ints, Bools]:
    """Lists (r, m) sorted by score, into the k nearest; and whether each list was enough to tell."""
    missing = ids < 0
    upper = np.maximum.accumulate(np.where(missing, np.inf, scores + error), axis=1)
    lower = np.column_stack([np.where(missing, np.inf, scores - error), unseen])  # (r, m + 1)
    lower = np.minimum.accumulate(lower[:, ::-1], axis=1)[:, ::-1]
    ends = (upper < lower[:, 1:]) | missing  # all up to here come before all that follow
    starts = np.column_stack([np.ones(rows.size, dtype=bool), ends[:, :-1]])
    place = np.arange(ids.shape[1])
    first = np.maximum.accumulate(np.where(starts, place, 0), axis=1)  # where each one's run starts
    disputed = ~(starts & ends) & ~missing & (first < k)
    decided: Bools = np.asarray(ends[:, k - 1 :].any(axis=1)) | (ids.shape[1] < k)

    disputed &= decided[:, None]
    ids = ids.copy()
    which = np.flatnonzero(disputed.any(axis=1))
    distance = np.zeros((which.size, ids.shape[1]))
    row, column = np.nonzero(disputed[which])
    distance[row, column] = _distances(items, rows[which[row]], ids[which[row], column], first_copy)
    order = np.lexsort((ids[which], distance, first[which]), axis=-1)
    ids[which] = np.take_along_axis(ids[which], order, axis=1)
    return ids[:, :k], decided


# --- leading axes -------------------------------------------------------------------------------------------


class _LeadingAxes:
    """Few axes whose products bound the products of whole items from above.

    With V (d, p) orthonormal and r_x the length of what Vᵀx leaves of x, |x - y|² ≥ |Vᵀx - Vᵀy|² + (r_x - r_y)². So
    z_x = (Vᵀx, r_x) has the length of x, and x·y ≤ z_x·z_y. A last axis √c·|x| adds c|x||y|, which covers all
    rounding in it:

    - float64, and axes not quite orthonormal, change |Vᵀx|² and so r_x² by at most ε|x|², hence r_x by √ε|x|;
    - rounding z to float32 and the former change z by η|x|, η = 2·unit + √ε, and a product by (2η + η²)|x||y|;
    - the float32 product errs by γ|x||y|, γ = (p + 2)·unit / (1 - (p + 2)·unit), in any order of summation.

    c is twice their sum. `low` is |y|²/2 and `extra` is added to a threshold such that their rounding, and that of
    the difference, are covered too: each by 4·unit times the squared length, where less than 3 is needed.
    """

    def __init__(self, X: Singles, squares: Floats, V: Floats) -> None:
        d, p = V.shape
        skew = float(np.linalg.norm(V.T @ V - np.eye(p)))
        epsilon = 4 * (1 + np.sqrt(p)) * (d + p) * _DOUBLE + 2 * skew
        eta = 2 * _SINGLE + np.sqrt(epsilon)
        gamma = (p + 2) * _SINGLE / (1 - (p + 2) * _SINGLE)
        c = 2 * (2 * eta + eta**2 + gamma)
        self.axes = np.empty((len(X), p + 2), dtype=np.float32)
        for first in range(0, len(X), BLOCK):
            rows = slice(first, first + BLOCK)
            leading = X[rows].astype(np.float64) @ V
            self.axes[rows, :p] = leading
            rest = squares[rows] - np.einsum("ij,ij->i", leading, leading)
            self.axes[rows, p] = np.sqrt(np.maximum(rest, 0.0))
        self.axes[:, p + 1] = np.sqrt(c * squares) * (1 + 4 * _SINGLE)
        self.low = (squares / 2 - 4 * _SINGLE * squares).astype(np.float32)  # (n,)
        self.extra = (4 * _SINGLE * squares + (d + 1) * 2.0**-100).astype(np.float32)  # (n,)

    @classmethod
    def of(cls, X: Singles, squares: Floats) -> _LeadingAxes | None:
        """Principal axes of some items, or None where they would not pay."""
        (n, d), (n_least, d_least) = X.shape, _LEADING_FROM
        if n < n_least or d < d_least or d > 4096:
            return None
        some = X[:: max(1, n // 4096)].astype(np.float64)
        gram = some.T @ some
        with threadpool_limits(1, user_api="blas"):  # threads that wait for each other cost more than they save here
            variances, V = np.linalg.eigh(gram)
        held = np.cumsum(variances[::-1])
        p = 32 * (int(np.searchsorted(held, _LEADING_SHARE * held[-1])) // 32 + 1)
        return cls(X, squares, np.ascontiguousarray(V[:, ::-1][:, :p])) if p <= _LEADING_MOST * d else None


# --- the two ways through -----------------------------------------------------------------------------------


def _by_blocks(items: _DenseItems, relevant: _Labels | _SharedLabel, near: Ints, far: Ints, n_threads: int) -> Ints:
    """Fill near and far by float32 products; the rows that these cannot tell."""
    X, squares = items.singles()  # (n, d) float32, (n,)
    half = (squares / 2).astype(np.float32)
    places = [min(lists.shape[1] + SPARE, items.n) if lists.shape[1] else 0 for lists in (near, far)]
    found = _kernels.NearestLists(half, relevant.codes, *places)
    leading = _LeadingAxes.of(X, squares)
    memory, few = np.empty(min(BLOCK, items.n) ** 2, dtype=np.float32), False
    for rows, columns in _blocks(items.n):
        if rows == columns:
            few = rows.start > 0  # the first row of blocks begins all lists
        where = rows.start, columns.start, relevant.block(rows, columns), n_threads
        if leading is None or not few:
            found.update(_products(X, rows, columns, memory), *where)
        else:
            dots = _products(leading.axes, rows, columns, memory)
            few = found.update_leading(dots, *where, X, leading.low, leading.extra) <= _FINISHED_MOST * 2 * dots.size
    del X, leading
    undecided = np.zeros(items.n, dtype=bool)
    for lists, (scores, ids) in ((near, found.near()), (far, found.far())):
        if lists.shape[1]:
            undecided |= _fill(items, lists, scores, ids, np.sqrt(squares))
    return np.flatnonzero(undecided)


def _blocks(n: int) -> Iterator[tuple[slice, slice]]:
    """Rows and columns of the blocks on and above the diagonal, row after row."""
    slices = [slice(first, min(first + BLOCK, n)) for first in range(0, n, BLOCK)]
    for at, rows in enumerate(slices):
        yield from ((rows, columns) for columns in slices[at:])


def _products(X: Singles, rows: slice, columns: slice, memory: Singles) -> Singles:
    """X[rows] @ X[columns].T, in memory that is at hand."""
    shape = rows.stop - rows.start, columns.stop - columns.start
    return np.matmul(X[rows], X[columns].T, out=memory[: shape[0] * shape[1]].reshape(shape))


def _fill(items: _DenseItems, lists: Ints, scores: Singles, ids: Any, norms: Floats) -> Bools:
    """Settle the candidates of every item into `lists`; which rows remain undecided."""
    undecided = np.zeros(items.n, dtype=bool)
    k, width = lists.shape[1], ids.shape[1]
    if _is_exact(items, 24):
        lists[:, : min(k, width)] = ids[:, :k]
        return undecided
    slack, largest = _slack_of(items.d, _SINGLE), float(norms.max())
    for first in range(0, items.n, BLOCK):
        rows = np.arange(first, min(first + BLOCK, items.n))
        own, mine = norms[rows], ids[rows].astype(np.int64)
        computed = scores[rows].astype(np.float64)
        error = slack(own[:, None], norms[mine])
        unseen = _unseen(own, computed[:, -1], largest, slack)
        settled, decided = _settle(items, rows, mine, computed, error, unseen, k)
        lists[rows, : settled.shape[1]] = settled
        undecided[rows] = ~decided
    return undecided


def _by_rows(items: _Items, relevant: _Labels | _SharedLabel, rows: Ints, near: Ints, far: Ints) -> None:
    """Fill near and far of some rows by float64 products."""
    if rows.size == 0:
        return
    norms, first_copy = np.sqrt(items.squares), _first_copies(items)
    step = max(1, _SCORES // items.n)
    for first in range(0, rows.size, step):
        some = rows[first : first + step]
        scores = items.squares / 2 - items.products(some)  # (r, n)
        for row, score, is_near in zip(some, scores, relevant.rows(some), strict=True):
            for lists, kind in ((near, is_near), (far, ~is_near)):
                kind[row] = False
                chosen = _row(items, int(row), np.flatnonzero(kind), score, norms, lists.shape[1], first_copy)
                lists[row] = -1
                lists[row, : chosen.size] = chosen


def _row(items: _Items, row: int, ids: Ints, score: Floats, norms: Floats, k: int, first_copy: Ints) -> Ints:
    """The k nearest to `row` among `ids`, from its float64 scores (n,)."""
    if k == 0 or ids.size == 0:
        return ids[:0]
    exact = _is_exact(items, 53)
    scores = score[ids]
    error = np.zeros(ids.size) if exact else _slack_of(items.d, _DOUBLE)(norms[row], norms[ids])
    if ids.size > k:
        in_play = scores - error <= np.partition(scores + error, k - 1)[k - 1]
        ids, scores, error = ids[in_play], scores[in_play], error[in_play]
    order = np.lexsort((ids, scores))
    if exact:
        return np.asarray(ids[order][:k])
    listed = ids[order][None], scores[order][None], error[order][None]  # (1, m) each
    settled, _ = _settle(items, np.array([row]), *listed, np.array([np.inf]), k, first_copy)
    return np.asarray(settled[0])
