"""Our index and each store on the same learned codes of MNIST: build, bytes, milliseconds a query, what is proven.

One query at a time, the 10 nearest, on one thread; seconds and milliseconds are processor time, which other work on the
machine hardly moves. `recall` is the share of answers as near as the nearest, `proven` the share of queries whose
answer the store knows to be exact. DuckDB is asked in two ways: look-ups in a list for each byte, which the store does,
and sums of `bit_count(xor)` under masks, one for each binary digit of the weights.

    python benchmarks/speed/stores.py [--codes 1000000] [--hnsw-codes 100000] [--queries 20]
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import faiss
import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))
from search_codes import CodeSet, make

from cghash import WeightedHammingIndex
from cghash.stores import Found, Origin
from cghash.stores.duckdb import DuckDBStore
from cghash.stores.faiss import FaissStore
from cghash.stores.parquet import ParquetStore
from cghash.stores.ranking import Ranked, joined
from common import write

K = 10
Search = Callable[[np.ndarray], Found]


def seconds_of(work: Callable[[], Any]) -> tuple[float, Any]:
    began = time.process_time()
    done = work()
    return time.process_time() - began, done


def of_index(codes: CodeSet, path: Path) -> Search:
    index = WeightedHammingIndex(codes.bits, codes.weights, n_jobs=1)
    index.add(codes.codes)
    index.prepare()
    index.save(path)
    return lambda queries: Found(*index.search(queries, K), np.ones(len(queries), dtype=bool))


def of_faiss(kind: str) -> Callable[[CodeSet, Path], Search]:
    def opened(codes: CodeSet, path: Path) -> Search:
        store = FaissStore.write(path, Origin(codes.weights), codes.codes, kind=kind)
        return lambda queries: store.search(queries, K)

    return opened


def of_parquet(codes: CodeSet, path: Path) -> Search:
    store = ParquetStore.write(path, Origin(codes.weights), codes.codes)
    store.search(codes.queries[:1], K)  # puts the codes into an index
    return lambda queries: store.search(queries, K)


def of_duckdb(codes: CodeSet, path: Path) -> Search:
    store = DuckDBStore.write(path, Origin(codes.weights), codes.codes)
    store.connection.execute("SET threads = 1")
    return lambda queries: store.search(queries, K)


def of_masks(codes: CodeSet, path: Path) -> Search:
    """The same table; Σ_t 2^t·bit_count((code xor query) & bits whose weight has the binary digit t)."""
    origin = Origin(codes.weights)
    DuckDBStore.write(path, origin, codes.codes).close()
    connection = duckdb.connect(str(path), read_only=True)
    connection.execute("SET threads = 1")
    digits = [(t, sum(1 << j for j, w in enumerate(origin.whole[0].tolist()) if w >> t & 1)) for t in range(53)]
    terms = " + ".join(f"{1 << t} * bit_count(differs & {mask}::UBIGINT)::BIGINT" for t, mask in digits if mask)
    inner = "SELECT id, xor(word0, ?::UBIGINT) AS differs FROM codes"
    sql = f"SELECT id, {terms} AS distance FROM ({inner}) ORDER BY distance, id LIMIT {K}"

    def one(query: np.ndarray) -> Ranked:
        found = connection.execute(sql, [int(query.view("<u8")[0])]).fetchnumpy()
        return Ranked(np.asarray(found["distance"]), np.asarray(found["id"]), True)

    return lambda queries: Found(*joined(origin, [one(query) for query in queries], K))


STORES = {
    "cghash index": of_index,
    "FAISS, exact": of_faiss("exact"),
    "FAISS, binary, 256 bits": of_faiss("binary"),
    "FAISS, HNSW, 256 bits": of_faiss("hnsw"),
    "Parquet, in memory": of_parquet,
    "DuckDB, look-ups": of_duckdb,
    "DuckDB, bit_count": of_masks,
}


def measure(name: str, codes: CodeSet, nearest: np.ndarray) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "codes"
        build, search = seconds_of(lambda: STORES[name](codes, path))
        search(codes.queries[:1])
        times, found = zip(*(seconds_of(lambda q=q: search(q[None])) for q in codes.queries), strict=True)
        distances = np.concatenate([one.distances for one in found])
        row = {"store": name, "n": len(codes), "bits": codes.bits, "build_seconds": round(build, 2)}
        row |= {
            "bytes_a_code": round(path.stat().st_size / len(codes), 1),
            "ms": round(1e3 * float(np.median(times)), 3),
        }
    row["recall"] = round(float(np.mean(distances <= nearest[:, -1:])), 4)
    return row | {"proven": round(float(np.mean(np.concatenate([one.exact for one in found]))), 3)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--codes", type=int, default=1_000_000)
    parser.add_argument("--hnsw-codes", type=int, default=100_000)
    parser.add_argument("--queries", type=int, default=20)
    parser.add_argument("--stores", default=";".join(STORES))
    parser.add_argument("--output", default="stores")
    options = parser.parse_args()
    faiss.omp_set_num_threads(1)
    rows = []
    for name in options.stores.split(";"):
        codes = make("learned", options.hnsw_codes if "HNSW" in name else options.codes, 64, options.queries)
        index = WeightedHammingIndex(codes.bits, codes.weights)
        index.add(codes.codes)
        rows.append(measure(name, codes, index.search(codes.queries, K)[0]))
        print(rows[-1], flush=True)
    write(options.output, " ".join(["python", *sys.argv]), rows, ("faiss-cpu", "pyarrow", "duckdb"))


if __name__ == "__main__":
    main()
