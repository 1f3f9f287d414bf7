"""The server under load: searches a second, their latencies, memory, the same while a fit runs, and time to a question.

A workspace of a million items (vectors of clusters, 64 bits) is made once in out/serve; `cghash serve` runs as people
run it, and a second process keeps 32 connections busy on loopback, each sending the next search when the last is
answered. All of it shares the machine's cores. `floor` is the same load on `/healthz`, which does nothing: what the
server's HTTP alone costs. Both are measured in turns of ten seconds, as the machine may be busy with something else.

    python benchmarks/speed/serve.py [--items 1000000] [--seconds 60] [--connections 32]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import re
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))
from common import write

ROOT = Path(__file__).parents[2]
DIMENSION, CLUSTERS, BITS = 32, 1000, 64
TURN = 10.0  # seconds
GOALS = {"searches a second": 1500, "p99 ms": 50, "p99 ms while a fit runs": 250, "question ms": 50}


def workspace(n: int) -> Path:
    """A workspace of n clustered vectors, with a first model; made once."""
    from cghash.workspace import create_workspace
    from cghash.workspace.fitting import first_model

    folder = ROOT / "out" / "serve" / f"{n}.ws"
    if folder.exists():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(CLUSTERS, DIMENSION)).astype(np.float32)
    X = centres[rng.integers(0, CLUSTERS, n)] + 0.4 * rng.normal(size=(n, DIMENSION)).astype(np.float32)
    began = time.perf_counter()
    with create_workspace(folder, X.astype(np.float32)) as made:
        created = time.perf_counter()
        first_model(made, BITS)
    print(f"{n} items: workspace {created - began:.1f} s, first model {time.perf_counter() - created:.1f} s")
    return folder


class Server:
    """`cghash serve` in a process of its own."""

    def __init__(self, folder: Path) -> None:
        command = [sys.executable, "-m", "cghash", "serve", str(folder), "--port", "0"]
        began = time.perf_counter()
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        assert self.process.stderr is not None
        for line in self.process.stderr:
            if found := re.search(r"http://127\.0\.0\.1:(\d+)", line):
                self.port = int(found[1])
                break
        self.get("/healthz")
        self.seconds_to_start = time.perf_counter() - began

    def get(self, path: str) -> Any:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}") as answer:
            return json.load(answer)

    def post(self, path: str, body: dict[str, Any]) -> Any:
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}{path}", json.dumps(body).encode(), {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request) as answer:
            return json.load(answer)

    def memory(self) -> float:
        """MB that the process holds."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+)", status)[1]) / 1024  # type: ignore[index]

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(20)


class Connection(asyncio.Protocol):
    """Sends a request, waits for the whole answer, sends the next."""

    def __init__(self, load: Load) -> None:
        self.load, self.buffer, self.wanted = load, b"", 0

    def connection_made(self, transport: Any) -> None:
        self.transport = transport
        self.ask()

    def ask(self) -> None:
        self.buffer, self.wanted, self.sent = b"", 0, time.perf_counter()
        self.transport.write(self.load.request())

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        if not self.wanted:
            head, found, _ = self.buffer.partition(b"\r\n\r\n")
            if not found:
                return
            length = re.search(rb"content-length: (\d+)", head, re.I)
            self.wanted = len(head) + 4 + int(length[1])  # type: ignore[index]
        if len(self.buffer) >= self.wanted:
            now = time.perf_counter()
            self.load.done(self.sent, now, self.buffer.startswith(b"HTTP/1.1 200"))
            if now < self.load.until:
                self.ask()
            else:
                self.transport.close()
                self.load.closed()

    def connection_lost(self, error: Exception | None) -> None:
        if time.perf_counter() < self.load.until:
            self.load.errors += 1
            self.load.closed()


class Load:
    """Busy connections for some seconds; latencies in ms, and what went wrong."""

    def __init__(self, port: int, path: str, n_items: int, connections: int, seconds: float) -> None:
        self.port, self.path, self.n_items = port, path, n_items
        self.connections, self.seconds = connections, seconds
        self.latencies: list[float] = []
        self.errors, self.open = 0, connections
        self.rng = np.random.default_rng(1)

    def request(self) -> bytes:
        path = self.path.format(row=int(self.rng.integers(self.n_items)))
        return f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode()

    def done(self, sent: float, now: float, right: bool) -> None:
        self.latencies.append(1000 * (now - sent))
        self.errors += not right

    def closed(self) -> None:
        self.open -= 1
        if not self.open:
            self.over.set()

    async def run(self) -> None:
        self.over = asyncio.Event()
        self.until = time.perf_counter() + self.seconds
        loop = asyncio.get_running_loop()
        for _ in range(self.connections):
            await loop.create_connection(lambda: Connection(self), "127.0.0.1", self.port)
        await self.over.wait()


