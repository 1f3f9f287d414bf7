"""WeightedHammingIndex on a device: the answers of the CPU index, on CPU tensors and, where there is one, a GPU."""

from __future__ import annotations

import copy

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cghash import WeightedHammingIndex, _tensors
from cghash.codes import pack
from cghash.device import blocks, scans, search
from cghash.device.bounds import bound_of
from cghash.exceptions import DeviceMemoryError, InvalidInputError, MissingDeviceError

torch = pytest.importorskip("torch")
has_gpu = torch.cuda.is_available()
on_each = pytest.mark.parametrize(
    "device",
    ["cpu", pytest.param("cuda", marks=[pytest.mark.gpu, pytest.mark.skipif(not has_gpu, reason="needs a GPU")])],
)


def some_weights(rng, kind, n_bits):
    return {
        "none": None,
        "random": rng.random(n_bits),
        "zeros": rng.random(n_bits) * (rng.random(n_bits) < 0.3),
        "equal": np.full(n_bits, 0.1),
        "wide": 10.0 ** rng.uniform(-12, 0, n_bits),
    }[kind]


def some_codes(rng, n, n_bits, n_distinct=None):
    bits = rng.integers(0, 2, (n_distinct or max(n, 1), n_bits))
    return pack(bits[rng.integers(0, len(bits), n)])


def assert_same(index, reference, queries, k, **how):
    for mine, theirs in zip(index.search(queries, k, **how), reference.search(queries, k, **how), strict=True):
        np.testing.assert_array_equal(mine, theirs)


def both(device, n_bits, weights=None):
    return WeightedHammingIndex(n_bits, weights, device=device), WeightedHammingIndex(n_bits, weights, prune=False)


@on_each
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_answers_are_those_of_the_cpu_index(device, data):
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    n_bits = data.draw(
        st.integers(1, 200) if device == "cpu" else st.sampled_from([13, 64])
    )  # a kernel for each length
    n = data.draw(st.sampled_from([0, 1, 7, 60, 1200, 2100]))
    weights = some_weights(rng, data.draw(st.sampled_from(["none", "random", "zeros", "equal", "wide"])), n_bits)
    index, reference = both(device, n_bits, weights)
    codes = some_codes(rng, n, n_bits, data.draw(st.sampled_from([None, 3])))
    ids = rng.permutation(3 * n)[:n] if data.draw(st.booleans()) else None
    cut = data.draw(st.integers(0, n))
    removed = rng.random(n) < data.draw(st.sampled_from([0.0, 0.3, 1.0]))
    for each in (index, reference):
        each.add(codes[:cut], None if ids is None else ids[:cut])
        each.add(codes[cut:], None if ids is None else ids[cut:])
        each.remove(each.ids[removed])
    queries = some_codes(rng, data.draw(st.sampled_from([1, 3, 5, 70])), n_bits)
    queries[: min(n, 2)] = codes[: min(n, len(queries), 2)]
    how = {"filter": rng.random(len(index)) < 0.5} if data.draw(st.booleans()) else {}
    assert_same(index, reference, queries, data.draw(st.sampled_from([1, 10, n + 2])), **how)
    radius = data.draw(st.sampled_from([0.0, 0.4, 1.0])) * (n_bits if weights is None else float(np.sum(weights)))
    for mine, theirs in zip(index.range_search(queries, radius), reference.range_search(queries, radius), strict=True):
        np.testing.assert_array_equal(mine, theirs)


@on_each
@pytest.mark.parametrize("n_bits", [40, 1537, 4096])
def test_queries_with_weights_of_their_own(device, n_bits):
    rng = np.random.default_rng(n_bits)
    index, reference = both(device, n_bits, rng.random(n_bits))
    codes, queries = some_codes(rng, 300, n_bits), some_codes(rng, 5, n_bits)
    for each in (index, reference):
        each.add(codes)
        each.remove([7, 8])
    for weights in (rng.random((5, n_bits)), rng.random((5, n_bits)) < 0.3, rng.random(n_bits)):
        mask = rng.random(298) < 0.5
        for how in ({}, {"filter": mask}, {"filter": index.ids[mask][:4]}):
            assert_same(index, reference, queries, 9, weights=weights, **how)
            ask = queries, 0.4 * n_bits / 2
            found, expected = (each.range_search(*ask, weights=weights, **how) for each in (index, reference))
            for mine, theirs in zip(found, expected, strict=True):
                np.testing.assert_array_equal(mine, theirs)
    assert_same(index, reference, queries, 9)


