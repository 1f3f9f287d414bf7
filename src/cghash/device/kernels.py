"""Passes over codes and items in Triton; `scans` and `encoder` hold the same in torch operations.

Codes stand as int32 words (W, n): word w of all codes together. A pass over them keeps the positions of those whose
bound is within a limit; the distances themselves never reach memory.
"""

from __future__ import annotations

import triton
import triton.language as tl

# Arguments of which no load's alignment depends are not specialised: a kernel is compiled once for all their values.
FAR = tl.constexpr(1 << 62)  # no distance is so large


@triton.jit
def _count(bits):
    """How many bits of each int32 are set."""
    return tl.inline_asm_elementwise("popc.b32 $0, $1;", "=r,r", [bits], dtype=tl.int32, is_pure=True, pack=1)


@triton.jit
def _is_allowed(allowed, position, where):
    byte = tl.load(allowed + (position >> 3), mask=where, other=0).to(tl.int32)
    return ((byte >> (position & 7).to(tl.int32)) & 1) > 0


@triton.jit
def _places(keep, count):
    """A place (…) int64 for each that is to be kept; `count` goes on counting when there is no more room."""
    return tl.atomic_add(count + tl.zeros_like(keep).to(tl.int32), 1, mask=keep, sem="relaxed")


@triton.jit
def _bound_of_two(a, b, masks, w, W: tl.constexpr, PLANES: tl.constexpr):
    """Σ_p 2^p·popcount(x & mask_p) of the words w and w + 1 of x.

    A plane's two masked words are added bit by bit with the carry of the plane before: one count a plane and one for
    the last carry, in place of two a plane.
    """
    total, carry = tl.zeros_like(a), tl.zeros_like(a)
    for p in tl.static_range(PLANES):
        a_p = a & tl.load(masks + p * W + w)
        b_p = b & tl.load(masks + p * W + w + 1)
        total += _count(a_p ^ b_p ^ carry) << p
        carry = (a_p & b_p) | (carry & (a_p | b_p))
    return total + (_count(carry) << PLANES)


@triton.jit
def _bound_of_one(a, masks, w, W: tl.constexpr, PLANES: tl.constexpr):
    """The same of word w alone."""
    total = tl.zeros_like(a)
    for p in tl.static_range(PLANES):
        total += _count(a & tl.load(masks + p * W + w)) << p
    return total


