"""Files and folders that are being written: what kills, interrupts and full disks leave."""

import errno
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from cghash import _unfinished
from cghash.storage import write_atomically, written_atomically
from cghash.workspace import Workspace
from cghash.workspace.creation import atomic_folder
from cghash.workspace.worker import work

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows has neither such locks nor such kills")

LEFT = ".file.bin.0123abcd.tmp"  # as of a writer that was killed

WRITE_AND_KILL = """
import os, random, signal, sys, time
from pathlib import Path
from cghash.storage import write_atomically
from cghash.workspace.creation import atomic_folder

def write(folder):
    os.write(ready, b"x")
    while True:
        write_atomically(folder / "a [file].bin", bytes(100_000))
        with atomic_folder(folder / "a folder") as aside:
            (aside / "content").write_bytes(bytes(100_000))
            (aside / "below").mkdir()
        os.rename(folder / "a folder", folder / "old")
        for name in ("old/content", "old/below", "old"):
            (os.remove if name == "old/content" else os.rmdir)(folder / name)

random.seed(0)
folder, left = Path(sys.argv[1]), 0
for _ in range(50):
    waiting, ready = os.pipe()
    if not (child := os.fork()):
        try:
            write(folder)
        finally:
            os._exit(1)
    os.read(waiting, 1)
    time.sleep(random.random() * 0.01)
    os.kill(child, signal.SIGKILL)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    left += any(name.endswith(".tmp") for name in os.listdir(folder))
    os.close(waiting), os.close(ready)
    if (folder / "old").exists() or (folder / "a folder").exists():
        os.system(f"rm -rf '{folder}/old' '{folder}/a folder'")
write_atomically(folder / "a [file].bin", b"whole")
with atomic_folder(folder / "a folder"):
    pass
print(left, sorted(os.listdir(folder)))
"""


def test_the_next_writer_removes_what_50_kills_left(tmp_path):
    done = subprocess.run([sys.executable, "-c", WRITE_AND_KILL, tmp_path], capture_output=True, text=True)
    left, names = done.stdout.strip().split(" ", 1)
    assert int(left) > 3, "kills that left something"
    assert names == "['a [file].bin', 'a folder']"


def test_a_living_writer_of_the_same_file_is_left_alone(tmp_path):
    target = tmp_path / "file.bin"
    with written_atomically(target) as first:
        first.write(b"first")
        write_atomically(target, b"second")
        in_another_process = "import sys; from cghash.storage import write_atomically as w; w(sys.argv[1], b'third')"
        subprocess.run([sys.executable, "-c", in_another_process, target], check=True)
        assert target.read_bytes() == b"third"
    assert target.read_bytes() == b"first"
    assert os.listdir(tmp_path) == ["file.bin"]


def test_what_others_called_alike_is_kept(tmp_path):
    kept = [".file.bin.backup.tmp", ".other.bin.0123abcd.tmp", ".fileXbin.0123abcd.tmp", ".file.bin.0123abcd.tmp.old"]
    for name in [*kept, LEFT]:
        (tmp_path / name).write_bytes(b"")
    write_atomically(tmp_path / "file.bin", b"whole")
    assert sorted(os.listdir(tmp_path)) == sorted([*kept, "file.bin"])


def test_a_link_that_is_called_like_a_leftover_is_not_followed(tmp_path):
    aside = tmp_path / "aside"
    aside.mkdir()
    (aside / "kept").write_bytes(b"")
    (tmp_path / LEFT).symlink_to(aside)
    (tmp_path / ".file.bin.0123abce.tmp").symlink_to(aside / "kept")
    write_atomically(tmp_path / "file.bin", b"whole")
    assert os.listdir(aside) == ["kept"]


def test_a_pipe_that_is_called_like_a_leftover_keeps_nobody_waiting(tmp_path):
    os.mkfifo(tmp_path / LEFT)
    write_atomically(tmp_path / "file.bin", b"whole")
    assert (tmp_path / "file.bin").read_bytes() == b"whole"


def test_a_writer_whose_new_file_was_taken_for_abandoned_makes_another(tmp_path, monkeypatch):
    locked, seen = _unfinished._locked, []

    def taken(path):
        seen.append(path)
        if len(seen) == 1:
            path.unlink()
        return locked(path)

    monkeypatch.setattr(_unfinished, "_locked", taken)
    write_atomically(tmp_path / "file.bin", b"whole")
    assert len(set(seen)) == 2
    assert (tmp_path / "file.bin").read_bytes() == b"whole"


