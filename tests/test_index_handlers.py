"""Handlers of signals that use the index they interrupt, forks and ends of programs in the middle of its work."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from cghash import WeightedHammingIndex

pytestmark = pytest.mark.core

CODES = np.random.default_rng(0).integers(0, 256, (60, 4), dtype=np.uint8)
ENDED = 77


@pytest.fixture
def path(tmp_path):
    index = WeightedHammingIndex(32)
    index.add(CODES[:20])
    index.save(tmp_path / "i")
    return tmp_path / "i"


@pytest.fixture
def handled():
    """Sets a handler of a signal for this test."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield signal.signal
    for number, handler in before.items():
        signal.signal(number, handler)


def raising_signal(monkeypatch, number=signal.SIGTERM):
    """The next flush of a file has a signal come first."""
    flush = os.fsync

    def fsync(handle):
        monkeypatch.setattr(os, "fsync", flush)
        signal.raise_signal(number)
        flush(handle)

    monkeypatch.setattr(os, "fsync", fsync)


@pytest.mark.parametrize("use", ["info", "close"])
def test_a_handler_may_use_the_index_whose_change_it_interrupts(path, handled, monkeypatch, use):
    index = WeightedHammingIndex.load(path, writable=True)
    seen = []

    def handle(*signal_and_frame):
        seen.append(len(index))
        getattr(index, use)()

    handled(signal.SIGTERM, handle)
    raising_signal(monkeypatch)
    index.add(CODES[20:23])
    assert seen == [23]  # the change was whole before it was handled
    assert len(WeightedHammingIndex.load(path)) == 23


def test_a_handler_may_search_during_a_save_and_is_refused_changes(path, handled, monkeypatch):
    index = WeightedHammingIndex.load(path, writable=True)
    found = []

    def handle(*signal_and_frame):
        found.append(int(index.search(CODES[4], 1)[1][0]))
        index.add(CODES[:1])

    handled(signal.SIGTERM, handle)
    raising_signal(monkeypatch)
    with pytest.raises(RuntimeError, match="in the middle of another call of this thread"):
        index.save(path)
    assert found == [4]
    index.add(CODES[20:21])
    assert len(index) == len(WeightedHammingIndex.load(path)) == 21


def test_a_filter_may_look_into_the_index_while_a_writer_waits(path):
    index = WeightedHammingIndex.load(path, writable=True)

    class Filter:
        def __array__(self, dtype=None, copy=None):
            writer.append(pool.submit(index.add, CODES[20:21]))
            while writer[0].running() is False:
                pass
            threading.Event().wait(0.1)  # it is waiting for this search by now
            return index.ids[:3]

    writer = []
    with ThreadPoolExecutor(1) as pool:
        assert index.search(CODES[4], 1, filter=Filter())[1][0] in (0, 1, 2)
        writer[0].result(timeout=20)
    assert len(index) == 21


def test_a_search_inside_a_search_leaves_the_building_of_tables_to_it():
    index = WeightedHammingIndex(256, n_jobs=1)
    index.add(np.random.default_rng(0).integers(0, 256, (5000, 32), dtype=np.uint8))
    queries, found = index.reconstruct(range(200)), []

    class Filter:
        def __array__(self, dtype=None, copy=None):
            for _ in range(50):  # so many that tables would pay
                found.append(index.search(queries, 1)[1][:, 0])
            return np.arange(10)

    assert index.search(queries[3], 1, filter=Filter())[1].tolist() == [3]
    assert (np.array(found) == np.arange(200)).all()


def test_a_handler_that_a_handler_sets_stays_set(handled):
    index = WeightedHammingIndex(32)
    index.add(CODES[:20])
    reading, signalled = threading.Event(), threading.Event()

    class Filter:
        def __array__(self, dtype=None, copy=None):
            reading.set()
            signalled.wait(20)
            return np.arange(3)

    def once(*signal_and_frame):
        """As "press Ctrl-C once more to end" does; it comes while `add` waits for the search."""
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        signalled.set()

    handled(signal.SIGTERM, once)
    with ThreadPoolExecutor(2) as pool:
        search = pool.submit(index.search, CODES[4], 1, filter=Filter())
        assert reading.wait(20)
        timer = threading.Timer(0.2, signal.raise_signal, (signal.SIGTERM,))
        timer.start()
        index.add(CODES[20:21])
        search.result(timeout=20)
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_IGN
    assert len(index) == 21


def run(program, *arguments):
    return subprocess.run(
        [sys.executable, "-c", program, *map(str, arguments)], capture_output=True, text=True, timeout=60, check=False
    )


@pytest.mark.lengthy
@pytest.mark.native_only  # in the twins' lock, who waits to write keeps those threads out meanwhile
def test_a_handler_may_wait_for_threads_that_search(path):
    """As programs do that end on SIGTERM."""
    program = """
import os, signal, sys, threading
import numpy as np
from cghash import WeightedHammingIndex
index, stop = WeightedHammingIndex.load(sys.argv[1], writable=True), threading.Event()
code = np.zeros((1, 4), dtype=np.uint8)

def search():
    while not stop.is_set():
        index.search(code, 1)

threads = [threading.Thread(target=search) for _ in range(2)]

def end(*signal_and_frame):
    stop.set()
    for thread in threads:
        thread.join()
    sys.exit(77)

signal.signal(signal.SIGTERM, end)
for thread in threads:
    thread.start()
threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGTERM)).start()
while True:
    index.add(code)
"""
    for _ in range(3):
        done = run(program, path)
        assert done.returncode == ENDED, done.stderr


@pytest.mark.lengthy
def test_a_program_may_end_while_daemon_threads_are_at_work():
    program = """
import threading, time
import numpy as np
from cghash import WeightedHammingIndex
index, codes = WeightedHammingIndex(32), np.zeros((100, 4), dtype=np.uint8)
index.add(codes)

def add():
    while True:
        index.add(codes[:1])

def look():
    while True:
        index.ids
        index.search(codes[:2], 3)

for work in (add, look, look, look):
    threading.Thread(target=work, daemon=True).start()
time.sleep(0.2)
"""
    for _ in range(3):
        done = run(program)
        assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of forks beside threads, which is what is tried
def test_a_process_that_is_forked_during_a_change_heeds_signals(path, handled, monkeypatch):
    index = WeightedHammingIndex.load(path, writable=True)
    inside, may_go, flush = threading.Event(), threading.Event(), os.fsync

    def fsync(handle):
        monkeypatch.setattr(os, "fsync", flush)
        inside.set()
        assert may_go.wait(20)

    def fork():
        assert inside.wait(20)
        child = os.fork()
        if not child:
            try:
                signal.raise_signal(signal.SIGINT)
            except KeyboardInterrupt:
                os._exit(ENDED)
            os._exit(0)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        may_go.set()
        return status

    handled(signal.SIGINT, signal.default_int_handler)
    monkeypatch.setattr(os, "fsync", fsync)
    with ThreadPoolExecutor(1) as pool:
        status = pool.submit(fork)
        index.add(CODES[:1])
        assert status.result(timeout=20) == ENDED
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_where_python_may_set_no_handlers_changes_are_made_all_the_same(monkeypatch):
    """As in a program that embeds Python, and brought it up in another thread."""

    def refuse(*arguments):
        raise ValueError("signal only works in main thread of the main interpreter")

    monkeypatch.setattr("cghash._interrupts.handle", refuse)
    index = WeightedHammingIndex(32)
    index.add(CODES)
    assert len(index) == 60