def test_wide_codes_are_not_multiplied_as_8_bit_floats(monkeypatch):
    """Their sums are exact up to 2047, of at most so many weights."""
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda _: (9, 0))
    gpu = torch.device("cuda")
    for width, in_half in ((1024, True), (2016, True), (2048, False), (4096, False)):
        weights = scans.DeviceWeights(np.ones(width, dtype=np.int64), gpu)
        assert weights.in_half == in_half
        assert weights.for_many.small.max() >= 1


@pytest.mark.parametrize("explicit", [False, True])
@pytest.mark.parametrize("n_queries", [1, 6])
def test_more_codes_pass_than_there_is_room_for(monkeypatch, explicit, n_queries):
    for home, name, value in (
        (search, "ROOM", 16),
        (search, "LEAST_STEP", 8),
        (blocks, "WHOLE", 8),
        (blocks, "SMALL_SAMPLE", 16),
        (scans, "_ROOM_ALONE", 16),
    ):
        monkeypatch.setattr(home, name, value)
    rng = np.random.default_rng(5)
    index, reference = both("cpu", 12, rng.random(12))
    codes = some_codes(rng, 150, 12, n_distinct=4)  # many ties
    for each in (index, reference):
        each.add(codes, rng.permutation(150) if explicit else None) if each is index else each.add(codes, index.ids)
    queries = some_codes(rng, n_queries, 12)
    for k in (1, 4, 40, 160):
        assert_same(index, reference, queries, k)
    for mine, theirs in zip(index.range_search(queries, 3.0), reference.range_search(queries, 3.0), strict=True):
        np.testing.assert_array_equal(mine, theirs)


@on_each
def test_changes_filters_and_copies(device, tmp_path):
    rng = np.random.default_rng(1)
    index, reference = both(device, 40, rng.random(40))
    codes, queries = some_codes(rng, 500, 40), some_codes(rng, 5, 40)
    for each in (index, reference):
        each.add(codes)
        each.update(codes[:7], np.arange(100, 107))
        each.remove([3, 4, 499])
    assert_same(index, reference, queries, 9)
    assert_same(index, reference, queries, 9, filter=[5, 100, 101])
    np.testing.assert_array_equal(index.reconstruct([0, 101]), codes[[0, 1]])
    for each in (index, reference):
        each.reweight(np.arange(40.0))
    assert_same(copy.deepcopy(index), reference, queries, 9)
    index.save(tmp_path / "on_device.cgidx")
    assert_same(WeightedHammingIndex.load(tmp_path / "on_device.cgidx"), reference, queries, 9)
    reference.save(tmp_path / "plain.cgidx")
    loaded = WeightedHammingIndex.load(tmp_path / "plain.cgidx", device=device)
    assert loaded.device.startswith(device)
    assert_same(loaded, reference, queries, 9)
    index.compact()
    reference.compact()
    assert_same(index, reference, queries, 9)
    assert index.info()["device"].startswith(device)


@on_each
def test_codes_and_queries_as_tensors(device):
    rng = np.random.default_rng(2)
    index, reference = both(device, 13)
    codes = some_codes(rng, 300, 13)
    index.add(torch.from_numpy(codes).to(device))
    reference.add(torch.from_numpy(codes))
    for mine, theirs in zip(index.search(torch.from_numpy(codes[:4]), 5), reference.search(codes[:4], 5), strict=True):
        np.testing.assert_array_equal(mine, theirs)
    with pytest.raises(InvalidInputError, match=r"codes must be packed uint8 of shape \(n, 2\)"):
        index.add(torch.zeros((3, 3), dtype=torch.uint8))
    with pytest.raises(InvalidInputError, match="0 in the bits past n_bits=13"):
        index.add(torch.full((1, 2), 255, dtype=torch.uint8))


def test_a_device_without_room_leaves_the_index_as_it_was(monkeypatch):
    rng = np.random.default_rng(3)
    index, reference = both("cpu", 64)
    codes = some_codes(rng, 2000, 64)
    index.add(codes)
    reference.add(codes)
    monkeypatch.setattr(_tensors, "free_bytes", lambda device: 50_000)
    with pytest.raises(
        DeviceMemoryError, match=r"room for 19952 codes needs 160\.00 KiB .* 48\.83 KiB are free: add fewer"
    ):
        index.add(np.repeat(codes, 10, axis=0))
    assert_same(index, reference, codes[:3], 5)
    index.add(codes[:100])
    assert len(index) == 2100