def test_without_locks_files_are_written_and_nothing_is_removed(tmp_path, monkeypatch):
    monkeypatch.setattr("cghash._file_locks._fcntl", None)
    (tmp_path / LEFT).write_bytes(b"")
    write_atomically(tmp_path / "file.bin", b"whole")
    assert sorted(os.listdir(tmp_path)) == [LEFT, "file.bin"]


def test_a_file_system_without_locks_is_written_to(tmp_path, monkeypatch):
    import fcntl

    def refused(*_):
        raise OSError(errno.EOPNOTSUPP, "Operation not supported")

    monkeypatch.setattr(fcntl, "flock", refused)
    (tmp_path / LEFT).write_bytes(b"")
    write_atomically(tmp_path / "file.bin", b"whole")
    assert sorted(os.listdir(tmp_path)) == [LEFT, "file.bin"]


def interrupted_at(step, act):
    """Do something, and be interrupted after so many instructions of ours; whether it came to that."""
    left = [step]

    def trace(frame, event, _):
        if not frame.f_code.co_filename.endswith(("_unfinished.py", "storage.py", "whole.py")):
            return None
        frame.f_trace_opcodes = True
        if event == "opcode":
            left[0] -= 1
            if left[0] == 0:
                sys.settrace(None)
                raise KeyboardInterrupt
        return trace

    sys.settrace(trace)
    try:
        act()
    except KeyboardInterrupt:
        pass
    finally:
        sys.settrace(None)
    return left[0] <= 0


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_an_interrupt_at_any_instruction_leaves_nothing_beside(kind, tmp_path):
    def act():
        if kind == "file":
            write_atomically(tmp_path / "new", b"whole")
        else:
            with atomic_folder(tmp_path / "new") as aside:
                (aside / "content").write_bytes(b"whole")

    step = 1
    while interrupted_at(step, act):
        assert set(os.listdir(tmp_path)) <= {"new"}, step
        if (tmp_path / "new").is_dir():
            (tmp_path / "new" / "content").unlink()
            (tmp_path / "new").rmdir()
        step += 1
    assert step > 50


FULL = """
import resource, sys
import numpy as np
from cghash.storage import written_atomically
resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
try:
    if sys.argv[1] == "folder":
        from cghash.workspace.creation import atomic_folder

        with atomic_folder(sys.argv[2]) as aside:
            (aside / "content").write_bytes(bytes(1 << 21))
    else:
        with written_atomically(sys.argv[2]) as file:
            file.write(bytes(1 << 21)) if sys.argv[1] == "bytes" else np.save(file, np.zeros(1 << 18))
except OSError as error:
    print(error.errno, error.filename)
"""


@pytest.mark.parametrize("kind", ["bytes", "array", "folder"])
def test_a_write_that_does_not_fit_names_the_file_and_leaves_nothing(kind, tmp_path):
    target = tmp_path / "big.bin"
    done = subprocess.run([sys.executable, "-c", FULL, kind, target], capture_output=True, text=True)
    assert done.stdout == f"{errno.EFBIG} {target}\n", done.stderr
    assert os.listdir(tmp_path) == []


def test_an_error_of_the_place_beside_names_the_file(tmp_path, monkeypatch):
    def refused(path, *_, **__):
        raise OSError(errno.EROFS, "Read-only file system", os.fspath(path))

    monkeypatch.setattr("builtins.open", refused)
    with pytest.raises(OSError, match="Read-only") as caught:
        write_atomically(tmp_path / "file.bin", b"")
    assert caught.value.filename == os.fspath(tmp_path / "file.bin")


def test_an_error_of_another_file_keeps_its_name(tmp_path):
    with pytest.raises(FileNotFoundError) as caught, written_atomically(tmp_path / "file.bin"):
        Path(tmp_path / "missing").read_bytes()
    assert caught.value.filename == os.fspath(tmp_path / "missing")


def test_arrays_are_written_as_before(tmp_path):
    with written_atomically(tmp_path / "a.npy") as file:
        np.save(file, np.arange(5))
    assert np.load(tmp_path / "a.npy").tolist() == [0, 1, 2, 3, 4]


def test_a_job_removes_what_jobs_before_it_left(school):
    """As where a kill, or an error of the disk, came while a job's folder was removed."""
    left = school / "checkpoints" / "job-77"
    left.mkdir(parents=True)
    (left / "state").write_bytes(b"the checkpoint of a job that has ended")
    with Workspace.open(school) as workspace:
        assert work(workspace, workspace.records.add_job({"bits": 4}).id) == "done"
    assert os.listdir(school / "checkpoints") == []
