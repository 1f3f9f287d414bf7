"""VectorIndex: codes in memory find a shortlist, vectors on the disk rank it."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from .. import _kernels
from .._arrays import Floats, Ints, Singles
from .._interrupts import held_off
from .._validation import check_answers, check_choice, check_whole
from ..exceptions import FormatError, InvalidInputError
from .checks import check_different, check_ids
from .code_table import CodeTable, OwnWeights, Step
from .persistence import Persistence, verified
from .vector_folder import (
    METRICS,
    MODEL,
    About,
    locked,
    read_about,
    read_generation,
    released,
    remove_others,
    write_generation,
)
from .vector_rows import KINDS, FileRows, MemoryRows, RowFormat, Rows, check_rows

__all__ = ["VectorIndex"]

_AT_ONCE = 1 << 14  # vectors that are encoded together
_SEEN = 64  # rows whose checksums are looked at when an index is loaded


class VectorIndex:
    """Vectors in, nearest vectors out: binary codes in memory give a shortlist, which the vectors rank.

    A search takes the `candidates` nearest codes, exactly, under weights that the query's own vector gives
    (`model.query`), and ranks them by their vectors. So the order of the answer is that of the vectors; what can be
    missed is what the codes left out. `tune` chooses `candidates` by the recall that is wanted.

    Parameters
    ----------
    model : fitted CGHash or peer, whose codes have bits
    metric : {"cosine", "euclidean", "inner"}, default="cosine"
        What ranks the shortlist: 1 − cosine, the Euclidean distance, or minus the inner product.
    vectors : {"float16", "float32", "int8"}, default="float16"
        How vectors are kept. int8 has a scale for each feature, from the first vectors that are added; later values
        beyond those are cut.
    candidates : int, default=100
        How many codes are ranked by their vectors.
    prune, max_memory, n_jobs : as for `WeightedHammingIndex`

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from cghash.peers import ITQ
    >>> X, _ = load_digits(return_X_y=True)
    >>> index = VectorIndex(ITQ(32, random_state=0).fit(X), metric="euclidean")
    >>> index.add(X[:1500])
    >>> distances, ids = index.search(X[1500:1502], k=3)
    >>> ids.shape
    (2, 3)
    """

    def __init__(
        self,
        model: Any,
        *,
        metric: str = "cosine",
        vectors: str = "float16",
        candidates: int = 100,
        prune: bool = True,
        max_memory: int | None = None,
        n_jobs: int | None = None,
    ) -> None:
        check_choice(metric, METRICS, "metric")
        check_choice(vectors, tuple(KINDS), "vectors")
        about = About(0, uuid.uuid4().hex, metric, vectors, None, None, check_whole(candidates, 1, "candidates"))
        self._begin(_checked_model(model), about, _new_table(model, prune, max_memory, n_jobs), Persistence(), None)

    def _begin(self, model: Any, about: About, table: CodeTable, persistence: Persistence, rows: Rows | None) -> None:
        self._lock = _kernels.SharedLock()
        self.model = model
        self._about = about
        self._table = table
        self._persistence = persistence
        self._rows = rows
        self._folder: Path | None = None  # where changes are written to
        self._held: int | None = None  # its lock

    # What is in it

    @property
    def metric(self) -> str:
        """What ranks the shortlist."""
        return self._about.metric

    @property
    def candidates(self) -> int:
        """How many codes are ranked by their vectors where a search does not say."""
        return self._about.candidates

    @candidates.setter
    def candidates(self, candidates: int) -> None:
        about = replace(self._about, candidates=check_whole(candidates, 1, "candidates"))
        if self._folder is not None:
            about.write(self._folder)
        self._about = about

    @property
    def ids(self) -> Ints:
        """(n,) ids, in the order in which their vectors were added."""
        return self._lock.read(lambda: self._table.ids.present())  # type: ignore[no-any-return]

    def __len__(self) -> int:
        return len(self._table.ids)

    def __contains__(self, identity: object) -> bool:
        if not isinstance(identity, int | np.integer) or identity < 0:
            return False
        return bool(self._lock.read(lambda: self._table.ids.find(np.array([identity], dtype=np.int64)))[0] >= 0)

    def __repr__(self) -> str:
        return (
            f"<VectorIndex: {len(self)} vectors as {self._about.vectors}, by codes of {self._table.n_bits} bits, "
            f"{self.metric}, {self.candidates} candidates>"
        )

    def info(self) -> dict[str, Any]:
        """Sizes: `memory` are bytes of codes, ids and tables, and of vectors that are not in a file."""
        return self._lock.read(self._info)  # type: ignore[no-any-return]

    def _info(self) -> dict[str, Any]:
        about = self._table.info() | {"metric": self.metric, "candidates": self.candidates}
        rows = self._rows
        kept = 0 if rows is None else rows.n * rows.format.size
        about |= {"vectors": self._about.vectors, "dim": self._about.dim, "vector_bytes": kept}
        return about | {"memory": about["memory"] + (0 if rows is None else rows.memory)}

    # Changes

    def add(self, X: Any, ids: ArrayLike | None = None) -> None:
        """Add vectors, some thousand at a time: after an error those of earlier blocks are there.

        Parameters
        ----------
        X : (n, d) array or memory map, or, without ids, an iterable of such blocks
        ids : (n,) int64, 0 or more, optional
            New to the index; default: one more than the largest so far, and on, which are row numbers.
        """
        given = None if ids is None else check_ids(ids)
        if given is not None:
            X = _matrix(X)
            _check_as_many(given, X)
        done = 0
        for block in _blocks(X):
            self._append(self._table.adding, block, None if given is None else given[done : done + len(block)])
            done += len(block)

    def update(self, X: Any, ids: ArrayLike) -> None:
        """Replace the vectors of items that are in the index."""
        wanted, vectors = check_ids(ids), _matrix(X)
        check_different(wanted)
        _check_as_many(wanted, vectors)
        self._append(self._table.replacing, vectors, wanted)

    def remove(self, ids: ArrayLike) -> None:
        """Remove items; an id that is not in the index is an error, and then nothing is removed."""
        wanted = check_ids(ids)
        check_different(wanted)
        self._write(lambda: self._persistence.make(*self._table.removing(wanted)))

    def _append(self, plan: Callable[..., Step], X: Any, ids: Ints | None) -> None:
        """Add vectors and codes, or neither."""
        if not len(X):
            return
        codes = np.asarray(self.model.encode(X))  # checks X
        vectors = _singles(X)
        self._write(lambda: self._appended(plan, codes, vectors, ids))

    def _appended(self, plan: Callable[..., Step], codes: Any, vectors: Singles, ids: Ints | None) -> None:
        self._persistence.check()
        change, work = plan(codes, ids)
        rows = self._rows_for(vectors)
        before = rows.n
        rows.append(rows.format.encoded(vectors))
        try:
            self._persistence.make(change, work)
        except BaseException:
            rows.truncate(before)
            raise

    def _rows_for(self, vectors: Singles) -> Rows:
        """Where vectors like these are kept; decided by the first."""
        if self._rows is None:
            made = RowFormat.fitted(self._about.vectors, vectors, self._about.mark)
            scales = None if made.scales is None else [float(scale) for scale in made.scales]
            about = replace(self._about, dim=made.dim, scales=scales)
            if self._folder is None:
                self._rows = MemoryRows(made)
            else:
                about.rows_in(self._folder).touch()
                about.write(self._folder)
                self._rows = FileRows(made, about.rows_in(self._folder), 0, writable=True)
            self._about = about
        return self._rows

    def _write(self, work: Callable[[], None]) -> None:
        """Change it alone, and whole."""
        with held_off(only_while=self._lock.is_mine):
            self._lock.write(work)

    def reconstruct(self, ids: ArrayLike) -> Singles:
        """The vectors (n, d) of items, as they are kept."""
        wanted = check_ids(ids)
        return self._lock.read(lambda: self._vectors_at(self._table.ids.positions(wanted)))  # type: ignore[no-any-return]

    def _vectors_at(self, positions: Ints) -> Singles:
        if self._rows is None:
            return np.zeros((0, 0), dtype=np.float32)
        return self._rows.format.decoded(self._rows.rows[positions])

    # Search

    def search(
        self,
        X: Any,
        k: int = 10,
        *,
        candidates: int | None = None,
        filter: ArrayLike | None = None,  # noqa: A002
    ) -> tuple[Floats, Ints]:
        """The k nearest vectors of each query, among its candidates.

        Parameters
        ----------
        X : (q, d) vectors, or one (d,)
        k : int, default=10
        candidates : int, optional; default: as constructed or tuned
            How many codes are ranked by their vectors; k at least.
        filter : array, optional
            Search among some items only: their ids, or a boolean mask over `ids`.

        Returns
        -------
        distances : (q, k) float64, ascending; inf where there are fewer items than k
        ids : (q, k) int64; -1 where there are fewer
            Both (k,) for one vector.
        """
        single = np.ndim(X) == 1
        queries = np.asarray(X)[None] if single else X
        wanted = check_answers(len(queries), k)
        few = max(wanted, self.candidates if candidates is None else check_whole(candidates, 1, "candidates"))
        asked = self.model.query(queries)
        own = self._table.own_weights(asked.weights, len(queries))
        distances, ids = self._lock.read(self._ranked, asked.codes, own, _singles(queries), wanted, few, filter)
        return (distances[0], ids[0]) if single else (distances, ids)

    def _ranked(
        self, codes: Any, own: OwnWeights, queries: Singles, k: int, candidates: int, which: ArrayLike | None
    ) -> tuple[Floats, Ints]:
        shortlist = self._table.positions(codes, candidates, which, own)
        distances, positions = self._rank(queries, shortlist, k)
        found = positions >= 0
        ids = np.where(found, self._table.ids.at(np.maximum(positions, 0)) if len(self) else -1, -1)
        if self._table.ids.explicit is not None:  # equally near ones by their ids
            order = np.lexsort((ids, distances), axis=-1)
            distances, ids = (np.take_along_axis(values, order, axis=-1) for values in (distances, ids))
        return distances, ids

    def _rank(self, queries: Singles, positions: Ints, k: int) -> tuple[Floats, Ints]:
        """The k nearest of some positions (q, c), by their vectors: distances and positions (q, k)."""
        if self._rows is None:
            return np.full((len(queries), k), np.inf), np.full((len(queries), k), -1)
        rows = self._rows
        vectors = rows.rows, rows.format.kind, rows.format.scales
        found: tuple[Floats, Ints] = _kernels.rank_rows(
            *vectors, queries, positions, k, self.metric, self._table.n_threads
        )
        return found

    def tune(self, X: Any, recall: float = 0.95, k: int = 10) -> int:
        """Choose the least number of candidates that finds this share of the true k nearest of some queries.

        Parameters
        ----------
        X : (q, d) vectors like those that will be asked; a few hundred, none of them in the index
        recall : float, default=0.95
        k : int, default=10

        Returns
        -------
        candidates : int, which searches take from now on
        """
        if not (isinstance(recall, int | float | np.floating) and 0 < recall <= 1):
            raise InvalidInputError(f"recall must be a number above 0, at most 1, got {recall!r}")
        check_answers(len(X), k)
        if not len(self) or not len(X):
            raise InvalidInputError("tune needs vectors in the index, and queries")
        asked, queries = self.model.query(X), _singles(X)
        own = self._table.own_weights(asked.weights, len(queries))
        self.candidates = self._lock.read(self._least_candidates, asked.codes, own, queries, float(recall), k)
        return self.candidates

    def _least_candidates(self, codes: Any, own: OwnWeights, queries: Singles, recall: float, k: int) -> int:
        k = min(k, len(self))
        everything = np.flatnonzero(self._table.ids.mask)[None]
        true = np.concatenate([self._rank(query[None], everything, k)[1] for query in queries])  # (q, k) positions
        wanted = int(np.ceil(recall * true.size - 1e-9))
        tried, places = k, np.zeros(0)
        while len(places) < wanted:  # all are on a list of all
            shortlists = self._table.positions(codes, tried, None, own)
            places = np.concatenate([_places(*pair) for pair in zip(shortlists, true, strict=True)])
            tried *= 2
        return max(k, int(np.sort(places)[wanted - 1]) + 1)

    # Files

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write codes, ids, vectors and the model to a folder, which is new or holds such an index already."""
        folder = Path(path)
        folder.mkdir(exist_ok=True)
        if os.listdir(folder):
            read_about(folder)  # nothing else is overwritten
        if self._folder is not None and os.path.realpath(folder) == os.path.realpath(self._folder):
            return self.compact()
        held = locked(folder)
        try:
            self._lock.read(self._written_to, folder)
        finally:
            released(held)
        return None

    def _written_to(self, folder: Path) -> None:
        self.model.save(folder / MODEL)
        write_generation(folder, self._about, self._table, self._rows)

    @classmethod
    def load(
        cls, path: str | os.PathLike[str], *, writable: bool = False, model: Any = None, n_jobs: int | None = None
    ) -> Self:
        """Read an index that `save` wrote; vectors stay in their file, mapped.

        Parameters
        ----------
        path : folder
        writable : bool, default=False
            True writes every change to the folder, and flushes it to the disk before `add`, `update` or `remove`
            return; one writer at a time, until `close`. False refuses changes.
        model : fitted model, optional
            In place of the one in the folder, for models that no file holds; it must have the same hash functions.
        n_jobs : int, default=None
            Threads; None and -1 are all cores.
        """
        from ..estimator import load

        folder = Path(path)
        read_about(folder)  # before a lock is made where there is no index
        held = locked(folder) if writable else None
        try:
            if model is None and not (folder / MODEL).exists():
                raise FormatError(f"{folder} lacks {MODEL}: put it back, or name the model (model=…)")
            used = _checked_model(load(folder / MODEL) if model is None else model)
            about, table, persistence, rows = read_generation(folder, writable, n_jobs)
            index = cls.__new__(cls)
            index._begin(used, about, table, persistence, rows)
            index._check_model()
            index._check_some()
        except BaseException:
            released(held)
            raise
        if writable:
            index._folder, index._held = folder, held
            remove_others(folder, about)
        return index

    def _check_model(self) -> None:
        from ..estimator import functions_of

        functions = functions_of(self.model)
        if self._table.functions not in (None, functions):
            raise InvalidInputError(
                f"model must be the one that made the codes (functions {str(self._table.functions)[:12]}…), "
                f"got one with other hash functions ({str(functions)[:12]}…)"
            )

    def _check_some(self) -> None:
        """FormatError where some of the rows, spread over all, do not match their checksums."""
        rows = self._rows
        if isinstance(rows, FileRows) and rows.n:
            some = rows.rows[np.linspace(0, rows.n - 1, min(_SEEN, rows.n)).astype(np.int64)]
            check_rows(some, rows.format, str(rows.path))

    @classmethod
    def verify(cls, path: str | os.PathLike[str]) -> dict[str, Any]:
        """Check every byte of codes and vectors in a folder: FormatError for what is wrong, else what was checked."""
        folder = Path(path)
        about = read_about(folder)
        facts = verified(about.codes_in(folder))
        with cls.load(folder) as index:
            rows = index._rows
            if isinstance(rows, FileRows):
                check_rows(rows.rows, rows.format, str(rows.path))
        return facts | {"vectors": about.vectors, "dim": about.dim}

    def compact(self) -> None:
        """Drop what was removed or replaced; of a writable index, write its files anew."""
        self._write(self._compacted)

    def _compacted(self) -> None:
        folder = self._folder
        if folder is None:
            self._persistence.check()
            if self._table.ids.n_removed and self._rows is not None:
                positions, _ = self._table.ids.kept()
                self._rows = MemoryRows(self._rows.format, np.ascontiguousarray(self._rows.rows[positions]))
                self._table.drop_removed()
            return
        self._written_to(folder)
        about, table, persistence, rows = read_generation(folder, True, self._table.n_jobs)
        self._persistence.close()
        if self._rows is not None:
            self._rows.close()
        self._about, self._table, self._persistence, self._rows = about, table, persistence, rows

    def close(self) -> None:
        """Let others write; an index that was writable can be searched on, but not changed."""
        self._lock.write(self._closed)

    def _closed(self) -> None:
        self._persistence.close()
        if self._rows is not None:
            self._rows.close()
        released(self._held)
        self._folder = self._held = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _checked_model(model: Any) -> Any:
    if not (hasattr(model, "encode") and hasattr(model, "query") and hasattr(model, "n_bits_")):
        raise InvalidInputError(f"model must be fitted, with encode and query, got {model!r:.80}")
    return model


