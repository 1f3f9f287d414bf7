"""A fixed sample of what `make fuzz` runs: every format, the same mutations each time, under a limit of memory."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

FUZZ = Path(__file__).parent / "fuzz"


def _homes():
    spec = importlib.util.spec_from_file_location("fuzz_formats", FUZZ / "formats.py")
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(FUZZ))
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(FUZZ))
    return module.HOMES


HOMES = _homes()


@pytest.mark.skipif(sys.platform != "linux", reason="the limit of memory is Linux's")
@pytest.mark.parametrize("home", sorted(set(HOMES.values())))
def test_damaged_files_end_in_usable_content_or_errors_of_ours(home, tmp_path):
    names = [word for name, its in HOMES.items() if its == home for word in ("--format", name)]
    command = [sys.executable, str(FUZZ), *names, "--inputs", "0"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-8000:]
    assert done.stdout.count(" 0 failures") == len(names) // 2
