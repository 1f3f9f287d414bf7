"""Sums over pairs and features in Triton, for learning on a GPU; `cghash.learning.device` holds the same in torch.

Each program adds what it was given in one fixed order and writes its own sum: every run gives the same bits.
"""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit(do_not_specialize=["n_rows"])
def tanh_values(features, n_rows, x, out, D: tl.constexpr, ROWS: tl.constexpr, STEP: tl.constexpr):
    """tanh(Z·v + b) of each row, x being v with b behind."""
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    inside = row < n_rows
    total = tl.zeros([ROWS, STEP], dtype=tl.float32)
    for first in tl.static_range(0, D, STEP):
        column = first + tl.arange(0, STEP)
        where = inside[:, None] & (column < D)[None, :]
        z = tl.load(features + row[:, None] * D + column[None, :], mask=where, other=0.0)
        total += z * tl.load(x + column, mask=column < D, other=0.0)[None, :]
    value = (tl.sum(total, axis=1) + tl.load(x + D)).to(tl.float64)
    small = tl.exp(-2.0 * tl.abs(value))
    size = (1.0 - small) / (1.0 + small)
    tl.store(out + row, tl.where(value < 0, -size, size).to(tl.float32), mask=inside)


@triton.jit(do_not_specialize=["n_rows"])
def relaxed_slopes(starts, others, weights, t, slope, sums, n_rows, ROWS: tl.constexpr, STEP: tl.constexpr):
    """(Lt)·(1 − t²) of each row, and the program's Σ slope and Σ t·Lt, in doubles (2,)."""
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    inside = row < n_rows
    begin = tl.load(starts + row, mask=inside, other=0)
    end = tl.load(starts + row + 1, mask=inside, other=0)
    mine = tl.load(t + row, mask=inside, other=0.0)
    total = tl.zeros([ROWS, STEP], dtype=tl.float32)
    lane = tl.arange(0, STEP)
    for step in range(0, tl.max(end - begin), STEP):
        at = begin[:, None] + step + lane[None, :]
        there = at < end[:, None]
        other = tl.load(others + at, mask=there, other=0)
        weight = tl.load(weights + at, mask=there, other=0.0)
        total += weight * (mine[:, None] - tl.load(t + other, mask=there, other=0.0))
    pulled = tl.sum(total, axis=1)
    steep = pulled * (1.0 - mine * mine)
    tl.store(slope + row, steep, mask=inside)
    place = sums + tl.program_id(0) * 2
    tl.store(place, tl.sum(steep.to(tl.float64)))
    tl.store(place + 1, tl.sum(mine.to(tl.float64) * pulled.to(tl.float64)))


@triton.jit(do_not_specialize=["n_parts"])
def part_sums(parts, n_parts, out, D: tl.constexpr, STEP: tl.constexpr, WIDTH: tl.constexpr):
    """Sums (D,) of parts (n_parts, D), in doubles."""
    column = tl.program_id(0) * WIDTH + tl.arange(0, WIDTH)
    total = tl.zeros([STEP, WIDTH], dtype=tl.float64)
    for first in range(0, n_parts, STEP):
        row = first + tl.arange(0, STEP)
        where = (row < n_parts)[:, None] & (column < D)[None, :]
        total += tl.load(parts + row[:, None] * D + column[None, :], mask=where, other=0.0).to(tl.float64)
    tl.store(out + column, tl.sum(total, axis=0), mask=column < D)


@triton.jit(do_not_specialize=["n_rows"])
def row_sums(starts, others, weights, own, values, out, n_rows, ROWS: tl.constexpr, STEP: tl.constexpr):
    """out_i = Σ weights·(own_i − values[other]) over the entries of row i; floats."""
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    inside = row < n_rows
    begin = tl.load(starts + row, mask=inside, other=0)
    end = tl.load(starts + row + 1, mask=inside, other=0)
    mine = tl.load(own + row, mask=inside, other=0.0)
    total = tl.zeros([ROWS, STEP], dtype=tl.float32)
    lane = tl.arange(0, STEP)
    for step in range(0, tl.max(end - begin), STEP):
        at = begin[:, None] + step + lane[None, :]
        there = at < end[:, None]
        other = tl.load(others + at, mask=there, other=0)
        weight = tl.load(weights + at, mask=there, other=0.0)
        total += weight * (mine[:, None] - tl.load(values + other, mask=there, other=0.0))
    tl.store(out + row, tl.sum(total, axis=1), mask=inside)


