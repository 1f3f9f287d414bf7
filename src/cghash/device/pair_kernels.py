"""Sums over pairs and features in Triton, for learning on a GPU; `cghash.device.learning` holds the same in torch.

Each program adds what it was given in one fixed order and writes its own sum: every run gives the same bits.
"""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit(do_not_specialize=["n_rows"])
def tanh_values(
    features, n_rows, x, out, POINTS: tl.constexpr, UP: tl.constexpr, D: tl.constexpr, ROWS: tl.constexpr,
    STEP: tl.constexpr,
):  # fmt: skip
    """tanh(Z·v + b) (POINTS, n_rows) at each point x (POINTS, D + 1), v with b behind; UP is a power of two."""
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    point = tl.arange(0, UP)
    inside = row < n_rows
    total = tl.zeros([UP, ROWS, STEP], dtype=tl.float32)
    for first in tl.static_range(0, D, STEP):
        column = first + tl.arange(0, STEP)
        where = inside[:, None] & (column < D)[None, :]
        z = tl.load(features + row[:, None] * D + column[None, :], mask=where, other=0.0)
        among = (point < POINTS)[:, None] & (column < D)[None, :]
        v = tl.load(x + point[:, None] * (D + 1) + column[None, :], mask=among, other=0.0)
        total += z[None, :, :] * v[:, None, :]
    b = tl.load(x + point * (D + 1) + D, mask=point < POINTS, other=0.0)
    value = (tl.sum(total, axis=2) + b[:, None]).to(tl.float64)
    small = tl.exp(-2.0 * tl.abs(value))
    size = (1.0 - small) / (1.0 + small)
    there = (point < POINTS)[:, None] & inside[None, :]
    tl.store(out + point[:, None] * n_rows + row[None, :], tl.where(value < 0, -size, size).to(tl.float32), mask=there)


@triton.jit
def _pulled(starts, others, weights, mine, values, row, inside, ROWS: tl.constexpr, STEP: tl.constexpr):
    """Σ weights·(mine_i − values[other]) over the entries of each row i; floats."""
    begin = tl.load(starts + row, mask=inside, other=0)
    end = tl.load(starts + row + 1, mask=inside, other=0)
    total = tl.zeros([ROWS, STEP], dtype=tl.float32)
    for step in range(0, tl.max(end - begin), STEP):
        at = begin[:, None] + step + tl.arange(0, STEP)[None, :]
        there = at < end[:, None]
        other = tl.load(others + at, mask=there, other=0)
        weight = tl.load(weights + at, mask=there, other=0.0)
        total += weight * (mine[:, None] - tl.load(values + other, mask=there, other=0.0))
    return tl.sum(total, axis=1)


