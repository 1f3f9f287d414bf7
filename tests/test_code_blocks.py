"""CodeBlocks: native and twin, against sums written out; every path, instruction set and number of threads."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cghash._kernels import native, twins
from cghash.codes import whole_weights

pytestmark = [pytest.mark.core, pytest.mark.portable]

ISAS = native.instruction_sets() if native is not None else []
needs_native = pytest.mark.skipif(native is None, reason="needs the native extension")
WIDTHS = [1, 2, 3, 4, 5, 7, 8, 9, 11, 16, 17, 20, 24, 33, 64, 128, 129, 512]
MOST_PRUNED = 128  # bytes of codes that have tables
KINDS = ["ones", "random", "zeros", "none", "wide"]
PLENTY = 1e12
TAMPERS = ["shorter", "some", "all", "most", "zeros", "mixed", "back"]


@pytest.fixture(scope="module", params=[pytest.param(name, marks=pytest.mark.native) for name in ISAS])
def isa(request):
    native.choose_instruction_set(request.param)
    yield request.param
    native.choose_instruction_set("")


def written_out(codes, query, weights, ids, allowed):
    """(distance, id) of every allowed code, sorted, in Python's integers."""
    found = []
    for position, code in enumerate(codes):
        if allowed is None or allowed[position]:
            bits = np.unpackbits(code ^ query, bitorder="little")
            distance = sum(int(w) for w, bit in zip(weights, bits, strict=True) if bit)
            found.append((distance, int(ids[position]) if ids is not None else position))
    return sorted(found)


def holding(codes, kernels=native):
    blocks = kernels.CodeBlocks(codes.shape[1])
    blocks.append(codes)
    return blocks


def assert_equal(answers, expected):
    for answer, right in zip(answers, expected, strict=True):
        np.testing.assert_array_equal(answer, right)


def packed(allowed):
    return None if allowed is None else np.packbits(allowed, bitorder="little")


def marks(allowed, n):
    """The bits of allowed positions, and their number."""
    return packed(allowed), n if allowed is None else int(allowed.sum())


