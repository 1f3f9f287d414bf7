"""A disk that fails on purpose: disk.c, compiled, preloaded into this process, and told what is to fail."""

from __future__ import annotations

import ctypes
import errno
import mmap
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

CONTROL = "CGHASH_FAULTS"  # names the shared file in the environment
ONCE, ONWARD, SHORT = range(3)
WRITES, FLUSHES, NAMES, REMOVALS, CLOSES = 1, 2, 4, 8, 16
FAULTS = {  # error number, and the calls that can give it
    "io-error": (errno.EIO, WRITES | FLUSHES | NAMES | REMOVALS | CLOSES),
    "full-disk": (errno.ENOSPC, WRITES | FLUSHES | NAMES),
}


class _Control(ctypes.Structure):
    _fields_ = [
        *((name, ctypes.c_int32) for name in ("armed", "code", "mode", "calls")),
        *((name, ctypes.c_int64) for name in ("seen", "at", "failed")),
        ("folder", ctypes.c_char * 1024),
        ("what", ctypes.c_char * 1024),
    ]


def started_with_disk() -> None:
    """Start this program again, once, with the failing disk preloaded."""
    if CONTROL in os.environ:
        return
    folder = Path(tempfile.mkdtemp(prefix="cghash-disk-"))
    folder.chmod(0o755)  # a server of another user is preloaded too
    library, control = folder / "disk.so", folder / "control"
    source = Path(__file__).with_name("disk.c")
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        raise SystemExit("a C compiler is needed, got none: install cc")
    subprocess.run([compiler, "-O2", "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
    control.write_bytes(bytes(ctypes.sizeof(_Control)))
    control.chmod(0o666)
    preloaded = " ".join(filter(None, [os.fspath(library), os.environ.get("LD_PRELOAD")]))
    environment = os.environ | {CONTROL: os.fspath(control), "LD_PRELOAD": preloaded}
    try:
        code = subprocess.call([sys.executable, *sys.argv], env=environment)
    finally:
        shutil.rmtree(folder)
    raise SystemExit(code)


class Disk:
    """What fails from now on, in this process and in those that it forks or starts."""

    def __init__(self) -> None:
        with open(os.environ[CONTROL], "r+b") as file:
            self._memory = mmap.mmap(file.fileno(), ctypes.sizeof(_Control))
        self._control = _Control.from_buffer(self._memory)
        self.disarm()

    def choose(self, folder: Path, fault: str | None, at: int = 0, mode: int = ONCE) -> None:
        """Let the call of number `at` below a folder fail once `arm` is called; 0 only counts."""
        code, calls = FAULTS.get(fault or "", (0, 0))
        control = self._control
        control.folder, control.what = os.fsencode(os.fspath(folder) + "/"), b""
        control.code, control.calls, control.mode = code, calls, mode
        control.seen = control.failed = 0
        control.at = at

    def arm(self) -> None:
        self._control.armed = 1

    def disarm(self) -> None:
        self._control.armed = 0

    @property
    def seen(self) -> int:
        """Calls that could have failed."""
        return int(self._control.seen)

    @property
    def failed(self) -> int:
        return int(self._control.failed)

    @property
    def what(self) -> str:
        """The first call that failed, and on what."""
        return os.fsdecode(bytes(self._control.what))
