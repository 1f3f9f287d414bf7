"""Codes: the bits of an item, packed into bytes and back, the distance between them, and weights as repeated bits."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _kernels
from ._arrays import Bytes, Floats, Ints
from ._validation import check_whole
from .exceptions import InvalidInputError

__all__ = ["expand", "expansion_of", "pack", "repeat_bits", "unpack", "weighted_hamming", "whole_weights"]


_BLOCK = 1 << 21  # numbers at a time: 16 MB


def pack(bits: ArrayLike) -> Bytes:
    """Pack bits into bytes: bit j of an item is `code[j // 8] >> (j % 8) & 1`.

    Parameters
    ----------
    bits : (n, l) array of 0 and 1

    Returns
    -------
    codes : (n, ceil(l / 8)) uint8, the bits past l are 0

    Examples
    --------
    >>> pack([[1, 0, 0, 0, 0, 0, 0, 0, 1], [0, 1, 1, 0, 0, 0, 0, 0, 0]])
    array([[1, 1],
           [6, 0]], dtype=uint8)
    """
    checked = np.ascontiguousarray(check_bits(bits, "bits"))  # packbits keeps the order of axes, kernels want rows
    return np.packbits(checked, axis=1, bitorder="little")


def unpack(codes: ArrayLike, n_bits: int) -> Bytes:
    """Unpack bytes into the `n_bits` bits that `pack` was given.

    Parameters
    ----------
    codes : (n, ceil(n_bits / 8)) array of uint8
    n_bits : number of bits of a code

    Returns
    -------
    bits : (n, n_bits) uint8 of 0 and 1

    Examples
    --------
    >>> unpack(pack([[0, 1, 1]]), 3)
    array([[0, 1, 1]], dtype=uint8)
    """
    packed = np.asarray(codes)
    if n_bits < 0:
        raise InvalidInputError(f"n_bits must be 0 or more, got {n_bits}")
    if packed.ndim != 2 or packed.dtype != np.uint8:
        raise InvalidInputError(f"codes must be a 2-D array of uint8, got {_describe(packed)}")
    if packed.shape[1] != (n_bits + 7) // 8:
        looks = "; are they bits already?" if packed.shape[1] == n_bits else ""
        raise InvalidInputError(
            f"codes must have {(n_bits + 7) // 8} bytes an item for n_bits={n_bits}, got {packed.shape[1]}{looks}"
        )
    check_padding(packed, n_bits, "codes")
    return np.unpackbits(packed, axis=1, count=n_bits, bitorder="little")


def weighted_hamming(queries: ArrayLike, database: ArrayLike, weights: ArrayLike) -> Floats:
    """Compute d(b, b') = Σ_j w_j·[b_j ≠ b'_j] between all codes of two sets.

    The weights are those of `whole_weights`, whose sums are exact: a distance depends on the differing bits alone,
    not on an order of summation, and is that of `WeightedHammingIndex` to the last bit.

    Parameters
    ----------
    queries : (q, l) array of 0 and 1
    database : (n, l) array of 0 and 1
    weights : (l,) array, 0 or more

    Returns
    -------
    distances : (q, n) float64

    Examples
    --------
    >>> weighted_hamming([[0, 0, 1]], [[0, 0, 1], [1, 1, 1], [0, 0, 0]], [1.0, 2.0, 0.5]).tolist()
    [[0.0, 3.0, 0.5]]
    """
    q_bits, x_bits = check_bits(queries, "queries"), check_bits(database, "database")
    if q_bits.shape[1] != x_bits.shape[1]:
        raise InvalidInputError(f"database must have as many bits as queries, {q_bits.shape[1]}, got {x_bits.shape[1]}")
    w = check_weights(weights, q_bits.shape[1])
    return _distances(q_bits, x_bits, w)


def whole_weights(weights: ArrayLike, n_bits: int) -> tuple[Ints, float]:
    """Weights as whole multiples of a unit, a power of two, such that every sum of them is exact in float64.

    The unit is 2⁻⁵² of the total weight, itself rounded up to a power of two. Rounding off half of it is what float64
    does to a sum of all weights; a weight 10¹² times smaller than the total keeps about 12 bits.

    Parameters
    ----------
    weights : (n_bits,) array, 0 or more

    Returns
    -------
    whole : (n_bits,) int64, their sum is below 2⁵³
    unit : weights ≈ whole · unit

    Examples
    --------
    >>> whole, unit = whole_weights([1.0, 2.0, 0.5], 3)
    >>> (whole * unit).tolist()
    [1.0, 2.0, 0.5]
    """
    w = np.asarray(weights)
    if w.shape != (n_bits,):
        raise _wrong_shape(w, f"{n_bits} numbers, one a bit")
    whole, units = whole_rows(w[None], n_bits)
    return whole[0], float(units[0])


def whole_rows(weights: NDArray[np.generic], n_columns: int) -> tuple[Ints, Floats]:
    """`whole_weights` of each row (q, n_bits), with zeros up to (q, n_columns), and the rows' units (q,)."""
    if weights.dtype.kind not in "buif":
        raise _wrong_shape(weights, "numbers")
    rows = np.ascontiguousarray(weights, dtype=np.float64)
    if not rows.flags.aligned:  # as they may come from other processes
        rows = rows.copy()
    try:
        found: tuple[Ints, Floats] = _kernels.whole_rows(rows, n_columns)
    except ValueError:
        wrong = rows[~((rows >= 0) & (rows < np.inf))]
        what = f"be finite and 0 or more, got {wrong[0]}" if wrong.size else "have a finite sum, got inf"
        raise InvalidInputError(f"weights must {what}") from None
    return found


