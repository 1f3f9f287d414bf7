"""Learning, encoding and search on a GPU beside the CPU, beside torch written the obvious way, and beside a floor.

    python benchmarks/speed/gpu.py [--tasks single,batch,encode,fit] [--codes 2^30] [--items 1e7] [--seeds 1]
                                    [--output gpu]

`fit` learns 64 bits from MNIST (in the folder CGHASH_DATA) in the paper's settings, as gpu_fit.py says.

Answers to five queries, alone and in a batch, are compared with those of the CPU index first. The floor of a task is
the larger of its bytes over the rate at which the device reads memory, and its operations over that of a large product
of 8-bit numbers, both measured in the same run.
The obvious torch and the CPU index get fewer codes, items or queries where they would take minutes; their times are
those of the part then, scaled up, and the row says what the part was.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import sys
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parent))
from gpu_fit import fit
from timing import seconds_of

from cghash import WeightedHammingIndex
from cghash._kernels import instruction_set
from cghash.device.encoder import LinearEncoder
from cghash.lab.experiments.machine import processor
from common import RESULTS, commit

Row = dict[str, Any]
BITS, K, BATCH, FEATURES = 64, 10, 1000, 768
TORCH_CODES = 1 << 26  # of the obvious way
CPU_BATCH, CPU_ITEMS = 8, 200_000


def gpu_ms(work: Callable[[], object], rounds: int = 11) -> float:
    """Median milliseconds from the call to the end of all that it began."""

    def timed() -> float:
        torch.cuda.synchronize()
        return seconds_of(lambda: (work(), torch.cuda.synchronize()))

    timed(), timed()
    return statistics.median(timed() for _ in range(rounds)) * 1e3


# Floors


def rates() -> Row:
    """Bytes and 8-bit operations a second, as a plain reduction and torch's own products reach them."""
    words = torch.randint(-(2**62), 2**62, (1 << 30,), device="cuda")
    read = words.nbytes / gpu_ms(words.amax)
    del words
    a = torch.randint(-8, 8, (8192, 8192), dtype=torch.int8, device="cuda")
    b, one = a.float().to(torch.float8_e4m3fn), torch.ones((), device="cuda")
    products = [lambda: torch._int_mm(a, a.T), lambda: torch._scaled_mm(b, b.T, one, one, out_dtype=torch.bfloat16)]
    fastest = 2 * 8192**3 / min(gpu_ms(product) for product in products)
    return {"read_tb_s": round(read / 1e9, 3), "tops_of_8_bits": round(fastest / 1e9, 1)}


def floor_ms(found: Row, n_bytes: float, operations: float = 0.0) -> float:
    return max(n_bytes / found["read_tb_s"], operations / found["tops_of_8_bits"]) / 1e9


# Search