@triton.jit(do_not_specialize=["end", "offset", "room"])
def scan_one(
    words, stride, first, end, query, masks, most, allowed, offset, count, positions, room,
    W: tl.constexpr, PLANES: tl.constexpr, FILTERED: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Positions first … end of a segment whose bound Σ_p 2^p·popcount((x ^ q) & mask_p) is within the limit."""
    stride = stride.to(tl.int64)  # times a word it may pass 2³¹
    start = first + tl.program_id(0).to(tl.int64) * BLOCK
    lane = tl.arange(0, BLOCK)
    total = tl.zeros([BLOCK], dtype=tl.int32)
    for w in tl.static_range(0, W, 2):
        a = tl.load(words + w * stride + start + lane) ^ tl.load(query + w)
        if w + 1 < W:
            b = tl.load(words + (w + 1) * stride + start + lane) ^ tl.load(query + w + 1)
            total += _bound_of_two(a, b, masks, w, W, PLANES)
        else:
            total += _bound_of_one(a, masks, w, W, PLANES)
    limit = tl.load(most).to(tl.int32)
    if tl.min(total, axis=0) <= limit:
        local = start + lane
        keep = (total <= limit) & (local < end)
        if FILTERED:
            keep = keep & _is_allowed(allowed, offset + local, keep)
        place = _places(keep, count)
        tl.store(positions + place, local, mask=keep & (place < room))


@triton.jit
def _signs(words, stride, n_words: tl.constexpr, HALF: tl.constexpr, BLOCK: tl.constexpr):
    """The bits (BLOCK, 64) of two words as -1 and 1, in turn: column 2·j + w is bit j of word w; 0 for no word."""
    lane, bit = tl.arange(0, BLOCK), tl.arange(0, 32)
    a = _sign((tl.load(words + lane)[:, None] >> bit[None, :]) & 1, HALF)
    b = tl.zeros_like(a)
    if n_words > 1:
        b = _sign((tl.load(words + stride + lane)[:, None] >> bit[None, :]) & 1, HALF)
    signs = tl.reshape(tl.join(a, b), [BLOCK, 64])
    return signs.to(tl.float8e4nv, bitcast=True) if HALF else signs


@triton.jit
def _sign(bit, HALF: tl.constexpr):
    """-1 for 0 and 1 for 1: int8, or the bytes of an 8-bit float."""
    return (0xB8 - 0x80 * bit).to(tl.uint8) if HALF else (2 * bit - 1).to(tl.int8)


@triton.jit
def _agreement(signs, words, stride, queries, row, W: tl.constexpr, HALF: tl.constexpr, BLOCK: tl.constexpr):
    """Σ_j m_j·b_j·q_j (BLOCK, ROWS) of bits as -1 and 1: what the small weights of equal bits exceed the others' by.

    int32, or where HALF float16, which holds whole numbers up to 2048 exactly.
    """
    SUM: tl.constexpr = tl.float16 if HALF else tl.int32
    at = queries + row[:, None] * (32 * (W + W % 2)) + tl.arange(0, 64)[None, :]  # (ROWS, 64)
    total = tl.dot(signs, tl.trans(tl.load(at)), out_dtype=SUM)
    for w in tl.static_range(2, W, 2):
        more = _signs(words + w * stride, stride, W - w, HALF, BLOCK)
        total = tl.dot(more, tl.trans(tl.load(at + 32 * w)), total, out_dtype=SUM)
    return total


@triton.jit
def _larger_half(values, BLOCK: tl.constexpr, COLUMNS: tl.constexpr):
    """The larger of columns j and j + COLUMNS / 2: float16, two at a time."""
    a, b = tl.split(tl.permute(tl.reshape(values, [BLOCK, 2, COLUMNS // 2]), (0, 2, 1)))
    return tl.inline_asm_elementwise("max.f16x2 $0, $1, $2;", "=r,r,r", [a, b], dtype=tl.float16, is_pure=True, pack=2)


@triton.jit
def _largest(agreement, HALF: tl.constexpr, BLOCK: tl.constexpr, ROWS: tl.constexpr):
    """The largest agreement of each code (BLOCK,)."""
    if HALF:  # down to 8 columns, which four threads hold
        agreement = _larger_half(agreement, BLOCK, ROWS)
        agreement = _larger_half(agreement, BLOCK, ROWS // 2)
        agreement = _larger_half(agreement, BLOCK, ROWS // 4)
        if ROWS > 64:
            agreement = _larger_half(agreement, BLOCK, ROWS // 8)
        if ROWS > 128:
            agreement = _larger_half(agreement, BLOCK, ROWS // 16)
    return tl.max(agreement, axis=1)


@triton.jit
def _either(a, b):
    return a | b


@triton.jit(do_not_specialize=["end", "n_tiles", "offset", "room"])
def scan_many(
    words, stride, first, end, queries, least_of_tile, n_tiles, allowed, offset, n_hits, hits, tiles, room,
    W: tl.constexpr, HALF: tl.constexpr, FILTERED: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Positions first … end of codes that may be near a query, and of which tiles of queries: a bit each, 32 at most.

    Σ_j m_j·[b_j ≠ q_j] = (Σ_j m_j − agreement) / 2, so a code is within a query's limit where they agree enough. Hits
    are looked for after the last tile only: threads need not wait for each other before.
    """
    stride = stride.to(tl.int64)  # times a word it may pass 2³¹
    start = first + tl.program_id(0).to(tl.int64) * BLOCK
    signs = _signs(words + start, stride, W, HALF, BLOCK)
    flags = tl.zeros([BLOCK], dtype=tl.int32)
    for tile in range(n_tiles):
        row = tile * ROWS + tl.arange(0, ROWS)
        agreement = _agreement(signs, words + start, stride, queries, row, W, HALF, BLOCK)
        within = _largest(agreement, HALF, BLOCK, ROWS) >= tl.load(least_of_tile + tile)
        flags = flags | (within.to(tl.int32) << tile)
    if tl.reduce(flags, 0, _either) != 0:
        local = start + tl.arange(0, BLOCK)
        keep = (flags != 0) & (local < end)
        if FILTERED:
            keep = keep & _is_allowed(allowed, offset + local, keep)
        place = _places(keep, n_hits)
        fits = keep & (place < room)
        tl.store(hits + place, local, mask=fits)
        tl.store(tiles + place, flags, mask=fits)


@triton.jit
def _distance(words, stride, at, query, table, inside, W: tl.constexpr):
    """Exact distances of the codes at `at`: for each byte of x ^ q its whole weight, from a table (4W, 256)."""
    total = tl.zeros_like(at)
    for w in tl.static_range(W):
        differing = tl.load(words + w * stride + at, mask=inside, other=0) ^ tl.load(query + w, mask=inside, other=0)
        for b in tl.static_range(4):
            total += tl.load(table + (4 * w + b) * 256 + ((differing >> (8 * b)) & 255))
    return total


@triton.jit
def _bound_of_code(words, stride, at, queries, row, inside, masks, W: tl.constexpr, PLANES: tl.constexpr):
    """The bounds of one code and the queries (q, W) of some rows, as `scan_one` has them."""
    total = tl.zeros_like(row)
    for w in range(0, W - W % 2, 2):
        a = tl.load(words + w * stride + at) ^ tl.load(queries + row * W + w, mask=inside, other=0)
        b = tl.load(words + (w + 1) * stride + at) ^ tl.load(queries + row * W + w + 1, mask=inside, other=0)
        total += _bound_of_two(a, b, masks, w, W, PLANES)
    if W % 2:
        a = tl.load(words + (W - 1) * stride + at) ^ tl.load(queries + row * W + W - 1, mask=inside, other=0)
        total += _bound_of_one(a, masks, W - 1, W, PLANES)
    return total


@triton.jit(do_not_specialize=["most_hits", "n_tiles", "n_queries", "room"])
def collect_many(
    words, stride, n_hits, most_hits, hits, tiles, n_tiles, queries, n_queries, masks, most, table, limits,
    count, positions, owners, distances, room, W: tl.constexpr, PLANES: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """The queries (q, W) that the hits of `scan_many` are within the limits of; each program takes its share of hits.

    A tile is a hit's if one query of it may be near: a bound tells which, and their exact distances decide.
    """
    stride = stride.to(tl.int64)  # times a word it may pass 2³¹
    n = tl.load(n_hits)
    n = tl.where(n <= most_hits, n, 0).to(tl.int32)  # of too many hits, some are not there
    for i in range(tl.program_id(0), n, tl.num_programs(0)):
        at, flags = tl.load(hits + i), tl.load(tiles + i)
        for tile in range(n_tiles):
            if ((flags >> tile) & 1) != 0:
                row = tile * ROWS + tl.arange(0, ROWS)
                inside = row < n_queries
                bound = _bound_of_code(words, stride, at, queries, row, inside, masks, W, PLANES)
                near = inside & (bound <= tl.load(most + row, mask=inside, other=0))
                if tl.max(near.to(tl.int32), axis=0) != 0:
                    here = at + tl.zeros([ROWS], dtype=tl.int64)
                    total = _distance(words, stride, here, queries + row * W, table, near, W)
                    keep = near & (total <= tl.load(limits + row, mask=near, other=0))
                    place = _places(keep, count)
                    fits = keep & (place < room)
                    tl.store(positions + place, here, mask=fits)
                    tl.store(owners + place, row.to(tl.int64), mask=fits)
                    tl.store(distances + place, total, mask=fits)


@triton.jit(do_not_specialize=["n"])
def exact_distances(
    words, stride, positions, owners, queries, table, distances, n, W: tl.constexpr, BLOCK: tl.constexpr
):
    """Distances of the codes at positions to their owners, the queries (q, W)."""
    stride = stride.to(tl.int64)  # times a word it may pass 2³¹
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = place < n
    at = tl.load(positions + place, mask=inside, other=0)
    owner = tl.load(owners + place, mask=inside, other=0)
    tl.store(distances + place, _distance(words, stride, at, queries + owner * W, table, inside, W), mask=inside)


@triton.jit(do_not_specialize=["n"])
def group_minima(
    words, stride, queries, table, is_allowed, minima, n,
    W: tl.constexpr, FILTERED: tl.constexpr, GROUP: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """The least distance in each group of consecutive codes, to each query: minima (q, n // GROUP)."""
    stride = stride.to(tl.int64)  # times a word it may pass 2³¹
    lane = tl.arange(0, BLOCK)
    at = tl.program_id(0).to(tl.int64) * BLOCK + lane
    owner = tl.program_id(1)
    query = queries + owner * W + tl.zeros([BLOCK], dtype=tl.int32)
    total = _distance(words, stride, at, query, table, lane < BLOCK, W)
    if FILTERED:
        total = tl.where(tl.load(is_allowed + at) != 0, total, FAR)
    least = tl.min(tl.reshape(total, [BLOCK // GROUP, GROUP]), axis=1)
    group = tl.program_id(0) * (BLOCK // GROUP) + tl.arange(0, BLOCK // GROUP)
    tl.store(minima + owner.to(tl.int64) * (n // GROUP) + group, least)


@triton.jit(do_not_specialize=["n", "k", "scale"])
def limit_of(minima, n, k, scale, limit, most, SIZE: tl.constexpr):
    """The k-th least of n minima, and the most that a bound may be: -1, so that none is, where there are not k."""
    at = tl.arange(0, SIZE)
    values = tl.load(minima + at, mask=at < n, other=FAR)
    for _ in range(k - 1):
        values = tl.where(at == tl.argmin(values, axis=0), FAR, values)
    least = tl.min(values, axis=0)
    tl.store(limit, least)
    tl.store(most, tl.where(least < FAR, tl.minimum(least // scale, 0x7FFFFFFF), -1))


@triton.jit(do_not_specialize=["room", "offset", "near_room"])
def exact_within(
    words, stride, positions, count, room, query, table, limit, offset, n_near, distances, near, near_room,
    W: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Of the positions that a scan kept, those within the limit by their exact distance."""
    stride = stride.to(tl.int64)  # times a word it may pass 2³¹
    n = tl.minimum(tl.load(count), room)
    start = tl.program_id(0) * BLOCK
    if start < n:
        place = start + tl.arange(0, BLOCK)
        inside = place < n
        at = tl.load(positions + place, mask=inside, other=0)
        total = _distance(words, stride, at, query + tl.zeros([BLOCK], dtype=tl.int32), table, inside, W)
        keep = inside & (total <= tl.load(limit))
        slot = _places(keep, n_near)
        fits = keep & (slot < near_room)
        tl.store(distances + slot, total, mask=fits)
        tl.store(near + slot, offset + at, mask=fits)


@triton.jit(do_not_specialize=["n", "n_words"])
def encode(
    items, stride, n, d, parts, intercept, codes, n_words, wrong,
    PARTS: tl.constexpr, PRECISION: tl.constexpr, ROWS: tl.constexpr, STEP: tl.constexpr, BITS: tl.constexpr,
):  # fmt: skip
    """Signs of items times coefficients, packed to words (n, n_words).

    The coefficients are the sums of PARTS parts (n_words·32 / BITS, d, PARTS, BITS), which stand side by side: each
    item is multiplied by all of them at once. `wrong` becomes 1 where a product is not finite.
    """
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    column = tl.arange(0, PARTS * BITS)
    total = tl.zeros([ROWS, PARTS * BITS], dtype=tl.float32)
    here = parts + tl.program_id(1) * d * (PARTS * BITS)
    for first in range(0, d, STEP):
        feature = first + tl.arange(0, STEP)
        inside = (row < n)[:, None] & (feature < d)[None, :]
        x = tl.load(items + row[:, None] * stride + feature[None, :], mask=inside, other=0.0)
        some = here + feature[:, None] * (PARTS * BITS) + column[None, :]
        total = tl.dot(x, tl.load(some, mask=(feature < d)[:, None], other=0.0), total, PRECISION)
    if PARTS > 1:
        total = tl.sum(tl.reshape(total, [ROWS, PARTS, BITS]), axis=1)
    if tl.max(tl.max((total - total != 0).to(tl.int32), axis=1), axis=0) > 0:
        tl.store(wrong, 1)
    at = tl.program_id(1) * BITS + tl.arange(0, BITS)
    on = (total + tl.load(intercept + at)[None, :] > 0).to(tl.int32)
    shifted = tl.reshape(on, [ROWS, BITS // 32, 32]) << tl.arange(0, 32)[None, None, :]
    word = tl.program_id(1) * (BITS // 32) + tl.arange(0, BITS // 32)
    tl.store(codes + row[:, None] * n_words + word[None, :], tl.sum(shifted, axis=2), mask=(row < n)[:, None])