@triton.jit(do_not_specialize=["n_rows"])
def feature_sums(
    features, n_rows, r, out, D: tl.constexpr, ROWS: tl.constexpr, TIMES: tl.constexpr, WIDTH: tl.constexpr
):
    """Σ_i r_i·z_i (D,) over ROWS·TIMES items a program, floats whose sums over the programs are to be added."""
    first = tl.program_id(0).to(tl.int64) * (ROWS * TIMES)
    column = tl.program_id(1) * WIDTH + tl.arange(0, WIDTH)
    lane = tl.arange(0, ROWS)
    total = tl.zeros([ROWS, WIDTH], dtype=tl.float32)
    for turn in range(TIMES):
        row = first + turn * ROWS + lane
        inside = row < n_rows
        where = inside[:, None] & (column < D)[None, :]
        z = tl.load(features + row[:, None] * D + column[None, :], mask=where, other=0.0)
        total += z * tl.load(r + row, mask=inside, other=0.0)[:, None]
    tl.store(out + tl.program_id(0) * D + column, tl.sum(total, axis=0), mask=column < D)


@triton.jit(do_not_specialize=["n_slots", "n_bytes"])
def distances(planes, stride, n_slots, n_bytes, w, out, BLOCK: tl.constexpr):
    """Σ_j w_j·bit_j of each slot, in doubles; plane c holds bits 8c … 8c + 7 of all slots."""
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n_slots
    total = tl.zeros([BLOCK], dtype=tl.float64)
    for c in range(n_bytes):
        byte = tl.load(planes + c * stride + at, mask=inside, other=0).to(tl.int32)
        for k in tl.static_range(8):
            total += tl.where(((byte >> k) & 1) > 0, tl.load(w + c * 8 + k), 0.0)
    tl.store(out + at, total, mask=inside)


@triton.jit(do_not_specialize=["n_slots", "n_bytes"])
def bit_sums(planes, stride, n_slots, n_bytes, q, out, BLOCK: tl.constexpr, TIMES: tl.constexpr):
    """Σ q·bit_j (8·n_bytes,) over BLOCK·TIMES slots a program, in doubles."""
    first = tl.program_id(0).to(tl.int64) * (BLOCK * TIMES)
    c = tl.program_id(1)
    place = tl.arange(0, 8)
    total = tl.zeros([8, BLOCK], dtype=tl.float64)
    for turn in range(TIMES):
        at = first + turn * BLOCK + tl.arange(0, BLOCK)
        inside = at < n_slots
        byte = tl.load(planes + c * stride + at, mask=inside, other=0).to(tl.int32)
        slope = tl.load(q + at, mask=inside, other=0.0)
        total += tl.where(((byte[None, :] >> place[:, None]) & 1) > 0, slope[None, :], 0.0)
    tl.store(out + tl.program_id(0) * (n_bytes * 8) + c * 8 + place, tl.sum(total, axis=1))


@triton.jit(do_not_specialize=["n_blocks"])
def block_slopes(
    D, p, n_blocks, q, values, LOSS: tl.constexpr, NEAR: tl.constexpr, FAR: tl.constexpr, NEAR_UP: tl.constexpr,
    FAR_UP: tl.constexpr, BLOCKS: tl.constexpr,
):  # fmt: skip
    """∂F/∂D of the slots of blocks of NEAR × FAR triplets, and the program's sum of losses; LOSS as in `losses`.

    Each axis is brought up to a power of two.
    """
    b = tl.program_id(0).to(tl.int64) * BLOCKS + tl.arange(0, BLOCKS)
    inside = b < n_blocks
    i, j = tl.arange(0, NEAR_UP), tl.arange(0, FAR_UP)
    is_near, is_far = inside[:, None] & (i < NEAR)[None, :], inside[:, None] & (j < FAR)[None, :]
    near_at = b[:, None] * (NEAR + FAR) + i[None, :]
    far_at = b[:, None] * (NEAR + FAR) + NEAR + j[None, :]
    near, far = tl.load(D + near_at, mask=is_near, other=0.0), tl.load(D + far_at, mask=is_far, other=0.0)
    margin = far[:, None, :] - near[:, :, None]
    if LOSS == 0:
        short = tl.maximum(1.0 - margin, 0.0)
        f = short * short
        u = 2.0 * short
    elif LOSS == 2:
        small = tl.exp(-tl.abs(margin))
        f = tl.log(1.0 + small) + tl.maximum(-margin, 0.0)
        u = tl.where(margin > 0, small, 1.0) / (1.0 + small)
    else:
        f = tl.exp(-margin)
        u = f
    there = is_near[:, :, None] & is_far[:, None, :]
    f, u = tl.where(there, f, 0.0), tl.where(there, u, 0.0)
    weight = tl.load(p + b, mask=inside, other=0.0)
    tl.store(q + near_at, weight[:, None] * tl.sum(u, axis=2), mask=is_near)
    tl.store(q + far_at, -weight[:, None] * tl.sum(u, axis=1), mask=is_far)
    tl.store(values + tl.program_id(0), tl.sum(tl.sum(tl.sum(f, axis=2), axis=1) * weight))
