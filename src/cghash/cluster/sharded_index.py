"""ShardedIndex: index files that workers map, searched as if all codes were in one."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict
from itertools import pairwise
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from .._arrays import Codes, Ints
from .._progress import counting
from .._validation import check_answers, check_whole
from ..exceptions import InvalidInputError
from ..index.checks import check_ids, check_queries, check_radius
from ..stores.origin import Origin
from .clients import at_home, connected, in_any_order, workers_of
from .encoded_parts import Encoded, Part
from .shards import (
    Nearest,
    Shard,
    Within,
    build_shard,
    merged_nearest,
    merged_within,
    search_shards,
    search_within,
    shared_ids,
)
from .work_folders import begin, read_manifest, write_manifest

FORMAT, VERSION = "cghash-shards", 1
CODES = 1 << 24  # of a shard
_QUERIES = 1 << 12  # of a call
_IDS = 1 << 25  # that a worker compares at a time
_DIFFERS = {"source": "which holds an index of other codes, or in other shards"}


class ShardedIndex:
    """Codes in index files, one for each shard, and exact search among all of them: order (distance, id).

    A search sends its queries once to each worker, which maps the shards that are its own and answers with the best of
    them. When a worker dies, others map its shards: the answer is the same. Made by `build` or `open`.

    Examples
    --------
    >>> import tempfile
    >>> from cghash.cluster import Dataset, encode
    >>> from cghash.peers import LSH
    >>> X = np.random.default_rng(0).normal(size=(100, 4))
    >>> model = LSH(16, random_state=0).fit(X)
    >>> with tempfile.TemporaryDirectory() as folder, connected(n_workers=1) as client:
    ...     encoded = encode(Dataset.from_arrays(X, rows=40), model, f"{folder}/codes", client)
    ...     index = ShardedIndex.build(encoded, f"{folder}/index", client, codes=40)
    ...     print(index)
    ...     distances, ids = index.search(model.encode(X[:2]), k=1)
    <ShardedIndex: 100 codes of 16 bits, in 3 shards>
    >>> distances.ravel().tolist()
    [0.0, 0.0]
    """

    def __init__(
        self, folder: Path, origin: Origin, shards: Sequence[Shard], client: Any, connection: ExitStack
    ) -> None:
        self.folder, self.origin, self.shards = folder, origin, tuple(shards)
        self._client, self._connection = client, connection

    @classmethod
    def build(
        cls,
        encoded: Encoded | str | os.PathLike[str],
        out: str | os.PathLike[str],
        client: Any = None,
        *,
        codes: int = CODES,
        verbose: bool = False,
    ) -> Self:
        """Make an index of codes that `encode` wrote; goes on where a killed call stopped.

        Parameters
        ----------
        encoded : what `encode` gave, or its folder; ids must be different over all parts
        out : folder, new, empty, or one that the same work was begun in; workers see both under their paths
        client : `distributed.Client`, address of a scheduler, or None: processes of this machine
        codes : a shard has the codes of consecutive parts, and no further part once it has so many
        verbose : whether to tell of the progress
        """
        source = encoded if isinstance(encoded, Encoded) else Encoded.open(encoded)
        groups = _groups(source.parts, check_whole(codes, 1, "codes"))
        folder = Path(os.path.abspath(out))
        begin(folder, FORMAT, {"source": _identity(source, groups)}, _DIFFERS)
        calls = [
            (os.path.abspath(source.folder), group, source.origin, str(folder), f"shard-{number:06d}.index")
            for number, group in enumerate(groups)
        ]
        shards: dict[int, Shard] = {}
        with ExitStack() as connection:
            opened = connection.enter_context(connected(client))
            with counting(len(groups), "indexing", verbose) as done:
                for number, shard in in_any_order(opened, build_shard, calls):
                    shards[number] = shard
                    done(1)
            ordered = [shards[number] for number in sorted(shards)]
            _check_different(opened, folder, ordered)
            write_manifest(folder, FORMAT, VERSION, source.origin, {"shards": [asdict(shard) for shard in ordered]})
            return cls(folder, source.origin, ordered, opened, connection.pop_all())

    @classmethod
    def open(cls, folder: str | os.PathLike[str], client: Any = None) -> Self:
        """Open what `build` made; FormatError where it is not whole."""
        place = Path(os.path.abspath(folder))
        missing = "no sharded index, or `build` has not finished"
        kind = FORMAT, VERSION, missing
        origin, shards = read_manifest(place, str(folder), *kind, lambda about: [Shard(**s) for s in about["shards"]])
        with ExitStack() as connection:
            opened = connection.enter_context(connected(client))
            return cls(place, origin, shards, opened, connection.pop_all())

    # What is in it

    @property
    def n_bits(self) -> int:
        """Bits of a code."""
        return self.origin.n_bits

    @property
    def n_bytes(self) -> int:
        """Bytes of a code."""
        return self.origin.n_bytes

    def __len__(self) -> int:
        return sum(shard.n_codes for shard in self.shards)

    def __repr__(self) -> str:
        return f"<ShardedIndex: {len(self)} codes of {self.n_bits} bits, in {len(self.shards)} shards>"

    # Search

    def search(self, codes: ArrayLike, k: int, *, filter: ArrayLike | None = None) -> Nearest:  # noqa: A002
        """The k nearest items of each query, as `WeightedHammingIndex.search` gives them.

        Parameters
        ----------
        codes : (q, n_bytes) uint8, or one code (n_bytes,)
        k : int
        filter : ids, optional; search among these only
        """
        queries, single = check_queries(codes, self.n_bits)
        check_answers(len(queries), k)
        blocks = self._asked(search_shards, queries, k, filter)
        found = [merged_nearest(answers, k) for answers in blocks]
        distances, ids = (np.concatenate([one[i] for one in found]) for i in (0, 1))
        return (distances[0], ids[0]) if single else (distances, ids)

    def range_search(self, codes: ArrayLike, radius: float, *, filter: ArrayLike | None = None) -> Within:  # noqa: A002
        """All items within a distance of each query, as `WeightedHammingIndex.range_search` gives them."""
        queries, _ = check_queries(codes, self.n_bits)
        blocks = self._asked(search_within, queries, check_radius(radius), filter)
        found = [merged_within(answers) for answers in blocks]
        counts = np.concatenate([np.diff(offsets) for offsets, _, _ in found])
        offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        return offsets, np.concatenate([one[1] for one in found]), np.concatenate([one[2] for one in found])

    def search_items(self, model: Any, X: Any, k: int) -> Nearest:
        """The k nearest of each item; the model is checked to be the one that made the codes."""
        self.origin.check(model, str(self.folder))
        return self.search(model.encode(X), k)

    def close(self) -> None:
        """Let go of the cluster; one that was handed in stays."""
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    # Within

    def _asked(self, ask: Callable[..., Any], queries: Codes, limit: Any, wanted: Any) -> list[list[Any]]:
        """For each block of queries, the answers of all workers."""
        chosen = None if wanted is None else np.unique(check_ids(wanted, "filter"))
        starts = range(0, len(queries), _QUERIES) or range(1)
        shares = list(self._shares())
        calls = [
            (str(self.folder), shards, queries[first : first + _QUERIES], limit, chosen)
            for first in starts
            for _, shards in shares
        ]
        homes = [worker for _ in starts for worker, _ in shares]
        answers: list[list[Any]] = [[] for _ in starts]
        present: list[Ints] = []
        for number, (answer, ids) in at_home(self._client, ask, calls, homes):
            answers[number // len(shares)].append(answer)
            if number < len(shares):  # the same for all blocks
                present.append(ids)
        if chosen is not None:
            _check_present(chosen, np.concatenate(present))
        return answers

    def _shares(self) -> Iterator[tuple[str, tuple[Shard, ...]]]:
        """The workers that are there now, and the shards that each should search: always the same, while they live."""
        workers = workers_of(self._client)
        for number, worker in enumerate(workers[: len(self.shards)]):
            yield worker, self.shards[number :: len(workers)]


def _groups(parts: Sequence[Part], codes: int) -> list[tuple[Part, ...]]:
    """Consecutive parts, until there are enough codes."""
    groups: list[list[Part]] = [[]]
    for part in parts:
        if sum(p.n_codes for p in groups[-1]) >= codes:
            groups.append([])
        groups[-1].append(part)
    return [tuple(group) for group in groups]


def _identity(source: Encoded, groups: Sequence[Sequence[Part]]) -> str:
    about = [source.origin.fingerprint, [[(p.content, p.n_codes) for p in group] for group in groups]]
    return hashlib.sha256(json.dumps(about).encode()).hexdigest()


def _check_different(client: Any, folder: Path, shards: Sequence[Shard]) -> None:
    """No id in two shards: plain where their ranges lie apart, else compared bucket by bucket."""
    filled = sorted((s for s in shards if s.n_codes), key=lambda shard: shard.first_id)
    if all(a.last_id < b.first_id for a, b in pairwise(filled)):
        return
    n_buckets = -(-sum(shard.n_codes for shard in filled) // _IDS)
    calls = [(str(folder), filled, bucket, n_buckets) for bucket in range(n_buckets)]
    for _, twice in in_any_order(client, shared_ids, calls):
        if twice:
            raise InvalidInputError(f"ids must be different over all parts, got {twice[0]} twice")


def _check_present(wanted: Ints, found: Ints) -> None:
    missing = np.setdiff1d(wanted, found)
    if missing.size:
        raise InvalidInputError(f"filter must be in the index, got {missing[0]}, which is not")
