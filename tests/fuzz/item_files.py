"""Items, labels and comparisons: .npy, .npz, .csv, .jsonl and .parquet, and Parquet and Arrow files of a cluster."""

from __future__ import annotations

import io
import random
import struct
import zipfile
import zlib
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from mutations import bytes_changed, lines_changed, npy_changed, text_changed, zip_changed
from running import Format, ran_out_of_memory, scratch

N = 12  # items
BOMB = 1 << 32  # bytes of zeros that an archive holds in a few megabytes


def _npy(array: Any) -> bytes:
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def npy() -> tuple[list[bytes], list[bytes]]:
    """Files, and one whose header names more than it holds."""
    rng = np.random.default_rng(0)
    words = np.array([f"id{i}" for i in range(N)])
    arrays = [rng.random((N, 3)), np.arange(N), words, np.arange(3 * N).reshape(N, 3) % 7, np.eye(N) > 0]
    header = _npy(np.zeros((N, 3)))
    huge = header.replace(b"(12, 3)", f"({2**40}, 3)".encode()).replace(b" " * 11 + b"\n", b"\n")
    return list(map(_npy, arrays)), [huge]


def npz() -> list[bytes]:
    rng = np.random.default_rng(0)
    contents = []
    for save in (np.savez, np.savez_compressed):
        file = io.BytesIO()
        save(file, X=rng.random((N, 3)), y=np.arange(N) % 2, id=np.array([f"id{i}" for i in range(N)]))
        contents.append(file.getvalue())
        file = io.BytesIO()
        save(file, np.arange(3 * N).reshape(N, 3) % N)
        contents.append(file.getvalue())
    return contents


