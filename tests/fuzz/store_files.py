"""Codes for other engines: indexes of FAISS, files of DuckDB, Parquet files of codes, and graphs of ONNX."""

from __future__ import annotations

import hashlib
import random
import re
import struct
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
from item_files import parquet_changed
from mutations import bytes_changed
from running import Format, scratch

N = 200  # codes
_NUMBERS = [0, 1, 2**31, 2**32 - 1, 2**40, 2**62, 2**63, 2**64 - 1]
_TAIL = struct.Struct("<Q32s8s")  # of an index of FAISS: length of the header, SHA-256 over all before, magic
_HEADER, _BLOCK = 4096, 262144  # bytes of each of DuckDB's three headers, and of its blocks behind them
_FACTOR, _MASK = 0xBF58476D1CE4E5B9, (1 << 64) - 1
_fresh = count()  # DuckDB keeps what it has open by its path


def _held() -> tuple[Any, Any, Any]:
    """An origin, codes and ids."""
    from cghash.stores import Origin

    rng = np.random.default_rng(0)
    codes = rng.integers(0, 256, (N, 2), dtype=np.uint8)
    codes[:, 1] &= 31
    return Origin(rng.random(13) + 0.1, "ab" * 32), codes, rng.permutation(1000)[:N].astype(np.int64)


def _written(store: Any, **how: Any) -> bytes:
    path = scratch() / f"seed-{next(_fresh)}"
    made = store.write(path, *_held(), **how)
    getattr(made, "close", lambda: None)()
    return path.read_bytes()


def _at(data: bytes, suffix: str = "") -> Path:
    path = scratch() / f"store{suffix}"
    path.write_bytes(data)
    return path


# FAISS


def faiss_seeds() -> list[bytes]:
    from cghash.stores.faiss import FaissStore

    return [_written(FaissStore, kind=kind, n_bits=64) for kind in ("exact", "binary", "hnsw")]


def use_faiss(data: bytes) -> None:
    from cghash.stores.faiss import FaissStore

    store = FaissStore.open(_at(data))
    for k in (5, N):
        store.search(_held()[1][:3], k)
    store.info()


def faiss_changed(data: bytes, rng: random.Random) -> bytes:
    """Other bytes; or a number or a bit of the index, or of the description, under a checksum that is right again."""
    if rng.random() < 0.2 or len(data) <= _TAIL.size:
        return bytes_changed(data, rng)
    content, end = bytearray(data[: -_TAIL.size]), len(data) - _TAIL.size
    length = _TAIL.unpack(data[end:])[0]
    for _ in range(rng.choice([1, 1, 2, 4])):
        at = rng.randrange(rng.choice([400, max(1, end - length), end])) % end
        if rng.random() < 0.5:
            content[at] ^= 1 << rng.randrange(8)
        else:
            number = struct.pack("<Q", rng.choice(_NUMBERS))[: rng.choice([1, 4, 8])]
            content[at : at + len(number)] = number
    body = bytes(content[:end])
    return body + _TAIL.pack(length, hashlib.sha256(body).digest(), b"CGHFAISS")


# DuckDB


@cache
def duckdb_seeds() -> list[bytes]:
    from cghash.stores.duckdb import DuckDBStore

    return [_written(DuckDBStore)]


def use_duckdb(data: bytes) -> None:
    from cghash.stores import duckdb as module
    from cghash.stores.duckdb import DuckDBStore

    module._PATIENCE = 5.0  # less than an input may take here
    path = _at(data, f"-{next(_fresh)}.duckdb")
    try:
        with DuckDBStore.open(path) as store:
            len(store)
            store.search(_held()[1][:3], 5)
            store.info()
    finally:
        path.unlink()


def duckdb_changed(data: bytes, rng: random.Random) -> bytes:
    """Letters of names and of our description changed, under checksums that are right again; or other bytes.

    Numbers mostly stay under the wrong checksum: where DuckDB's own pointers are others, a search may never come back.
    """
    words = [found.span() for found in re.finditer(rb"[ -~]{4,}", data)]
    if rng.random() < 0.3 or not words:
        return bytes_changed(data, rng, head=3 * _HEADER)
    content = bytearray(data)
    places = [rng.randrange(*rng.choice(words)) for _ in range(rng.choice([1, 1, 2, 4]))]
    for at in places:
        content[at] = content[at] ^ 1 << rng.randrange(8) if rng.random() < 0.5 else rng.randrange(256)
    for at in places:
        _checksummed(content, at)
    return bytes(content)


def _checksummed(content: bytearray, at: int) -> None:
    """Make the checksum of the header or block around a place right, as DuckDB counts it."""
    headers = 3 * _HEADER
    first, size = (
        (at // _HEADER * _HEADER, _HEADER) if at < headers else (headers + (at - headers) // _BLOCK * _BLOCK, _BLOCK)
    )
    if first + size <= len(content):
        words = np.frombuffer(content, "<u8", (size - 8) // 8, first + 8).copy()
        total = 5381 ^ int(np.bitwise_xor.reduce(words * np.uint64(_FACTOR)))
        struct.pack_into("<Q", content, first, total & _MASK)


# Parquet


@cache
def parquet_seeds() -> list[bytes]:
    from cghash.stores.parquet import ParquetStore

    return [_written(ParquetStore)]


def use_parquet(data: bytes) -> None:
    from cghash.stores.parquet import ParquetStore

    store = ParquetStore.open(_at(data))
    store.search(_held()[1][:3], 5)
    store.info()


# ONNX


@cache
def onnx_seeds() -> list[bytes]:
    from cghash import CGHash
    from cghash.stores.onnx import to_onnx

    X, y = np.random.default_rng(0).normal(size=(60, 6)), np.arange(60) % 3
    how = {"n_neighbors": 2, "C": 1e-3, "random_state": 0, "n_jobs": 1}
    models = [CGHash(8, hash_function=family, **how).fit(X, y) for family in ("linear", "rbf")]
    return [to_onnx(model).SerializeToString() for model in models]


def use_onnx(data: bytes) -> None:
    from cghash.stores.onnx import origin_of_onnx

    origin_of_onnx(_at(data, ".onnx"))


def onnx_changed(data: bytes, rng: random.Random) -> bytes:
    """Letters of the description, which is JSON, or other bytes."""
    begin = data.find(b'"format"')
    if begin < 0 or rng.random() < 0.4:
        return bytes_changed(data, rng)
    content = bytearray(data)
    for _ in range(rng.choice([1, 2, 4])):
        content[rng.randrange(begin - 1, len(content))] = rng.choice(b'[]{}",:0123456789eE-\\ud8\xff')
    return bytes(content)


FORMATS = [
    Format("faiss", faiss_seeds, use_faiss, faiss_changed, ("cghash.stores",), 100),
    Format("duckdb", duckdb_seeds, use_duckdb, duckdb_changed, ("cghash.stores",), 40),
    Format("codes-parquet", parquet_seeds, use_parquet, parquet_changed, ("cghash.stores", "cghash.reading"), 100),
    Format("onnx", onnx_seeds, use_onnx, onnx_changed, ("cghash.stores",), 100),
]
