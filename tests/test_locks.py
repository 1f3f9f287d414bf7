"""ReadWriteLock: readers share, a writer is alone, and who waits comes in."""

from __future__ import annotations

import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from cghash.index.locks import ReadWriteLock


@pytest.fixture
def restless():
    """Threads give way to each other as often as may be."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def test_no_reader_sees_a_writer_half_way(restless):
    lock, shared, n_rounds = ReadWriteLock(), {"first": 0, "second": 0}, 300

    def read():
        seen = []
        for _ in range(10 * n_rounds):
            with lock.reading:
                seen.append(shared["first"] - shared["second"])
        return set(seen)

    def write():
        for _ in range(n_rounds):
            with lock.writing:
                for key in shared:
                    shared[key] += 1

    with ThreadPoolExecutor(6) as pool:
        readers = [pool.submit(read) for _ in range(4)]
        writers = [pool.submit(write) for _ in range(2)]
        for writer in writers:
            writer.result(timeout=60)
        assert set().union(*(reader.result(timeout=60) for reader in readers)) == {0}
    assert shared == {"first": 2 * n_rounds, "second": 2 * n_rounds}


def test_readers_share():
    lock, both = ReadWriteLock(), threading.Barrier(2, timeout=10)

    def read():
        with lock.reading:
            both.wait()  # breaks unless the other is inside too

    with ThreadPoolExecutor(2) as pool:
        for reader in [pool.submit(read) for _ in range(2)]:
            reader.result(timeout=20)


def test_a_new_reader_waits_behind_a_writer_that_waits():
    lock, order, is_coming = ReadWriteLock(), [], threading.Event()

    def write():
        with lock.writing:
            order.append("writer")

    def read():
        is_coming.set()
        with lock.reading:
            order.append("reader")

    with ThreadPoolExecutor(2) as pool:
        with lock.reading:
            writer = pool.submit(write)
            end = time.monotonic() + 10
            while not lock._is_closed and time.monotonic() < end:
                time.sleep(0.001)
            reader = pool.submit(read)
            assert is_coming.wait(timeout=10)
            time.sleep(0.05)
            assert order == []
        writer.result(timeout=10)
        reader.result(timeout=10)
    assert order == ["writer", "reader"]


def test_an_interrupted_writer_leaves_the_door_open(monkeypatch):
    lock = ReadWriteLock()

    def interrupted():
        raise KeyboardInterrupt

    monkeypatch.setattr(lock._has_left, "wait", interrupted)
    with lock.reading, pytest.raises(KeyboardInterrupt), lock.writing:
        pass
    with lock.writing:
        pass
    with lock.reading:
        assert len(lock._inside) == 1


def test_an_error_inside_lets_go():
    lock = ReadWriteLock()
    for side in (lock.reading, lock.writing):
        with pytest.raises(ValueError, match="inside"), side:
            raise ValueError("inside")
    with lock.writing:
        assert not lock._inside