def expand(codes: ArrayLike, weights: ArrayLike, n_bits: int = 256) -> Bytes:
    """Repeat each bit in proportion to its weight: plain Hamming distance then ranks as the weighted distance does.

    Parameters
    ----------
    codes : (n, ceil(l / 8)) packed codes
    weights : (l,) array, 0 or more
    n_bits : bits of the longer codes; those that `expansion_of` does not use are 0

    Returns
    -------
    expanded : (n, ceil(n_bits / 8)) uint8, packed

    Examples
    --------
    >>> unpack(expand(pack([[1, 0, 1]]), [2.0, 1.0, 0.0], n_bits=8), 8).tolist()
    [[1, 1, 0, 0, 0, 0, 0, 0]]
    """
    return repeat_bits(codes, expansion_of(weights, n_bits), n_bits)


def expansion_of(weights: ArrayLike, n_bits: int = 256) -> Ints:
    """How often each bit is to be repeated, at most `n_bits` bits in all.

    Of all whole numbers m_j ≥ 0 with N = Σ m_j ≤ `n_bits`, those with the least Σ_j (m_j / N − w_j / Σw)², and of these
    the ones with the least N. That sum is 4 times the mean squared error of the distance, as a share of the largest,
    between codes of independent fair bits. Bits of weight 0 vanish. So do bits whose share is too small, below about
    1 / (2N); where there are more bits of positive weight than `n_bits`, only the heaviest are left.

    Parameters
    ----------
    weights : (l,) array, 0 or more
    n_bits : the most bits that there may be

    Returns
    -------
    counts : (l,) int64

    Examples
    --------
    >>> expansion_of([0.5, 0.25, 0.0, 0.25], n_bits=16)
    array([2, 1, 0, 1])
    >>> expansion_of([3.0, 1.9, 0.1], n_bits=5)
    array([3, 2, 0])
    """
    most = check_whole(n_bits, 1, "n_bits")
    whole = whole_weights(weights, np.size(weights))[0].tolist()
    best, least, of = [0] * len(whole), 1, 0  # the error is least / of²
    for n in range(1, most + 1) if any(whole) else ():
        counts, error = _apportioned(whole, n)
        if error * of**2 < least * n**2:
            best, least, of = counts, error, n
        if not error:
            break
    return np.array(best, dtype=np.int64)


def _apportioned(whole: list[int], n: int) -> tuple[list[int], int]:
    """Counts m_j with Σ m_j = n and the least e = Σ_j (m_j·Σw − n·w_j)²; and e.

    Every count is the quota n·w_j / Σw rounded down or up, up where most is cut off (the method of largest remainders).
    """
    total = sum(whole)
    quotas = [divmod(n * w, total) for w in whole]
    counts, rest = [q for q, _ in quotas], [r for _, r in quotas]
    for j in sorted(range(len(whole)), key=lambda j: -rest[j])[: n - sum(counts)]:
        counts[j] += 1
        rest[j] -= total
    return counts, sum(r * r for r in rest)


