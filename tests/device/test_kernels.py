"""What runs on a GPU, without one: Triton interprets its kernels on CPU tensors, in a process that is told so."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("triton")


def test_the_kernels_do_what_numpy_and_torch_do():
    told = os.environ | {"TRITON_INTERPRET": "1"}
    script = Path(__file__).with_name("triton_kernels.py")
    done = subprocess.run([sys.executable, script], env=told, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    assert "all kernels agree" in done.stdout
