"""Passes over codes and items in Triton; `scans` and `encoding` hold the same in torch operations.

Codes stand as int32 words (W, n): word w of all codes together. A pass over them keeps the positions of those whose
bound is within a limit; the distances themselves never reach memory.
"""

from __future__ import annotations

import triton
import triton.language as tl

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
def _keep(keep, position, owner, count, positions, owners, room):
    """Append what is to be kept; `count` goes on counting when there is no more room."""
    place = tl.atomic_add(count + tl.zeros_like(owner), 1, mask=keep, sem="relaxed")  # (…) int64
    fits = keep & (place < room)
    tl.store(positions + place, position, mask=fits)
    tl.store(owners + place, owner, mask=fits)


@triton.jit
def scan_one(
    words, stride, first, end, query, masks, limit, allowed, count, positions, owners, room, owner, offset,
    W: tl.constexpr, PLANES: tl.constexpr, FILTERED: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Positions first … end of a segment whose bound Σ_p 2^p·popcount((x ^ q) & mask_p) is within the limit.

    Words are taken two by two, and a plane's two masked words added bit by bit with the carry of the plane before: one
    count a plane and one for the last carry, in place of two a plane.
    """
    start = first + tl.program_id(0).to(tl.int64) * BLOCK
    lane = tl.arange(0, BLOCK)
    total = tl.zeros([BLOCK], dtype=tl.int32)
    for w in tl.static_range(0, W, 2):
        a = tl.load(words + w * stride + start + lane) ^ tl.load(query + w)
        if w + 1 < W:
            b = tl.load(words + (w + 1) * stride + start + lane) ^ tl.load(query + w + 1)
            carry = tl.zeros([BLOCK], dtype=tl.int32)
            for p in tl.static_range(PLANES):
                a_p = a & tl.load(masks + p * W + w)
                b_p = b & tl.load(masks + p * W + w + 1)
                total += _count(a_p ^ b_p ^ carry) << p
                carry = (a_p & b_p) | (carry & (a_p | b_p))
            total += _count(carry) << PLANES
        else:
            for p in tl.static_range(PLANES):
                total += _count(a & tl.load(masks + p * W + w)) << p
    most = tl.load(limit)
    if tl.min(total, axis=0) <= most:
        local = start + lane
        keep = (total <= most) & (local < end)
        if FILTERED:
            keep = keep & _is_allowed(allowed, offset + local, keep)
        _keep(keep, local, owner + tl.zeros_like(lane), count, positions, owners, room)


@triton.jit
def _signs(words, stride, n_words: tl.constexpr, BLOCK: tl.constexpr):
    """The bits (BLOCK, 64) of two words as -1 and 1, in turn: column 2·j + w is bit j of word w; 0 for no word."""
    lane, bit = tl.arange(0, BLOCK), tl.arange(0, 32)
    a = ((tl.load(words + lane)[:, None] >> bit[None, :]) & 1) * 2 - 1
    if n_words > 1:
        b = ((tl.load(words + stride + lane)[:, None] >> bit[None, :]) & 1) * 2 - 1
    else:
        b = tl.zeros([BLOCK, 32], dtype=tl.int32)
    return tl.reshape(tl.join(a.to(tl.int8), b.to(tl.int8)), [BLOCK, 64])


@triton.jit
def _agreement(signs, words, stride, queries, row, W: tl.constexpr, BLOCK: tl.constexpr):
    """Σ_j m_j·b_j·q_j (BLOCK, ROWS) of bits as -1 and 1: what the small weights of equal bits exceed the others' by."""
    at = queries + row[:, None] * (32 * (W + W % 2)) + tl.arange(0, 64)[None, :]  # (ROWS, 64)
    total = tl.dot(signs, tl.trans(tl.load(at)))
    for w in tl.static_range(2, W, 2):
        more = _signs(words + w * stride, stride, W - w, BLOCK)
        total = tl.dot(more, tl.trans(tl.load(at + 32 * w)), total)
    return total


@triton.jit
def _either(a, b):
    return a | b


@triton.jit
def scan_many(
    words, stride, first, queries, least_of_tile, n_tiles, n_hits, hits, room,
    W: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Which blocks of codes hold one that may be near a query, of which tiles of queries, 32 at most.

    Σ_j m_j·[b_j ≠ q_j] = (Σ_j m_j − agreement) / 2, so a code is within a query's limit where they agree enough. A hit
    is a block, and above it a bit for each tile. Flags are joined over a block's codes after the last tile only:
    threads need not wait for each other before.
    """
    block = tl.program_id(0)
    at = words + first + block.to(tl.int64) * BLOCK
    signs = _signs(at, stride, W, BLOCK)
    flags = tl.zeros([BLOCK], dtype=tl.int32)
    for tile in range(n_tiles):
        row = tile * ROWS + tl.arange(0, ROWS)
        agreement = _agreement(signs, at, stride, queries, row, W, BLOCK)
        within = tl.max(agreement, axis=1) >= tl.load(least_of_tile + tile)
        flags = flags | (within.to(tl.int32) << tile)
    found = tl.reduce(flags, 0, _either)
    if found != 0:
        place = tl.atomic_add(n_hits, 1, sem="relaxed")
        if place < room:
            tl.store(hits + place, (found.to(tl.int64) << 32) | block)


@triton.jit
def collect_many(
    words, stride, first, end, queries, least, hits, allowed, offset, count, positions, owners, room,
    W: tl.constexpr, SPAN: tl.constexpr, PARTS: tl.constexpr, FILTERED: tl.constexpr, ROWS: tl.constexpr,
    BLOCK: tl.constexpr,
):  # fmt: skip
    """Positions of the codes near a query, in the blocks and tiles that `scan_many` found.

    Its blocks were of SPAN codes, its tiles of PARTS·ROWS queries.
    """
    hit = tl.load(hits + tl.program_id(0))
    part = tl.program_id(2)
    if (hit >> (32 + part // PARTS)) & 1 != 0:
        start = first + (hit & 0x7FFFFFFF) * SPAN + tl.program_id(1) * BLOCK
        row = part * ROWS + tl.arange(0, ROWS)
        signs = _signs(words + start, stride, W, BLOCK)
        agreement = _agreement(signs, words + start, stride, queries, row, W, BLOCK)
        enough = tl.load(least + row)[None, :]
        if tl.max(tl.max((agreement >= enough).to(tl.int32), axis=1), axis=0) > 0:
            at = tl.broadcast_to((start + tl.arange(0, BLOCK))[:, None], [BLOCK, ROWS])
            keep = (agreement >= enough) & (at < end)
            if FILTERED:
                keep = keep & _is_allowed(allowed, offset + at, keep)
            _keep(keep, at, tl.broadcast_to(row[None, :], [BLOCK, ROWS]), count, positions, owners, room)


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
def exact_distances(
    words, stride, positions, owners, queries, table, distances, n, W: tl.constexpr, BLOCK: tl.constexpr
):
    """Distances of the codes at positions to their owners, the queries (q, W)."""
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = place < n
    at = tl.load(positions + place, mask=inside, other=0)
    owner = tl.load(owners + place, mask=inside, other=0)
    tl.store(distances + place, _distance(words, stride, at, queries + owner * W, table, inside, W), mask=inside)


@triton.jit
def group_minima(
    words, stride, queries, table, is_allowed, minima, n,
    W: tl.constexpr, FILTERED: tl.constexpr, GROUP: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """The least distance in each group of consecutive codes, to each query: minima (q, n // GROUP)."""
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


@triton.jit
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
