"""Index files: what was saved is found again, what is damaged is refused, a kill leaves the old file or the new."""

from __future__ import annotations

import json
import os
import pickle
import resource
import struct
import subprocess
import sys
import threading
import time
import tracemalloc
import zlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cghash import WeightedHammingIndex, _kernels
from cghash._kernels import twins
from cghash.codes import pack
from cghash.exceptions import FormatError, InvalidInputError
from cghash.index import index_files
from cghash.index.sections import PAGE, Section, SectionFile, _header, _read_header

pytestmark = pytest.mark.core

FIXTURES = Path(__file__).parent / "fixtures"
SHARED = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)


def random_codes(rng, n, n_bits):
    return pack(rng.integers(0, 2, (n, n_bits)))


def an_index(rng, n_bits=20, n=300, ids=True, removed=True, weighted=True, **options):
    index = WeightedHammingIndex(n_bits, rng.random(n_bits) if weighted else None, **options)
    index.add(random_codes(rng, n, n_bits), rng.permutation(3 * n)[:n] if ids else None)
    if removed:
        index.remove(index.ids[::7])
    return index


def assert_same(one, other):
    np.testing.assert_array_equal(one.ids, other.ids)
    np.testing.assert_array_equal(one.reconstruct(one.ids), other.reconstruct(other.ids))
    assert (one.weights is None) == (other.weights is None)
    assert one.weights is None or np.array_equal(one.weights, other.weights)
    assert len(one) == len(other)
    assert one._table.ids.next_id == other._table.ids.next_id
    assert_same_answers(one, other, random_codes(np.random.default_rng(9), 3, one.n_bits), 7)


