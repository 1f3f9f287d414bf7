"""The log of an index: what was acknowledged is there after any kill, what was torn never was, damage is told."""

from __future__ import annotations

import copy
import errno
import os
import pickle
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import time
import zlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import cghash.index.log
from cghash import WeightedHammingIndex
from cghash.codes import pack
from cghash.exceptions import CGHashError, FormatError, InUseError, InvalidInputError

pytestmark = pytest.mark.core

SHARED = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=30)
HEADER = 32  # bytes of a log without records


def random_codes(rng, n, n_bits=20):
    return pack(rng.integers(0, 2, (n, n_bits)))


def held(index):
    """All that an index holds, to compare."""
    ids = index.ids
    weights = None if index.weights is None else index.weights.tolist()
    return ids.tolist(), index.reconstruct(ids).tolist(), weights, index._table.ids.next_id


def loaded(path, mapped=True):
    return held(WeightedHammingIndex.load(path, mapped))


@pytest.fixture
def path(tmp_path):
    rng = np.random.default_rng(0)
    index = WeightedHammingIndex(20, rng.random(20))
    index.add(random_codes(rng, 100))
    index.save(tmp_path / "i")
    return tmp_path / "i"


def log_of(path):
    return path.with_name(path.name + ".log")


def changed(index, rng):
    """Five changes, one of each kind; what the index held before, between and after."""
    states = [held(index)]
    for change in (
        lambda: index.add(random_codes(rng, 3)),
        lambda: index.add(random_codes(rng, 2), [900, 800]),
        lambda: index.remove([5, 900]),
        lambda: index.update(random_codes(rng, 2), [800, 7]),
        lambda: index.reweight(rng.random(20)),
        lambda: index.reweight(None),
    ):
        change()
        states.append(held(index))
    return states


@pytest.fixture
def states(path):
    """What an index held before, between and after the changes that are in its log."""
    with WeightedHammingIndex.load(path, writable=True) as index:
        return changed(index, np.random.default_rng(1))


def added_to(path, n=2):
    """An index that is open for writing, after an add."""
    index = WeightedHammingIndex.load(path, writable=True)
    index.add(random_codes(np.random.default_rng(0), n))
    return index


@pytest.mark.native
@SHARED
@given(data=st.data())
def test_any_order_of_changes_is_there_after_loading(data, tmp_path):
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    path = Path(tempfile.mkdtemp(dir=tmp_path)) / "i"
    index = WeightedHammingIndex(20, data.draw(st.sampled_from([None, np.arange(20.0)])))
    index.add(random_codes(rng, data.draw(st.sampled_from([0, 1, 64, 90]))))
    index.save(path)
    index = WeightedHammingIndex.load(path, data.draw(st.booleans()), writable=True)
    for _ in range(data.draw(st.integers(1, 10))):
        kind = data.draw(st.sampled_from(["add", "ids", "remove", "update", "reweight", "compact", "save", "reopen"]))
        some = index.ids[rng.random(len(index)) < 0.3]
        if kind == "add":
            index.add(random_codes(rng, rng.integers(0, 70)))
        elif kind == "ids":
            free = np.setdiff1d(rng.integers(0, 500, 9), index.ids)
            index.add(random_codes(rng, len(free)), rng.permutation(free))
        elif kind == "remove":
            index.remove(some)
        elif kind == "update":
            index.update(random_codes(rng, len(some)), some)
        elif kind == "reweight":
            index.reweight(data.draw(st.sampled_from([None, np.arange(20.0)[::-1].copy()])))
        elif kind == "compact":
            index.compact()
            assert index.info()["n_removed"] == 0
        elif kind == "save":
            index.save(path)
        else:
            index.close()
            index = WeightedHammingIndex.load(path, writable=True)
        assert loaded(path, data.draw(st.booleans())) == held(index)
    index.close()
    WeightedHammingIndex.verify(path)