def npz_bomb() -> bytes:
    """An archive whose array takes gigabytes, though the file has a few megabytes; its CRC is wrong at the end."""
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "<f8", "fortran_order": False, "shape": (BOMB // 8, 1)})
    deflate = zlib.compressobj(9, zlib.DEFLATED, -15)
    first = deflate.compress(header.getvalue()) + deflate.flush(zlib.Z_FULL_FLUSH)
    piece = deflate.compress(bytes(1 << 24)) + deflate.flush(zlib.Z_FULL_FLUSH)
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr("X.npy", first + piece * (BOMB >> 24) + deflate.flush())
    content = bytearray(file.getvalue())
    for at, size_at in ((0, 22), (content.rindex(b"PK\1\2"), 24)):  # local header, central directory
        struct.pack_into("<H", content, at + 8 + (2 if at else 0), zipfile.ZIP_DEFLATED)
        struct.pack_into("<I", content, at + size_at, BOMB - 1)
    return bytes(content)


def csv() -> list[bytes]:
    rows = "".join(f"id{i},{i / 7:.3f},{i * i},{'ab'[i % 2]}\n" for i in range(N))
    triplets = "".join(f"{i},{(i + 1) % N},{(i + 2) % N},0.5\n" for i in range(N))
    return [
        f"id,height,width,class\n{rows}".encode(),
        rows.replace(",", "\t").encode(),
        b"0,1,2\n1,2,3\n4,5,6\n",
        f"anchor,near,far,weight\n{triplets}".encode(),
        "".join(f"{'ab'[i % 2]}\n" for i in range(N)).encode(),
    ]


def csv_of_a_long_number() -> bytes:
    return b"a,b\n" + b"9" * 200_000 + b",1\n"


def jsonl() -> list[bytes]:
    named = "".join(f'{{"anchor": {i}, "near": {(i + 1) % N}, "far": 0, "weight": 1.5}}\n' for i in range(1, N - 1))
    lists = "".join(f"[{i}, {(i + 1) % N}, {(i + 2) % N}]\n" for i in range(N))
    return [named.encode(), lists.encode(), b'{"first": "id1", "second": "id2"}\n']


def _tables() -> list[Any]:
    import pyarrow as pa

    rng = np.random.default_rng(0)
    X = rng.random((N, 3)).astype(np.float32)
    lists = pa.FixedSizeListArray.from_arrays(pa.array(X.ravel()), 3)
    return [
        pa.table({"id": np.arange(N), "vector": lists, "label": [f"{'ab'[i % 2]}" for i in range(N)]}),
        pa.table({"id": np.arange(N), "vector": X.tolist(), "label": pa.array(["a", "b"] * 6).dictionary_encode()}),
        pa.table({"a": X[:, 0], "b": X[:, 1].astype(np.float64), "class": np.arange(N) % 2, "id": np.arange(N)}),
        pa.table({"anchor": np.arange(N), "near": np.roll(np.arange(N), 1), "far": np.roll(np.arange(N), 2)}),
    ]


@cache
def parquet() -> list[bytes]:
    import pyarrow.parquet as pq

    contents = []
    for table in _tables():
        for way in ({"compression": "snappy"}, {"compression": "none", "use_dictionary": False}):
            file = io.BytesIO()
            pq.write_table(table, file, row_group_size=5, **way)
            contents.append(file.getvalue())
    return contents


@cache
def arrow() -> list[bytes]:
    import pyarrow as pa

    contents = []
    for table in _tables()[:3]:
        file = io.BytesIO()
        with pa.ipc.new_file(file, table.schema) as writer:
            writer.write_table(table, max_chunksize=5)
        contents.append(file.getvalue())
    return contents


def parquet_of_a_long_text() -> bytes:
    """Eight gigabytes of texts, in a few hundred bytes: all rows name the same."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    file = io.BytesIO()
    text = pa.DictionaryArray.from_arrays(pa.array(np.zeros(2000, np.int32)), pa.array(["a" * (1 << 22)]))
    table = pa.table({"a": np.zeros(2000), "b": np.zeros(2000), "class": text})
    pq.write_table(table, file, compression="zstd", dictionary_pagesize_limit=1 << 30, store_schema=False)
    return file.getvalue()


@cache
def parquet_bomb() -> bytes:
    """Two gigabytes of the same number, in a few kilobytes."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    file = io.BytesIO()
    ones = pa.array(np.zeros(1 << 24))
    with pq.ParquetWriter(file, pa.schema({"a": pa.float64()}), compression="zstd") as writer:
        for _ in range(BOMB >> 28):
            writer.write_table(pa.table({"a": ones}))
    return file.getvalue()


def parquet_changed(data: bytes, rng: random.Random) -> bytes:
    """Bytes of the footer, of the pages, or both."""
    if rng.random() < 0.5 or len(data) < 16:
        return bytes_changed(data, rng)
    length = int.from_bytes(data[-8:-4], "little") % len(data)
    start = max(0, len(data) - 8 - length)
    footer = bytes_changed(data[start:-8], rng, head=length or 1)
    return data[:start] + footer + len(footer).to_bytes(4, "little") + data[-4:]


def reader(suffix: str) -> Callable[[bytes], None]:
    """What reads files of a suffix: as items, as labels and as comparisons, one after the other."""
    uses = [_as_items, _as_labels, _as_triplets, _as_duplets] if suffix != ".arrow" else []
    if suffix in (".npy", ".parquet"):
        uses.append(_in_blocks)
    uses += [_on_a_cluster, _on_a_cluster_of_columns] if suffix in (".parquet", ".arrow") else [_piped]

    def use(data: bytes) -> None:
        from cghash.exceptions import CGHashError

        path = scratch() / f"input{suffix}"
        path.write_bytes(data)
        refusals: list[CGHashError] = []
        for one in uses:
            try:
                one(path)
            except CGHashError as error:
                if ran_out_of_memory(error):
                    raise
                refusals.append(error)
        if len(refusals) == len(uses):
            raise refusals[0]

    return use


def _as_items(path: Any) -> None:
    from cghash.exceptions import InvalidInputError
    from cghash.reading import read_items

    items = read_items(path)
    assert items.X.ndim == 2
    assert items.names is None or len(items.names) == items.X.shape[1]
    np.asarray(items.X[:3], dtype=np.float64)
    for columns in ({"label_column": "class"}, {"label_column": "label", "id_column": "id"}, {"id_column": "0"}):
        try:
            found = read_items(path, **columns)
        except InvalidInputError:
            continue
        assert found.labels is None or len(found.labels) == len(found.X)
        assert found.ids is None or len(found.ids) == len(found.X)


def _as_labels(path: Any) -> None:
    from cghash.reading import read_labels

    for as_written in (False, True):
        assert len(read_labels(path, N, as_written)) == N


def _as_triplets(path: Any) -> None:
    from cghash.reading import read_triplets

    rows, weights = read_triplets(path, N)
    assert rows.shape[1] == 3
    assert rows.min() >= 0
    assert rows.max() < N
    assert weights is None or len(weights) == len(rows)


def _as_duplets(path: Any) -> None:
    from cghash.reading import read_duplets

    ids = np.array([f"id{i}" for i in range(N)])
    assert read_duplets(path, N, ids).shape[1] == 2


def _in_blocks(path: Any) -> None:
    from cghash.reading import item_blocks

    for block in item_blocks(path, rows=5):
        assert block.ndim == 2


def _on_a_cluster(path: Any, **columns: Any) -> None:
    from cghash.cluster import Dataset

    data = Dataset.from_parquet(path, **columns or {"vector": "vector", "ids": "id", "labels": "label"})
    for part in data.partitions:
        for block in part.read_batches(5):
            assert block.X.shape[1] == data.n_features


def _on_a_cluster_of_columns(path: Any) -> None:
    _on_a_cluster(path, vector=("a", "b"), labels="class")


def _piped(path: Any) -> None:
    """The same bytes from standard input, which cannot be mapped."""
    import sys

    from cghash.reading import read_items

    usual = sys.stdin
    with open(path, encoding="utf-8", errors="replace") as sys.stdin:
        try:
            read_items("-")
        finally:
            sys.stdin = usual


_MODULES = ("cghash.reading", "cghash.cluster.parquet", "cghash.cluster.partitions")
_WORDS = ["id", "class", "anchor", "weight", "0", "1", "NA", "0,5", "a" * 200_000, "1" * 5000, "0x10", "1_000", "²"]
FORMATS = [
    Format("npy", lambda: npy()[0], reader(".npy"), npy_changed, _MODULES, once=lambda: npy()[1]),
    Format("npz", npz, reader(".npz"), zip_changed, _MODULES, once=lambda: [npz_bomb()]),
    Format("csv", csv, reader(".csv"), text_changed(_WORDS), _MODULES, once=lambda: [csv_of_a_long_number()]),
    Format("jsonl", jsonl, reader(".jsonl"), lines_changed, _MODULES),
    Format(
        "parquet",
        parquet,
        reader(".parquet"),
        parquet_changed,
        _MODULES,
        once=lambda: [parquet_bomb(), parquet_of_a_long_text()],
    ),
    Format("arrow", arrow, reader(".arrow"), parquet_changed, _MODULES, 100),
]
