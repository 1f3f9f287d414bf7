"""An index that is interrupted, or whose disk fails, at every step: memory and disk agree, or it takes no changes."""

from __future__ import annotations

import errno
import itertools
import os
import shutil
import signal
import sys
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import cghash.index
from cghash import WeightedHammingIndex
from cghash.exceptions import InDoubtError, InvalidInputError

OURS = str(Path(cghash.index.__file__).parents[1])
CODES = np.arange(60, dtype=np.uint8).reshape(20, 3) & 15

CHANGES = {
    "add": lambda index: index.add(CODES[:3]),
    "add-ids": lambda index: index.add(CODES[:2], [70, 60]),
    "remove": lambda index: index.remove([3, 5]),
    "update": lambda index: index.update(CODES[:2], [7, 2]),
    "reweight": lambda index: index.reweight(np.arange(20.0)),
    "compact": lambda index: index.compact(),
    "save": lambda index: index.save(index.file["path"]),
    "search": lambda index: index.search(CODES[:2], 3, filter=[2, 4]),
}


def held(index):
    ids = index.ids
    weights = None if index.weights is None else index.weights.tolist()
    return ids.tolist(), index.reconstruct(ids).tolist(), weights, index.next_id


def on_disk(path):
    return held(WeightedHammingIndex.load(path))


