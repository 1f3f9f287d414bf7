"""Under which circumstances a result was measured: versions, commit, processor, memory."""

from __future__ import annotations

import hashlib
import os
import platform
import subprocess
import sys
from contextlib import suppress
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

__all__ = ["circumstances", "code_digest", "n_cores", "peak_memory", "reset_peak_memory"]

PACKAGES = ("cghash", "numpy", "scipy", "scikit-learn", "faiss-cpu")


@cache
def circumstances() -> dict[str, Any]:
    """Versions, the commit where the package is a checkout, and the processor.

    Examples
    --------
    >>> sorted(circumstances())
    ['code', 'commit', 'cores', 'cpu', 'versions']
    """
    versions = {"python": platform.python_version()} | {name: _version(name) for name in PACKAGES}
    known = {name: number for name, number in versions.items() if number}
    return {"versions": known, "commit": _commit(), "code": code_digest(), "cpu": processor(), "cores": n_cores()}


def code_digest() -> str:
    """A digest of the sources that decide a result: the method, the peers, the criteria and how they are run."""
    package = Path(__file__).parents[2]
    parts = ("*.py", "criteria/*.py", "learning/**/*.py", "peers/*.py", "_kernels/**/*.py", "lab/experiments/*.py")
    files = sorted({file for part in parts for file in package.glob(part)})
    total = hashlib.sha256()
    for file in files:
        total.update(file.relative_to(package).as_posix().encode() + file.read_bytes())
    return total.hexdigest()[:12]


def n_cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def reset_peak_memory() -> None:
    """Begin to count the peak anew, where the system can."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def peak_memory() -> float:
    """The most memory that this process held since the last reset, in MB."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
        return round(next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024, 1)
    except (OSError, StopIteration):
        return _most_ever()


def _most_ever() -> float:
    try:
        import resource
    except ImportError:  # Windows
        return float("nan")
    unit = 2**20 if sys.platform == "darwin" else 2**10
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit, 1)


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _commit() -> str | None:
    """The commit of the checkout that this file is in, with a + where files differ from it."""
    here = Path(__file__).parent
    try:
        said = [
            subprocess.run(["git", *words], cwd=here, capture_output=True, text=True, check=True, timeout=10).stdout
            for words in (("rev-parse", "--short", "HEAD"), ("status", "--porcelain", "--", str(here.parents[1])))
        ]
    except (OSError, subprocess.SubprocessError):
        return None
    return said[0].strip() + ("+" if said[1].strip() else "")


def processor() -> str:
    """The processor by its name."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.split(":")[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor()
