"""What a worker does with shards, each an index file: make them, map them, search them; and their answers as one."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from .._arrays import Codes, Floats, Ints
from ..exceptions import FormatError
from ..index import WeightedHammingIndex
from ..stores.origin import Origin
from .encoded_parts import Part

Nearest = tuple[Floats, Ints]  # distances and ids (q, k), padded with inf and -1
Within = tuple[Ints, Floats, Ints]  # offsets (q + 1,), distances, ids

_MIX = np.uint64(0x9E3779B97F4A7C15)  # odd: multiplying by it spreads ids over all buckets


@dataclass(frozen=True)
class Shard:
    """One index file."""

    file: str
    n_codes: int
    n_bytes: int  # of the file
    first_id: int  # the smallest, -1 where there is none
    last_id: int
    digest: str = ""  # SHA-256 over the file's header, which holds checksums of all; a manifest may come without


def build_shard(folder: str, parts: Sequence[Part], origin: Origin, out: str, name: str) -> Shard:
    """Make the index of some parts of codes, unless it is there: what is there is whole."""
    path = Path(out) / name
    if not path.exists():
        functions = origin.functions or None
        index = WeightedHammingIndex(origin.n_bits, origin.weights, n_jobs=_threads(), functions=functions)
        for part in parts:
            index.add(*part.read(Path(folder), origin))
        index.prepare()
        index.save(path)
    return shard_of(path)


def shard_of(path: Path) -> Shard:
    """What an index file holds."""
    index = WeightedHammingIndex.load(path)
    ids = index.ids
    ends = (int(ids.min()), int(ids.max())) if len(ids) else (-1, -1)
    return Shard(path.name, len(ids), index.file["bytes"], *ends, index.file["digest"])


def shared_ids(folder: str, shards: Sequence[Shard], bucket: int, n_buckets: int) -> list[int]:
    """Ids of a bucket that are in several shards, at most one."""
    found = []
    for shard in shards:
        ids = opened(folder, shard).ids
        mixed = (ids.astype(np.uint64) * _MIX) >> np.uint64(32)
        found.append(ids[mixed % np.uint64(n_buckets) == bucket])
    ordered = np.sort(np.concatenate(found))
    return ordered[1:][ordered[1:] == ordered[:-1]][:1].tolist()  # type: ignore[no-any-return]


def search_shards(
    folder: str, shards: Sequence[Shard], queries: Codes, k: int, wanted: Ints | None
) -> tuple[Nearest, Ints]:
    """The k nearest in some shards, and which of the wanted ids they hold."""
    opened_shards = [_opened_with(folder, shard, wanted) for shard in shards]
    found = [one.search(queries, max(1, min(k, len(one))), filter=chosen) for one, chosen in opened_shards]
    return merged_nearest(found, k), _present(opened_shards)


def search_within(
    folder: str, shards: Sequence[Shard], queries: Codes, radius: float, wanted: Ints | None
) -> tuple[Within, Ints]:
    """All within a distance in some shards, and which of the wanted ids they hold."""
    opened_shards = [_opened_with(folder, shard, wanted) for shard in shards]
    found = [one.range_search(queries, radius, filter=chosen) for one, chosen in opened_shards]
    return merged_within(found), _present(opened_shards)


def merged_nearest(found: Sequence[Nearest], k: int) -> Nearest:
    """The k nearest of those that shards found; distances are whole multiples of one power of two, so none is rounded.

    >>> inf = np.inf
    >>> one, two = ([[1.0, 3.0]], [[4, 0]]), ([[1.0, inf]], [[2, -1]])
    >>> merged_nearest([tuple(map(np.array, one)), tuple(map(np.array, two))], 3)
    (array([[1., 1., 3.]]), array([[2, 4, 0]]))
    """
    distances = np.concatenate([d for d, _ in found], axis=1)
    ids = np.concatenate([i for _, i in found], axis=1)
    order = np.lexsort((ids, distances), axis=1)[:, :k]
    distances, ids = np.take_along_axis(distances, order, 1), np.take_along_axis(ids, order, 1)
    missing = ((0, 0), (0, k - distances.shape[1]))
    return np.pad(distances, missing, constant_values=np.inf), np.pad(ids, missing, constant_values=-1)


def merged_within(found: Sequence[Within]) -> Within:
    """All that shards found within a distance.

    >>> one = np.array([0, 1, 2]), np.array([2.0, 0.0]), np.array([7, 8])
    >>> two = np.array([0, 1, 1]), np.array([2.0]), np.array([3])
    >>> merged_within([one, two])
    (array([0, 2, 3]), array([2., 2., 0.]), array([3, 7, 8]))
    """
    n_queries = len(found[0][0]) - 1
    rows = np.concatenate([np.repeat(np.arange(n_queries), np.diff(offsets)) for offsets, _, _ in found])
    distances, ids = (np.concatenate([one[i] for one in found]) for i in (1, 2))
    order = np.lexsort((ids, distances, rows))
    offsets = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=n_queries))])
    return offsets.astype(np.int64), distances[order], ids[order]


def opened(folder: str, shard: Shard) -> WeightedHammingIndex:
    """The index of a shard, mapped once for each worker, again where the file is another."""
    path = os.path.join(folder, shard.file)
    about = os.stat(path)
    if about.st_size != shard.n_bytes:
        raise FormatError(f"{path} is not the shard that was built: it has {about.st_size} bytes, not {shard.n_bytes}")
    return _mapped(path, shard.digest, (about.st_ino, about.st_mtime_ns), _threads())


@lru_cache(maxsize=4096)
def _mapped(path: str, digest: str, which: tuple[int, int], n_threads: int) -> WeightedHammingIndex:
    index = WeightedHammingIndex.load(path, n_jobs=n_threads)
    if digest and index.file["digest"] != digest:
        raise FormatError(f"{path} is not the shard that was built: it holds other codes, weights or ids")
    return index


def _opened_with(folder: str, shard: Shard, wanted: Ints | None) -> tuple[WeightedHammingIndex, Ints | None]:
    """The index of a shard, and which of the wanted ids it holds."""
    index = opened(folder, shard)
    return index, None if wanted is None else np.intersect1d(wanted, index.ids, assume_unique=True)


def _present(opened_shards: Sequence[tuple[WeightedHammingIndex, Ints | None]]) -> Ints:
    return np.concatenate([np.zeros(0, np.int64), *(chosen for _, chosen in opened_shards if chosen is not None)])


def _threads() -> int:
    """Threads of a task: those of its worker, which has one such task at a time."""
    from distributed import get_worker

    try:
        worker: Any = get_worker()
    except ValueError:  # not on a worker
        return 1
    return int(worker.state.nthreads)