@pytest.mark.native
def test_compact_folds_the_log_into_the_file(path):
    with WeightedHammingIndex.load(path, writable=True) as index:
        last = changed(index, np.random.default_rng(1))[-1]
        assert log_of(path).stat().st_size > HEADER
        size = path.stat().st_size
        index.compact()
        assert log_of(path).stat().st_size == HEADER
        assert held(index) == loaded(path) == last
        before = path.stat()
        index.compact()  # nothing to fold
        assert path.stat().st_ino == before.st_ino
        index.remove(index.ids[:60])
        index.compact()
        assert path.stat().st_size < size + 8192
        index.add(random_codes(np.random.default_rng(2), 1))
        assert index.ids[-1] == 901  # ids are not given twice
        assert loaded(path) == held(index)


def test_compact_without_a_file_drops_what_was_removed():
    rng = np.random.default_rng(3)
    index = WeightedHammingIndex(20)
    index.add(random_codes(rng, 1000))
    index.remove(np.arange(0, 1000, 3))
    before = held(index)
    index.compact()
    assert held(index) == before
    assert index.info()["n_removed"] == 0
    assert index._table.ids.n == 666


class OnWindows:
    """Locks of bytes, as `msvcrt` has them, of this process alone."""

    LK_UNLCK, LK_NBLCK = 0, 2

    def __init__(self):
        self.held = {}

    def locking(self, handle, mode, n_bytes):
        byte = (os.fstat(handle).st_ino, os.lseek(handle, 0, os.SEEK_CUR))
        if self.held.setdefault(byte, handle) != handle:
            raise PermissionError(errno.EACCES, "Permission denied")
        if mode == self.LK_UNLCK:
            del self.held[byte]


@pytest.fixture(params=["flock", "msvcrt"])
def either_lock(request, monkeypatch):
    if request.param == "msvcrt":
        monkeypatch.setattr("cghash._file_locks._fcntl", None)
        monkeypatch.setattr("cghash._file_locks._msvcrt", OnWindows())


@pytest.mark.usefixtures("either_lock")
def test_a_second_writer_is_refused_until_the_first_is_gone(path):
    first = WeightedHammingIndex.load(path, writable=True)
    for other in (lambda: WeightedHammingIndex.load(path, writable=True), lambda: WeightedHammingIndex(8).save(path)):
        with pytest.raises(InUseError, match="is open for writing elsewhere: one writer at a time"):
            other()
    first.add(random_codes(np.random.default_rng(0), 1))
    first.close()
    with pytest.raises(InvalidInputError, match="the index was closed"):
        first.add(random_codes(np.random.default_rng(0), 1))
    with pytest.raises(InvalidInputError, match="the index was closed"):
        first.compact()
    with WeightedHammingIndex.load(path, writable=True) as second:
        assert held(second) == held(first)


def test_a_system_without_file_locks_says_that_a_loaded_index_cannot_be_written(tmp_path, monkeypatch):
    index = WeightedHammingIndex(8)
    index.add(np.zeros((1, 1), np.uint8))
    index.save(tmp_path / "i")
    monkeypatch.setattr("cghash._file_locks._fcntl", None)
    with pytest.raises(CGHashError, match="needs file locks, which this system lacks"):
        WeightedHammingIndex.load(tmp_path / "i", writable=True)
    assert len(WeightedHammingIndex.load(tmp_path / "i")) == 1
    index.add(np.zeros((1, 1), np.uint8))
    index.save(tmp_path / "i")
    assert len(WeightedHammingIndex.load(tmp_path / "i")) == 2


@pytest.mark.usefixtures("states")
def test_saving_another_index_over_a_file_voids_its_log(path):
    other = WeightedHammingIndex(9)
    other.save(path)
    assert loaded(path) == held(other)


# Each knows the other


