"""Columns as bits over pair slots: twin and native table against a loop over every triplet."""

from __future__ import annotations

import math
from contextlib import contextmanager
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cghash._kernels import native, twins

pytestmark = [pytest.mark.core, pytest.mark.portable]

needs_native = pytest.mark.skipif(native is None, reason="the native extension was not built")
BOTH = pytest.mark.parametrize(
    "module", [twins, pytest.param(native, marks=[pytest.mark.native, needs_native])], ids=["twin", "native"]
)
LOSSES = range(4)
SLOTS_OF_A_TILE, TILES_OF_A_CHUNK = 512, 32


def f(code, margin):
    """Value and multiplier of the four losses, in plain Python."""
    slack = max(0.0, 1.0 - margin)
    if code == 0:
        return slack**2, 2 * slack
    if code == 1:
        return slack, float(margin < 1.0)
    if code == 2:
        e = math.exp(-abs(margin))
        return math.log1p(e) + max(0.0, -margin), (e if margin > 0 else 1.0) / (1.0 + e)
    return math.exp(-margin), math.exp(-margin)


class Naive:
    """Every quantity by definition, triplet by triplet."""

    def __init__(self, anchors, near_ptr, near, far_ptr, far, weights, n_items):
        self.items, self.triplets = [], []  # of each slot; (near slot, far slot, weight)
        blocks = zip(anchors, pairwise(near_ptr), pairwise(far_ptr), weights, strict=True)
        for anchor, (near_from, near_to), (far_from, far_to), p in blocks:
            start, middle = len(self.items), len(self.items) + near_to - near_from
            self.items += [(anchor, item) for item in [*near[near_from:near_to], *far[far_from:far_to]]]
            self.triplets += [(i, j, p) for i in range(start, middle) for j in range(middle, len(self.items))]

    def differs(self, bits):
        """(n_slots, m) of 0 and 1 from the bits (m, n_items)."""
        return np.array([[column[a] != column[b] for column in bits] for a, b in self.items], dtype=float).reshape(
            len(self.items), len(bits)
        )

    def loss(self, code, D):
        value, q = 0.0, np.zeros(len(self.items))
        for near, far, p in self.triplets:
            here, u = f(code, D[far] - D[near])
            value += p * here
            q[near] += p * u
            q[far] -= p * u
        return value, q

    def counts(self, D, low, high):
        margins = [(D[far] - D[near], p) for near, far, p in self.triplets]
        return sum(p for margin, p in margins if margin > low), sum(margin < high for margin, _ in margins)


def problem(seed, sizes, n_items=20, n_columns=5):
    """A table's arguments from the sizes (near, far) of its blocks, and bits (n_columns, n_items)."""
    rng = np.random.default_rng(seed)
    n_near, n_far = np.array(sizes, dtype=np.int64).reshape(-1, 2).T
    near, far = (rng.integers(0, n_items, int(n.sum())) for n in (n_near, n_far))
    pointers = [np.concatenate([[0], np.cumsum(n)]) for n in (n_near, n_far)]
    arguments = rng.integers(0, n_items, len(n_near)), pointers[0], near, pointers[1], far, rng.random(len(n_near))
    return (*arguments, n_items), rng.integers(0, 2, (n_columns, n_items)).astype(np.uint8), rng


def table_of(module, arguments, bits):
    table = module.PairTable(*arguments)
    for column in bits:
        table.append(column)
    return table


@contextmanager
def instructions(name):
    native.choose_instruction_set(name)
    try:
        yield
    finally:
        native.choose_instruction_set("")


def answers(table, w, q, D, n_threads):
    yield table.distances(w, n_threads)
    yield table.adjoint(q, n_threads)
    for code in LOSSES:
        yield from table.loss(code, D, n_threads)
        yield from table.evaluate(code, w, n_threads)
    yield from table.counts(D, 0.0, 1.0, n_threads)


def by_definition(arguments, bits, w, q, D):
    """What `answers` gives, from every triplet."""
    naive = Naive(*arguments)
    differs = naive.differs(bits)
    yield differs @ w
    yield q @ differs
    for code in LOSSES:
        yield from naive.loss(code, D)
        value, slopes = naive.loss(code, differs @ w)
        yield value
        yield slopes @ differs
    yield from naive.counts(D, 0.0, 1.0)


def check_same(found, expected):
    for one, other in zip(found, expected, strict=True):
        size = float(np.max(np.abs(other), initial=1.0))  # at least one: sums of such numbers may cancel
        np.testing.assert_allclose(one, other, rtol=1e-11, atol=1e-13 * size)


