"""The work of a cluster against the same work in one process: efficiency at 1 and 2 workers, bytes moved, memory.

All ways do the same work in turns, each round one after another, so that all meet the machine in the same state.
Efficiency is the single process's time over the workers' time times their number, the median over rounds; that of
processor time (`cpu_efficiency`, driver and scheduler counted) hardly depends on what else the machine does. Clusters
are started, and models loaded, before the clock runs.

    python benchmarks/speed/cluster.py [--works encode,fit] [--items 1600000] [--features 128] [--rounds 5]
"""

from __future__ import annotations

import argparse
import pickle
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from sklearn.base import clone
from threadpoolctl import threadpool_limits

sys.path.insert(0, str(Path(__file__).parents[1]))
from one_set import joined

from cghash import CGHash
from cghash.cluster import Dataset, connected, encode, fit
from cghash.cluster.encoded_parts import encode_part
from cghash.cluster.fitting import _feature_map, _sources
from cghash.cluster.learning.actors import ActorPool
from cghash.cluster.learning.fit_partitions import FitPartition, History, Plan
from cghash.cluster.learning.tree_sums import added_up, leaves
from cghash.cluster.work_folders import MODEL
from cghash.peers import LSH
from cghash.stores import origin_of
from common import write

WORKERS = (1, 2)
MIB = 1 << 20


@dataclass(frozen=True)
class Taken:
    """What one run took."""

    seconds: float
    cpu_seconds: float  # of all processes


def taken(work: Callable[[], object], client: Any = None) -> Taken:
    before = workers_seconds(client) + time.process_time()
    began = time.perf_counter()
    work()
    seconds = time.perf_counter() - began
    return Taken(seconds, workers_seconds(client) + time.process_time() - before)


def workers_seconds(client: Any) -> float:
    return 0.0 if client is None else sum(client.run(time.process_time).values())