def assert_same_answers(one, other, queries, k):
    for a, b in zip(one.search(queries, k), other.search(queries, k), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """The bytes of a file with every section, and the index that it holds."""
    index = an_index(np.random.default_rng(0))
    path = tmp_path_factory.mktemp("saved") / "i"
    index.save(path)
    return path.read_bytes(), index


# What was saved is found again


@pytest.mark.native
@SHARED
@given(data=st.data())
def test_a_saved_index_is_the_same_when_loaded(data, tmp_path):
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    n_bits = data.draw(st.sampled_from([1, 8, 13, 64, 129, 1024]))
    flags = {name: data.draw(st.booleans()) for name in ("ids", "removed", "weighted")}
    index = an_index(rng, n_bits, data.draw(st.sampled_from([0, 1, 63, 64, 65, 300])), **flags)
    index.save(tmp_path / "i")
    for mapped in (True, False):
        loaded = WeightedHammingIndex.load(tmp_path / "i", mapped, writable="memory")
        assert_same(loaded, index)
        more = random_codes(rng, 5, n_bits)
        loaded.add(more)
        loaded.update(more[:1], loaded.ids[-1:])
        loaded.remove(loaded.ids[:2])
        assert len(loaded) == len(index) + 3
    assert_same(WeightedHammingIndex.load(tmp_path / "i"), index)  # those changes stayed in memory
    assert WeightedHammingIndex.verify(tmp_path / "i")["n_codes"] == len(index)


def test_ids_below_those_added_before_are_saved(tmp_path):
    index = WeightedHammingIndex(8)
    index.add(np.array([[1], [2]], dtype=np.uint8), [10, 11])
    index.add(np.array([[3]], dtype=np.uint8), [5])
    index.save(tmp_path / "index")
    with WeightedHammingIndex.load(tmp_path / "index") as loaded:
        assert loaded.search(np.array([3], dtype=np.uint8), 1)[1].tolist() == [5]


def test_settings_are_kept(tmp_path):
    index = WeightedHammingIndex(9, prune=False, max_memory=12345)
    index.save(tmp_path / "i")
    loaded = WeightedHammingIndex.load(tmp_path / "i", n_jobs=2)
    assert (loaded.n_bits, loaded.prune, loaded.max_memory, loaded.n_jobs) == (9, False, 12345, 2)


def test_what_is_known_of_the_hash_functions_goes_along_and_refuses_others(tmp_path):
    rng, own, other = np.random.default_rng(0), "a1" * 32, "b2" * 32
    index = an_index(rng, functions=own)
    index.save(tmp_path / "i")
    with WeightedHammingIndex.load(tmp_path / "i", writable=True) as held:
        held.add(random_codes(rng, 2, 20))
        held.compact()
    for loaded in (WeightedHammingIndex.load(tmp_path / "i"), pickle.loads(pickle.dumps(index))):  # noqa: S301
        loaded.check_model(own)
        loaded.check_model(None)
        with pytest.raises(
            InvalidInputError, match=r"\(functions a1a1a1a1a1a1…\), got one with other .*\(b2b2b2b2b2b2…"
        ):
            loaded.check_model(other)
    WeightedHammingIndex(20).check_model(other)  # nothing is known of its codes
    for wrong in ("", "a1", 3, "A1" * 32):
        with pytest.raises(InvalidInputError, match="functions must be a SHA-256"):
            WeightedHammingIndex(20, functions=wrong)


def test_ids_and_marks_are_stored_only_where_there_are_some(tmp_path):
    index = an_index(np.random.default_rng(0), ids=False, removed=False, weighted=False)
    index.save(tmp_path / "i")
    assert list(SectionFile(tmp_path / "i").sections) == ["about", "codes", "logged"]


@pytest.mark.native
@pytest.mark.parametrize("name", ["plain", "ids-removed", "log", "tables"])
def test_files_of_version_1_still_load(name):
    told = json.loads((FIXTURES / f"index-v1-{name}.json").read_text())
    for mapped in (True, False):
        index = WeightedHammingIndex.load(FIXTURES / f"index-v1-{name}.cghash", mapped)
        assert index.ids.tolist() == told["ids"]
        assert index.reconstruct(told["ids"]).tolist() == told["codes"]
        assert told["weights"] == (None if index.weights is None else index.weights.tolist())
        distances, ids = index.search(np.array(told["queries"], dtype=np.uint8), 5)
        assert (distances.tolist(), ids.tolist()) == (told["distances"], told["found"])
        assert index._table.ids.next_id == told["next_id"]
        assert index.functions is None
    WeightedHammingIndex.verify(FIXTURES / f"index-v1-{name}.cghash")


class WithTables(twins.CodeBlocks):
    """Code blocks with pruning tables that only count codes, and that borrow what they are attached to."""

    held = None

    def prepare(self, *args):
        self.held = {"order": np.arange(self.n_codes, dtype=np.uint32).reshape(-1, 1), "unit": np.array([0.5])}
        return True

    def prepared(self):
        return self.held or {}

    def adopt(self, arrays):
        if len(arrays["order"]) != self.n_codes:
            raise ValueError("order must have an entry for each code")
        self.held = arrays


def test_tables_go_along_until_positions_change(tmp_path, monkeypatch):
    monkeypatch.setattr(_kernels, "CodeBlocks", WithTables)
    index = an_index(np.random.default_rng(0), n=5000, removed=False)
    index.prepare()
    index.save(tmp_path / "i")
    with WeightedHammingIndex.load(tmp_path / "i", writable=True) as loaded:
        held = loaded._table.blocks.prepared()
        assert held["order"].dtype == np.uint32
        assert held["order"].shape == (5000, 1)
        assert held["unit"].tolist() == [0.5]
        loaded.reweight(None)
        loaded.compact()
        assert loaded._table.blocks.prepared()["order"].shape == (5000, 1)
        loaded.remove(loaded.ids[:1])
        loaded.compact()
        assert loaded._table.blocks.prepared() == {}


def test_tables_of_another_layout_are_passed_over(tmp_path, monkeypatch):
    monkeypatch.setattr(_kernels, "CodeBlocks", WithTables)
    index = an_index(np.random.default_rng(0), n=5000)
    index.prepare()
    index.save(tmp_path / "i")
    monkeypatch.setattr(index_files, "TABLES_VERSION", index_files.TABLES_VERSION + 1)
    loaded = WeightedHammingIndex.load(tmp_path / "i")
    assert loaded._table.blocks.prepared() == {}
    assert_same(loaded, index)


def test_tables_that_do_not_fit_the_codes_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(_kernels, "CodeBlocks", WithTables)
    index = an_index(np.random.default_rng(0), n=5000)
    index._table.blocks.held = {"order": np.arange(7)}
    index.save(tmp_path / "i")
    with pytest.raises(FormatError, match="order must have an entry for each code"):
        WeightedHammingIndex.load(tmp_path / "i")


def clustered(rng, n):
    """Codes of 64 bits, many of them near each other, as tables to prune by ask for."""
    return rng.integers(0, 256, (50, 8), dtype=np.uint8)[rng.integers(0, 50, n)] ^ (rng.random((n, 8)) < 0.1)


def an_index_that_changed_after_its_tables():
    """The index, and the codes that its first fifty items had."""
    rng = np.random.default_rng(0)
    index = WeightedHammingIndex(64, rng.random(64))
    index.add(clustered(rng, 200_000))
    queries = index.reconstruct(np.arange(50))
    index.prepare()
    index.update(queries ^ 255, np.arange(50))
    return index, queries


def altered(tables, rng):
    """The name of one of the arrays, and the tables with one of its numbers altered."""
    name = rng.choice([name for name, array in tables.items() if array.size and name != "size"])
    arrays = {key: array.copy() for key, array in tables.items()}
    array = arrays[name].reshape(-1)
    if name.startswith("groups"):  # lanes past the last code mean nothing
        n_distinct = tables["size"][1]
        array = array[: len(array) // -(-n_distinct // 16) * (n_distinct // 16)]
    at = rng.integers(len(array))
    if name == "bits":
        array[[at, (at + 9) % 64]] = array[[(at + 9) % 64, at]]
    else:
        array[at] ^= array.dtype.type(1) << array.dtype.type(rng.integers(8 * array.itemsize))
    return name, arrays


@pytest.mark.native
@pytest.mark.skipif(_kernels.native is None, reason="the NumPy twin builds no tables")
@pytest.mark.parametrize("with_copies", [False, True])
def test_verify_compares_tables_with_the_codes(tmp_path, monkeypatch, with_copies):
    monkeypatch.setattr(_kernels, "CodeBlocks", _kernels.native.CodeBlocks)
    rng = np.random.default_rng(1)
    index = WeightedHammingIndex(64, rng.random(64))
    index.add(
        np.tile(random_codes(rng, 300, 64), (2 if with_copies else 1, 1)), rng.permutation(600 if with_copies else 300)
    )
    index.remove(index.ids[:3])
    index._table.blocks.prepare(
        index._table.whole, index._table.ids.explicit, index._table.ids.allowed, 1e9, True, 1, [8, 12, 16]
    )
    index.update(random_codes(rng, 2, 64), index.ids[:2])
    index.remove(index.ids[5:8])
    index.save(tmp_path / "whole")
    assert WeightedHammingIndex.verify(tmp_path / "whole")["n_codes"] == len(index)
    tables, passed = index._table.blocks.prepared(), []
    for _ in range(200):
        name, arrays = altered(tables, rng)
        with monkeypatch.context() as patch:
            patch.setattr(type(index._table.blocks), "prepared", lambda blocks, arrays=arrays: arrays)
            index.save(tmp_path / "altered")
        try:
            WeightedHammingIndex.verify(tmp_path / "altered")
        except FormatError:
            continue
        passed.append(name)
    assert not passed


def test_tables_that_may_not_be_built_any_more_are_not_saved_either(tmp_path):
    index, queries = an_index_that_changed_after_its_tables()
    index.prune = False
    index.prepare()
    index.save(tmp_path / "i")
    loaded, lean = WeightedHammingIndex.load(tmp_path / "i"), WeightedHammingIndex(64, index.weights, prune=False)
    lean.add(index.reconstruct(index.ids))
    assert_same_answers(loaded, lean, queries, 9)


@pytest.mark.native
@pytest.mark.parametrize("mapped", [True, False])
def test_codes_that_changed_after_the_tables_were_built_are_found(tmp_path, mapped):
    index, queries = an_index_that_changed_after_its_tables()
    index.add(queries[:7] ^ 1)
    index.remove([60, 61])
    for path in (tmp_path / "i", tmp_path / "j"):
        index.save(path)
        index = WeightedHammingIndex.load(path, mapped)
        assert index.info()["n_prepared"] == (200_000 if _kernels.native is _kernels._chosen else 0)
        lean = WeightedHammingIndex(64, index.weights, prune=False)
        lean.add(index.reconstruct(index.ids), index.ids)
        assert_same_answers(index, lean, queries, 9)


@pytest.mark.native
@pytest.mark.skipif(_kernels.native is None, reason="the NumPy twin builds no tables")
@pytest.mark.parametrize("n_prepared", [-(2**63), -1, 301, 2**40])
@pytest.mark.parametrize("empty", [False, True])
def test_tables_of_codes_that_are_not_there_are_refused(tmp_path, monkeypatch, n_prepared, empty):
    monkeypatch.setattr(_kernels, "CodeBlocks", _kernels.native.CodeBlocks)
    index = WeightedHammingIndex(24)
    index.add(random_codes(np.random.default_rng(0), 300, 24))
    index._table.blocks.prepare(index._table.whole, None, None, 1e9, True, 1)
    tables = index._table.blocks.prepared()
    tables["size"] = np.array([n_prepared, *tables["size"][1:]])
    saved = WeightedHammingIndex(24) if empty else index
    monkeypatch.setattr(type(index._table.blocks), "prepared", lambda blocks: tables)
    saved.save(tmp_path / "i")
    with pytest.raises(FormatError, match="tables must cover"):
        WeightedHammingIndex.load(tmp_path / "i")


def sparse_file(path, n, n_bits=64):
    """A file of n codes with ids that takes no place on the disk: all zeros, and checksums that nobody looked at."""
    about = index_files.About(n_bits, n, 0, False, True, False, 2 * n, True, None, "ab" * 16, None, {}, 1)
    text = json.dumps(vars(about)).encode()
    told = Section("about", "|u1", PAGE, len(text), zlib.crc32(text.ljust(PAGE, b"\0")))
    codes = Section("codes", "|u1", told.end, about.lengths()["codes"], 0)
    ids = Section("ids", "<i8", codes.end, 8 * n, 0)
    with open(path, "wb") as file:
        file.write(_header([told, codes, ids], ids.end))
        file.write(text)
        file.truncate(ids.end)


class Borrowing(twins.CodeBlocks):
    """Code blocks that keep what they are attached to, as the native ones do."""

    def attach(self, blocks, n_codes):
        self.borrowed, self._n = blocks, n_codes


def test_opening_reads_nothing_that_grows_with_the_codes(tmp_path, monkeypatch):
    monkeypatch.setattr(_kernels, "CodeBlocks", Borrowing)
    sparse_file(tmp_path / "i", 10**8)
    WeightedHammingIndex.load(tmp_path / "i")  # warm
    faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    began = time.perf_counter()
    index = WeightedHammingIndex.load(tmp_path / "i")
    seconds = time.perf_counter() - began
    assert len(index) == 10**8
    assert resource.getrusage(resource.RUSAGE_SELF).ru_minflt - faults < 1000  # of 390 000 pages
    assert seconds < 0.1


# What is damaged is refused


def refused(tmp_path, content, mapped=False, match=None):
    path = tmp_path / "damaged"
    path.write_bytes(content)
    with pytest.raises(FormatError, match=match) as caught:
        WeightedHammingIndex.load(path, mapped)
    assert str(path) in str(caught.value)


def test_a_file_cut_short_anywhere_is_refused(saved, tmp_path):
    content, _ = saved
    for length in [*range(0, 700, 7), *range(700, len(content), 911), len(content) - 1]:
        for mapped in (True, False):
            refused(tmp_path, content[:length], mapped)


def test_a_longer_file_is_refused(saved, tmp_path):
    for more in (b"\0", b"\0" * PAGE, saved[0]):
        refused(tmp_path, saved[0] + more, True, "must have")


def test_every_flipped_byte_is_refused_without_a_map_and_by_verify(saved, tmp_path):
    content, _ = saved
    for at in [*range(0, 600, 5), *range(600, len(content), 61)]:
        damaged = bytearray(content)
        damaged[at] ^= 1 << at % 8
        refused(tmp_path, damaged)
        with pytest.raises(FormatError):
            WeightedHammingIndex.verify(tmp_path / "damaged")


def test_a_flipped_byte_of_what_decides_is_refused_with_a_map_too(saved, tmp_path):
    content, _ = saved
    (tmp_path / "i").write_bytes(content)
    found = SectionFile(tmp_path / "i").sections
    assert set(found) == {"about", "codes", "weights", "ids", "removed", "logged"}
    for name in ("about", "weights", "removed", "logged"):
        damaged = bytearray(content)
        damaged[found[name].offset + 3] ^= 4
        refused(tmp_path, damaged, True, f"section '{name}' does not match its checksum")


@pytest.mark.native
@SHARED
@given(data=st.data())
def test_pieces_cut_out_doubled_or_changed_never_crash(data, saved, tmp_path):
    content, index = saved
    first = data.draw(st.integers(0, len(content)))
    last = data.draw(st.integers(first, len(content)))
    piece = data.draw(st.binary(max_size=20) | st.just(content[first:last] * 2) | st.just(content[first:last][::-1]))
    (tmp_path / "i").write_bytes(content[:first] + piece + content[last:])
    try:
        loaded = WeightedHammingIndex.load(tmp_path / "i", mmap=False)
    except FormatError:
        pass
    else:
        assert_same(loaded, index)
    try:
        loaded = WeightedHammingIndex.load(tmp_path / "i")
    except FormatError:
        return
    loaded.search(random_codes(np.random.default_rng(0), 2, 20), 5)
    assert loaded.reconstruct(index.ids[np.isin(index.ids, loaded.ids)]).shape[1] == 3


@SHARED
@given(content=st.binary(max_size=300))
def test_any_bytes_are_refused(content, tmp_path):
    refused(tmp_path, content)
    refused(tmp_path, b"\x89CGHIX\r\n" + content, True)


def forged(content, change):
    """A file whose header says something else, with the right checksum."""
    size = struct.unpack_from("<Q", content, 16)[0]
    length = PAGE
    header = bytearray(content[:length])
    change(header)
    header[-4:] = struct.pack("<I", zlib.crc32(header[:-4]))
    return bytes(header) + content[length:size]


def put(form, at, *values):
    return lambda header: struct.pack_into(form, header, at, *values)


@pytest.mark.parametrize("mapped", [True, False])
@pytest.mark.parametrize(
    ("change", "match"),
    [
        (put("<I", 8, 2), "has format version 2; this cghash reads version 1"),
        (put("<I", 12, 2**32 - 1), "tells of 4294967295 sections"),
        (put("<I", 12, 4000), "tells of 4000 sections"),
        (put("<I", 12, 1), "sections end at"),
        (put("<Q", 16, 2**63), "must have 9223372036854775808 bytes"),
        (put("<48s", 24 + 80, b"about"), "two of its sections have one name"),
        (put("<48s", 24 + 80, b"\xff"), "a section is named"),
        (put("<8s", 24 + 80 + 48, b"O"), "is of dtype 'O'"),
        (put("<8s", 24 + 80 + 48, b"<f2"), "is of dtype '<f2'"),
        (put("<8s", 24 + 2 * 80 + 48, b"|u1"), "'weights' must be 160 bytes, <f8"),
        (put("<Q", 24 + 80 + 56, 2**64 - PAGE), "is not where the one before it ends"),
        (put("<Q", 24 + 80 + 56, 0), "is not where the one before it ends"),
        (put("<Q", 24 + 80 + 64, 2**63), "is not where the one before it ends"),
        (put("<Q", 24 + 80 + 64, 2**64 - 1), "is not where the one before it ends"),
        (put("<Q", 24 + 2 * 80 + 64, 157), "has 157 bytes of dtype <f8"),
    ],
)
def test_a_header_that_cannot_be_is_refused(saved, tmp_path, change, match, mapped):
    refused(tmp_path, forged(saved[0], change), mapped, match)


def with_about(content, **changes):
    """A file that says something else of itself, with the right checksums."""
    length = struct.unpack_from("<Q", content, 24 + 64)[0]
    about = json.loads(content[PAGE : PAGE + length]) | changes
    text = json.dumps({k: v for k, v in about.items() if v != "none"}).encode()
    page = text.ljust(PAGE, b"\0")

    def change(header):
        struct.pack_into("<QI", header, 24 + 64, len(text), zlib.crc32(page))

    return forged(content[:PAGE] + page + content[2 * PAGE :], change)


@pytest.mark.parametrize("mapped", [True, False])
@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"n": 2**40}, "section 'codes' must be"),
        ({"n": 301}, "section 'ids' must be"),
        ({"n": -1}, "n must be a whole number"),
        ({"n": True}, "n must be a whole number"),
        ({"n": 300.0}, "n must be a whole number"),
        ({"n": None}, "n must be a whole number"),
        ({"n": 10**400}, "n must be a whole number"),
        ({"n_bits": 24}, "section 'weights' must be"),
        ({"n_bits": 0}, "n_bits must be a whole number from 1 to 4096"),
        ({"n_bits": 10**9}, "n_bits must be a whole number from 1 to 4096"),
        ({"n_removed": 0}, "its sections must be"),
        ({"n_removed": 44}, "44 positions must be marked as removed, got 43"),
        ({"weighted": False}, "its sections must be"),
        ({"weighted": 1}, "weighted must be true or false"),
        ({"explicit_ids": False}, "row numbers|its sections must be"),
        ({"next_id": -1}, "next_id must be"),
        ({"next_id": 2**63}, "next_id must be"),
        ({"max_memory": "much"}, "max_memory must be"),
        ({"uuid": "?"}, "badly formed"),
        ({"uuid": 3}, "uuid"),
        ({"parent": ["x"]}, "uuid"),
        ({"tables": {"order": [3]}}, "its sections must be"),
        ({"tables": [1]}, "tables must be shapes"),
        ({"tables_version": "1"}, "tables_version must be"),
        ({"tables": "none"}, "missing 1 required"),
        ({"more": 1}, "unexpected keyword"),
        ({"functions": 3}, "functions must be a SHA-256"),
        ({"functions": "x"}, "functions must be a SHA-256"),
    ],
)
def test_facts_that_do_not_fit_each_other_are_refused(saved, tmp_path, changes, match, mapped):
    refused(tmp_path, with_about(saved[0], **changes), mapped, match)


