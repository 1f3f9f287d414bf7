"""How much memory a fit and encoding take besides the items, by the items' type.

Each in a process of its own: items drawn at random, 10 classes, one thread; what the process holds at its peak, less
what it held before.

    python benchmarks/speed/item_memory.py [--items 40000] [--features 512]
"""

from __future__ import annotations

import argparse
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))
from common import alone, write

TYPES = ("float64", "float32", "float16", "int8")


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def peak_of(work: Callable[[], object]) -> int:
    """Bytes that work takes at its peak, looked at every 2 ms."""
    before = highest = resident_bytes()
    done = threading.Event()

    def watch() -> None:
        nonlocal highest
        while not done.wait(0.002):
            highest = max(highest, resident_bytes())

    watcher = threading.Thread(target=watch)
    watcher.start()
    work()
    done.set()
    watcher.join()
    return highest - before


def measured(what: str, dtype: str, n: int, d: int) -> dict[str, object]:
    from cghash import CGHash

    rng = np.random.default_rng(0)
    X = np.empty((n, d), dtype)
    for first in range(0, n, 4000):
        X[first : first + 4000] = 10 * rng.normal(size=X[first : first + 4000].shape)
    y = rng.integers(0, 10, n)
    model = CGHash(32, n_jobs=1, random_state=0).fit(X[:1000], y[:1000])
    again = CGHash(4, n_jobs=1, random_state=0)
    peak = peak_of((lambda: again.fit(X, y)) if what == "fit" else (lambda: model.encode(X)))
    sizes = {"items_MB": round(X.nbytes / 1e6), "more_MB": round(peak / 1e6)}
    return {"what": what, "type": dtype, "items": n, "features": d, **sizes}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--items", type=int, default=40_000)
    parser.add_argument("--features", type=int, default=512)
    options = parser.parse_args()
    rows = []
    for what in ("fit", "encode"):
        for dtype in TYPES:
            rows.append(alone(measured, what, dtype, options.items, options.features))
            print(rows[-1], flush=True)
    write("item_memory", " ".join(["python", *sys.argv]), rows)


if __name__ == "__main__":
    main()