def some_codes(rng, n, n_bytes, share):
    """Around a few centres, a share of their bits flipped; uniform for 0.5."""
    centres = rng.integers(0, 256, (max(1, n // 50), n_bytes), dtype=np.uint8)
    flipped = np.packbits(rng.random((n, 8 * n_bytes)) < share, axis=1, bitorder="little")
    return centres[rng.integers(0, len(centres), n)] ^ flipped


def some_weights(rng, n_bits, kind):
    w = {
        "ones": np.ones(n_bits),
        "random": rng.random(n_bits),
        "zeros": rng.random(n_bits) * (rng.random(n_bits) < 0.3),
        "none": np.zeros(n_bits),
        "wide": 10.0 ** rng.uniform(-12, 0, n_bits),
    }[kind]
    return whole_weights(w, n_bits)[0]


def own_weights(rng, n_queries, n_bits):
    """Weights of each query's own, of every kind in turn (q, n_bits)."""
    return np.stack([some_weights(rng, n_bits, KINDS[i % len(KINDS)]) for i in range(n_queries)])


def radii(queries, radius):
    return np.full(len(queries), radius, dtype=np.int64)


@st.composite
def cases(draw, most=1500):
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n_bytes, n = draw(st.sampled_from(WIDTHS)), draw(st.integers(0, most))
    codes = some_codes(rng, n, n_bytes, draw(st.sampled_from([0.0, 0.02, 0.1, 0.5])))
    weights = some_weights(rng, 8 * n_bytes, draw(st.sampled_from(KINDS)))
    ids = draw(st.sampled_from([None, "shuffled"])) and rng.permutation(n).astype(np.int64) * 3
    share = draw(st.sampled_from([None, 0.05, 0.5, 0.95]))
    allowed = None if share is None else rng.random(n) < share
    near = codes[rng.integers(0, n, 3)] if n else codes
    queries = np.concatenate([near, rng.integers(0, 256, (2, n_bytes), dtype=np.uint8)])
    return rng, codes, queries, weights, ids, allowed


def assert_exact(blocks, case, k, n_threads):
    _, codes, queries, weights, ids, allowed = case
    distances, found = blocks.search(queries, k, weights, ids, *marks(allowed, len(codes)), n_threads)
    within = [written_out(codes, query, weights, ids, allowed) for query in queries]
    for row, everything in enumerate(within):
        expected = (everything + [(np.inf, -1)] * k)[:k]
        assert list(zip(distances[row].tolist(), found[row].tolist(), strict=True)) == expected
    radius = within[0][len(within[0]) // 7][0] if within[0] else 5
    ask = queries, radii(queries, radius), weights, ids, *marks(allowed, len(codes))
    offsets, distances, found = blocks.range_search(*ask, n_threads)
    pairs = list(zip(distances.tolist(), found.tolist(), strict=True))
    for row, everything in enumerate(within):
        assert pairs[offsets[row] : offsets[row + 1]] == [pair for pair in everything if pair[0] <= radius]


@settings(max_examples=25)
@given(case=cases(most=300), k=st.sampled_from([1, 7, 400]))
def test_search_is_what_is_written_out(kernels, case, k):
    assert_exact(holding(case[1], kernels), case, k, 1)


@settings(max_examples=15)
@given(case=cases(most=200), k=st.sampled_from([1, 7, 400]))
def test_search_under_weights_of_each_query_is_what_is_written_out(kernels, case, k):
    rng, codes, queries, _, ids, allowed = case
    own = own_weights(rng, len(queries), 8 * codes.shape[1])
    blocks, asked = holding(codes, kernels), (ids, *marks(allowed, len(codes)), 1, 1.0, True)
    distances, found = blocks.search(queries, k, own.ravel(), *asked)
    within = [written_out(codes, *pair, ids, allowed) for pair in zip(queries, own, strict=True)]
    limits = np.array([everything[len(everything) // 7][0] if everything else 5 for everything in within])
    offsets, near, who = blocks.range_search(queries, limits, own.ravel(), *asked)
    pairs = list(zip(near.tolist(), who.tolist(), strict=True))
    for row, everything in enumerate(within):
        expected = (everything + [(np.inf, -1)] * k)[:k]
        assert list(zip(distances[row].tolist(), found[row].tolist(), strict=True)) == expected
        assert pairs[offsets[row] : offsets[row + 1]] == [pair for pair in everything if pair[0] <= limits[row]]


def test_distances_are_multiples_of_a_unit(kernels):
    rng = np.random.default_rng(0)
    codes, weights = some_codes(rng, 50, 3, 0.5), some_weights(rng, 24, "random")
    blocks = holding(codes, kernels)
    some, radius = np.arange(20), int(weights.sum()) // 2
    for search, ask in [
        (blocks.search, (codes[:4], 60, weights, None, None, 50, 1)),
        (blocks.search_among, (codes[:4], some, 9, weights, None, 1)),
        (blocks.range_search, (codes[:4], radii(codes[:4], radius), weights, None, None, 50, 1)),
        (blocks.range_search_among, (codes[:4], some, radii(codes[:4], radius), weights, None, 1)),
    ]:
        *offsets, whole, ids = search(*ask)
        *their_offsets, distances, their_ids = search(*ask, 0.3)
        np.testing.assert_array_equal(distances, whole * 0.3)
        np.testing.assert_array_equal(ids, their_ids)
        assert len(whole.ravel()) > 20
        assert [o.tolist() for o in offsets] == [o.tolist() for o in their_offsets]


def same_answers(native_blocks, twin_blocks, case, k, n_threads):
    rng, codes, queries, weights, ids, allowed = case
    ask = queries, k, weights, ids, *marks(allowed, len(codes))
    expected = twin_blocks.search(*ask, 1)
    assert_equal(native_blocks.search(*ask, n_threads), expected)
    for row in range(2):  # a query on its own goes another way
        alone = native_blocks.search(queries[row : row + 1], *ask[1:], n_threads)
        assert_equal((answer[0] for answer in alone), (right[row] for right in expected))
    radius = int(np.median(expected[0][expected[1] >= 0])) if np.any(expected[1] >= 0) else 0
    for some in (queries, queries[:1]):  # on its own
        ask = some, radii(some, radius), weights, ids, *marks(allowed, len(codes))
        assert_equal(native_blocks.range_search(*ask, n_threads), twin_blocks.range_search(*ask, 1))
    own = own_weights(rng, len(queries), 8 * codes.shape[1])
    own[0] = weights  # of bits that tables may all hold
    limits = (own.sum(axis=1) * rng.random(len(own)) / 3).astype(np.int64)
    for rows in (slice(None), slice(0, 1)):
        one = own[0], ids, *marks(allowed, len(codes))  # for all
        found = native_blocks.search(queries[rows], k, *one, n_threads, 1.0, True)
        assert_equal(found, twin_blocks.search(queries[rows], k, *one, 1))
        ask = own[rows].ravel(), ids, *marks(allowed, len(codes))
        for search, how in (("search", k), ("range_search", limits[rows])):
            found = getattr(native_blocks, search)(queries[rows], how, *ask, n_threads, 1.0, True)
            assert_equal(found, getattr(twin_blocks, search)(queries[rows], how, *ask, 1, 1.0, True))


@settings(max_examples=40)
@given(case=cases(), k=st.sampled_from([1, 10, 100, 5000]), n_threads=st.integers(1, 3))
def test_scan_finds_what_the_twin_finds(isa, case, k, n_threads):
    same_answers(holding(case[1]), holding(case[1], twins), case, k, n_threads)


@pytest.mark.parametrize("k", [255, 256, 290])
@pytest.mark.parametrize("n_near", [50, 120, 600, 19_200])
@pytest.mark.parametrize("ids", [None, "shuffled"])
def test_a_sample_of_the_codes_says_how_far_many_neighbours_are_and_may_be_wrong(isa, k, n_near, ids):
    """Near codes lie in every fourth block, which the sample is of: it says that more are near than are."""
    rng = np.random.default_rng(n_near)
    queries = rng.integers(0, 256, (5, 6), dtype=np.uint8)
    codes = rng.integers(0, 256, (19_200, 6), dtype=np.uint8)
    blocks = np.arange(19_200) // 64
    near = np.argsort(blocks % 4, kind="stable")[:n_near]
    codes[near] = queries[np.arange(n_near) % 5] ^ np.packbits(rng.random((n_near, 48)) < 0.05, axis=1)
    weights = some_weights(rng, 48, "random")
    named = None if ids is None else rng.permutation(19_200).astype(np.int64)
    for allowed in (None, rng.random(19_200) < 0.97):
        case = rng, codes, queries, weights, named, allowed
        for n_threads in (1, 3):
            same_answers(holding(codes), holding(codes, twins), case, k, n_threads)


def some_keys(data, n_bytes):
    """None, or the bits of up to four keys for which codes have room."""
    if data.draw(st.booleans()):
        return []
    keys, left = [], n_bytes
    while left and len(keys) < 4 and (not keys or data.draw(st.booleans())):
        bits = data.draw(st.integers(8, min(20, 8 * left)))
        keys.append(bits)
        left -= -(-bits // 8)
    return keys


@settings(max_examples=80)
@given(case=cases(), k=st.sampled_from([1, 10, 100, 5000]), n_threads=st.integers(1, 3), data=st.data())
def test_pruning_finds_what_the_twin_finds_also_after_changes(isa, case, k, n_threads, data):
    rng, codes, _, weights, ids, allowed = case
    n, n_bytes = codes.shape
    covered = data.draw(st.integers(0, n))
    blocks, twin = holding(codes[:covered]), holding(codes, twins)
    some = None if ids is None else ids[:covered].copy()
    bits = packed(allowed[:covered]) if allowed is not None and data.draw(st.booleans()) else None
    if bits is not None:
        allowed[:covered] = np.unpackbits(bits, count=covered, bitorder="little")
    always = data.draw(st.booleans())
    kept = blocks.prepare(weights, some, bits, PLENTY, always, 2, some_keys(data, n_bytes))
    assert kept or not always or not covered or n_bytes > MOST_PRUNED or (bits is not None and not bits.any())
    blocks.append(codes[covered:])
    changed = rng.permutation(n)[: data.draw(st.integers(0, 6))].astype(np.int64)
    new = rng.integers(0, 256, (len(changed), n_bytes), dtype=np.uint8)
    for each in (blocks, twin):
        each.put(changed, new)
    same_answers(blocks, twin, case, k, n_threads)


@pytest.mark.parametrize("kind", ["ones", "random", "zeros", "wide"])
@pytest.mark.parametrize("n_bytes", [3, 8, 12])
def test_pruning_of_crowded_keys_misses_nothing(isa, n_bytes, kind):
    rng = np.random.default_rng(n_bytes)
    codes = rng.integers(0, 4, (12_000, n_bytes), dtype=np.uint8) * 37  # four values a byte: a thousand codes a key
    weights = some_weights(rng, 8 * n_bytes, kind)
    blocks, twin = holding(codes), holding(codes, twins)
    assert blocks.prepare(weights, None, None, PLENTY, True, 2)
    queries = np.concatenate([codes[:4], rng.integers(0, 256, (2, n_bytes), dtype=np.uint8)])
    for k in (1, 10, 200):
        same_answers(blocks, twin, (rng, codes, queries, weights, None, None), k, 2)


@pytest.mark.parametrize("n_distinct", [3, 40, 2000])
@pytest.mark.parametrize("k", [1, 10, 32, 33, 300, 1500])
@pytest.mark.parametrize("ids", [None, "shuffled"])
def test_rows_of_equal_codes_are_counted(isa, n_distinct, k, ids):
    """A code may have more rows than a byte can tell, or than are asked for."""
    rng = np.random.default_rng(n_distinct)
    different = some_codes(rng, n_distinct, 5, 0.2)
    codes = different[rng.zipf(1.4, 12_000) % n_distinct]
    weights = some_weights(rng, 40, "random")
    named = None if ids is None else rng.permutation(len(codes)).astype(np.int64)
    blocks, twin = holding(codes), holding(codes, twins)
    assert blocks.prepare(weights, named, None, PLENTY, True, 2)
    assert blocks.prepared()["size"][2]
    queries = np.concatenate([codes[:3], rng.integers(0, 256, (3, 5), dtype=np.uint8)])
    same_answers(blocks, twin, (rng, codes, queries, weights, named, None), k, 2)


@pytest.mark.native
@needs_native
# all short keys are in order, and two threads go on to the end; of long ones, far more are light
@pytest.mark.lengthy
@pytest.mark.parametrize("key_bits", [[8, 8, 8, 8], [8, 8], [8, 8, 8], [16, 16, 16, 16]])
@pytest.mark.parametrize("k", [1, 10, 50])
def test_two_threads_miss_nothing_that_is_far(k, key_bits):
    """Evenly spread codes: the nearest are far, and found late, when a second thread has joined."""
    rng = np.random.default_rng(k)
    codes, weights = rng.integers(0, 256, (60_000, 8), dtype=np.uint8), some_weights(rng, 64, "random")
    blocks, plain = holding(codes), holding(codes)
    assert blocks.prepare(weights, None, None, PLENTY, True, 2, key_bits)
    for query in rng.integers(0, 256, (30, 1, 8), dtype=np.uint8):
        ask = weights, None, None, len(codes)
        radius = int(plain.search(query, k, *ask, 1)[0][0, -1])
        for found, expected in [
            (blocks.search(query, k, *ask, 2), plain.search(query, k, *ask, 1)),
            (
                blocks.range_search(query, radii(query, radius), *ask, 2),
                plain.range_search(query, radii(query, radius), *ask, 1),
            ),
        ]:
            assert_equal(found, expected)


@pytest.mark.native
@needs_native
@pytest.mark.parametrize(("share", "longest"), [(0.1, 20), (0.5, 16)])
def test_keys_are_long_where_codes_are_crowded(share, longest):
    rng = np.random.default_rng(0)
    codes = np.packbits(rng.random((600_000, 64)) < share, axis=1)
    weights = some_weights(rng, 64, "random")
    blocks = holding(codes)
    native.choose_instruction_set("baseline")  # whose speed is known
    assert blocks.prepare(weights, None, None, PLENTY, True, 2)
    native.choose_instruction_set("")
    tables = blocks.prepared()
    assert max(16 * len(tables[f"words{t}"]) for t in range(4) if f"words{t}" in tables) == 2**longest
    queries = codes[::60_000] ^ np.packbits(rng.random((10, 64)) < 0.02, axis=1)
    ask = queries, 10, weights, None, None, len(codes), 2
    assert_equal(blocks.search(*ask), holding(codes).search(*ask))


@pytest.mark.native
@needs_native
def test_the_longest_keys_miss_nothing():
    rng = np.random.default_rng(0)
    codes, weights = some_codes(rng, 3000, 5, 0.1), some_weights(rng, 40, "random")
    blocks, twin = holding(codes), holding(codes, twins)
    assert blocks.prepare(weights, None, None, PLENTY, True, 2, [24, 9])
    assert 16 * len(blocks.prepared()["words0"]) == 2**24
    same_answers(blocks, twin, (rng, codes, codes[:5], weights, None, None), 10, 2)


@pytest.mark.parametrize(("n_counting", "held"), [(64, 8), (57, 8), (56, 7), (33, 5), (24, 3), (1, 1), (0, 1)])
@pytest.mark.parametrize("k", [3, 40])
def test_tables_hold_no_bytes_that_count_nothing(isa, n_counting, held, k):
    """Codes that differ in bits of weight 0 alone are equally far, and stand in the order of their ids."""
    rng = np.random.default_rng(n_counting)
    weights = some_weights(rng, 64, "random") + 1
    weights[rng.permutation(64)[n_counting:]] = 0
    codes = some_codes(rng, 6000, 8, 0.05)
    ids = rng.permutation(len(codes)).astype(np.int64)
    blocks, twin = holding(codes), holding(codes, twins)
    assert blocks.prepare(weights, ids, None, PLENTY, True, 2)
    tables = blocks.prepared()
    assert tables["size"][3] == held
    if n_counting == 8 * held:
        counting = codes & np.packbits(weights > 0, bitorder="little")
        assert tables["size"][1] == len(np.unique(counting, axis=0)) < len(codes)
    other = holding(codes)
    other.adopt(tables, True)
    queries = np.concatenate([codes[:4], rng.integers(0, 256, (2, 8), dtype=np.uint8)])
    for each in (blocks, other):
        same_answers(each, twin, (rng, codes, queries, weights, ids, None), k, 2)


@pytest.mark.native
@needs_native
def test_weights_that_count_what_tables_lack_are_scanned():
    rng = np.random.default_rng(0)
    codes = some_codes(rng, 6000, 8, 0.3)
    blocks, twin = holding(codes), holding(codes, twins)
    all_count = some_weights(rng, 64, "random") + 1
    few_count, fewer_count = all_count.copy(), all_count.copy()
    few_count[rng.permutation(64)[40:]] = 0
    fewer_count[few_count == 0] = 0
    fewer_count[np.flatnonzero(few_count)[::2]] = 0
    assert blocks.prepare(few_count, None, None, PLENTY, True, 2)
    for weights in (few_count, all_count, fewer_count, all_count, few_count):  # scanned in between
        same_answers(blocks, twin, (rng, codes, codes[:5], weights, None, None), 10, 2)
    blocks.reweight(fewer_count)
    assert blocks.n_prepared == 6000
    blocks.reweight(all_count)
    assert blocks.n_prepared == 0


@pytest.mark.native
@needs_native
@pytest.mark.parametrize("key_bits", [[7], [25], [-3], [16, 16, 16], [8, 8, 8, 8, 8], [17, 17]])
def test_keys_for_which_codes_have_no_room_are_refused(key_bits):
    blocks = holding(np.zeros((9, 5), dtype=np.uint8))
    with pytest.raises(ValueError, match="key"):
        blocks.prepare(np.ones(40, dtype=np.int64), None, None, PLENTY, True, 1, key_bits)


@pytest.mark.native
@needs_native
@pytest.mark.parametrize(("n_bytes", "most"), [(4, 2), (16, 4)])
@pytest.mark.parametrize("share", [0.02, 0.5])  # many equal codes; a few, which are too few to be expected
def test_tables_take_no_more_than_they_may(n_bytes, most, share):
    """Keys are made shorter and tables left out, down to none."""
    rng = np.random.default_rng(0)
    n = 100_000
    codes = some_codes(rng, n, n_bytes, share)
    codes[::1000] = codes[0]
    blocks, plain = holding(codes), holding(codes)
    weights = some_weights(rng, 8 * n_bytes, "random")
    found = []
    for room in [0.0, n, *np.arange(4.0, 12.0) * n, 16 * n, 20 * n, 30 * n, 50 * n, 1e9]:
        blocks.prepare(weights, None, None, room, True, 2)
        found.append(sum(name.startswith("groups") for name in blocks.prepared()))
        assert blocks.info()["prune_bytes"] <= room
        ask = codes[:1], 10, weights, None, None, n, 1
        assert_equal(blocks.search(*ask), plain.search(*ask))
    assert found[:2] == [0, 0]
    assert max(found) <= most
    assert found[-1] > 0


@settings(max_examples=20)
@given(case=cases(most=400), k=st.sampled_from([1, 20, 500]))
def test_search_among_positions(kernels, case, k):
    rng, codes, queries, weights, ids, _ = case
    allowed = rng.random(len(codes)) < 0.1
    positions = rng.permutation(np.flatnonzero(allowed))
    blocks, radius = holding(codes, kernels), int(weights.sum()) // 3
    ask = weights, ids, *marks(allowed, len(codes)), 1
    few = weights, ids, 2
    assert_equal(blocks.search_among(queries, positions, k, *few), blocks.search(queries, k, *ask))
    limits = radii(queries, radius)
    found = blocks.range_search_among(queries, positions, limits, *few)
    assert_equal(found, blocks.range_search(queries, limits, *ask))
    own = own_weights(rng, len(queries), 8 * codes.shape[1]).ravel()
    ask, few = (own, *ask[1:], 1.0, True), (own, *few[1:], 1.0, True)
    assert_equal(blocks.search_among(queries, positions, k, *few), blocks.search(queries, k, *ask))
    found = blocks.range_search_among(queries, positions, limits, *few)
    assert_equal(found, blocks.range_search(queries, limits, *ask))


@settings(max_examples=20)
@given(case=cases(most=400))
def test_blocks_and_tables_can_be_taken_over(kernels, case):
    _, codes, _, weights, ids, _ = case
    blocks, second = holding(codes, kernels), kernels.CodeBlocks(codes.shape[1])
    blocks.prepare(weights, ids, None, PLENTY, True, 1)
    second.attach(np.concatenate([np.zeros(0, dtype=np.uint8), *blocks.chunks()]), len(codes))
    if blocks.prepared():
        second.adopt({name: array.copy() for name, array in blocks.prepared().items()}, True)
    np.testing.assert_array_equal(second.get(np.arange(len(codes))), codes)
    assert second.n_prepared == blocks.n_prepared
    same_answers(second, holding(codes, twins), case, 5, 1)
    second.append(codes[:70])
    np.testing.assert_array_equal(second.get(np.arange(len(codes), second.n_codes)), codes[:70])


@pytest.mark.native
@needs_native
@settings(max_examples=60)
@given(data=st.data())
def test_tables_that_were_tampered_with_are_refused_or_do_no_harm(data):
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    codes = some_codes(rng, 2000, 8, 0.05)
    codes[:: data.draw(st.sampled_from([2, 7]))] = codes[0]  # half of them: rows are counted
    weights = some_weights(rng, 64, "random")
    blocks = holding(codes)
    assert blocks.prepare(weights, None, None, PLENTY, True, 1, data.draw(st.sampled_from([[], [17, 20, 9], [18]])))
    arrays = {name: array.copy() for name, array in blocks.prepared().items()}
    name = data.draw(st.sampled_from(sorted(arrays)))
    arrays[name] = tampered(arrays[name], data.draw(st.sampled_from(TAMPERS)), rng)
    if data.draw(st.integers(0, 9)) == 0:
        del arrays[name]
    second = holding(codes)
    try:
        second.adopt(arrays, True)
    except (ValueError, KeyError):
        return
    allowed = np.packbits(rng.random(2000) < 0.5, bitorder="little")
    for bits, n_allowed in ((None, 2000), (allowed, int(np.unpackbits(allowed).sum()))):
        second.search(codes[:20], 10, weights, None, bits, n_allowed, 1)
        second.search(codes[:1], 10, weights, None, bits, n_allowed, 2)
        second.range_search(codes[:3], radii(codes[:3], int(weights.sum()) // 5), weights, None, bits, n_allowed, 1)
        second.search(codes[:9], 10, own_weights(rng, 9, 64).ravel(), None, bits, n_allowed, 1, 1.0, True)


def tampered(array, how, rng):
    """A part of an array, or the array with other bytes in some places or all, or in another order."""
    if how == "shorter":
        return array[: rng.integers(0, max(1, len(array)))].copy()
    if how in ("mixed", "back"):
        return rng.permutation(array) if how == "mixed" else np.sort(array)[::-1].copy()
    raw = array.view(np.uint8)
    some = rng.integers(0, len(raw), 5) if how == "some" and len(raw) else slice(None)
    raw[some] = rng.integers(0, 256, raw[some].shape) if how in ("some", "all") else {"most": 255, "zeros": 0}[how]
    return array


def test_wrong_calls_are_refused(kernels):
    for n_bytes in (0, 513):
        with pytest.raises(ValueError, match="n_bytes"):
            kernels.CodeBlocks(n_bytes)
    blocks = kernels.CodeBlocks(2)
    codes = np.zeros((3, 2), dtype=np.uint8)
    weights = np.ones(16, dtype=np.int64)
    blocks.append(codes)
    no_ids = np.zeros(2, dtype=np.int64)
    wrong = [
        lambda: blocks.append(np.zeros((1, 3), dtype=np.uint8)),
        lambda: blocks.attach(np.zeros(128, dtype=np.uint8), 3),
        lambda: kernels.CodeBlocks(2).attach(np.zeros(127, dtype=np.uint8), 3),
        lambda: kernels.CodeBlocks(2).attach(np.zeros(128, dtype=np.uint8), 65),
        lambda: kernels.CodeBlocks(2).attach(np.zeros(0, dtype=np.uint8), -1),
        lambda: blocks.search_among(codes, np.array([3]), 1, weights, None, 1),
        lambda: blocks.get(np.array([3])),
        lambda: blocks.get(np.array([-1])),
        lambda: blocks.put(np.array([0]), codes),
        lambda: blocks.search(codes, 0, weights, None, None, 3, 1),
        lambda: blocks.search(codes, 1, weights[:8], None, None, 3, 1),
        lambda: blocks.search(codes, 1, -weights, None, None, 3, 1),
        lambda: blocks.search(codes, 1, weights << 52, None, None, 3, 1),
        lambda: blocks.search(codes, 1, weights, no_ids, None, 3, 1),
        lambda: blocks.search(codes, 1, weights, None, np.zeros(2, dtype=np.uint8), 0, 1),
        lambda: blocks.search(np.zeros((1, 3), dtype=np.uint8), 1, weights, None, None, 3, 1),
        lambda: blocks.search(codes, 1, np.repeat(weights, 2), None, None, 3, 1, 1.0, True),  # of two queries for three
        lambda: blocks.search(codes, 1, np.repeat(-weights, 3), None, None, 3, 1, 1.0, True),
        lambda: blocks.range_search(codes, np.ones(2, dtype=np.int64), weights, None, None, 3, 1),
        lambda: blocks.range_search_among(codes, np.array([1]), np.ones(2, dtype=np.int64), weights, None, 1),
    ]
    for call in wrong:
        with pytest.raises(ValueError):  # noqa: PT011
            call()
    assert blocks.n_codes == 3
