"""The work of a cluster against the same work in one process: efficiency at 1 and 2 workers, bytes moved, memory.

All ways do the same work in turns, each round one after another, so that all meet the machine in the same state.
Efficiency is the single process's time over the workers' time times their number, the median over rounds; that of
processor time (`cpu_efficiency`, driver and scheduler counted) hardly depends on what else the machine does. Clusters
are started, and models loaded, before the clock runs.

    python benchmarks/speed/cluster.py [--works encode] [--items 1600000] [--features 128] [--rounds 5]
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
from threadpoolctl import threadpool_limits

sys.path.insert(0, str(Path(__file__).parents[1]))
from cghash.cluster import Dataset, connected, encode
from cghash.cluster.encoding import encode_part
from cghash.cluster.parts import MODEL
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


WORKS = {"encode": measure_encode}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--works", default=",".join(WORKS))
    parser.add_argument("--items", type=int, default=1_600_000)
    parser.add_argument("--features", type=int, default=128)
    parser.add_argument("--bits", type=int, default=64)
    parser.add_argument("--partitions", type=int, default=16)
    parser.add_argument("--rows", type=int, default=16_384, help="items that a worker holds at a time")
    parser.add_argument("--rounds", type=int, default=5)
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