@triton.jit(do_not_specialize=["n_rows"])
def relaxed_slopes(
    starts, others, weights, t, slope, sums, n_rows, POINTS: tl.constexpr, TOGETHER: tl.constexpr, ROWS: tl.constexpr,
    STEP: tl.constexpr,
):  # fmt: skip
    """(Lt)·(1 − t²) of each row, and the program's Σ slope and Σ t·Lt, in doubles (2,), for each of POINTS values t.

    The sums of TOGETHER programs stand side by side, those of each point together.
    """
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    values = t + tl.program_id(1).to(tl.int64) * n_rows
    inside = row < n_rows
    mine = tl.load(values + row, mask=inside, other=0.0)
    pulled = _pulled(starts, others, weights, mine, values, row, inside, ROWS, STEP)
    steep = pulled * (1.0 - mine * mine)
    tl.store(slope + tl.program_id(1).to(tl.int64) * n_rows + row, steep, mask=inside)
    line = (tl.program_id(0) // TOGETHER) * POINTS + tl.program_id(1)
    place = sums + (line * TOGETHER + tl.program_id(0) % TOGETHER) * 2
    tl.store(place, tl.sum(steep.to(tl.float64)))
    tl.store(place + 1, tl.sum(mine.to(tl.float64) * pulled.to(tl.float64)))


@triton.jit(do_not_specialize=["n_rows"])
def pair_gains(starts, others, weights, t, out, n_rows, M: tl.constexpr, ROWS: tl.constexpr, STEP: tl.constexpr):
    """The program's Σ weights·(t_i − t[other])² (M,) over the entries of its rows, in doubles; t is (n_rows, M)."""
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    inside = row < n_rows
    begin = tl.load(starts + row, mask=inside, other=0)
    end = tl.load(starts + row + 1, mask=inside, other=0)
    column, lane = tl.arange(0, M), tl.arange(0, STEP)
    mine = tl.load(t + row.to(tl.int64)[:, None] * M + column[None, :], mask=inside[:, None], other=0.0)
    total = tl.zeros([ROWS, STEP, M], dtype=tl.float32)
    for step in range(0, tl.max(end - begin), STEP):
        at = begin[:, None] + step + lane[None, :]
        there = at < end[:, None]
        other = tl.load(others + at, mask=there, other=0)
        weight = tl.load(weights + at, mask=there, other=0.0)
        apart = mine[:, None, :] - tl.load(t + other.to(tl.int64)[:, :, None] * M + column[None, None, :])
        total += weight[:, :, None] * apart * apart
    place = out + tl.program_id(0).to(tl.int64) * M + column
    tl.store(place, tl.sum(tl.sum(total, axis=1).to(tl.float64), axis=0))


@triton.jit(do_not_specialize=["n_slots", "n_rows", "width"])
def cut_steps(first, second, weights, n_slots, places, n_rows, steps, width, BLOCK: tl.constexpr):
    """Whole weights added at the lower place of each pair and taken at the higher, of one line (width,) of steps."""
    slot = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = slot < n_slots
    mine = places + tl.program_id(1).to(tl.int64) * n_rows
    a = tl.load(mine + tl.load(first + slot, mask=inside, other=0), mask=inside, other=0)
    b = tl.load(mine + tl.load(second + slot, mask=inside, other=0), mask=inside, other=0)
    weight = tl.load(weights + slot, mask=inside, other=0)
    line = steps + tl.program_id(1) * width
    tl.atomic_add(line + tl.minimum(a, b), weight, mask=a != b, sem="relaxed")
    tl.atomic_add(line + tl.maximum(a, b), -weight, mask=a != b, sem="relaxed")


@triton.jit(do_not_specialize=["n_parts", "d"])
def part_sums(parts, n_parts, d, out, STEP: tl.constexpr, WIDTH: tl.constexpr):
    """Sums (d,) of parts (n_parts, d), in doubles."""
    column = tl.program_id(0) * WIDTH + tl.arange(0, WIDTH)
    total = tl.zeros([STEP, WIDTH], dtype=tl.float64)
    for first in range(0, n_parts, STEP):
        row = first + tl.arange(0, STEP)
        where = (row < n_parts)[:, None] & (column < d)[None, :]
        total += tl.load(parts + row[:, None] * d + column[None, :], mask=where, other=0.0).to(tl.float64)
    tl.store(out + column, tl.sum(total, axis=0), mask=column < d)


@triton.jit(do_not_specialize=["n_rows"])
def row_sums(starts, others, weights, own, values, out, n_rows, ROWS: tl.constexpr, STEP: tl.constexpr):
    """out_i = Σ weights·(own_i − values[other]) over the entries of row i; floats."""
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    inside = row < n_rows
    mine = tl.load(own + row, mask=inside, other=0.0)
    tl.store(out + row, _pulled(starts, others, weights, mine, values, row, inside, ROWS, STEP), mask=inside)


@triton.jit(do_not_specialize=["n_rows"])
def feature_sums(
    features, n_rows, r, out, POINTS: tl.constexpr, UP: tl.constexpr, D: tl.constexpr, ROWS: tl.constexpr,
    TIMES: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    """Σ_i r_i·z_i (POINTS, D) over ROWS·TIMES items a program, for each r (POINTS, n_rows): floats, to be added up."""
    first = tl.program_id(0).to(tl.int64) * (ROWS * TIMES)
    column = tl.program_id(1) * WIDTH + tl.arange(0, WIDTH)
    lane, point = tl.arange(0, ROWS), tl.arange(0, UP)
    total = tl.zeros([UP, ROWS, WIDTH], dtype=tl.float32)
    for turn in range(TIMES):
        row = first + turn * ROWS + lane
        inside = row < n_rows
        where = inside[:, None] & (column < D)[None, :]
        z = tl.load(features + row[:, None] * D + column[None, :], mask=where, other=0.0)
        there = (point < POINTS)[:, None] & inside[None, :]
        mine = tl.load(r + point[:, None] * n_rows + row[None, :], mask=there, other=0.0)
        total += z[None, :, :] * mine[:, :, None]
    where = (point < POINTS)[:, None] & (column < D)[None, :]
    place = out + (tl.program_id(0) * POINTS + point[:, None]) * D + column[None, :]
    tl.store(place, tl.sum(total, axis=1), mask=where)


@triton.jit(do_not_specialize=["n_slots", "n_bytes"])
def distances(planes, stride, n_slots, n_bytes, w, out, BLOCK: tl.constexpr):
    """Σ_j w_j·bit_j of each slot, in doubles; plane c holds bits 8c … 8c + 7 of all slots."""
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n_slots
    total = tl.zeros([BLOCK], dtype=tl.float64)
    for c in range(n_bytes):
        byte = tl.load(planes + at, mask=inside, other=0).to(tl.int32)
        for k in tl.static_range(8):
            total += tl.where(((byte >> k) & 1) > 0, tl.load(w + c * 8 + k), 0.0)
        planes += stride
    tl.store(out + at, total, mask=inside)


@triton.jit(do_not_specialize=["n_slots", "n_bytes"])
def bit_sums(planes, stride, n_slots, n_bytes, q, out, BLOCK: tl.constexpr, TIMES: tl.constexpr):
    """Σ q·bit_j (8·n_bytes,) over BLOCK·TIMES slots a program, in doubles."""
    first = tl.program_id(0).to(tl.int64) * (BLOCK * TIMES)
    c = tl.program_id(1)
    plane = planes + c.to(tl.int64) * stride  # may pass 2³¹
    place = tl.arange(0, 8)
    total = tl.zeros([8, BLOCK], dtype=tl.float64)
    for turn in range(TIMES):
        at = first + turn * BLOCK + tl.arange(0, BLOCK)
        inside = at < n_slots
        byte = tl.load(plane + at, mask=inside, other=0).to(tl.int32)
        slope = tl.load(q + at, mask=inside, other=0.0)
        total += tl.where(((byte[None, :] >> place[:, None]) & 1) > 0, slope[None, :], 0.0)
    tl.store(out + tl.program_id(0) * (n_bytes * 8) + c * 8 + place, tl.sum(total, axis=1))


@triton.jit(do_not_specialize=["n_blocks", "dead"])
def block_slopes(
    D, p, n_blocks, q, counts, dead, LOSS: tl.constexpr, NEAR: tl.constexpr, FAR: tl.constexpr, NEAR_UP: tl.constexpr,
    FAR_UP: tl.constexpr, BLOCKS: tl.constexpr,
):  # fmt: skip
    """∂F/∂D of the slots of blocks of NEAR × FAR triplets; LOSS as in `losses`.

    And the program's sum of losses, of the weights of satisfied triplets, and the number of those with a margin below
    `dead`. Each axis is brought up to a power of two.
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
    satisfied = tl.where(there & (margin > 0), 1.0, 0.0).to(tl.float64)
    live = tl.where(there & (margin < dead), 1.0, 0.0).to(tl.float64)
    place = counts + tl.program_id(0) * 3
    tl.store(place, tl.sum(tl.sum(tl.sum(f, axis=2), axis=1) * weight))
    tl.store(place + 1, tl.sum(tl.sum(tl.sum(satisfied, axis=2), axis=1) * weight))
    tl.store(place + 2, tl.sum(tl.sum(tl.sum(live, axis=2), axis=1)))
