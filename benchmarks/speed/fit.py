"""How long a fit takes, against its floor and against a plain NumPy/SciPy version of the same steps.

MNIST, the paper's settings (linear functions, squared hinge, l1, K = 10 nearest). The floor of a fit is
what a straight way takes at least:

    the neighbour graph's matrix product (one triangle, at the speed that NumPy reaches here)
  + pricing evaluations × two passes over the live rows (at the speed of NumPy's matrix-vector product)
  + master evaluations × the bytes of the pairs' bits (at the speed of reading memory).

    python benchmarks/speed/fit.py [--items 7500,15000,30000,60000] [--bits 64] [--yardstick 7500]
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parent))
import plain

from cghash import CGHash
from common import alone, load, write

SETTINGS = {"method": "paper", "sampling": "neighbors", "n_neighbors": 10, "C": 0.01, "random_state": 0}


def best_of(work: Callable[[], object], times: int = 5) -> float:
    """Seconds of the quickest of several runs."""
    seconds = []
    for _ in range(times):
        began = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - began)
    return min(seconds)


def speeds(X: np.ndarray) -> dict[str, float]:
    """What this machine reaches now: products in flop/s, matrix-vector products and plain reading in bytes/s."""
    A, B = X[:2048], X[-2048:]
    product = 2.0 * len(A) * len(B) * X.shape[1] / best_of(lambda: A @ B.T)
    v, r = np.ones(X.shape[1], np.float32), np.ones(len(X), np.float32)
    passes = 2.0 * X.nbytes / best_of(lambda: (X @ v, X.T @ r))
    words = X.view(np.uint64).ravel()
    return {"product": product, "passes": passes, "reading": words.nbytes / best_of(lambda: words.max())}


def floor_of(model: CGHash, n: int, d: int, speed: dict[str, float]) -> dict[str, float]:
    """Seconds that the three terms of the floor take at best."""
    history, result = model.result_.history, model.result_
    pair_bytes = result.n_pairs / 8 * np.arange(1, model.n_bits_ + 1)  # of the bits, column after column
    return {
        "graph": n * (n + 1) * d / speed["product"],
        "pricing": float(history["bytes_pricing"].sum()) / speed["passes"],
        "master": float(history["evaluations_master"] @ pair_bytes) / speed["reading"],
    }


def measure(X: np.ndarray, y: np.ndarray, n_bits: int, loss: str) -> dict[str, object]:
    """One fit: seconds of each phase, its floor, the peak of memory and the growth over bits."""
    before = memory_bytes("VmRSS")
    began = time.perf_counter()
    model = CGHash(n_bits, loss=loss, **SETTINGS).fit(X, y)
    total = time.perf_counter() - began
    memory = memory_bytes("VmHWM") - before
    history, result = model.result_.history, model.result_
    phases = {
        "graph": result.seconds_triplets,
        "pricing": float(history["seconds_pricing"].sum()),
        "master": float(history["seconds_master"].sum()),
    }
    phases["rest"] = total - sum(phases.values())
    floor = floor_of(model, *X.shape, speeds(X))  # type: ignore[call-arg]
    learning = np.cumsum(history["seconds_pricing"] + history["seconds_master"])
    steps = [m for m in (16, 32, 64, 128) if m <= model.n_bits_]
    return {
        "items": len(X),
        "loss": loss,
        "bits": model.n_bits_,
        "triplets": result.n_triplets,
        "seconds": round(total, 2),
        "phases": {k: round(v, 2) for k, v in phases.items()},
        "floor": {k: round(v, 2) for k, v in floor.items()},
        "over_floor": round(total / sum(floor.values()), 2),
        "peak_above_X_MB": round(memory / 1e6),
        "learning_seconds_at_bits": {m: round(float(learning[m - 1]), 2) for m in steps},
        "evaluations": [int(history["evaluations_pricing"].sum()), int(history["evaluations_master"].sum())],
        "satisfied": round(result.columns[-1].satisfied, 4),
    }


def yardstick(X: np.ndarray, y: np.ndarray, n_bits: int) -> dict[str, object]:
    """Ours and the plain version, one after the other, on the same items."""
    ours = best_of(lambda: CGHash(n_bits, **SETTINGS).fit(X, y), 1)
    began = time.perf_counter()
    satisfied = plain.fit(X.astype(np.float64), y, n_bits, SETTINGS["n_neighbors"], SETTINGS["C"])
    theirs = time.perf_counter() - began
    return {"items": len(X), "bits": n_bits, "seconds": round(ours, 2), "plain_seconds": round(theirs, 2),
            "times_faster": round(theirs / ours, 1), "plain_satisfied": round(satisfied, 4)}  # fmt: skip


def memory_bytes(name: str) -> int:
    """A line of this process's status: VmRSS is what it holds now, VmHWM the most that it ever held."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(name))


def _measure(n: int, n_bits: int, loss: str) -> dict[str, object]:
    X, y = load("mnist")
    return measure(np.ascontiguousarray(X[:n]), y[:n], n_bits, loss)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--items", default="7500,15000,30000,60000")
    parser.add_argument("--bits", type=int, default=64)
    parser.add_argument("--long", type=int, default=128, help="bits of the run that shows growth over bits")
    parser.add_argument("--yardstick", type=int, default=7500, help="items of the comparison; 0 leaves it out")
    parser.add_argument("--loss", default="squared_hinge")
    parser.add_argument("--output", default="fit")
    options = parser.parse_args()
    rows: list[dict[str, object]] = []
    sizes = [int(n) for n in options.items.split(",")]
    for n, bits in [(n, options.bits) for n in sizes] + ([(15000, options.long)] if options.long else []):
        rows.append(alone(_measure, n, bits, options.loss))
        print(rows[-1], flush=True)
    if options.yardstick:
        X, y = load("mnist")
        rows.append(yardstick(X[: options.yardstick], y[: options.yardstick], 32))
        print(rows[-1], flush=True)
    write(options.output, " ".join(["python", *sys.argv]), rows)


if __name__ == "__main__":
    main()