def repeat_bits(codes: ArrayLike, counts: ArrayLike, n_bits: int) -> Bytes:
    """Packed codes with bit j repeated `counts[j]` times, filled up with 0 to `n_bits`.

    Parameters
    ----------
    codes : (n, ceil(l / 8)) packed codes
    counts : (l,) whole numbers, 0 or more, at most `n_bits` in all

    Returns
    -------
    repeated : (n, ceil(n_bits / 8)) uint8, packed

    Examples
    --------
    >>> unpack(repeat_bits(pack([[1, 0, 1]]), [1, 2, 3], 8), 8).tolist()
    [[1, 0, 0, 1, 1, 1, 0, 0]]
    """
    times = np.asarray(counts)
    if times.ndim != 1 or times.dtype.kind not in "iu" or np.any(times < 0):
        raise InvalidInputError(f"counts must be whole numbers of at least 0, one a bit, got {_describe(times)}")
    if int(times.sum()) > n_bits:
        raise InvalidInputError(f"counts must be at most n_bits={n_bits} in all, got {int(times.sum())}")
    source = np.repeat(np.arange(len(times)), times)  # (N,) which bit each new one is
    packed = np.asarray(codes)
    unpack(packed[:0], len(times))  # says what is wrong with the codes
    out = np.zeros((len(packed), -(-n_bits // 8)), dtype=np.uint8)
    step = max(1, _BLOCK // max(1, n_bits))
    for first in range(0, len(packed), step):
        bits = unpack(packed[first : first + step], len(times))[:, source]
        out[first : first + step, : -(-len(source) // 8)] = np.packbits(bits, axis=1, bitorder="little")
    return out


def _distances(queries: Bytes, database: Bytes, w: Floats) -> Floats:
    exact, unit = whole_weights(w, len(w))
    whole = exact.astype(np.float64)
    # [b ≠ b'] = b + b'·(1 − 2b): one product, of signed weights with the database's bits
    signed = whole * (1.0 - 2.0 * queries)  # (q, l)
    offset = (queries @ whole)[:, None]  # (q, 1)
    distances = np.empty((len(queries), len(database)))
    step = max(1, _BLOCK // max(1, *queries.shape))
    for first in range(0, len(database), step):
        block = distances[:, first : first + step]  # (q, b)
        np.add(signed @ database[first : first + step].T.astype(np.float64), offset, out=block)
        block *= unit
    return distances


def check_bits(bits: ArrayLike, name: str) -> Bytes:
    """Return `bits` as an (n, l) uint8 array of 0 and 1, or say what is wrong with it.

    Examples
    --------
    >>> check_bits([[True, False]], "bits")
    array([[1, 0]], dtype=uint8)
    """
    values = np.asarray(bits)
    if values.ndim != 2 or values.dtype.kind not in "buif":
        raise InvalidInputError(f"{name} must be a 2-D array of 0 and 1, got {_describe(values)}")
    if values.dtype == np.bool_:
        return values.view(np.uint8)
    if not (values.dtype == np.uint8 and values.max(initial=0) <= 1):  # bits that are so already: one fast look
        wrong = values[(values != 0) & (values != 1)]
        if wrong.size:
            raise InvalidInputError(f"{name} must hold only 0 and 1, got {wrong[0]}{_not_bits(values, wrong)}")
    return values.astype(np.uint8, copy=False)


def _not_bits(values: NDArray[np.generic], wrong: NDArray[np.generic]) -> str:
    """What numbers that are not bits look like."""
    if np.all(wrong == -1):
        return "; signs h of -1 and 1 are the bits (1 + h) / 2"
    return "; packed codes? cghash.codes.unpack(codes, n_bits) gives their bits" if values.dtype == np.uint8 else ""


def check_padding(packed: Bytes, n_bits: int, name: str) -> None:
    """Refuse packed codes (n, ⌈n_bits/8⌉) with bits past n_bits, which another order of bits has."""
    used = n_bits % 8
    if not used or not packed.size or not int(packed[:, -1].max()) >> used:
        return
    row = int(np.argmax(packed[:, -1] >> used > 0))
    raise InvalidInputError(
        f"{name} must have 0 in the bits past n_bits={n_bits} (bit j is code[j // 8] >> (j % 8) & 1), "
        f'got {packed[row].tolist()} in row {row}; numpy.packbits needs bitorder="little", as cghash.codes.pack has'
    )


def check_weights(weights: ArrayLike, n_bits: int) -> Floats:
    """Return `weights` as an (n_bits,) float64 array of numbers ≥ 0, or say what is wrong with it.

    Examples
    --------
    >>> check_weights([1, 2], 2)
    array([1., 2.])
    """
    values = np.asarray(weights)
    if values.shape != (n_bits,):
        raise _wrong_shape(values, f"{n_bits} numbers, one a bit")
    whole_rows(values[None], n_bits)
    return values.astype(np.float64)


def check_query_weights(weights: ArrayLike, n_queries: int, n_bits: int) -> NDArray[np.generic]:
    """Return weights of queries as (n_queries, n_bits) numbers, or as one row (1, n_bits) for all.

    Examples
    --------
    >>> check_query_weights([1, 2], 2, 2)
    array([[1, 2]])
    """
    values = np.asarray(weights)
    if values.shape == (n_bits,):
        return values[None]
    if values.shape != (n_queries, n_bits):
        raise _wrong_shape(values, f"{n_bits} numbers, one a bit, or a row of them for each of {n_queries} queries")
    return values


def _wrong_shape(weights: NDArray[np.generic], wanted: str) -> InvalidInputError:
    return InvalidInputError(f"weights must be {wanted}, got {_describe(weights)}")


def _describe(values: NDArray[np.generic]) -> str:
    return f"shape {values.shape}, dtype {values.dtype}"
