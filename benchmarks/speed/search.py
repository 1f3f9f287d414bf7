"""Exact weighted-Hamming search beside FAISS and beside reading the codes once, all in one run.

For each kind of codes, number and length: milliseconds a query of a batch and of single queries, k = 10 and 100, one
thread and all; our answers are compared with float64 brute force first. FAISS's exact answer is its 4-bit fast scan
over √w-scaled centroids whose k·factor best are ranked again, with the least power of two that finds them all.

    python benchmarks/speed/search.py [--codes uniform,exponential,learned] [--sizes 1e6,1e7] [--bits 32,64,128]

A run of a part prints its tables, and writes them only where --output says; --join keeps the other rows there.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # FAISS's threads would go on spinning into the next method's turn
import faiss
import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parent))
from exactness import brute_force, recall
from rivals import FULL, GRAPHS, FastScan, Rival
from search_codes import KINDS, CodeSet, make
from timing import in_turns, reader, seconds_of

import search_tables
from cghash import WeightedHammingIndex
from cghash._kernels import n_threads
from common import RESULTS, write

Row = dict[str, Any]
Search = Callable[[np.ndarray, int], Any]

OURS, SCAN, FASTSCAN = search_tables.OURS, search_tables.SCAN, search_tables.FASTSCAN
BATCH = 100
LARGEST_FOR_RIVALS = 20_000_000  # codes
LARGEST_FACTOR = 4096
BRUTE_FORCE_BYTES = 3e9  # to look up: decides how many answers are checked by brute force


# Building


def build(data: CodeSet) -> tuple[dict[str, WeightedHammingIndex], Row]:
    """Our index with tables and without, and what building takes."""
    lean = WeightedHammingIndex(data.bits, data.weights, prune=False)
    adding = seconds_of(lambda: lean.add(data.codes))
    index = WeightedHammingIndex(data.bits, data.weights)
    adding = min(adding, seconds_of(lambda: index.add(data.codes)))
    preparing = seconds_of(index.prepare)
    about = index.info()
    return {OURS: index, SCAN: lean}, about_codes(data) | {
        "million_codes_a_second": round(len(data) / adding / 1e6, 2),
        "prepare_seconds_a_million": round(preparing / len(data) * 1e6, 3) if about["prune_bytes"] else None,
        "memory_scan": round(lean.info()["memory"] / data.codes.nbytes, 3),
        "memory": round(about["memory"] / data.codes.nbytes, 3),
        "instruction_set": about["instruction_set"],
    }


def about_codes(data: CodeSet) -> Row:
    return {"codes": data.kind, "n": len(data), "bits": data.bits}


def check(data: CodeSet, indexes: dict[str, WeightedHammingIndex], k: int) -> np.ndarray:
    """Stop if an answer differs from brute force; the true distances (BATCH, k)."""
    queries = data.queries[:BATCH]
    answers = {name: index.search(queries, k) for name, index in indexes.items()}
    distances, ids = answers[OURS]
    for other in answers.values():
        if not (np.array_equal(other[0], distances) and np.array_equal(other[1], ids)):
            raise SystemExit(f"{about_codes(data)}, k = {k}: answers of scan and pruning differ")
    for i in range(min(BATCH, max(2, int(BRUTE_FORCE_BYTES / data.codes.nbytes / 8)), 20)):
        true = brute_force(data, queries[i], k)
        for index in indexes.values():
            single = index.search(queries[i], k)
            for answer in (single, (distances[i], ids[i])):
                if not (np.array_equal(answer[0], true[0]) and np.array_equal(answer[1], true[1])):
                    raise SystemExit(f"{about_codes(data)}, k = {k}, query {i}: the answer is not that of brute force")
    return distances


def raise_factor(rival: FastScan, data: CodeSet, k: int, truth: np.ndarray) -> None:
    """Let FAISS rank again as many as it needs to find all of the true k nearest."""
    queries = data.queries[:BATCH]
    rival.factor = 1
    while recall(data, queries, rival.search(rival.prepare(queries), k), truth) < 1:
        if 2 * rival.factor * k > len(data) or rival.factor >= LARGEST_FACTOR:
            print(f"{about_codes(data)}, k = {k}: FAISS is not exact with factor {rival.factor}", file=sys.stderr)
            return
        rival.factor *= 2


# Timing


def searches(data: CodeSet, indexes: dict[str, WeightedHammingIndex], rivals: dict[str, Rival]) -> dict[str, Any]:
    """For each method, its search and its queries."""
    ours = {name: (index.search, data.queries) for name, index in indexes.items()}
    return ours | {name: (rival.search, rival.prepare(data.queries)) for name, rival in rivals.items()}


def singles(search: Search, queries: np.ndarray, k: int, cap: float) -> tuple[Callable[[], object], int]:
    """A run of single queries that takes about a fifth of the cap, and how many it has."""
    search(queries[:1], k)
    count = max(1, min(len(queries), int(cap / 5 / seconds_of(lambda: search(queries[:1], k)))))
    return lambda: [search(queries[i : i + 1], k) for i in range(count)], count


def measure(methods: dict[str, Any], readers: dict[str, Any], k: int, cap: float) -> dict[str, dict[str, float]]:
    """Milliseconds a query of each method, in a batch and alone; readers take part among the single queries."""
    batch = in_turns({name: lambda s=s, q=q[:BATCH]: s(q, k) for name, (s, q) in methods.items()}, cap)
    works = {name: singles(s, q, k, cap) for name, (s, q) in (methods | readers).items()}
    alone = in_turns({name: work for name, (work, _) in works.items()}, cap)
    return {
        "batch": {name: seconds / BATCH * 1e3 for name, seconds in batch.items()},
        "single": {name: seconds / works[name][1] * 1e3 for name, seconds in alone.items()},
    }


def set_threads(count: int, indexes: dict[str, WeightedHammingIndex]) -> None:
    faiss.omp_set_num_threads(count)
    for index in indexes.values():
        index.n_jobs = count


def cells(data: CodeSet, indexes: dict[str, WeightedHammingIndex], options: argparse.Namespace) -> list[Row]:
    """One row for each k, number of threads, and batch or single."""
    kinds = FULL if len(data) <= LARGEST_FOR_RIVALS else {}
    rivals: dict[str, Rival] = {name: make_rival(data) for name, make_rival in kinds.items()}
    rows = []
    for k in options.k:
        truth = check(data, indexes, k)
        if FASTSCAN in rivals:
            raise_factor(rivals[FASTSCAN], data, k, truth)
        taking_part = rivals if k == options.k[0] else {n: r for n, r in rivals.items() if n == FASTSCAN}
        about = about_codes(data) | {"k": k} | quality(data, taking_part, k, truth)
        for threads in options.threads:
            rows += timed(data, indexes, taking_part, about | {"threads": threads}, options.cap)
    return rows


def timed(data: CodeSet, indexes: Any, rivals: dict[str, Rival], about: Row, cap: float) -> list[Row]:
    set_threads(about["threads"], indexes)
    readers = reading(data, about["threads"])
    found = measure(searches(data, indexes, rivals), readers, about["k"], cap)
    limit = min(found["single"].pop(name) for name in readers)
    return [about | {"queries": how, "read_ms": rounded(limit), "ms": rounded(ms)} for how, ms in found.items()]


def reading(data: CodeSet, threads: int) -> dict[str, Any]:
    """Reading the codes once, with one thread and more, in the form of a search."""
    readers = {f"reading, {t}": reader(data.codes, t) for t in sorted({1, threads})}
    return {name: (lambda _queries, _k, read=read: read(), data.queries) for name, read in readers.items()}


def quality(data: CodeSet, rivals: dict[str, Rival], k: int, truth: np.ndarray) -> Row:
    """Recall of each rival, and the factor with which the fast scan is exact."""
    queries = data.queries[:BATCH]
    shares = {name: recall(data, queries, r.search(r.prepare(queries), k), truth) for name, r in rivals.items()}
    factor = {"factor": rivals[FASTSCAN].factor} if FASTSCAN in rivals else {}
    return {"recall": rounded(shares)} | factor


def rounded(values: Any) -> Any:
    if isinstance(values, dict):
        return {name: rounded(value) for name, value in values.items()}
    return float(f"{values:.4g}")


def graphs(data: CodeSet, n: int, options: argparse.Namespace) -> list[Row]:
    """Indexes that take long to build, over the first n codes."""
    part = replace(data, codes=data.codes[:n])
    k, threads = options.k[0], options.threads[-1]
    indexes, _ = build(part)
    truth = check(part, indexes, k)
    set_threads(threads, indexes)
    rivals: dict[str, Rival] = {}
    building = {}
    for name, kind in GRAPHS.items():
        building[name] = rounded(seconds_of(lambda name=name, kind=kind: rivals.update({name: kind(part)})))
    about = about_codes(part) | {"k": k, "threads": threads, "build_seconds": building}
    return timed(part, indexes, rivals, about | quality(part, rivals, k, truth), options.cap)


# Other instruction sets


def other_isa(isa: str, data: CodeSet, options: argparse.Namespace) -> list[Row]:
    """The batch in another process, in which we and FAISS are held to an instruction set."""
    here = [sys.executable, __file__, "--isa-child", "--codes", data.kind, "--sizes", str(len(data))]
    here += ["--bits", str(data.bits), "--threads", str(options.threads[-1]), "--cap", str(options.cap)]
    environment = os.environ | {"CGHASH_ISA": isa, "FAISS_OPT_LEVEL": isa.upper()}
    done = subprocess.run(here, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    return [json.loads(done.stdout) | {"isa": isa}]


def isa_child(options: argparse.Namespace) -> Row:
    data = make(options.codes[0], options.sizes[0], options.bits[0])
    indexes, about = build(data)
    truth = check(data, indexes, 10)
    rival = FastScan(data)
    raise_factor(rival, data, 10, truth)
    set_threads(options.threads[0], indexes)
    methods = searches(data, indexes, {FASTSCAN: rival})
    found = in_turns({name: lambda s=s, q=q[:BATCH]: s(q, 10) for name, (s, q) in methods.items()}, options.cap)
    ms = {name: seconds / BATCH * 1e3 for name, seconds in found.items()}
    about = about_codes(data) | {"k": 10, "queries": "batch", "instruction_set": about["instruction_set"]}
    return about | {"threads": options.threads[0], "ms": rounded(ms)}


# The whole


def one_set(data: CodeSet, options: argparse.Namespace) -> list[Row]:
    set_threads(options.threads[-1], {})
    indexes, building = build(data)
    rows = [building, *cells(data, indexes, options)]
    del indexes
    if options.graphs and len(data) == min(options.sizes):
        rows += graphs(data, min(len(data), options.graphs), options)
    if options.isa and data.kind == "uniform" and len(data) <= LARGEST_FOR_RIVALS:
        rows += other_isa(options.isa, data, options)
    return rows


def arguments() -> argparse.Namespace:
    def several(kind: Callable[[str], Any]) -> Callable[[str], list[Any]]:
        return lambda text: [kind(word) for word in text.split(",")]

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--codes", type=several(str), default=list(KINDS))
    parser.add_argument("--sizes", type=several(lambda word: int(float(word))), default=[10**6, 10**7])
    parser.add_argument("--bits", type=several(int), default=[32, 64, 128])
    parser.add_argument("--k", type=several(int), default=[10, 100])
    parser.add_argument("--threads", type=several(int), default=sorted({1, n_threads(None)}))
    parser.add_argument("--cap", type=float, default=1.5, help="seconds of each method in each cell, after 3 runs")
    parser.add_argument(
        "--graphs", type=int, default=200_000, help="codes of what takes long to build; 0: leave it out"
    )
    parser.add_argument("--isa", default="avx2", help="measure the batch on this instruction set too; '' does not")
    parser.add_argument("--quick", action="store_true", help="k = 10, all threads, no graphs, no other instruction set")
    parser.add_argument("--output", help="name in benchmarks/results; default: search, for the whole alone")
    parser.add_argument("--join", action="store_true", help="keep rows of other codes, sizes and bits in --output")
    parser.add_argument("--isa-child", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.quick:
        options.k, options.threads, options.graphs, options.isa = options.k[:1], options.threads[-1:], 0, ""
    if len(sys.argv) == 1:
        options.output = "search"
    return options


def kept(options: argparse.Namespace) -> list[Row]:
    """Rows of the output that this run does not measure again."""
    path = RESULTS / f"{options.output}.json"
    if not options.join or not path.is_file():
        return []
    mine = {(kind, n, bits) for kind in options.codes for n in options.sizes for bits in options.bits}
    mine |= {(kind, options.graphs, bits) for kind in options.codes for bits in options.bits}
    rows = json.loads(path.read_text())["rows"]
    return [row for row in rows if (row["codes"], row["n"], row["bits"]) not in mine]


def main() -> None:
    options = arguments()
    if options.isa_child:
        print(json.dumps(isa_child(options)))
        return
    rows = kept(options)
    for kind in options.codes:
        for n in options.sizes:
            for bits in options.bits:
                new = one_set(make(kind, n, bits), options)
                print(search_tables.everything(new), flush=True)
                rows += new
                if options.output:  # after each set, so that a run that is stopped leaves what it measured
                    write(options.output, " ".join(["python", *sys.argv]), rows, ("faiss-cpu",))
    print(search_tables.goals(rows))


if __name__ == "__main__":
    main()
