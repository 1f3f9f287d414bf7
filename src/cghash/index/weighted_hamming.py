"""WeightedHammingIndex: codes by id, and exact search among them under the weighted Hamming distance."""

from __future__ import annotations

import os
from collections.abc import Callable
from types import TracebackType
from typing import Any, Literal, Self
from weakref import WeakSet

import numpy as np
from numpy.typing import ArrayLike

from .. import _kernels
from .._arrays import Codes, Floats, Ints
from .._interrupts import held_off
from .._validation import check_answers
from ..codes import check_weights
from ..exceptions import InvalidInputError
from .checks import LARGEST_ID, check_different, check_functions, check_ids, check_queries, check_radius
from .code_table import CodeTable, Step
from .persistence import Persistence, opened, verified

__all__ = ["WeightedHammingIndex"]


class WeightedHammingIndex:
    """Codes by id, and exact search among them: d(b, b') = Σ_j w_j·[b_j ≠ b'_j], order (distance, id).

    Every answer is that of a full float64 comparison with all codes. A search scans all codes, or prunes by tables
    where an estimate says that this is faster; tables are built by `prepare`, or unasked once the scans have cost as
    much time as building them.

    Parameters
    ----------
    n_bits : int, 1 to 4096
    weights : (n_bits,) array, 0 or more, default=None
        What each bit counts; None counts every bit as 1.
    prune : bool, default=True
        Whether tables may be built; they take up to four times the codes' memory.
    max_memory : int, default=None
        Bytes that codes, ids and tables together may take; where tables would take more, the index only scans.
    n_jobs : int, default=None
        Threads; None and -1 are all cores.
    device : {"cuda", "cuda:0", …, "cpu"} or torch.device, default=None
        Keep the codes in a GPU's memory and search there, with the same answers; "cpu" runs the same code on CPU
        tensors. None is the CPU's own kernels, until the first codes are a tensor on a GPU. Needs torch, and builds
        no tables.
    functions : str, default=None
        SHA-256 over the hash functions that make the codes (`build_index` gives it); goes into files, so that a model
        with others is refused. None is not known.

    Examples
    --------
    >>> import numpy as np
    >>> index = WeightedHammingIndex(8, weights=[8, 7, 6, 5, 4, 3, 2, 1])
    >>> index.add(np.array([[0b0001], [0b0110], [0b1000]], dtype=np.uint8))
    >>> index.search(np.array([0b1001], dtype=np.uint8), k=2)
    (array([5., 8.]), array([0, 2]))
    """

    def __init__(
        self,
        n_bits: int,
        weights: ArrayLike | None = None,
        *,
        prune: bool = True,
        max_memory: int | None = None,
        n_jobs: int | None = None,
        device: Any = None,
        functions: str | None = None,
    ) -> None:
        options: dict[str, Any] = {"prune": prune, "max_memory": max_memory, "n_jobs": n_jobs, "device": device}
        self._begin(CodeTable(n_bits, weights, functions=functions, **options), Persistence())

    def _begin(self, table: CodeTable, persistence: Persistence) -> None:
        self._lock = _kernels.SharedLock()
        self._table = table
        self._persistence = persistence
        _OPEN.add(self)

    # What is in it

    @property
    def n_bits(self) -> int:
        """Bits of a code."""
        return self._table.n_bits

    @property
    def functions(self) -> str | None:
        """SHA-256 over the hash functions that make the codes; None is not known."""
        return self._table.functions

    @functions.setter
    def functions(self, functions: str | None) -> None:
        self._table.functions = None if functions is None else check_functions(functions)

    @property
    def n_bytes(self) -> int:
        """Bytes of a code."""
        return self._table.n_bytes

    @property
    def n_jobs(self) -> int | None:
        """Threads of a search; None and -1 are all cores."""
        return self._table.n_jobs

    @n_jobs.setter
    def n_jobs(self, n_jobs: int | None) -> None:
        self._table.use_threads(n_jobs)

    @property
    def prune(self) -> bool:
        """Whether tables may be built."""
        return self._table.prune

    @prune.setter
    def prune(self, prune: bool) -> None:
        self._table.prune = prune

    @property
    def max_memory(self) -> int | None:
        """Bytes that codes, ids and tables together may take."""
        return self._table.max_memory

    @max_memory.setter
    def max_memory(self, max_memory: int | None) -> None:
        self._table.max_memory = max_memory

    @property
    def device(self) -> str | None:
        """Where the codes are, None in host memory."""
        return self._table.device

    @property
    def file(self) -> dict[str, Any]:
        """Where it was loaded from: path, mapped, bytes, log_records, digest; empty when it was not."""
        return self._persistence.file

    @property
    def weights(self) -> Floats | None:
        """(n_bits,) weights, None when every bit counts as 1."""
        weights = self._table.weights
        return None if weights is None else weights.copy()

    @property
    def ids(self) -> Ints:
        """(n,) ids, in the order in which they were added."""
        return self._lock.read(lambda: self._table.ids.present())  # type: ignore[no-any-return]

    @property
    def next_id(self) -> int:
        """The id that the next code gets when none is given."""
        return self._table.ids.next_id

    def __len__(self) -> int:
        return len(self._table.ids)

    def __contains__(self, identity: object) -> bool:
        if not isinstance(identity, int | np.integer) or not 0 <= identity <= LARGEST_ID:
            return False
        return bool(self._lock.read(lambda: self._table.ids.find(np.array([identity], dtype=np.int64)))[0] >= 0)

    def __repr__(self) -> str:
        kind = "unweighted" if self._table.weights is None else "weighted"
        return f"<WeightedHammingIndex: {len(self)} codes of {self.n_bits} bits, {kind}>"

    def __getstate__(self) -> dict[str, Any]:
        """What a pickle or a copy holds; tables are built again when they pay, and a log stays behind."""
        return self._lock.read(self._state)  # type: ignore[no-any-return]

    def _state(self) -> dict[str, Any]:
        table = self._table
        positions, ids = table.ids.kept()
        state = {"options": table.options(), "n_bits": table.n_bits, "weights": table.weights}
        return state | {"codes": table.blocks.get(positions), "ids": ids, "seen": self._persistence.seen}

    def __setstate__(self, state: dict[str, Any]) -> None:
        table = CodeTable(state["n_bits"], state["weights"], **state["options"])
        table.hold(state["codes"], state["ids"])
        self._begin(table, Persistence(state.get("seen")))

    def check_model(self, functions: str | None) -> None:
        """Refuse a model whose hash functions, by their SHA-256, are not those of the codes; None is not known."""
        if functions is None or self.functions is None or functions == self.functions:
            return
        raise InvalidInputError(
            f"model must be the one whose codes {self.file.get('path', 'the index')} holds (functions "
            f"{self.functions[:12]}…), got one with other hash functions ({functions[:12]}…)"
        )

    # Changes

    def add(self, codes: ArrayLike, ids: ArrayLike | None = None) -> None:
        """Add packed codes.

        Parameters
        ----------
        codes : (n, n_bytes) uint8; of an index on a device, a tensor there too
        ids : (n,) int64, 0 or more, optional
            New to the index; default: one more than the largest so far, and on, which are row numbers.
        """
        if self._persistence.log is None:
            self._table.follow(codes)
        packed = self._packed(codes)
        given = None if ids is None else check_ids(ids)
        if given is not None:
            _check_as_many(given, packed)
        self._change(self._table.adding, packed, given)

    def remove(self, ids: ArrayLike) -> None:
        """Remove items; an id that is not in the index is an error, and then nothing is removed."""
        wanted = check_ids(ids)
        check_different(wanted)
        self._change(self._table.removing, wanted)

    def update(self, codes: ArrayLike, ids: ArrayLike) -> None:
        """Replace the codes of items that are in the index."""
        packed, wanted = self._packed(codes), check_ids(ids)
        check_different(wanted)
        _check_as_many(wanted, packed)
        self._change(self._table.updating, packed, wanted)

    def reweight(self, weights: ArrayLike | None) -> None:
        """Search under other weights from now on; the codes stay.

        Tables hold no bits that had weight 0 when they were built: where such a bit gets a weight, they are built anew.
        """
        self._change(self._table.reweighting, None if weights is None else check_weights(weights, self.n_bits))

    def _packed(self, codes: Any) -> Any:
        return self._table.checked(codes, self._persistence.log is not None)  # what is logged goes through host memory

    def _change(self, plan: Callable[..., Step], *arguments: Any) -> None:
        """Change it alone, and whole: handlers of signals, which may ask for the lock, run when it is given back."""
        with held_off(only_while=self._lock.is_mine):
            self._lock.write(lambda: self._persistence.make(*plan(*arguments)))

    def reconstruct(self, ids: ArrayLike) -> Codes:
        """The packed codes (n, n_bytes) of items."""
        wanted = check_ids(ids)
        return self._lock.read(self._table.of, wanted)  # type: ignore[no-any-return]

    def prepare(self) -> None:
        """Build the tables that search prunes by, if they may be built and an estimate says that they pay."""
        self._lock.write(self._table.prepare)

    # Search

    def search(
        self,
        codes: ArrayLike,
        k: int,
        *,
        weights: ArrayLike | None = None,
        filter: ArrayLike | None = None,  # noqa: A002
    ) -> tuple[Floats, Ints]:
        """The k nearest items of each query.

        Parameters
        ----------
        codes : (q, n_bytes) uint8, or one code (n_bytes,)
        k : int
        weights : (q, n_bits) or (n_bits,), 0 or more, optional
            What each bit counts for each query, or for all, in place of the index's weights; `model.query` gives them.
        filter : array, optional
            Search among some items only: their ids, or a boolean mask over `ids`.

        Returns
        -------
        distances : (q, k) float64, ascending; inf where there are fewer items than k
        ids : (q, k) int64, ascending among equal distances; -1 where there are fewer
            Both (k,) for one code.
        """
        table = self._table
        queries, single = check_queries(codes, table.n_bits)
        wanted = check_answers(len(queries), k)
        own = None if weights is None else table.own_weights(weights, len(queries))
        distances, ids, paid = self._lock.read(table.search, queries, wanted, filter, own)
        if paid and not self._lock.is_mine():  # a search inside another leaves that to it
            self._lock.write(table.prepare_unasked)
        if ids.shape[1] < wanted:
            missing = ((0, 0), (0, wanted - ids.shape[1]))
            distances, ids = (
                np.pad(distances, missing, constant_values=np.inf),
                np.pad(ids, missing, constant_values=-1),
            )
        return (distances[0], ids[0]) if single else (distances, ids)

    def range_search(
        self,
        codes: ArrayLike,
        radius: float,
        *,
        weights: ArrayLike | None = None,
        filter: ArrayLike | None = None,  # noqa: A002
    ) -> tuple[Ints, Floats, Ints]:
        """All items within a distance of each query; `weights` and `filter` as for `search`.

        Returns
        -------
        offsets : (q + 1,) int64; the items of query i are at offsets[i] … offsets[i + 1]
        distances : float64, ascending for each query
        ids : int64, ascending among equal distances
        """
        queries, _ = check_queries(codes, self.n_bits)
        limit = check_radius(radius)
        own = None if weights is None else self._table.own_weights(weights, len(queries))
        offsets, distances, found = self._lock.read(self._table.within, queries, limit, filter, own)
        # NumPy's own int64, which it prints without its name
        return offsets.view(np.int64), distances, found.view(np.int64)

    def info(self) -> dict[str, Any]:
        """Sizes and memory: `code_bytes`, `id_bytes`, `prune_bytes` and `memory`, their sum."""
        return self._lock.read(self._table.info)  # type: ignore[no-any-return]

    # Files

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the index to one file: beside its place, then renamed, so that a kill leaves the old file or the new.

        A log beside the file, of changes to what the file held before, begins anew. Where another writer has changed
        the file that this index was loaded from, it is not replaced: InUseError.
        """
        hold = self._lock.read if self._persistence.log is None else self._lock.write  # two cannot begin a log anew
        hold(self._persistence.save, self._table, path)

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        mmap: bool = True,
        *,
        writable: bool | Literal["memory"] = False,
        n_jobs: int | None = None,
        device: Any = None,
        ignore_log: bool = False,
    ) -> Self:
        """Read an index that `save` wrote, and make the changes that its log holds.

        Parameters
        ----------
        path : file
        mmap : bool, default=True
            Map the file: it opens at once, pages are read as they are needed, and processes share them. False reads
            all of it and verifies its checksums.
        writable : bool or "memory", default=False
            True writes every change to a log beside the file, `path` + ".log", and flushes it to the disk before it is
            made; one writer at a time, until `close`. "memory" makes changes in memory alone. False refuses them.
        n_jobs : int, default=None
            Threads; None and -1 are all cores.
        device : as for the index, default=None
            Bring the codes there.
        ignore_log : bool, default=False
            Read what the file itself holds, where its log is lost or damaged.
        """
        table, persistence = opened(path, mmap, writable, n_jobs, device, ignore_log)
        index = cls.__new__(cls)
        index._begin(table, persistence)
        return index

    @classmethod
    def verify(cls, path: str | os.PathLike[str]) -> dict[str, Any]:
        """Check every byte of an index file and its log: FormatError for what is wrong, else what was checked."""
        return verified(path)

    def compact(self) -> None:
        """Drop what was removed; of a writable index, write a new file with all changes and begin an empty log."""
        self._lock.write(self._persistence.compact, self._table)

    def close(self) -> None:
        """Let go of the log of a writable index, which can be searched on, but not changed."""
        self._lock.write(self._persistence.close)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _forked(self) -> None:
        self._table.blocks.forked()
        self._persistence.forked(self._lock.reset())


def _check_as_many(ids: Ints, codes: Codes) -> None:
    if len(ids) != len(codes):
        raise InvalidInputError(f"ids must be as many as codes, {len(codes)}, got {len(ids)}")


_OPEN: WeakSet[WeightedHammingIndex] = WeakSet()  # what a forked process must not take over as it is


def _forked() -> None:
    for index in list(_OPEN):
        index._forked()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)