@pytest.fixture(autouse=True)
def heeded():
    """Ctrl-C interrupts, also in a shell's background jobs, which ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def fresh(tmp_path):
    """Makes one index file after another: 20 codes, of which the log has the last five, and one removed."""
    index = WeightedHammingIndex(20, np.ones(20))
    index.add(CODES[:15])
    index.save(tmp_path / "whole")
    with WeightedHammingIndex.load(tmp_path / "whole", writable=True) as index:
        index.add(CODES[15:])
        index.remove([1])

    def make():
        for suffix in ("", ".log"):
            shutil.copyfile(tmp_path / f"whole{suffix}", tmp_path / f"i{suffix}")
        return tmp_path / "i"

    return make


class Interrupt:
    """Sends SIGINT when so many lines of the library have been run, of which each counts twice at most."""

    def __init__(self, at):
        self.at = at
        self.n_calls = 0
        self.times = Counter()

    def __enter__(self):
        sys.settrace(self.follow)
        return self

    def __exit__(self, *error):
        sys.settrace(None)

    def follow(self, frame, event, argument):
        name = frame.f_code.co_filename
        if not name.startswith(OURS) or "twins" in name:  # the twins' lock is safe between calls, not between lines
            return None
        if event == "line":
            self.times[name, frame.f_lineno] += 1
            if self.times[name, frame.f_lineno] <= 2:
                self.n_calls += 1
                if self.n_calls == self.at:
                    signal.raise_signal(signal.SIGINT)
        return self.follow


def check_afterwards(index, path, acknowledged, possible):
    """What was acknowledged is there, and what the index takes from now on is there too."""
    assert on_disk(path) in possible
    with ThreadPoolExecutor(1) as pool:  # a lock that nobody gave back would keep it waiting
        try:
            pool.submit(index.add, CODES[:1], [500]).result(timeout=20)
        except InDoubtError:
            index.close()
            assert on_disk(path) in possible
            with WeightedHammingIndex.load(path, writable=True) as index:
                index.add(CODES[:1], [500])
                assert on_disk(path) == held(index)
            return
    assert held(index) == on_disk(path)
    assert set(acknowledged[0]) - {3, 5} <= set(index.ids.tolist())
    index.compact()
    index.add(CODES[1:2])
    assert held(index) == on_disk(path)
    index.close()


def states(fresh, change):
    """Before a change and after it."""
    with WeightedHammingIndex.load(fresh(), writable=True) as index:
        before = held(index)
        change(index)
        return before, held(index)


def n_failed_of(fresh, change, hit, error):
    """Hit a change the first time, the second time, … until it ends before that; how often it failed."""
    before, after = states(fresh, change)
    n_failed = 0
    for at in itertools.count(1):
        path = fresh()
        index = WeightedHammingIndex.load(path, writable=True)
        try:
            with hit(at) as hitting:
                change(index)
        except error:
            n_failed += 1
        check_afterwards(index, path, before, [before, after])
        if hitting.n_calls < at:
            return n_failed


@pytest.mark.parametrize("name", CHANGES)
def test_an_interrupt_at_any_line_loses_nothing(fresh, name, monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda handle: None)  # for speed
    assert n_failed_of(fresh, CHANGES[name], Interrupt, KeyboardInterrupt) > 3


def test_a_second_interrupt_while_the_first_is_dealt_with_stops_changes(fresh, monkeypatch):
    path = fresh()
    index = WeightedHammingIndex.load(path, writable=True)
    before = held(index)

    def interrupt(*arguments):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(type(index._persistence.log), "restart", interrupt)
        patch.setattr("cghash.index.persistence.about_of", interrupt)
        with pytest.raises(KeyboardInterrupt):
            index.compact()
    with pytest.raises(InDoubtError, match="load the index again to go on"):
        index.add(CODES[:1])
    assert held(index) == on_disk(path) == before


@pytest.mark.parametrize("change", [CHANGES[name] for name in ("add", "remove", "update", "reweight")])
def test_a_change_that_was_interrupted_after_it_began_is_whole(fresh, change):
    before, after = states(fresh, change)
    index = WeightedHammingIndex.load(fresh(), writable="memory")
    for at in itertools.count(1):
        interrupt = Interrupt(at)
        try:
            with interrupt:
                change(index)
        except KeyboardInterrupt:
            assert held(index) in (before, after)
            if held(index) == after:
                return
    pytest.fail("no interrupt came after the change had begun")


WRITES = ("fsync", "pwrite", "ftruncate", "replace", "open")


class Failing:
    """The n-th call to the disk fails, and those after it too, if they shall."""

    def __init__(self, at, lasts):
        self.at, self.lasts = at, lasts
        self.n_calls = 0
        self.patch = pytest.MonkeyPatch()

    def __enter__(self):
        for name in WRITES:
            self.patch.setattr(os, name, self.failing(getattr(os, name)))
        return self

    def __exit__(self, *error):
        self.patch.undo()

    def failing(self, call):
        def failing(*arguments, **options):
            self.n_calls += 1
            if self.n_calls == self.at or (self.lasts and self.n_calls > self.at):
                raise OSError(errno.EIO, os.strerror(errno.EIO))
            return call(*arguments, **options)

        return failing


@pytest.mark.parametrize("lasts", [False, True], ids=["once", "from then on"])
@pytest.mark.parametrize("name", [name for name in CHANGES if name != "search"])
def test_an_error_of_the_disk_at_any_call_loses_nothing(fresh, name, lasts):
    assert n_failed_of(fresh, CHANGES[name], lambda at: Failing(at, lasts), OSError) >= 2


def test_a_folder_that_cannot_be_flushed_stops_changes_until_the_index_is_loaded_again(fresh, monkeypatch):
    path = fresh()
    index = WeightedHammingIndex.load(path, writable=True)
    before = held(index)

    def fail(folder):
        raise OSError(errno.EIO, "Input/output error", folder)

    with monkeypatch.context() as patch:
        patch.setattr("cghash.storage.flush_folder", fail)
        patch.setattr("cghash.index.persistence.flush_folder", fail)
        with pytest.raises(OSError, match="Input/output error"):
            index.compact()
    for refused in (lambda: index.add(CODES[:1]), lambda: index.save(path), index.compact):
        with pytest.raises(InDoubtError, match="load the index again to go on"):
            refused()
    index.save(path.with_name("elsewhere"))
    assert held(index) == on_disk(path) == on_disk(path.with_name("elsewhere")) == before
    index.close()
    with WeightedHammingIndex.load(path, writable=True) as index:
        index.add(CODES[:1])
        assert held(index) == on_disk(path)


# Forks


needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


def in_a_child(work):
    """What a forked process found: work's own answer, or its error's type and words."""
    read, write = os.pipe()
    child = os.fork()
    if not child:
        try:
            answer = str(work())
        except BaseException as error:
            answer = f"{type(error).__name__}: {error}"
        os.write(write, answer.encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as file:
        answer = file.read().decode()
    os.waitpid(child, 0)
    return answer


@needs_fork
def test_a_forked_process_may_search_a_writable_index_and_not_change_it(fresh):
    path = fresh()
    index = WeightedHammingIndex.load(path, writable=True)
    for change in (lambda: index.add(CODES[:1]), index.compact):
        assert "opened for writing before this process was forked" in in_a_child(change)
    assert "open for writing elsewhere" in in_a_child(lambda: index.save(path))
    assert in_a_child(lambda: index.search(CODES[4], 1)[1]) == "[4]"
    assert in_a_child(index.close) == "None"
    index.add(CODES[:1])
    assert held(index) == on_disk(path)


@needs_fork
def test_a_forked_process_does_not_keep_the_file_from_other_writers(fresh):
    path = fresh()
    index = WeightedHammingIndex.load(path, writable=True)
    read, write = os.pipe()
    child = os.fork()
    if not child:
        os.close(write)
        os.read(read, 1)  # until the end of the test
        os._exit(0)
    try:
        index.close()
        with WeightedHammingIndex.load(path, writable=True) as second:
            second.add(CODES[:1])
    finally:
        os.close(write)
        os.waitpid(child, 0)
        os.close(read)


@needs_fork
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of forks beside threads, which is what is tried
def test_an_index_that_another_thread_was_changing_takes_no_changes_in_a_fork():
    index, inside, may_leave = WeightedHammingIndex(20), threading.Event(), threading.Event()
    index.add(CODES)

    def stay():
        inside.set()
        assert may_leave.wait(timeout=30)

    with ThreadPoolExecutor(1) as pool:
        holder = pool.submit(index._lock.write, stay)
        assert inside.wait(timeout=10)
        answer = in_a_child(lambda: index.add(CODES[:1]))
        may_leave.set()
        holder.result(timeout=10)
    assert "another thread was changing it when this process was forked" in answer
    index.add(CODES[:1])


# Indexes that are read


@pytest.mark.parametrize("name", [name for name in CHANGES if name not in ("search", "save")])
def test_a_change_to_an_index_that_is_only_read_is_refused(fresh, name):
    path = fresh()
    index = WeightedHammingIndex.load(path)
    before = held(index)
    with pytest.raises(InvalidInputError, match=r"loaded to be read only, .* lost: .*writable=True"):
        CHANGES[name](index)
    assert held(index) == before


def test_changes_in_memory_must_be_asked_for(fresh):
    path = fresh()
    before = on_disk(path)
    index = WeightedHammingIndex.load(path, writable="memory")
    for name, change in CHANGES.items():
        if name != "save":
            change(index)
    assert held(index) != before
    assert on_disk(path) == before
    for wrong in ("yes", None, 2):
        with pytest.raises(InvalidInputError, match="writable must be True, False or 'memory'"):
            WeightedHammingIndex.load(path, writable=wrong)