def test_a_search_without_room_says_what_to_lower(monkeypatch):
    index = WeightedHammingIndex(8, device="cpu")
    index.add(np.zeros((10, 1), dtype=np.uint8))

    def lacking(*_args):
        raise torch.OutOfMemoryError("CUDA out of memory")

    with monkeypatch.context() as patch:
        patch.setattr(type(index._table.blocks.passes), "near", lacking)
        with pytest.raises(DeviceMemoryError, match="search fewer queries at once"):
            index.search(np.zeros(1, dtype=np.uint8), 1)
    assert index.search(np.zeros(1, dtype=np.uint8), 1)[1].tolist() == [0]


@pytest.mark.skipif(has_gpu, reason="there is a GPU")
def test_no_gpu_is_said_and_nothing_falls_back():
    with pytest.raises(MissingDeviceError, match=r"device='cuda' was asked for, but torch .* finds no NVIDIA GPU"):
        WeightedHammingIndex(8, device="cuda")


@pytest.mark.parametrize("device", ["gpu", "meta", 3.5, ""])
def test_a_device_of_no_known_kind(device):
    with pytest.raises(InvalidInputError, match="device must be"):
        WeightedHammingIndex(8, device=device)


@given(st.lists(st.integers(0, 2**45), min_size=1, max_size=70), st.sampled_from([1, 7, 127]))
def test_bounds_never_exceed_the_weights(weights, largest):
    whole = np.array(weights, dtype=np.int64)
    bound = bound_of(whole, largest)
    assert np.all(bound.small * bound.scale <= whole)
    assert bound.small.max() <= largest
    assert bound.small.any() == whole.any()


def test_equal_weights_have_an_exact_bound():
    bound = bound_of(np.full(64, 2**40), 7)
    assert np.all(bound.small * bound.scale == 2**40)


@pytest.mark.gpu
@pytest.mark.skipif(not has_gpu, reason="needs a GPU")
class TestOnTheGPU:
    @pytest.mark.parametrize(
        ("n_bits", "n_queries"), [(64, 1), (64, 1000), (32, 300), (128, 300), (200, 40), (1024, 5)]
    )
    def test_many_codes(self, n_bits, n_queries):
        rng = np.random.default_rng(n_bits)
        index, reference = both("cuda", n_bits, rng.uniform(0.5, 1.5, n_bits))
        codes = rng.integers(0, 256, (192_000_000 // max(64, n_bits), n_bits // 8), dtype=np.uint8)
        for first in range(0, len(codes), 700_000):
            index.add(codes[first : first + 700_000])
        reference.add(codes)
        queries = rng.integers(0, 256, (n_queries, n_bits // 8), dtype=np.uint8)
        found = index.search(queries, 10)
        expected = reference.search(queries[:20], 10)
        np.testing.assert_array_equal(found[1][:20], expected[1])
        np.testing.assert_array_equal(found[0][:20], expected[0])
        for i in (0, n_queries - 1):
            for mine, theirs in zip(index.search(queries[i], 10), (found[0][i], found[1][i]), strict=True):
                np.testing.assert_array_equal(mine, theirs)

    def test_more_codes_than_memory(self):
        index = WeightedHammingIndex(1024, device="cuda")
        codes = np.random.default_rng(0).integers(0, 256, (1000, 128), dtype=np.uint8)
        index.add(codes)
        free, _ = torch.cuda.mem_get_info()
        held = torch.empty(free - 2**30, dtype=torch.uint8, device="cuda")
        # rooms are of 1024 codes: 24 more stand beside the first 1000
        with pytest.raises(DeviceMemoryError, match=r"room for 15999976 codes needs 1\.91 GiB"):
            index.add(torch.zeros((1, 128), dtype=torch.uint8).expand(16_000_000, 128))
        del held
        assert index.search(codes[5], 1)[1].tolist() == [5]

    def test_the_first_codes_choose_the_gpu(self):
        index = WeightedHammingIndex(16)
        index.add(torch.tensor([[1, 2], [3, 4]], dtype=torch.uint8, device="cuda"))
        assert index.device == "cuda:0"
        assert index.search(np.array([3, 4], dtype=np.uint8), 1)[1].tolist() == [1]
