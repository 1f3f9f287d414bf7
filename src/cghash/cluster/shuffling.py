"""shuffle: the items of a data set in random order, so that every partition is a fair sample of all."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from .._progress import counting
from .._validation import check_whole
from ..exceptions import InvalidInputError
from ..storage import written_atomically
from ..stores.base import require
from .clients import connected, in_any_order
from .datasets import Dataset
from .partitions import Block, Partition
from .work_folders import begin

FORMAT = "cghash-shuffled"
DIFFERS = {
    "dataset": "which holds another data set",
    "seed": "which was shuffled by another seed",
    "parts": "which has another number of parts",
}
LABEL = "label"
_PIECES = ".pieces"  # a folder that goes with the last part


def shuffle(
    dataset: Dataset,
    out: str | os.PathLike[str],
    client: Any = None,
    *,
    parts: int | None = None,
    seed: int = 0,
    verbose: bool = False,
) -> Dataset:
    """Write the items in random order: Parquet files with columns `id`, `vector` and, with labels, `label`.

    Every partition deals its rows out to the parts, and every part is then mixed, so a worker holds one partition or
    one part at a time. What is finished is kept: the same call goes on after a kill.

    Parameters
    ----------
    dataset : the items
    out : folder, which all workers see under this path; new, empty, or one that the same work was begun in
    client : `distributed.Client`, address of a scheduler, or None: processes of this machine
    parts : files to write; default: as many as there are partitions
    seed : the same one gives the same order
    verbose : whether to tell of the progress

    Examples
    --------
    >>> import tempfile
    >>> data = Dataset.from_arrays(np.arange(20.0).reshape(10, 2), y=np.arange(10) // 5, rows=5)
    >>> with tempfile.TemporaryDirectory() as folder, connected(n_workers=1) as client:
    ...     mixed = shuffle(data, folder, client).read()
    >>> sorted(mixed.ids.tolist()) == list(range(10)), bool((mixed.X[:, 0] == 2.0 * mixed.ids).all())
    (True, True)
    """
    count = len(dataset.partitions) if parts is None else check_whole(parts, 1, "parts")
    check_whole(seed, 0, "seed")
    if count > len(dataset):
        raise InvalidInputError(f"parts must be at most as many as there are items, {len(dataset)}, got {count}")
    folder = Path(os.path.abspath(out))
    begin(folder, FORMAT, {"dataset": dataset.fingerprint, "seed": str(seed), "parts": str(count)}, DIFFERS)
    missing = [j for j in range(count) if not (_mixed(folder, j).exists() or (folder / _name(j)).exists())]
    sources = range(len(dataset.partitions)) if missing else range(0)
    dealt = [i for i in sources if not _piece(folder, i).exists()]
    if missing:
        _piece(folder, 0).parent.mkdir(exist_ok=True)
        with connected(client) as opened, counting(len(dealt) + len(missing), "shuffling", verbose) as done:
            deals = ((dataset.partitions[i], str(folder), i, count, seed) for i in dealt)
            for _ in in_any_order(opened, deal, deals):
                done(1)
            for _ in in_any_order(opened, mix, ((str(folder), j, len(sources), seed) for j in missing)):
                done(1)
    for j in range(count):  # all of them at once, or nearly: none is read before the others are there
        if _mixed(folder, j).exists():
            _mixed(folder, j).rename(folder / _name(j))
    shutil.rmtree(folder / _PIECES, ignore_errors=True)
    return Dataset.from_parquet(folder, ids="id", labels=LABEL if dataset.has_labels else None, partition="file")


def deal(partition: Partition, folder: str, number: int, count: int, seed: int) -> None:
    """On a worker: a file of a partition's rows, one row group for each part."""
    block = partition.read()
    part = np.random.default_rng([seed, number]).integers(0, count, len(block.ids))
    order = np.argsort(part, kind="stable")
    bounds = np.searchsorted(part[order], np.arange(count + 1))
    _write(_piece(Path(folder), number), block, (order[a:b] for a, b in pairwise(bounds)))


def mix(folder: str, number: int, n_pieces: int, seed: int) -> None:
    """On a worker: one part, from its row group of every piece."""
    pq, pa = require("pyarrow.parquet", "dask"), require("pyarrow", "dask")
    groups = [pq.ParquetFile(_piece(Path(folder), i)).read_row_group(number) for i in range(n_pieces)]
    table = pa.concat_tables(groups)
    order = np.random.default_rng([seed, 2**31, number]).permutation(len(table))
    with written_atomically(_mixed(Path(folder), number)) as file:
        pq.write_table(table.take(order), file, row_group_size=max(1, len(table)))


def _write(path: Path, block: Block, groups: Iterator[Any]) -> None:
    pq, pa = require("pyarrow.parquet", "dask"), require("pyarrow", "dask")

    def table(rows: Any) -> Any:
        X = np.ascontiguousarray(block.X[rows])
        columns = {"id": block.ids[rows], "vector": pa.FixedSizeListArray.from_arrays(X.ravel(), X.shape[1])}
        return pa.table(columns if block.y is None else columns | {LABEL: block.y[rows]})

    with written_atomically(path) as file, pq.ParquetWriter(file, table(slice(0, 0)).schema) as writer:
        for rows in groups:
            writer.write_table(table(rows), row_group_size=max(1, len(rows)))


def _piece(folder: Path, number: int) -> Path:
    return folder / _PIECES / f"piece-{number:06d}.parquet"


def _mixed(folder: Path, number: int) -> Path:
    """Where a part waits for the others."""
    return folder / _PIECES / _name(number)


def _name(number: int) -> str:
    return f"items-{number:06d}.parquet"