def check_all(arguments, bits, w, q, D):
    """The twin and every instruction set against the triplets, one thread against three."""
    expected = list(by_definition(arguments, bits, w, q, D))
    twin = table_of(twins, arguments, bits)
    assert (twin.n_slots, twin.n_columns) == (len(D), len(bits))
    check_same(answers(twin, w, q, D, 1), expected)
    for name in native.instruction_sets() if native else ():
        with instructions(name):
            table = table_of(native, arguments, bits)
            assert (table.n_slots, table.n_columns) == (len(D), len(bits))
            check_same(answers(table, w, q, D, 1), expected)
            check_threads(table, w, q, D)


def check_threads(table, w, q, D):
    for one, three in zip(answers(table, w, q, D, 1), answers(table, w, q, D, 3), strict=True):
        np.testing.assert_array_equal(one, three, strict=True)


@st.composite
def problems(draw):
    sizes = draw(st.lists(st.tuples(st.integers(0, 18), st.integers(0, 18)), max_size=6))
    n_columns = draw(st.integers(0, 11))  # past the capacity of 8 among them
    arguments, bits, rng = problem(draw(st.integers(0, 2**32 - 1)), sizes, draw(st.integers(1, 30)), n_columns)
    scale = draw(st.sampled_from([0.1, 1.0, 20.0]))
    w = scale * rng.random(n_columns) * rng.integers(0, 2, n_columns)
    n_slots = len(arguments[2]) + len(arguments[4])
    D = scale * rng.integers(0, 9, n_slots) / 4  # margins of exactly 0 and 1 are common
    return arguments, bits, w, rng.normal(size=n_slots), D


@pytest.mark.native
@settings(max_examples=60, deadline=None)
@given(problems())
def test_tables_compute_what_every_triplet_written_out_gives(case):
    check_all(*case)


@pytest.mark.native
@pytest.mark.parametrize(
    "sizes",
    [
        [],
        [(0, 0)],
        [(1, 1)],
        [(0, 3), (2, 0), (0, 0), (2, 3), (0, 0)],
        [(1, 63)],  # exactly one word
        [(32, 33)],  # a word and one slot
        [(256, 256), (1, 1)],  # exactly one tile, and a slot in the next
        [(300, 300), (2, 2), (0, 513)],  # blocks wider than a tile
        [(3, 4)] * 150,  # blocks do not fill their tiles
    ],
    ids=lambda sizes: f"{len(sizes)} blocks, {sum(map(sum, sizes))} slots",
)
def test_sizes_around_words_and_tiles(sizes):
    arguments, bits, rng = problem(0, sizes)
    n_slots = sum(map(sum, sizes))
    check_all(arguments, bits, rng.random(5), rng.normal(size=n_slots), 2 * rng.random(n_slots))


@pytest.mark.native
@needs_native
def test_more_than_one_chunk_gives_the_same_bits_for_any_number_of_threads():
    rng = np.random.default_rng(1)
    sizes = [tuple(size) for size in rng.integers(0, 21, (2500, 2)).tolist()]
    arguments, bits, rng = problem(1, sizes, n_items=500, n_columns=6)
    n_slots = sum(map(sum, sizes))
    assert n_slots > 1.2 * SLOTS_OF_A_TILE * TILES_OF_A_CHUNK
    w, q, D = rng.random(6), rng.normal(size=n_slots), 2 * rng.random(n_slots)
    expected = list(answers(table_of(twins, arguments, bits), w, q, D, 1))
    for name in native.instruction_sets():
        with instructions(name):
            table = table_of(native, arguments, bits)
            check_threads(table, w, q, D)
            for found, wanted in zip(answers(table, w, q, D, 3), expected, strict=True):
                np.testing.assert_allclose(found, wanted, rtol=1e-11, atol=1e-11)


@BOTH
@pytest.mark.parametrize("code", LOSSES)
def test_margins_far_out_neither_overflow_nor_lose_their_slope(module, code):
    """One near pair at distance 600, one far at 0, and the other way round."""
    one = np.array([0, 1], np.int64)
    table = module.PairTable(one[:1], one, np.array([1]), one, np.array([2]), np.ones(1), 3)
    for D in (np.array([600.0, 0.0]), np.array([0.0, 600.0])):
        value, q = table.loss(code, D, 1)
        expected, u = f(code, D[1] - D[0])
        assert value == pytest.approx(expected, rel=1e-12)
        np.testing.assert_allclose(q, [u, -u], rtol=1e-12)