def test_an_index_file_without_its_log_is_refused_unless_it_never_had_changes(path, tmp_path):
    (tmp_path / "aside").mkdir()
    elsewhere = tmp_path / "aside" / "i"
    with WeightedHammingIndex.load(path, writable=True):
        shutil.copy(path, elsewhere)
        WeightedHammingIndex.load(elsewhere)  # opened for writing, but not changed
    before = loaded(path)
    with added_to(path) as index:
        after = held(index)
    shutil.copy(path, elsewhere)
    for wrong in (
        lambda: WeightedHammingIndex.load(elsewhere),
        lambda: WeightedHammingIndex.load(elsewhere, mmap=False),
        lambda: WeightedHammingIndex.load(elsewhere, writable=True),
        lambda: WeightedHammingIndex.verify(elsewhere),
    ):
        with pytest.raises(FormatError, match=r"lacks its log.*i\.log is not there.*load\(\.\.\., ignore_log=True\)"):
            wrong()
    rest = WeightedHammingIndex.load(elsewhere, ignore_log=True)
    assert held(rest) == before
    log_of(elsewhere).unlink(missing_ok=True)
    shutil.copy(log_of(path), log_of(elsewhere))
    assert loaded(elsewhere) == after
    with pytest.raises(InvalidInputError, match="ignore_log needs writable=False or 'memory'"):
        WeightedHammingIndex.load(path, writable=True, ignore_log=True)


def test_an_index_whose_log_is_lost_can_be_saved_anew(path):
    before = loaded(path)
    added_to(path).close()
    log_of(path).unlink()
    WeightedHammingIndex.load(path, ignore_log=True).save(path)
    assert loaded(path) == before
    assert not log_of(path).exists()


def test_a_log_of_an_earlier_file_is_not_taken_for_that_of_changes(path):
    with added_to(path) as index:
        old = log_of(path).read_bytes()
        index.compact()
        index.add(random_codes(np.random.default_rng(0), 2))
    log_of(path).write_bytes(old)
    with pytest.raises(FormatError, match=r"lacks its log: .* is of an earlier file"):
        loaded(path)


def test_a_file_that_another_program_replaced_takes_no_changes(path, tmp_path):
    with WeightedHammingIndex.load(path, writable=True) as index:
        WeightedHammingIndex(20).save(tmp_path / "other")
        os.replace(tmp_path / "other", path)
        with pytest.raises(InUseError, match="was replaced, moved or removed by another program"):
            index.add(random_codes(np.random.default_rng(0), 2))


def test_a_file_in_the_place_of_a_removed_one_is_not_taken_for_it_by_its_number(path, tmp_path):
    """The system gives a new file the number of one that nobody has open."""
    WeightedHammingIndex(20).save(tmp_path / "other")
    with added_to(path) as index:  # which maps the first file
        index.save(path)
        for _ in range(5):
            path.unlink()
            shutil.copy(tmp_path / "other", path)
            with pytest.raises(InUseError, match="was replaced, moved or removed by another program"):
                index.add(random_codes(np.random.default_rng(0), 2))


def test_ids_in_a_log_that_are_not_the_next_ones_are_refused(path):
    with added_to(path) as index:
        first = log_of(path).stat().st_size
        index.add(random_codes(np.random.default_rng(0), 1))
    content = log_of(path).read_bytes()
    log_of(path).write_bytes(content[:HEADER] + content[first:])  # as if the first add had been lost
    with pytest.raises(FormatError, match="record 1 does not fit the index: ids are added from"):
        loaded(path)


# Readers that save


def test_a_reader_does_not_save_over_what_another_writer_added(path):
    reader = WeightedHammingIndex.load(path, writable="memory")
    reader.remove([0])
    with added_to(path, 50) as writer:
        after = held(writer)
    with pytest.raises(InUseError, match=r"changed by another writer since it was loaded.*load it again, or"):
        reader.save(path)
    assert loaded(path) == after
    reader.save(path.with_name("other"))
    writer.save(path)  # closed, but nobody has changed it since
    assert loaded(path) == after


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda index: pickle.loads(pickle.dumps(index))])  # noqa: S301
def test_a_copy_of_a_reader_does_not_save_over_what_another_writer_added(path, copied):
    with added_to(path) as writer:
        copies = copied(writer), copied(WeightedHammingIndex.load(path))
        writer.add(random_codes(np.random.default_rng(0), 50))
    for index in copies:
        with pytest.raises(InUseError, match="changed by another writer since it was loaded"):
            index.save(path)
    assert loaded(path) == held(writer)
    copied(writer).save(path)