def test_nothing_is_allocated_beyond_the_size_of_the_file(saved, tmp_path):
    content = saved[0]
    for forgery in (with_about(content, n=2**50), forged(content, put("<I", 12, 2**32 - 1)), content[:-1]):
        tracemalloc.start()
        refused(tmp_path, forgery)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 4 * len(content) + 200_000


@pytest.mark.parametrize(
    ("damage", "match"),
    [
        (lambda i: i._table.ids._ids.__setitem__(3, i._table.ids._ids[4]), "ids must be different"),
        (lambda i: i._table.ids._ids.__setitem__(3, -1), "ids must be from 0 to"),
        (lambda i: setattr(i._table.ids, "next_id", 5), "ids must be from 0 to 4"),
        (lambda i: setattr(i._table.ids, "ascending", True), "ids must be in ascending order"),
        (lambda i: i._table.blocks.put(np.array([2]), np.full((1, 3), 255, dtype=np.uint8)), "bits past n_bits=20"),
    ],
)
def test_verify_sees_what_checksums_do_not(tmp_path, damage, match):
    index = an_index(np.random.default_rng(1))
    damage(index)
    index.save(tmp_path / "i")
    with pytest.raises(FormatError, match=match):
        WeightedHammingIndex.verify(tmp_path / "i")


