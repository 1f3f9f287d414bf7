"""Workers and schedulers of a cluster, killed at random moments of a fit, of encoding and of searches.

A scheduler and two workers run as processes of this machine, and so does the program that uses them. A moment counts
when the kill came while the program worked. What comes out must be the right answer, to the last bit, or a ClusterError
after which the same call, with its checkpoint or finished parts, gives the right answer. What can be found:

wrong   another answer, or another error
stuck   no answer in time

    python benchmarks/reliability/cluster.py [--work fit|encode|search] [--victim worker|scheduler] [--moments 20]
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from distributed import Client
from processes import Process, wait_until
from sklearn.datasets import load_digits

sys.path.insert(0, str(Path(__file__).parents[1]))
from cghash import CGHash, WeightedHammingIndex
from cghash.cluster import Dataset, ShardedIndex, encode, fit
from cghash.exceptions import ClusterError
from cghash.peers import LSH
from cghash.stores import Origin
from cghash.stores.parquet import ParquetStore
from common import write_rows

PATIENCE = 120.0  # seconds after which a program is stuck
N_WORKERS, N_ITEMS, N_BITS, N_SEARCHES = 2, 600, 8, 30
_COMING_UP = 60.0  # seconds that a scheduler or a worker takes at most


class Cluster:
    """A scheduler and its workers, processes of their own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.scheduler: subprocess.Popen[bytes] | None = None
        self.workers: list[subprocess.Popen[bytes]] = []

    def complete(self) -> str:
        """Start what is missing; the scheduler's address."""
        if self.scheduler is None:
            self._end(self.workers)
            self.workers = []
            file = self.folder / f"scheduler-{time.monotonic_ns()}.json"
            here = ("--scheduler-file", str(file), "--host", "127.0.0.1", "--dashboard-address", "127.0.0.1:0")
            self.scheduler = self._process("scheduler", *here, "--port", "0")
            self.address = _address(file)
        while len(self.workers) < N_WORKERS:
            here = ("--nthreads", "1", "--no-nanny", "--host", "127.0.0.1", "--no-dashboard")
            self.workers.append(self._process("worker", self.address, *here))
        return self.address

    def kill(self, victim: str, rng: np.random.Generator) -> None:
        if victim == "scheduler":
            assert self.scheduler is not None
            self._end([self.scheduler])
            self.scheduler = None
        else:
            self._end([self.workers.pop(int(rng.integers(len(self.workers))))])

    def end(self) -> None:
        self._end([*self.workers, *([] if self.scheduler is None else [self.scheduler])])

    def _process(self, *arguments: str) -> subprocess.Popen[bytes]:
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": self.folder}
        return subprocess.Popen([sys.executable, "-m", "dask", *arguments], **quiet)  # type: ignore[call-overload]

    @staticmethod
    def _end(processes: list[subprocess.Popen[bytes]]) -> None:
        for process in processes:
            process.kill()
        for process in processes:
            process.wait()


def _address(file: Path) -> str:
    last = time.monotonic() + _COMING_UP
    while time.monotonic() < last:
        with suppress(OSError, ValueError):
            return str(json.loads(file.read_text())["address"])
        time.sleep(0.05)
    raise SystemExit("the scheduler did not start")


# What programs do with a cluster; each gives a digest of its answer


def fitted(address: str, folder: Path) -> str:
    X, y = load_digits(return_X_y=True)
    data = Dataset.from_arrays(X[:N_ITEMS], y[:N_ITEMS], rows=150)
    model = fit(data, CGHash(N_BITS, random_state=0, checkpoint=folder / "fit.checkpoint"), address)
    return _digest(model.weights_, *(array for _, array in sorted(model.functions_.arrays().items())))


def encoded(address: str, folder: Path) -> str:
    found = encode(Dataset.from_arrays(_items(), rows=20), _model(), folder / "codes", address)
    stores = [ParquetStore.open(found.folder / part.file) for part in found.parts]
    return _digest(*(array for store in stores for array in (store.ids, store.codes)))


def searched(address: str, folder: Path) -> str:
    with ShardedIndex.open(folder / "index", address) as index:
        answers = [index.search(_model().encode(_items()[i : i + 4]), 10) for i in range(N_SEARCHES)]
    return _digest(*(array for answer in answers for array in answer))


def _built(address: str, folder: Path) -> None:
    """An index of six shards, for searches."""
    codes = encode(Dataset.from_arrays(_items(), rows=100), _model(), folder / "codes", address)
    ShardedIndex.build(codes, folder / "index", address, codes=100).close()


def _expected(work: str) -> str:
    """The answer of one machine; of a fit that of a calm cluster."""
    codes = _model().encode(_items())
    if work == "encode":
        starts = range(0, N_ITEMS, 20)
        return _digest(*(array for i in starts for array in (np.arange(i, i + 20), codes[i : i + 20])))
    index = WeightedHammingIndex(N_BITS, Origin(_model().weights_).weights)
    index.add(codes)
    return _digest(*(array for i in range(N_SEARCHES) for array in index.search(codes[i : i + 4], 10)))


WORKS: dict[str, Callable[[str, Path], str]] = {"fit": fitted, "encode": encoded, "search": searched}


def _items() -> np.ndarray:
    return np.random.default_rng(0).standard_normal((N_ITEMS, 12))


def _model() -> LSH:
    return LSH(N_BITS, random_state=0).fit(_items())


def _digest(*arrays: np.ndarray) -> str:
    whole = hashlib.sha256()
    for array in arrays:
        whole.update(f"{array.dtype} {array.shape}".encode() + np.ascontiguousarray(array).tobytes())
    return whole.hexdigest()