def test_a_reader_does_not_save_over_a_newer_file_where_the_system_has_no_locks(path, monkeypatch):
    monkeypatch.setattr("cghash._file_locks._fcntl", None)
    stale, reader = WeightedHammingIndex.load(path), WeightedHammingIndex.load(path, writable="memory")
    reader.add(random_codes(np.random.default_rng(0), 50))
    reader.save(path)
    with pytest.raises(InUseError, match="changed by another writer since it was loaded"):
        stale.save(path)
    assert loaded(path) == held(reader)


@pytest.mark.parametrize("compacts", [False, True])
def test_a_reader_saves_over_a_file_that_nobody_changed(path, compacts):
    with added_to(path, 50) as writer:
        if compacts:
            writer.compact()
    reader = WeightedHammingIndex.load(path, writable="memory")
    for number in (0, 1):
        reader.remove([number])
        reader.save(path)
        assert loaded(path) == held(reader)
    with WeightedHammingIndex.load(path, writable=True) as writer:
        writer.compact()  # nothing to do
        writer.remove([2])
        writer.compact()
    with pytest.raises(InUseError, match="changed by another writer"):
        reader.save(path)


def test_saving_over_a_file_leaves_no_log_where_there_was_none(path):
    WeightedHammingIndex(20).save(path)
    assert sorted(p.name for p in path.parent.iterdir()) == ["i"]


# What a kill may leave


def test_a_log_cut_anywhere_gives_a_state_that_existed(path, states):
    content = log_of(path).read_bytes()
    seen = []
    for length in range(len(content) + 1):
        log_of(path).write_bytes(content[:length])
        if length < HEADER:  # a kill does not take the header away
            with pytest.raises(FormatError, match="lacks its log"):
                loaded(path)
        else:
            seen.append(states.index(loaded(path)))
    assert seen == sorted(seen)
    assert set(seen) == set(range(7))
    assert seen[-1] == 6


def test_after_a_torn_record_a_writer_goes_on(path, states):
    log_of(path).write_bytes(log_of(path).read_bytes()[:-1])
    with WeightedHammingIndex.load(path, writable=True) as index:
        assert held(index) == states[-2]
        index.add(random_codes(np.random.default_rng(1), 2))
        assert loaded(path) == held(index)


@pytest.mark.parametrize("zeros", [1, 16, 21, 300, 100_000])
def test_pages_that_were_never_written_are_a_torn_record(path, states, zeros):
    with WeightedHammingIndex.load(path, writable=True) as index:
        end = log_of(path).stat().st_size
        index.add(np.ones((50, 3), dtype=np.uint8))
    content = log_of(path).read_bytes()
    log_of(path).write_bytes(content[:end] + bytes(zeros))
    assert loaded(path) == states[-1]
    log_of(path).write_bytes(content[:-40] + bytes(40))
    assert loaded(path) == states[-1]


def test_a_log_left_over_from_before_a_compaction_is_passed_over(path, states):
    with WeightedHammingIndex.load(path, writable=True) as index:
        shutil.copy(log_of(path), path.with_name("old"))
        index.compact()
    shutil.copy(path.with_name("old"), log_of(path))  # as a kill between the two steps leaves it
    assert loaded(path) == states[-1]
    WeightedHammingIndex.verify(path)
    with WeightedHammingIndex.load(path, writable=True) as index:
        assert log_of(path).stat().st_size == HEADER
        index.remove([800])
        assert loaded(path) == held(index)


def test_a_log_of_another_index_is_refused(path, tmp_path):
    WeightedHammingIndex(20).save(tmp_path / "other")
    added_to(tmp_path / "other").close()
    shutil.copy(tmp_path / "other.log", log_of(path))
    for writable in (False, True):
        with pytest.raises(FormatError, match=r"i\.log is the log of another index file"):
            WeightedHammingIndex.load(path, writable=writable)