def test_other_files_are_told_apart(tmp_path):
    refused(tmp_path, (FIXTURES / "model-v1-linear.cghash").read_bytes(), True, "is not an index of cghash")
    with pytest.raises(FormatError, match="is a folder"):
        WeightedHammingIndex.load(tmp_path)
    with pytest.raises(FormatError, match="pipe or a device"):
        WeightedHammingIndex.load("/dev/null")
    with pytest.raises(FileNotFoundError):
        WeightedHammingIndex.load(tmp_path / "nowhere")


def test_sections_are_read_as_they_were_written(saved, tmp_path):
    (tmp_path / "i").write_bytes(saved[0])
    with open(tmp_path / "i", "rb") as file:
        sections = _read_header("i", file, len(saved[0]))
    assert [section.offset % PAGE for section in sections] == [0] * 6


# Neighbours


READER = """
import sys, time, numpy as np
from cghash import WeightedHammingIndex
index = WeightedHammingIndex.load(sys.argv[1], writable="memory")
print("begin", flush=True)
sys.stdin.readline()
queries = np.load(sys.argv[2])
distances, ids = index.search(queries, 9)
index.add(queries)
index.update(queries[:1] ^ 1, index.ids[:1])  # a change of its own, which nobody else sees
np.savez(sys.argv[3], distances=distances, ids=ids)
"""