@BOTH
def test_appending_past_the_capacity_keeps_the_columns_before(module):
    arguments, bits, rng = problem(2, [(3, 5), (70, 2)], n_columns=40)
    table, reserved = module.PairTable(*arguments), module.PairTable(*arguments)
    reserved.reserve(40)
    room = reserved.n_bytes
    differs = Naive(*arguments).differs(bits)
    for m, column in enumerate(bits, start=1):
        table.append(column)
        reserved.append(column)
        w = rng.random(m)
        np.testing.assert_allclose(table.distances(w, 1), differs[:, :m] @ w, rtol=1e-13)
        np.testing.assert_array_equal(table.distances(w, 1), reserved.distances(w, 1))
    assert reserved.n_bytes == room > 0
    reserved.reserve(3)  # less than there is: nothing happens
    assert (reserved.n_columns, reserved.n_bytes) == (40, room)


def good():
    return {
        "anchors": np.array([0, 1]),
        "near_ptr": np.array([0, 1, 3]),
        "near": np.array([1, 0, 2]),
        "far_ptr": np.array([0, 2, 2]),
        "far": np.array([2, 3]),
        "weights": np.array([0.5, 0.5]),
        "n_items": 4,
    }


@BOTH
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("near_ptr", np.array([0, 1])),
        ("near_ptr", np.zeros(0, np.int64)),
        ("near_ptr", np.array([0, 1, 2])),
        ("near_ptr", np.array([1, 1, 3])),
        ("near_ptr", np.array([0, 4, 3])),
        ("near_ptr", np.array([0, -1, 3])),
        ("far_ptr", np.array([0, 1, 3])),
        ("far_ptr", np.array([0, 2**62, 2])),
        ("anchors", np.array([0, 4])),
        ("anchors", np.array([-1, 0])),
        ("near", np.array([1, 0, 2**40])),
        ("far", np.array([-(2**63), 0])),
        ("weights", np.ones(3)),
        ("weights", np.zeros(0)),
        ("n_items", 3),
        ("n_items", -1),
        ("n_items", 2**31),
    ],
)
def test_malformed_triplets_are_refused(module, name, value):
    module.PairTable(*good().values())
    with pytest.raises(ValueError, match=name):
        module.PairTable(*(good() | {name: value}).values())


@BOTH
def test_arrays_of_the_wrong_length_are_refused(module):
    table = module.PairTable(*good().values())
    for length in (0, 3, 5):
        with pytest.raises(ValueError, match="bits"):
            table.append(np.zeros(length, np.uint8))
    assert table.n_columns == 0
    table.append(np.array([0, 1, 0, 1], np.uint8))
    w, slots = np.ones(1), np.zeros(5)
    for wrong in (np.zeros(0), np.zeros(2)):
        for call in (table.distances, lambda w, n: table.evaluate(0, w, n)):
            with pytest.raises(ValueError, match="w has"):
                call(wrong, 1)
    for wrong in (np.zeros(0), np.zeros(4), np.zeros(6)):
        with pytest.raises(ValueError, match="q has"):
            table.adjoint(wrong, 1)
        for call in (lambda D: table.loss(0, D, 1), lambda D: table.counts(D, 0.0, 1.0, 1)):
            with pytest.raises(ValueError, match="D has"):
                call(wrong)
    for code in (-1, 4):
        with pytest.raises(ValueError, match="loss"):
            table.loss(code, slots, 1)
        with pytest.raises(ValueError, match="loss"):
            table.evaluate(code, w, 1)
    for n_columns in (-1, 65537):
        with pytest.raises(ValueError, match="n_columns"):
            table.reserve(n_columns)


@st.composite
def any_arguments(draw):
    numbers = st.lists(st.integers(-2, 6), max_size=5).map(lambda values: np.array(values, dtype=np.int64))
    return (
        *(draw(numbers) for _ in range(5)),
        np.ones(draw(st.integers(0, 5))),
        draw(st.integers(-1, 7)),
    )


@pytest.mark.native
@needs_native
@settings(max_examples=300, deadline=None)
@given(any_arguments())
def test_whatever_numbers_come_native_and_twin_agree_whether_they_are_triplets(arguments):
    outcomes = []
    for module in (twins, native):
        try:
            outcomes.append(module.PairTable(*arguments).n_slots)
        except ValueError:
            outcomes.append("refused")
    assert outcomes[0] == outcomes[1]
