"""SharedLock, native and twin: readers share, a writer is alone, who waits comes in, interrupts leave nothing held."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

pytestmark = pytest.mark.core


@pytest.fixture
def lock(kernels):
    return kernels.SharedLock()


@pytest.fixture
def restless():
    """Threads give way to each other as often as may be."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.fixture(autouse=True)
def heeded():
    """Ctrl-C interrupts, also in a shell's background jobs, which ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def interrupt():
    signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)


def is_free(lock):
    """Whether a writer comes in soon."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(lock.write, lambda: True).result(timeout=10)


@contextmanager
def another_inside(lock, side):
    """A thread that is inside until `leave` is set; and a pool for more threads."""
    inside, leave = threading.Event(), threading.Event()

    def stay():
        inside.set()
        assert leave.wait(timeout=30)

    with ThreadPoolExecutor(3) as pool:
        holder = pool.submit(getattr(lock, side), stay)
        assert inside.wait(timeout=10)
        try:
            yield pool, leave
        finally:
            leave.set()
        holder.result(timeout=10)
    assert is_free(lock)


def until(condition):
    end = time.monotonic() + 10
    while not condition() and time.monotonic() < end:
        time.sleep(0.001)
    assert condition()


def test_arguments_and_answers_pass_through(lock):
    assert lock.read(divmod, 17, 5) == lock.write(divmod, 17, 5) == (3, 2)


def test_no_reader_sees_a_writer_half_way(restless, lock):
    shared, n_rounds = {"first": 0, "second": 0}, 300

    def increase():
        for key in shared:
            shared[key] += 1

    def read():
        return {lock.read(lambda: shared["first"] - shared["second"]) for _ in range(10 * n_rounds)}

    def write():
        for _ in range(n_rounds):
            lock.write(increase)

    with ThreadPoolExecutor(6) as pool:
        readers = [pool.submit(read) for _ in range(4)]
        writers = [pool.submit(write) for _ in range(2)]
        for writer in writers:
            writer.result(timeout=60)
        assert set().union(*(reader.result(timeout=60) for reader in readers)) == {0}
    assert shared == {"first": 2 * n_rounds, "second": 2 * n_rounds}


def test_readers_share(lock):
    both = threading.Barrier(2, timeout=10)  # breaks unless the other is inside too
    with ThreadPoolExecutor(2) as pool:
        for reader in [pool.submit(lock.read, both.wait) for _ in range(2)]:
            reader.result(timeout=20)


def test_a_new_reader_waits_behind_a_writer_that_waits(lock):
    order = []
    with another_inside(lock, "read") as (pool, leave):
        writer = pool.submit(lock.write, order.append, "writer")
        time.sleep(0.05)
        reader = pool.submit(lock.read, order.append, "reader")
        time.sleep(0.05)
        assert order == []
        leave.set()
        for work in (writer, reader):
            work.result(timeout=10)
    assert order == ["writer", "reader"]


@pytest.mark.parametrize("side", ["read", "write"])
def test_an_error_inside_lets_go(lock, side):
    def fail():
        raise ValueError("inside")

    with pytest.raises(ValueError, match="inside"):
        getattr(lock, side)(fail)
    assert is_free(lock)


@pytest.mark.parametrize("side", ["read", "write"])
def test_who_waits_can_be_interrupted_and_leaves_the_door_open(lock, side):
    with another_inside(lock, "write"):
        threading.Timer(0.1, interrupt).start()
        with pytest.raises(KeyboardInterrupt):
            getattr(lock, side)(lambda: None)


@pytest.mark.lengthy
@pytest.mark.parametrize("side", ["read", "write"])
def test_no_interrupt_leaves_it_held(lock, side):
    stop, is_armed, n_interrupts = threading.Event(), False, 0

    def handle(*signal_and_frame):
        nonlocal is_armed
        if is_armed:
            is_armed = False
            raise KeyboardInterrupt

    def interrupt_often():
        while not stop.is_set():
            time.sleep(0.0005)
            interrupt()

    signal.signal(signal.SIGINT, handle)
    thread = threading.Thread(target=interrupt_often)
    thread.start()
    take = getattr(lock, side)
    end = time.monotonic() + 1
    while time.monotonic() < end:
        try:
            is_armed = True
            while True:
                take(int)
        except KeyboardInterrupt:
            n_interrupts += 1
    stop.set()
    thread.join()
    assert n_interrupts > 20
    assert is_free(lock)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of forks beside threads, which is what is tried
@pytest.mark.parametrize("side", ["read", "write"])
def test_a_forked_process_lets_go_of_what_other_threads_held(lock, side):
    with another_inside(lock, side):
        child = os.fork()
        if not child:
            was_written = lock.reset()
            os._exit(0 if was_written == (side == "write") and lock.write(int) == 0 else 1)
        until(lambda: os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT))
        assert os.waitpid(child, 0) == (child, 0)


@pytest.mark.parametrize("side", ["read", "write"])
def test_a_thread_that_is_inside_may_read_and_is_refused_to_write(lock, side):
    def inside():
        assert lock.is_mine()
        with pytest.raises(RuntimeError, match="in the middle of another call of this thread"):
            lock.write(int)
        return lock.read(divmod, 17, 5)

    assert getattr(lock, side)(inside) == (3, 2)
    assert not lock.is_mine()
    assert is_free(lock)


def test_a_thread_that_is_inside_may_read_while_a_writer_waits(lock):
    with ThreadPoolExecutor(1) as pool:

        def inside():
            writer = pool.submit(lock.write, int)
            time.sleep(0.1)
            return lock.read(lambda: writer)

        assert lock.read(inside).result(timeout=10) == 0


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("g++"), reason="needs a compiler")
@pytest.mark.parametrize("broken", [False, True])
def test_the_native_lock_is_right_without_that_of_python(tmp_path, broken):
    """Under ThreadSanitizer, which sees what nothing orders; without the mutex it does see something."""
    here = Path(__file__).parent
    for name in ("native/shared_lock.hpp", "tests/native/shared_lock.cpp"):
        text = (here.parent / name).read_text()
        if broken:
            text = text.replace("const std::lock_guard guard(mutex_);", "")
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text(text)
    program = tmp_path / "program"
    command = ["g++", "-std=c++20", "-O1", "-fsanitize=thread", "-pthread", name, "-o", program]
    built = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    if built.returncode and "tsan" in built.stderr:
        pytest.skip("needs ThreadSanitizer")
    assert built.returncode == 0, built.stderr
    options = os.environ | {"TSAN_OPTIONS": "halt_on_error=1"}
    done = subprocess.run([program], env=options, capture_output=True, text=True, timeout=60, check=False)
    if "unexpected memory mapping" in done.stderr:
        pytest.skip("ThreadSanitizer does not run under this kernel")
    assert (done.returncode != 0) == broken, done.stdout + done.stderr
    assert ("data race" in done.stderr) == broken