def _new_table(model: Any, prune: bool, max_memory: int | None, n_jobs: int | None) -> CodeTable:
    from ..estimator import functions_of

    weights = getattr(model, "weights_", None)
    options: dict[str, Any] = {"prune": prune, "max_memory": max_memory, "n_jobs": n_jobs, "device": None}
    return CodeTable(model.n_bits_, weights, functions=functions_of(model), **options)


def _blocks(X: Any) -> Iterator[Any]:
    """Vectors some thousand at a time, of an array or of an iterable of arrays."""
    if not hasattr(X, "shape") and not isinstance(X, list | tuple):
        if not isinstance(X, Iterable):
            raise InvalidInputError(f"X must be vectors (n, d), or blocks of them, got {X!r:.80}")
        for block in X:
            yield from _blocks(_matrix(block))
        return
    matrix = _matrix(X)
    for first in range(0, len(matrix), _AT_ONCE):
        yield matrix[first : first + _AT_ONCE]


def _matrix(X: Any) -> Any:
    matrix = X if hasattr(X, "shape") else np.asarray(X)
    if len(matrix.shape) != 2:
        raise InvalidInputError(f"X must be vectors (n, d), a row each, got shape {tuple(matrix.shape)}")
    return matrix


def _check_as_many(ids: Ints, vectors: Any) -> None:
    if len(ids) != len(vectors):
        raise InvalidInputError(f"ids must be as many as the {len(vectors)} vectors of X, got {len(ids)}")


def _singles(X: Any) -> Singles:
    return np.ascontiguousarray(X, dtype=np.float32)


def _places(shortlist: Ints, true: Ints) -> Ints:
    """Where on a shortlist the true neighbours stand, of those that do."""
    return np.flatnonzero(np.isin(shortlist, true))