class Codes:
    """One set of codes on the device, in host memory and in our index."""

    def __init__(self, n: int) -> None:
        self.n = n
        self.packed = torch.randint(-(2**62), 2**62, (n,), device="cuda").view(torch.uint8).view(n, BITS // 8)
        rng = np.random.default_rng(0)
        self.weights = rng.uniform(0.5, 1.5, BITS)
        self.queries = rng.integers(0, 256, (BATCH, BITS // 8), dtype=np.uint8)
        self.index = WeightedHammingIndex(BITS, self.weights, device="cuda")
        self.adding = seconds_of(lambda: self.index.add(self.packed))
        self.plain = WeightedHammingIndex(BITS, self.weights, prune=False)

    def fill_plain(self) -> None:
        for first in range(0, self.n if not len(self.plain) else 0, 1 << 26):
            self.plain.add(self.packed[first : first + (1 << 26)].cpu().numpy())


def obvious_single(codes: Codes, query: np.ndarray) -> Any:
    """A table of 256 weights for each byte, looked up and added; the k least."""
    differing = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1, bitorder="little")
    tables = torch.from_numpy((codes.weights.reshape(-1, 8) @ differing.T).astype(np.float32)).cuda()
    part = codes.packed[:TORCH_CODES] ^ torch.from_numpy(query).cuda()
    distances = sum(tables[b][part[:, b].int()] for b in range(BITS // 8))
    return distances.topk(K, largest=False)


def obvious_batch(codes: Codes, queries: np.ndarray) -> None:
    """Bits times signed weights in half precision, some codes at a time; the k least of each part."""
    w = torch.from_numpy(codes.weights).half().cuda()
    q = torch.from_numpy(np.unpackbits(queries, axis=1, bitorder="little")).half().cuda()
    signed, offset = w * (1 - 2 * q), (q @ w)[:, None]
    shifts = torch.arange(8, dtype=torch.uint8, device="cuda")
    for part in codes.packed[:TORCH_CODES].split(1 << 20):
        bits = (part[:, :, None] >> shifts & 1).view(len(part), -1).half()
        (signed @ bits.T + offset).topk(K, largest=False)


def check(codes: Codes, n_queries: int) -> None:
    """Stop where answers differ: of a batch, of single queries, and of the CPU index."""
    distances, ids = codes.index.search(codes.queries, K)
    for i in range(n_queries):
        alone = codes.index.search(codes.queries[i], K)
        plain = codes.plain.search(codes.queries[i], K)
        for answer in (alone, plain):
            if not (np.array_equal(answer[0], distances[i]) and np.array_equal(answer[1], ids[i])):
                raise SystemExit(f"query {i}: answers differ")


def search_single(codes: Codes, found: Row) -> Row:
    turns = iter(range(10**9))
    ours = gpu_ms(lambda: codes.index.search(codes.queries[next(turns) % BATCH], K), rounds=51)
    plain = statistics.median(seconds_of(lambda q=q: codes.plain.search(q, K)) for q in codes.queries[:5]) * 1e3
    obvious = gpu_ms(lambda: obvious_single(codes, codes.queries[0]), rounds=3) * codes.n / min(codes.n, TORCH_CODES)
    about = {"task": "search, single query", "n": codes.n, "bits": BITS, "k": K}
    parts = {"torch": f"{min(codes.n, TORCH_CODES)} codes"}
    return about | row(ours, plain, obvious, floor_ms(found, codes.n * BITS / 8)) | {"parts": parts}


def search_batch(codes: Codes, found: Row) -> Row:
    ours = gpu_ms(lambda: codes.index.search(codes.queries, K), rounds=5)
    plain = seconds_of(lambda: codes.plain.search(codes.queries[:CPU_BATCH], K)) * 1e3 * BATCH / CPU_BATCH
    obvious = gpu_ms(lambda: obvious_batch(codes, codes.queries), rounds=1) * codes.n / min(codes.n, TORCH_CODES)
    about = {"task": f"search, batch of {BATCH}", "n": codes.n, "bits": BITS, "k": K}
    parts = {"torch": f"{min(codes.n, TORCH_CODES)} codes", "cpu": f"{CPU_BATCH} queries"}
    floor = floor_ms(found, codes.n * BITS / 8, 2.0 * BITS * codes.n * BATCH)
    return about | row(ours, plain, obvious, floor) | {"parts": parts}


# Encoding


def encode(n: int, found: Row) -> Row:
    from cghash.learning.families.linear import LinearFunctions

    generator = np.random.default_rng(1)
    coef, intercept = generator.normal(size=(BITS, FEATURES)), generator.normal(size=BITS)
    X = torch.empty((n, FEATURES), dtype=torch.float16, device="cuda").normal_()
    encoder = LinearEncoder(coef, intercept, "cuda")
    on_cpu = LinearFunctions(coef, intercept)
    half = torch.from_numpy(coef).half().cuda()
    offset = torch.from_numpy(intercept).half().cuda()
    places = 1 << torch.arange(8, dtype=torch.uint8, device="cuda")

    def obvious() -> torch.Tensor:
        return ((X @ half.T + offset > 0).view(n, -1, 8) * places).sum(dim=2, dtype=torch.uint8)

    some = X[:CPU_ITEMS].float().cpu().numpy()
    plain = seconds_of(lambda: on_cpu.bits(some, torch.get_num_threads())) * 1e3 * n / len(some)
    bits = np.unpackbits(encoder.codes(X[:CPU_ITEMS]).cpu().numpy(), axis=1, bitorder="little")
    differing = int((bits != on_cpu.bits(some, torch.get_num_threads())).sum())
    about = {"task": "encode", "n": n, "features": FEATURES, "dtype": "float16", "bits": BITS}
    floor = floor_ms(found, X.nbytes)
    measured = row(gpu_ms(lambda: encoder.codes(X)), plain, gpu_ms(obvious, rounds=3), floor)
    return (
        about | measured | {"parts": {"cpu": f"{len(some)} items"}, "bits_that_differ": f"{differing} of {bits.size}"}
    )


# The whole


def row(ours: float, plain: float, obvious: float, floor: float) -> Row:
    times = {"ms": ours, "floor_ms": floor, "torch_ms": obvious, "cpu_ms": plain}
    return {name: float(f"{value:.4g}") for name, value in times.items()} | {"over_floor": round(ours / floor, 2)}


def table(rows: list[Row]) -> str:
    lines = ["| task | ms | floor | over floor | obvious torch | CPU |", "|---|---|---|---|---|---|"]
    for r in rows:
        cells = (r["task"], r["ms"], r["floor_ms"], r["over_floor"], r["torch_ms"], r["cpu_ms"])
        lines.append("| " + " | ".join(str(cell) for cell in cells) + " |")
    return "\n".join(lines)


def circumstances() -> Row:
    def held(name: str) -> str | None:
        try:
            return version(name)
        except PackageNotFoundError:
            return None

    packages = ("cghash", "numpy", "torch", "triton")
    return {
        "commit": commit(),
        "gpu": torch.cuda.get_device_name(),
        "versions": {name: held(name) for name in packages} | {"python": platform.python_version()},
        "cpu": processor(),
        "cores": torch.get_num_threads(),
        "instruction_set": instruction_set(),
    }


def arguments() -> argparse.Namespace:
    def number(text: str) -> int:
        base, _, power = text.partition("^")
        return int(base) ** int(power) if power else int(float(text))

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", type=lambda text: text.split(","), default=["single", "batch", "encode", "fit"])
    parser.add_argument("--codes", type=number, default=1 << 30)
    parser.add_argument("--items", type=number, default=10**7)
    parser.add_argument("--seeds", type=int, default=1, help="of fits whose quality is compared with the CPU's")
    parser.add_argument("--output", default="gpu", help="name in benchmarks/results")
    return parser.parse_args()


def main() -> None:
    if not torch.cuda.is_available():
        raise SystemExit("torch finds no NVIDIA GPU here: this benchmark compares one with the CPU")
    options = arguments()
    found = rates()
    rows = []
    if {"single", "batch"} & set(options.tasks):
        codes = Codes(options.codes)
        codes.fill_plain()
        check(codes, 5)
        rows += [search_single(codes, found)] if "single" in options.tasks else []
        rows += [search_batch(codes, found)] if "batch" in options.tasks else []
        del codes
        torch.cuda.empty_cache()
    rows += [encode(options.items, found)] if "encode" in options.tasks else []
    torch.cuda.empty_cache()
    rows += [fit(found, gpu_ms, row, options.seeds)] if "fit" in options.tasks else []
    print(table(rows))
    path = RESULTS / f"{options.output}.json"
    command = " ".join(["python", *sys.argv])
    path.write_text(json.dumps({"command": command, **circumstances(), **found, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