def test_several_processes_read_one_file(tmp_path):
    rng = np.random.default_rng(2)
    index = an_index(rng, 64, 2000)
    index.save(tmp_path / "i")
    before = (tmp_path / "i").read_bytes()
    queries = random_codes(rng, 5, 64)
    np.save(tmp_path / "q.npy", queries)
    command = [sys.executable, "-c", READER, tmp_path / "i", tmp_path / "q.npy"]
    options = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    readers = [subprocess.Popen([*command, tmp_path / f"{n}.npz"], **options) for n in range(3)]
    for reader in readers:
        assert reader.stdout.readline() == "begin\n"
    for reader in readers:  # all have it open
        reader.communicate("\n")
    distances, ids = index.search(queries, 9)
    for n, reader in enumerate(readers):
        assert reader.returncode == 0
        with np.load(tmp_path / f"{n}.npz") as found:
            np.testing.assert_array_equal(found["ids"], ids)
            np.testing.assert_array_equal(found["distances"], distances)
    assert (tmp_path / "i").read_bytes() == before


@pytest.mark.native
def test_each_search_beside_a_writer_sees_a_state_that_existed(tmp_path):
    """Code i is added i-th; it is at distance 64 - i of the query, so a state of n codes has n - 1 as its nearest."""
    codes = pack(np.tri(64, dtype=int))
    index = WeightedHammingIndex(64)
    index.add(codes[:1])
    index.save(tmp_path / "i")
    done, wrong = threading.Event(), []

    def search():
        query, last = pack(np.ones((1, 64), dtype=int))[0], 0
        while not done.is_set():
            distances, ids = index.search(query, 64)
            n = int(np.isfinite(distances).sum())
            if (
                ids[:n].tolist() != list(range(n))[::-1]
                or distances[:n].tolist() != list(range(64 - n, 64))
                or n < last
            ):
                wrong.append((distances, ids))
            last = n

    with WeightedHammingIndex.load(tmp_path / "i", writable=True) as index:
        threads = [threading.Thread(target=search) for _ in range(3)]
        for thread in threads:
            thread.start()
        for i in range(1, 64):
            index.add(codes[i : i + 1])
            if i % 20 == 0:
                index.compact()
        done.set()
        for thread in threads:
            thread.join()
    assert not wrong
    assert len(WeightedHammingIndex.load(tmp_path / "i")) == 64


@pytest.mark.native
def test_an_open_index_outlives_its_file(tmp_path):
    index = an_index(np.random.default_rng(3))
    index.save(tmp_path / "i")
    loaded = WeightedHammingIndex.load(tmp_path / "i")
    WeightedHammingIndex(8).save(tmp_path / "i")
    (tmp_path / "i").unlink()
    assert_same(loaded, index)


def test_saving_follows_a_link_and_so_does_the_log(tmp_path):
    (tmp_path / "folder").mkdir()
    os.symlink(tmp_path / "folder" / "i", tmp_path / "link")
    an_index(np.random.default_rng(3)).save(tmp_path / "link")
    with WeightedHammingIndex.load(tmp_path / "link", writable=True):
        assert sorted(path.name for path in (tmp_path / "folder").iterdir()) == ["i", "i.log"]