def test_a_file_of_someone_else_is_not_taken_for_a_log(path):
    log_of(path).write_text("epoch 1: loss 0.3\n")
    for wrong in (
        lambda: WeightedHammingIndex.load(path),
        lambda: WeightedHammingIndex.load(path, writable=True),
        lambda: WeightedHammingIndex(8).save(path),
    ):
        with pytest.raises(FormatError, match="is not the log of an index"):
            wrong()
    assert log_of(path).read_text() == "epoch 1: loss 0.3\n"


# Damage


@pytest.mark.usefixtures("states")
def test_every_flipped_bit_of_a_log_is_refused(path):
    content = log_of(path).read_bytes()
    for at in range(len(content)):
        damaged = bytearray(content)
        damaged[at] ^= 1 << at % 8
        log_of(path).write_bytes(damaged)
        with pytest.raises(FormatError, match=r"i\.log"):
            WeightedHammingIndex.load(path)
        with pytest.raises(FormatError):
            WeightedHammingIndex.verify(path)


@pytest.mark.parametrize("operation", [0, 1, 2, 3, 4, 5, 6, 7, 8, 255])
@pytest.mark.parametrize("payload", [b"", b"\xff" * 7, b"\xff" * 160, bytes(33)])
def test_records_that_do_not_fit_the_index_are_refused(path, operation, payload):
    with WeightedHammingIndex.load(path, writable=True):
        pass
    head = struct.pack("<QB3x", len(payload), operation)
    head += struct.pack("<I", zlib.crc32(head))
    record = head + payload
    with open(log_of(path), "ab") as file:
        file.write(record + struct.pack("<I", zlib.crc32(record)))
    try:
        index = WeightedHammingIndex.load(path)
    except FormatError as error:
        assert "record 1 does not fit the index" in str(error)  # noqa: PT017
    else:
        assert len(index) in (100, 111)  # nothing, or eleven codes of zeros
        assert not payload or (operation, payload) in {(1, bytes(33)), (2, bytes(33)), (6, payload)}


def test_a_record_longer_than_the_log_is_not_read(path):
    with WeightedHammingIndex.load(path, writable=True) as index:
        before = held(index)
    head = struct.pack("<QB3x", 2**62, 1)
    with open(log_of(path), "ab") as file:
        file.write(head + struct.pack("<I", zlib.crc32(head)) + bytes(50))
    assert loaded(path) == before


# Errors while a change is made


def test_a_change_is_on_the_disk_before_it_is_made(path, monkeypatch):
    flushed = []
    with WeightedHammingIndex.load(path, writable=True) as index:
        whole = os.fsync

        def flush(handle):
            flushed.append((len(index), log_of(path).stat().st_size > HEADER and loaded(path)[0][-1]))
            whole(handle)

        monkeypatch.setattr(os, "fsync", flush)
        index.add(random_codes(np.random.default_rng(1), 1))
    assert flushed == [(100, False), (100, 100)]  # the file's flag; still 100 codes here, and id 100 in the log


def test_a_change_that_cannot_be_made_is_taken_back(path, monkeypatch):
    with WeightedHammingIndex.load(path, writable=True) as index:
        size = log_of(path).stat().st_size

        class Full:
            def __getattr__(self, name):
                raise MemoryError

        blocks, index._table.blocks = index._table.blocks, Full()
        with pytest.raises(MemoryError):
            index.add(random_codes(np.random.default_rng(1), 1))
        index._table.blocks = blocks
        assert log_of(path).stat().st_size == size
        index.add(random_codes(np.random.default_rng(1), 1))
        assert loaded(path) == held(index)


FULL_DISK = """
import resource, sys
import numpy as np
from cghash import WeightedHammingIndex
index = WeightedHammingIndex.load(sys.argv[1], writable=True)
index.add(np.zeros((3, 3), dtype=np.uint8))
resource.setrlimit(resource.RLIMIT_FSIZE, (5000, resource.RLIM_INFINITY))
try:
    index.add(np.ones((5000, 3), dtype=np.uint8))
except OSError as error:
    print(type(error).__name__, len(index))
index.add(np.ones((5, 3), dtype=np.uint8))
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
index.add(np.ones((5000, 3), dtype=np.uint8))
print(len(index))
"""