def program(work: Callable[[str, Path], Any], address: str, folder: Path) -> Process:
    """A program that uses a cluster, once all of its workers are there."""

    def run(pipe: int) -> None:
        def say(**line: Any) -> None:
            os.write(pipe, json.dumps(line).encode() + b"\n")

        with Client(address, set_as_default=False, timeout=_COMING_UP) as client:
            client.wait_for_workers(N_WORKERS, timeout=_COMING_UP)
        say(begin=time.monotonic())
        try:
            answer = work(address, folder)
            say(end=time.monotonic(), answer=answer)
        except ClusterError as error:
            say(end=time.monotonic(), refused=str(error))
        except BaseException:
            say(end=time.monotonic(), wrong=traceback.format_exc())

    return Process(run)


class Moments:
    """Moments of one work and one victim."""

    def __init__(self, root: Path, work: str, victim: str) -> None:
        self.work, self.victim = work, victim
        self.cluster = Cluster(root)
        self.prepared, self.folder = root / "prepared", root / "moment"
        self.prepared.mkdir()
        if work == "search":
            self._whole(_built, self.prepared)
        self.seconds, self.expected = self._clean()

    def moment(self, rng: np.random.Generator) -> tuple[bool, Counter[str], str, float]:
        """Whether a kill came in time, what was found, an example, and the seconds from the kill to an answer."""
        folder = self._fresh()
        process = program(WORKS[self.work], self.cluster.complete(), folder)
        process.read_until(time.monotonic() + 2 * _COMING_UP, "begin")
        wait_until((process.said("begin") or time.monotonic()) + rng.random() * self.seconds)
        killed = time.monotonic()
        self.cluster.kill(self.victim, rng)
        process.read_until(killed + PATIENCE, "end")
        process.finish()
        found, words = self._judged(process)
        hit = process.said("end") is None or process.said("end") > killed
        took = (process.said("end") or killed + PATIENCE) - killed
        if found["refused"]:
            again = program(WORKS[self.work], self.cluster.complete(), folder)
            again.read_until(time.monotonic() + 2 * _COMING_UP + PATIENCE, "end")
            again.finish()
            second, more = self._judged(again)
            found["wrong"] += second["wrong"] + second["refused"]
            found["stuck"] += second["stuck"]
            words = more and f"once more: {more}"
        return hit, found, words, took

    def _judged(self, process: Process) -> tuple[Counter[str], str]:
        if process.said("end") is None:
            return Counter(stuck=1), "no answer"
        if (words := process.said("wrong")) is not None:
            return Counter(wrong=1), words[-600:]
        if (words := process.said("refused")) is not None:
            return Counter(refused=1), words
        right = process.said("answer") == self.expected
        return (Counter(), "") if right else (Counter(wrong=1), "another answer")

    def _fresh(self) -> Path:
        subprocess.run(["rm", "-rf", self.folder], check=True)
        subprocess.run(["cp", "-r", self.prepared, self.folder], check=True)
        return self.folder

    def _clean(self) -> tuple[float, str]:
        """How long the work takes that nothing hits, and its answer, which is that of one machine."""
        for _ in range(2):  # the first has the workers import everything
            process = self._whole(WORKS[self.work], self._fresh())
        answer = process.said("answer")
        if self.work != "fit" and answer != _expected(self.work):
            raise SystemExit(f"{self.work}: without a kill the answer is not that of one machine")
        return process.said("end") - process.said("begin"), answer

    def _whole(self, work: Callable[[str, Path], Any], folder: Path) -> Process:
        process = program(work, self.cluster.complete(), folder)
        process.read_until(time.monotonic() + 2 * _COMING_UP + PATIENCE, "end")
        process.finish()
        if process.said("end") is None or process.said("wrong") or process.said("refused"):
            raise SystemExit(f"{self.work}: a run without a kill fails: {process.lines}")
        return process


def cell(work: str, victim: str, moments: int, seed: int) -> dict[str, Any]:
    counts: Counter[str] = Counter()
    longest, began = 0.0, time.monotonic()
    with tempfile.TemporaryDirectory(prefix="cghash-cluster-", ignore_cleanup_errors=True) as root:
        hits = Moments(Path(root), work, victim)
        try:
            for number in range(20 * moments):
                hit, found, words, took = hits.moment(np.random.default_rng([seed, number]))
                counts["tried"] += 1
                if hit:
                    counts["moments"] += 1
                    counts += found
                    longest = max(longest, took)
                if found["wrong"] or found["stuck"]:
                    print(f"  [seed {seed}, {number}] {words}", flush=True)
                if counts["moments"] == moments:
                    break
        finally:
            hits.cluster.end()
    row: dict[str, Any] = {"work": work, "victim": victim}
    row |= {name: counts[name] for name in ("moments", "tried", "refused", "wrong", "stuck")}
    return row | {"longest": round(longest, 1), "seconds": round(time.monotonic() - began, 1)}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", action="append", choices=list(WORKS))
    parser.add_argument("--victim", action="append", choices=["worker", "scheduler"])
    parser.add_argument("--moments", type=int, default=20, help="for each work and victim")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--dry", action="store_true", help="do not write benchmarks/results/lost_machines.json")
    asked = parser.parse_args()
    rows = []
    for work in asked.work or WORKS:
        for victim in asked.victim or ["worker", "scheduler"]:
            rows.append(cell(work, victim, asked.moments, asked.seed))
            print(rows[-1], flush=True)
            if not asked.dry:
                write_rows("lost_machines", "python benchmarks/reliability/cluster.py", rows[-1:], ("work", "victim"))
    return 1 if any(row["wrong"] or row["stuck"] for row in rows) else 0


if __name__ == "__main__":
    raise SystemExit(main())
