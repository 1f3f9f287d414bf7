"""Use an installed cghash as its users would, with nothing but what it depends on: no checkout, no compiler, no extras.

`python packaging/try_wheel.py` prints which kernels served. `make dist` runs it on several kinds of processor, and
cibuildwheel on every wheel.
"""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

import cghash
from cghash import _kernels


def learn_encode_search(folder: Path) -> float:
    """Share of new digits whose nearest code is of the same digit, by a model and an index that went through files."""
    X, y = load_digits(return_X_y=True)
    model = cghash.CGHash(n_bits=32, random_state=0).fit(X[:500], y[:500])
    model.save(folder / "digits.cghash")
    model.build_index(X[:500]).save(folder / "digits.index")

    loaded = cghash.load(folder / "digits.cghash")
    codes = loaded.encode(X[500:700])
    assert codes.shape == (200, 4)
    assert (codes == model.encode(X[500:700])).all()
    distances, ids = cghash.WeightedHammingIndex.load(folder / "digits.index").search(codes, k=3)
    assert (np.diff(distances) >= 0).all()
    return float((y[ids[:, 0]] == y[500:700]).mean())


def command(*arguments: str) -> subprocess.CompletedProcess[str]:
    run = [sys.executable, "-m", "cghash", *arguments]
    return subprocess.run(run, capture_output=True, text=True, encoding="utf-8", check=False)


def main() -> None:
    assert "site-packages" in Path(cghash.__file__).parts, f"not the installed package: {cghash.__file__}"
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:  # a mapped file stays on Windows
        share = learn_encode_search(Path(folder))  # one in ten by chance
        assert share > 0.7, f"only {share:.0%} of the nearest codes are of the same digit"
        assert command("info", f"{folder}/digits.cghash").returncode == 0
    assert "encode" in command("--help").stdout
    assert command("--version").stdout == f"cghash {cghash.__version__}\n"
    if importlib.util.find_spec("matplotlib") is None:
        demo = command("demo")
        assert demo.returncode == 1, demo
        assert 'pip install "cghash[lab]"' in demo.stderr, demo.stderr
        assert len(demo.stderr.splitlines()) == 1, demo.stderr
    print(f"cghash {cghash.__version__}, {_kernels.instruction_set()} kernels: {share:.0%} of nearest codes agree")


if __name__ == "__main__":
    main()