def test_where_the_disk_is_full_a_change_is_not_made_and_leaves_no_trace(path):
    done = subprocess.run([sys.executable, "-c", FULL_DISK, path], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["OSError", "103", "5108"]
    assert loaded(path)[0] == list(range(5108))


# Kills


def code_of(number):
    """Three bytes that tell which add they came with; the last has 4 bits."""
    return [number & 255, number >> 8 & 255, number >> 16 & 15]


WRITER = """
import os, sys
import numpy as np
from cghash import WeightedHammingIndex
index = WeightedHammingIndex.load(sys.argv[1], writable=True)
print("begin", flush=True)
number = int(index.ids[-1]) + 1 if len(index) else 0
if number and number % 7 == 0 and number - 4 in index:  # the removal that a kill kept from being made
    index.remove([number - 4])
while True:
    code = [number & 255, number >> 8 & 255, number >> 16 & 15]
    index.add(np.array([code], dtype=np.uint8))
    os.write(1, b"%d\\n" % number)
    if number % 7 == 6:
        index.remove([number - 3])
    if number % int(sys.argv[2]) == 0:
        index.compact()
    number += 1
"""


def started(*args):
    command = [sys.executable, "-c", WRITER, *map(str, args)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE)
    assert process.stdout.readline() == b"begin\n"
    return process


def check_sequence(path, acknowledged):
    """Ids count the adds; of seven one may be removed, when the seventh was added."""
    index = WeightedHammingIndex.load(path)
    ids = index.ids.tolist()
    last = ids[-1] if ids else -1
    assert last in (acknowledged, acknowledged + 1)
    expected = {n for n in range(last + 1) if n % 7 != 3 or n + 3 > last}
    assert expected <= set(ids)
    assert set(ids) - expected <= {last - 3}  # added, and killed before the removal
    assert index.reconstruct(ids).tolist() == [code_of(n) for n in ids]


@pytest.mark.lengthy
@pytest.mark.parametrize("compact_every", [5, 10**9])
def test_whatever_was_acknowledged_is_there_after_a_kill(tmp_path, compact_every):
    path = tmp_path / "i"
    WeightedHammingIndex(20).save(path)
    rng = np.random.default_rng(compact_every)
    last = -1
    for _ in range(5):
        process = started(path, compact_every)
        time.sleep(rng.uniform(0.005, 0.12))
        process.kill()
        lines = process.communicate()[0].split(b"\n")
        last = max([last, *(int(line) for line in lines[:-1])])
        check_sequence(path, last)
        last = int(WeightedHammingIndex.load(path).ids[-1]) if last >= 0 else last
        WeightedHammingIndex.verify(path)
    assert last > 5


@pytest.mark.lengthy
def test_readers_beside_a_writer_see_states_that_existed(tmp_path):
    path = tmp_path / "i"
    WeightedHammingIndex(20).save(path)
    process = started(path, 3)
    try:
        seen = []
        end = time.monotonic() + 1.5
        while time.monotonic() < end:
            index = WeightedHammingIndex.load(path)
            ids = index.ids.tolist()
            if ids:
                check_ids = [n for n in range(ids[-1] + 1) if n % 7 != 3 or n + 3 > ids[-1]]
                assert ids == check_ids or ids == sorted({*check_ids, ids[-1] - 3})
                assert index.reconstruct(ids).tolist() == [code_of(n) for n in ids]
                seen.append(ids[-1])
    finally:
        process.kill()
        process.communicate()
    assert seen == sorted(seen)
    assert len(set(seen)) > 5


def test_a_writer_removes_what_a_killed_save_left(path):
    left = path.with_name(f".{path.name}.0123abcd.tmp")
    left.write_bytes(b"half a file")
    WeightedHammingIndex.load(path)
    assert left.exists()
    WeightedHammingIndex.load(path, writable=True).close()
    assert not left.exists()


# What would be lost without a word


def test_a_log_of_a_file_that_was_moved_is_not_overwritten(path):
    with added_to(path) as index:
        after, moved = held(index), path.with_name("moved")
    path.rename(moved)
    other = WeightedHammingIndex(20)
    other.add(random_codes(np.random.default_rng(0), 2))
    with pytest.raises(InUseError, match="holds changes to another index file"):
        other.save(path)
    log_of(path).rename(log_of(moved))
    assert loaded(moved) == after
    other.save(path)


def test_a_reader_does_not_save_over_a_log_that_is_damaged(path):
    reader = WeightedHammingIndex.load(path, writable="memory")
    with WeightedHammingIndex.load(path, writable=True) as writer:
        for _ in range(3):
            writer.add(random_codes(np.random.default_rng(0), 1))
    content = bytearray(log_of(path).read_bytes())
    content[-9] ^= 1
    log_of(path).write_bytes(content)
    with pytest.raises(FormatError, match="a record does not match its checksum"):
        reader.save(path)
    assert log_of(path).read_bytes() == content


def test_a_file_that_is_moved_while_it_is_open_for_writing_takes_no_changes(path):
    with added_to(path) as index:
        path.rename(path.with_name("moved"))
        for change in (lambda: index.add(random_codes(np.random.default_rng(0), 1)), index.compact):
            with pytest.raises(InUseError, match="was replaced, moved or removed by another program"):
                change()
        path.with_name("moved").rename(path)
        index.add(random_codes(np.random.default_rng(0), 1))
    assert loaded(path) == held(index)


@pytest.mark.parametrize("name", ["i", "link"])
def test_compact_writes_the_file_that_was_loaded(path, tmp_path, monkeypatch, name):
    """Whatever the working directory, or a link, is by then."""
    (tmp_path / "aside").mkdir()
    aside = shutil.copy(path, tmp_path / "aside" / path.name)
    before = loaded(aside)
    (tmp_path / "link").symlink_to(path)
    monkeypatch.chdir(tmp_path)
    with added_to(name) as index:
        monkeypatch.chdir(tmp_path / "aside")
        (tmp_path / "link").unlink()
        (tmp_path / "link").symlink_to(aside)
        index.compact()
    assert loaded(path) == held(index)
    assert loaded(aside) == before


def test_changes_that_were_not_looked_at_are_not_saved_over(path):
    with added_to(path) as index:
        pass
    with pytest.raises(InUseError, match=r"was loaded without its log, .* whose changes would be lost"):
        WeightedHammingIndex.load(path, ignore_log=True).save(path)
    assert loaded(path) == held(index)


def test_a_load_for_writing_that_is_refused_leaves_no_log(path):
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(FormatError):
        WeightedHammingIndex.load(path, writable=True)
    assert not log_of(path).exists()


def test_a_reader_does_not_mistake_a_first_change_for_a_lost_log(path, monkeypatch):
    check, writers = cghash.index.log._check_log_is_there, []

    def change_meanwhile(*arguments):
        monkeypatch.setattr("cghash.index.log._check_log_is_there", check)
        writers.append(added_to(path))
        check(*arguments)

    log_of(path).unlink(missing_ok=True)
    monkeypatch.setattr("cghash.index.log._check_log_is_there", change_meanwhile)
    assert loaded(path)
    writers[0].close()


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO, errno.EFBIG])
def test_a_disk_that_fails_is_named_by_the_file(path, number, monkeypatch):
    def fail(handle):
        raise OSError(number, os.strerror(number))

    codes = random_codes(np.random.default_rng(0), 2)
    for name, change in {"i.log": lambda: index.add(codes), "i": lambda: index.save(path)}.items():
        with added_to(path) as index, monkeypatch.context() as patch:
            patch.setattr(os, "fsync", fail)
            with pytest.raises(OSError, match=re.escape(os.strerror(number))) as caught:
                change()
            assert Path(caught.value.filename) == path.with_name(name)