def peak_memory() -> int:
    """Bytes; of Linux, as `ru_maxrss` of a process begins with that of the one which started it."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024


def in_rounds(
    single: Callable[[], object], shared: Callable[[Any], object], clients: dict[int, Any], rounds: int
) -> list[dict[str, Any]]:
    """A row for the single process and for each number of workers; the first round warms up and does not count."""
    runs: dict[int, list[Taken]] = {n: [] for n in (0, *clients)}
    for _ in range(rounds + 1):
        runs[0].append(taken(single))
        for n, client in clients.items():
            runs[n].append(taken(lambda client=client: shared(client), client))
    return [row_of(n, runs[0][1:], found[1:]) for n, found in runs.items()]


def row_of(n: int, single: list[Taken], found: list[Taken]) -> dict[str, Any]:
    row: dict[str, Any] = {"workers": n, "seconds": round(statistics.median(t.seconds for t in found), 3)}
    row["cpu_seconds"] = round(statistics.median(t.cpu_seconds for t in found), 3)
    if n:
        both = list(zip(single, found, strict=True))
        row["efficiency"] = round(statistics.median(one.seconds / (n * t.seconds) for one, t in both), 3)
        row["cpu_efficiency"] = round(statistics.median(one.cpu_seconds / t.cpu_seconds for one, t in both), 3)
    return row


def write_items(path: Path, n: int, d: int, rows: int) -> None:
    rng = np.random.default_rng(0)
    schema = pa.schema([("vector", pa.list_(pa.float32(), d))])
    with pq.ParquetWriter(path, schema, use_dictionary=False, compression="none") as writer:
        for first in range(0, n, rows):
            X = rng.normal(size=(min(rows, n - first), d)).astype(np.float32)
            writer.write_table(pa.table([pa.FixedSizeListArray.from_arrays(X.ravel(), d)], schema), row_group_size=rows)


def measure_encode(options: argparse.Namespace, clients: dict[int, Any], folder: Path) -> list[dict[str, Any]]:
    """Parquet in, Parquet out: the single process calls what workers call, partition after partition."""
    rows = -(-options.items // options.partitions)
    write_items(folder / "items.parquet", options.items, options.features, rows)
    data = Dataset.from_parquet(folder / "items.parquet")
    X = data.partitions[0].read().X
    model = LSH(options.bits, random_state=0).fit(X[:1000])
    out = folder / "single"
    out.mkdir()
    model.save(out / MODEL)
    fingerprint = origin_of(model).fingerprint
    calls = [(part, str(out), i, fingerprint, options.rows) for i, part in enumerate(data.partitions)]
    moved = len(pickle.dumps(calls[0])) + len(pickle.dumps(encode_part(*calls[0])))  # a call, and its answer

    def shared(client: Any) -> None:
        shutil.rmtree(folder / "shared", ignore_errors=True)
        encode(data, model, folder / "shared", client, rows=options.rows)

    found = in_rounds(lambda: [encode_part(*call) for call in calls], shared, clients, options.rounds)
    for row in found:
        client = clients.get(row["workers"])
        if client:
            row |= {"bytes_a_partition": moved, "peak_mib": round(max(client.run(peak_memory).values()) / MIB)}
    about = {"items": options.items, "features": options.features, "bits": options.bits}
    about |= {"partitions": options.partitions, "partition_mib": round(X.nbytes / MIB, 1), "rows": options.rows}
    return [{"work": "encode", **about, **row} for row in found]


def measure_fit(options: argparse.Namespace, clients: dict[int, Any], folder: Path) -> list[dict[str, Any]]:
    """A small and a large fit: an evaluation is a call to each worker, which pays where there is much to do."""
    sizes = [int(size) for size in str(options.fit_items).split(",")]
    return [row for n in sizes for row in measure_one_fit(n, options, clients, folder)]


def measure_one_fit(n: int, options: argparse.Namespace, clients: dict[int, Any], folder: Path) -> list[dict[str, Any]]:
    """The same triplets and steps, so the same codes: the single process has one thread, as each worker has."""
    d = options.fit_features
    rng = np.random.default_rng(0)
    y = rng.integers(0, 10, n)
    X = (rng.normal(size=(10, d))[y] * 0.35 + rng.normal(size=(n, d))).astype(np.float32)
    np.save(folder / "items.npy", X)
    data = Dataset.from_arrays(np.load(folder / "items.npy", mmap_mode="r"), y, rows=-(-n // options.fit_partitions))
    model = CGHash(options.fit_bits, method="paper", sampling="classes", C=1e-3, n_jobs=1, random_state=0)
    seed = int(np.random.RandomState(0).randint(2**31 - 1))
    learned = {}

    def single() -> None:
        partitions = [FitPartition(source, Plan(model, seed, True), 1) for source in _sources(data, None, None)]
        learned[0] = clone(model).fit(np.concatenate([s.items() for s in partitions]), triplets=joined(partitions))

    def shared(client: Any) -> None:
        learned[1] = fit(data, model, client)

    found = in_rounds(single, shared, clients, options.fit_rounds)
    assert np.array_equal(learned[0].encode(X), learned[1].encode(X)), "the codes differ"
    records = learned[1].result_.columns
    about = {"items": n, "features": d, "bits": options.fit_bits, "partitions": len(data.partitions)}
    about |= {"pricing_evaluations": sum(one.evaluations_pricing for one in records)}
    about |= {"master_evaluations": sum(one.evaluations_master for one in records)}
    for row in found:
        if row["workers"]:
            row |= moved_by_a_call(clients[row["workers"]], data, model)
    return [{"work": "fit", **about, **row} for row in found]


def moved_by_a_call(client: Any, data: Dataset, model: CGHash) -> dict[str, Any]:
    """Bytes of one evaluation of the pricing problem, as measured and as the cost model has them; its latency."""
    sent: list[int] = []

    class Counting(ActorPool):
        def _call(self, worker: str, call: Any) -> Any:
            future = super()._call(worker, call)
            sent.append(len(pickle.dumps(call)) + len(pickle.dumps(future.result())))
            return future

    pool = Counting(client, Plan(model, 0, True), _sources(data, None, None))
    about = pool.each("about")
    d, n = data.n_features, sum(one["n_triplets"] for one in about)
    feature_map = _feature_map(pool, model, about, len(data))
    pool.change(History(feature_map, n), "begin", feature_map, n)
    pool.change(History(feature_map, n, None, np.zeros(0)), "slopes", np.zeros(0))
    sent.clear()
    pool.total("relaxed", np.zeros((1, d + 1)))
    moved = sum(sent)
    sums = len(added_up(leaves({i: () for i, w in pool._holder.items() if w == pool._holder[0]}), len(about)))
    began = time.perf_counter()
    for _ in range(50):
        ActorPool.total(pool, "counts", np.zeros(0))
    latency = (time.perf_counter() - began) / 50
    pool.dismiss()
    model_bytes = evaluation_bytes(d, len(set(pool._holder.values())), sums)
    return {"bytes_an_evaluation": moved, "bytes_by_the_model": model_bytes, "latency_ms": round(1e3 * latency, 2)}


def evaluation_bytes(d: int, workers: int, sums: int) -> int:
    """v and b out to each worker, and the gain with its gradient back for each sum that it could not add up."""
    return workers * (8 * (d + 1) + sums * 8 * (d + 2) + OVERHEAD)


OVERHEAD = 600  # bytes of a call and its answer beside their numbers
WORKS = {"encode": measure_encode, "fit": measure_fit}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--works", default=",".join(WORKS))
    parser.add_argument("--items", type=int, default=1_600_000)
    parser.add_argument("--features", type=int, default=128)
    parser.add_argument("--bits", type=int, default=64)
    parser.add_argument("--partitions", type=int, default=16)
    parser.add_argument("--rows", type=int, default=16_384, help="items that a worker holds at a time")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--fit-items", default="24000,192000", help="one or more sizes")
    parser.add_argument("--fit-features", type=int, default=512)
    parser.add_argument("--fit-bits", type=int, default=8)
    parser.add_argument("--fit-partitions", type=int, default=8)
    parser.add_argument("--fit-rounds", type=int, default=3)
    parser.add_argument("--output", default="cluster")
    options = parser.parse_args()
    found: list[dict[str, Any]] = []
    for work in options.works.split(","):
        with tempfile.TemporaryDirectory() as folder, ExitStack() as opened, threadpool_limits(1):
            clients = {n: opened.enter_context(connected(n_workers=n)) for n in WORKERS}
            found += WORKS[work](options, clients, Path(folder))
        for row in found:
            print(row, flush=True)
    write(options.output, " ".join(["python", *sys.argv]), found, ("distributed", "pyarrow"))


if __name__ == "__main__":
    main()
