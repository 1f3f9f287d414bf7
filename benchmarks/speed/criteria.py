"""How long the criteria of many queries take, over their floor and beside sorting each row in NumPy.

Codes of 10 classes, drawn at random around a centre of each; mean average precision, share in the top 50, 3-NN error,
NDCG and the precision-recall curve of every query. The floor is computing every distance and looking at it once, by the
same kernel, with nothing to order. For vectors it is the matrix product. *NumPy* is the kernel's twin, which sorts; it
is timed on some of the queries, and its values must be the same.

    python benchmarks/speed/criteria.py [--queries 10000] [--items 60000] [--bits 64] [--twin 100]
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parent))
from fit import memory_bytes

from cghash._kernels import n_threads, rank_codes, twins
from cghash.criteria import ranking, retrieve_by_codes, retrieve_by_vectors
from common import alone, write

T = TypeVar("T")

WEIGHTS: dict[str, Callable[[np.random.Generator, int], np.ndarray]] = {
    "distinct": lambda rng, n: rng.random(n) + 0.5,
    "plain": lambda rng, n: np.ones(n),
    "halving every 8 bits": lambda rng, n: 0.5 ** (np.arange(n) / 8),
    "one outweighs all": lambda rng, n: np.where(np.arange(n) == 0, 1e12, rng.random(n)),
}


def timed(work: Callable[[], T]) -> tuple[T, dict[str, float]]:
    """What the work gives; seconds that went by, and seconds of all cores in this process."""
    wall, processor = time.perf_counter(), time.process_time()
    found = work()
    return found, {
        "seconds": round(time.perf_counter() - wall, 2),
        "processor_seconds": round(time.process_time() - processor, 2),
    }


def memory_now() -> int:
    """Bytes that this process holds; the most that it held starts anew from here."""
    Path("/proc/self/clear_refs").write_text("5")
    return memory_bytes("VmRSS")


def problem(q: int, n: int, n_bits: int) -> tuple[np.ndarray, ...]:
    """Query bits, database bits, and the labels of both."""
    rng = np.random.default_rng(0)
    chance = 0.2 + 0.6 * rng.random((10, n_bits))
    labels = [rng.integers(0, 10, m) for m in (q, n)]
    return *(np.less(rng.random((len(y), n_bits)), chance[y]).astype(np.uint8) for y in labels), *labels


def floor_of(query_bits: np.ndarray, bits: np.ndarray, w: np.ndarray) -> dict[str, float]:
    """Every distance, looked at once."""
    codes, none = ranking.CodeDistances.of(query_bits, bits, w), np.zeros((len(query_bits), 1), np.uint8)
    task = np.zeros(len(bits), np.int32), none, np.zeros(0, np.int64), 0, n_threads(None)
    return timed(lambda: rank_codes(codes.queries, codes.items, codes.weights, *task))[1]


def by_codes(weights: str, q: int, n: int, n_bits: int, n_twin: int) -> dict[str, object]:
    query_bits, bits, own, labels = problem(q, n, n_bits)
    w = WEIGHTS[weights](np.random.default_rng(1), n_bits)
    before = memory_now()
    found, took = timed(lambda: retrieve_by_codes(query_bits, bits, w, own, labels))
    memory = memory_bytes("VmHWM") - before
    floor = floor_of(query_bits, bits, w)
    some = slice(0, n_twin)
    here = retrieve_by_codes(query_bits[some], bits, w, own[some], labels)
    ranking.rank_codes = twins.rank_codes  # type: ignore[attr-defined]  # not exported
    there, sorting = timed(lambda: retrieve_by_codes(query_bits[some], bits, w, own[some], labels))
    assert np.isclose(here.map, there.map, rtol=1e-10)
    assert np.isclose(here.knn_error, there.knn_error, rtol=1e-10)
    return {
        "distances": f"codes, {weights}",
        "queries": q,
        "items": n,
        "size": n_bits,
        **took,
        "floor_processor_seconds": floor["processor_seconds"],
        "over_floor": round(took["processor_seconds"] / floor["processor_seconds"], 2),
        "numpy_processor_seconds": round(sorting["processor_seconds"] * q / n_twin, 1),
        "peak_MB": round(memory / 1e6),
        "map": round(found.map, 4),
    }


def by_vectors(q: int, n: int, d: int) -> dict[str, object]:
    query_bits, bits, own, labels = problem(q, n, d)
    Q, X = query_bits + 0.1 * own[:, None], bits + 0.1 * labels[:, None]
    before = memory_now()
    found, took = timed(lambda: retrieve_by_vectors(Q, X, own, labels))
    memory = memory_bytes("VmHWM") - before
    step = 256
    _, floor = timed(lambda: [np.max(Q[i : i + step] @ X.T) for i in range(0, q, step)])
    return {
        "distances": "vectors",
        "queries": q,
        "items": n,
        "size": d,
        **took,
        "floor_processor_seconds": floor["processor_seconds"],
        "over_floor": round(took["processor_seconds"] / floor["processor_seconds"], 2),
        "peak_MB": round(memory / 1e6),
        "map": round(found.map, 4),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--queries", type=int, default=10_000)
    parser.add_argument("--items", type=int, default=60_000)
    parser.add_argument("--bits", type=int, default=64)
    parser.add_argument("--twin", type=int, default=100, help="queries of the comparison with NumPy")
    options = parser.parse_args()
    sizes = options.queries, options.items, options.bits
    rows = []
    for work, *arguments in [(by_codes, name, *sizes, options.twin) for name in WEIGHTS] + [(by_vectors, *sizes)]:
        rows.append(alone(work, *arguments))
        print(rows[-1], flush=True)
    write("criteria", " ".join(["python", *sys.argv]), rows)


if __name__ == "__main__":
    main()