def _load(send: Any, *arguments: Any) -> None:
    import uvloop

    load = Load(*arguments)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(load.run())
    send.send((load.latencies, load.errors))


class Run(NamedTuple):
    """One run of a load."""

    latencies: list[float]  # ms
    errors: int
    memory: list[float]  # MB of the server, each second
    seconds: float


def under_load(server: Server, path: str, n: int, connections: int, seconds: float) -> Run:
    """One run of the load, in a process of its own, while the server's memory is watched."""
    receive, send = multiprocessing.Pipe(duplex=False)
    worker = multiprocessing.get_context("spawn").Process(
        target=_load, args=(send, server.port, path, n, connections, seconds)
    )
    worker.start()
    memory = []
    while worker.is_alive() and not receive.poll(1.0):
        memory.append(server.memory())
    latencies, errors = receive.recv()
    worker.join()
    return Run(latencies, errors, memory, seconds)


def summary(runs: list[Run]) -> dict[str, Any]:
    """What all runs of a load come to."""
    ms = np.sort(np.concatenate([run.latencies for run in runs]))
    memory = [megabytes for run in runs for megabytes in run.memory]
    quarter = max(1, len(memory) // 4)
    return {
        "requests": len(ms),
        "requests a second": round(len(ms) / sum(run.seconds for run in runs)),
        **{f"p{p} ms": round(float(np.percentile(ms, p)), 2) for p in (50, 95, 99)},
        "slowest ms": round(float(ms[-1]), 1),
        "errors": sum(run.errors for run in runs),
        "memory MB, first quarter": round(float(np.mean(memory[:quarter])), 1),
        "memory MB, last quarter": round(float(np.mean(memory[-quarter:])), 1),
    }


def in_turns(server: Server, paths: dict[str, str], n: int, connections: int, seconds: float) -> dict[str, Any]:
    """Loads of several addresses, each for so many seconds in all."""
    runs: dict[str, list[Run]] = {name: [] for name in paths}
    turns = max(1, round(seconds / TURN))
    for _ in range(turns):
        for name, path in paths.items():
            runs[name].append(under_load(server, path, n, connections, seconds / turns))
    return {name: summary(some) for name, some in runs.items()}


def teach(server: Server, n: int, count: int) -> None:
    """Answers to random questions, so that there is something to learn."""
    rng = np.random.default_rng(2)
    for i in range(count):
        anchor, left, right = rng.choice(n, 3, replace=False).tolist()
        body = {"key": f"bench-{n}-{i}", "anchor": anchor, "left": left, "right": right, "choice": "left"}
        server.post("/api/answers", body)


def question_times(server: Server, count: int = 200) -> dict[str, Any]:
    """How long one question takes, asked one after the other."""
    ms = []
    for _ in range(count):
        began = time.perf_counter()
        server.get("/api/questions?count=1")
        ms.append(1000 * (time.perf_counter() - began))
    return {f"p{p} ms": round(float(np.percentile(ms, p)), 1) for p in (50, 95, 99)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--items", type=int, default=1_000_000)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--connections", type=int, default=32)
    parser.add_argument("--answers", type=int, default=1000, help="that the fit learns from")
    options = parser.parse_args()
    n, busy = options.items, (options.connections, options.seconds)
    rows: dict[str, Any] = {"items": n, "bits": BITS, "connections": options.connections, "seconds": options.seconds}
    server = Server(workspace(n))
    try:
        rows["seconds to start"] = round(server.seconds_to_start, 2)
        search = "/api/search?item={row}&k=10"
        under_load(server, search, n, options.connections, 3.0)
        rows |= in_turns(server, {"floor": "/healthz", "search": search}, n, *busy)
        print(json.dumps(rows, indent=1))
        teach(server, n, options.answers)
        server.post("/api/jobs", {"bits": 256})
        rows["search while a fit runs"] = summary([under_load(server, search, n, busy[0], options.seconds / 2)])
        job = server.get("/api/jobs")["jobs"][0]
        rows["search while a fit runs"]["the fit then"] = f"{job['state']}, bit {job['progress'].get('bit')}"
        server.post(f"/api/jobs/{job['id']}/cancel", {})
    finally:
        server.stop()
    server = Server(workspace(100_000))
    try:
        rows["question of 100 000 items"] = question_times(server)
    finally:
        server.stop()
    rows["goals"] = GOALS
    print(json.dumps(rows, indent=1))
    write("serve", "python benchmarks/speed/serve.py", rows, ("fastapi", "uvicorn"))


if __name__ == "__main__":
    main()
