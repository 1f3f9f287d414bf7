"""WeightedHammingIndex: codes by id, and exact search among them under the weighted Hamming distance."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from time import perf_counter
from types import TracebackType
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from .. import _kernels
from .._arrays import Codes, Floats, Ints
from .._interrupts import held_off
from .._tensors import device_of, is_on_gpu, is_tensor
from .._validation import check_answers, check_jobs, check_whole
from ..codes import check_weights, whole_weights
from ..exceptions import InvalidInputError
from .checks import (
    LARGEST_ID,
    MOST_BITS,
    check_codes,
    check_different,
    check_functions,
    check_ids,
    check_queries,
    check_radius,
)
from .chosen import Chosen, choose
from .ids import IdTable
from .keeping import Keeping, follow
from .log import ADD_FROM, ADD_WITH_IDS, REMOVE, REWEIGHT, UNWEIGHT, UPDATE
from .pruning import Pruning, keep_within, room_for_tables

__all__ = ["WeightedHammingIndex"]


_MOST_MEMORY = 2**62


class WeightedHammingIndex:
    """Codes by id, and exact search among them: d(b, b') = Σ_j w_j·[b_j ≠ b'_j], order (distance, id).

    Every answer is that of a full float64 comparison with all codes. A search scans all codes, or prunes by tables
    where an estimate says that this is faster; tables are built by `prepare`, or unasked once the scans have cost as
    much time as building them.

    Parameters
    ----------
    n_bits : int, 1 to 1024
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

    _weights: Floats | None
    _whole: Ints  # (8·n_bytes,) weights as multiples of `_unit`
    _unit: float
    _pruning: Pruning

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
        if check_whole(n_bits, 1, "n_bits") > MOST_BITS:
            raise InvalidInputError(f"n_bits must be at most {MOST_BITS}, got {n_bits}")
        self.n_bits = int(n_bits)
        self.prune = bool(prune)
        self.max_memory = None if max_memory is None else min(check_whole(max_memory, 0, "max_memory"), _MOST_MEMORY)
        self.functions = None if functions is None else check_functions(functions)
        self.n_jobs = n_jobs
        self._lock = _kernels.SharedLock()
        self._keeping = Keeping()
        self.device: str | None = None if device is None else str(device_of(device))
        self._blocks = self._new_blocks()
        self._ids = IdTable()
        self._set_weights(None if weights is None else check_weights(weights, self.n_bits))
        self.file: dict[str, Any] = {}  # where it was loaded from: path, mapped, bytes, log_records, digest
        follow(self)

    # What is in it

    @property
    def n_jobs(self) -> int | None:
        """Threads of a search; None and -1 are all cores."""
        return self._n_jobs

    @n_jobs.setter
    def n_jobs(self, n_jobs: int | None) -> None:
        self._n_jobs = check_jobs(n_jobs)
        self._threads = _kernels.n_threads(self._n_jobs)

    @property
    def n_bytes(self) -> int:
        """Bytes of a code."""
        return -(-self.n_bits // 8)

    @property
    def weights(self) -> Floats | None:
        """(n_bits,) weights, None when every bit counts as 1."""
        return None if self._weights is None else self._weights.copy()

    @property
    def ids(self) -> Ints:
        """(n,) ids, in the order in which they were added."""
        return self._lock.read(lambda: self._ids.present())  # type: ignore[no-any-return]

    @property
    def next_id(self) -> int:
        """The id that the next code gets when none is given."""
        return self._ids.next_id

    def __len__(self) -> int:
        return len(self._ids)

    def __contains__(self, identity: object) -> bool:
        if not isinstance(identity, int | np.integer) or not 0 <= identity <= LARGEST_ID:
            return False
        return bool(self._lock.read(lambda: self._ids.find(np.array([identity], dtype=np.int64)))[0] >= 0)

    def __repr__(self) -> str:
        kind = "unweighted" if self._weights is None else "weighted"
        return f"<WeightedHammingIndex: {len(self)} codes of {self.n_bits} bits, {kind}>"

    def __getstate__(self) -> dict[str, Any]:
        """What a pickle or a copy holds; tables are built again when they pay, and a log stays behind."""
        return self._lock.read(self._state)  # type: ignore[no-any-return]

    def _state(self) -> dict[str, Any]:
        positions, ids = self._ids.kept()
        options = {"prune": self.prune, "max_memory": self.max_memory, "n_jobs": self.n_jobs, "device": self.device}
        options |= {"functions": self.functions}
        codes = self._blocks.get(positions)
        state = {"options": options, "n_bits": self.n_bits, "weights": self._weights, "codes": codes, "ids": ids}
        return state | {"seen": self._keeping.seen_now}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["n_bits"], state["weights"], **state["options"])  # type: ignore[misc]
        self._blocks.append(state["codes"])
        self._ids = state["ids"]
        self._keeping = Keeping(state.get("seen"))

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
        self._follow(codes)
        packed = self._checked_codes(codes)
        given = None if ids is None else check_ids(ids)
        if given is not None and len(given) != len(packed):
            raise InvalidInputError(f"ids must be as many as codes, {len(packed)}, got {len(given)}")
        self._change(self._add, packed, given)

    def _add(self, packed: Codes, given: Ints | None) -> None:
        fresh = self._ids.new_ids(len(packed), given)
        operation, ids = (ADD_FROM, self.next_id) if fresh is None else (ADD_WITH_IDS, fresh)
        self._keeping.make(lambda: self._append(packed, fresh), operation, packed, ids)
        keep_within(self._blocks, self._ids, self.max_memory)

    def _append(self, codes: Codes, ids: Ints | None) -> None:
        """Codes and ids, or neither, where memory ends."""
        before = self._ids.state()
        try:
            self._blocks.append(codes)
            self._ids.append(len(codes), ids)
        except BaseException:
            self._blocks.truncate(before[0])
            self._ids.restore(before)
            raise

    def remove(self, ids: ArrayLike) -> None:
        """Remove items; an id that is not in the index is an error, and then nothing is removed."""
        wanted = check_ids(ids)
        check_different(wanted)
        self._change(self._remove, wanted)

    def _remove(self, wanted: Ints) -> None:
        positions = self._ids.positions(wanted)
        self._keeping.make(lambda: self._ids.remove(positions), REMOVE, None, wanted)

    def update(self, codes: ArrayLike, ids: ArrayLike) -> None:
        """Replace the codes of items that are in the index."""
        packed, wanted = self._checked_codes(codes), check_ids(ids)
        check_different(wanted)
        if len(wanted) != len(packed):
            raise InvalidInputError(f"ids must be as many as codes, {len(packed)}, got {len(wanted)}")
        self._change(self._update, packed, wanted)

    def _update(self, packed: Codes, wanted: Ints) -> None:
        positions = self._ids.positions(wanted)
        self._keeping.make(lambda: self._blocks.put(positions, packed), UPDATE, packed, wanted)

    def reweight(self, weights: ArrayLike | None) -> None:
        """Search under other weights from now on; the codes stay.

        Tables hold no bits that had weight 0 when they were built: where such a bit gets a weight, they are built anew.
        """
        checked = None if weights is None else check_weights(weights, self.n_bits)
        change = (UNWEIGHT if checked is None else REWEIGHT, None, None, checked)
        self._change(lambda: self._keeping.make(lambda: self._set_weights(checked), *change))

    def reconstruct(self, ids: ArrayLike) -> Codes:
        """The packed codes (n, n_bytes) of items."""
        wanted = check_ids(ids)
        return self._lock.read(lambda: self._blocks.get(self._ids.positions(wanted)))  # type: ignore[no-any-return]

    def prepare(self) -> None:
        """Build the tables that search prunes by, if they may be built and an estimate says that they pay."""
        self._lock.write(self._prepare)

    # Search

    def search(self, codes: ArrayLike, k: int, *, filter: ArrayLike | None = None) -> tuple[Floats, Ints]:  # noqa: A002
        """The k nearest items of each query.

        Parameters
        ----------
        codes : (q, n_bytes) uint8, or one code (n_bytes,)
        k : int
        filter : array, optional
            Search among some items only: their ids, or a boolean mask over `ids`.

        Returns
        -------
        distances : (q, k) float64, ascending; inf where there are fewer items than k
        ids : (q, k) int64, ascending among equal distances; -1 where there are fewer
            Both (k,) for one code.
        """
        queries, single = check_queries(codes, self.n_bits)
        wanted = check_answers(len(queries), k)
        distances, ids, paid = self._lock.read(self._search, queries, wanted, filter)
        if paid and not self._lock.is_mine():  # a search inside another leaves that to it
            self._lock.write(self._prepare_unasked)
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
        filter: ArrayLike | None = None,  # noqa: A002
    ) -> tuple[Ints, Floats, Ints]:
        """All items within a distance of each query.

        Returns
        -------
        offsets : (q + 1,) int64; the items of query i are at offsets[i] … offsets[i + 1]
        distances : float64, ascending for each query
        ids : int64, ascending among equal distances
        """
        queries, _ = check_queries(codes, self.n_bits)
        limit = check_radius(radius)
        offsets, distances, found = self._lock.read(self._within, queries, limit, filter)
        # NumPy's own int64, which it prints without its name
        return offsets.view(np.int64), distances, found.view(np.int64)

    def info(self) -> dict[str, Any]:
        """Sizes and memory: `code_bytes`, `id_bytes`, `prune_bytes` and `memory`, their sum."""
        return self._lock.read(self._info)  # type: ignore[no-any-return]

    def _info(self) -> dict[str, Any]:
        found = self._blocks.info() | {"n_prepared": self._blocks.n_prepared}
        about: dict[str, Any] = {"n_bits": self.n_bits, "n_codes": len(self), "n_removed": self._ids.n_removed}
        about |= {"weighted": self._weights is not None, "instruction_set": _kernels.instruction_set()}
        about |= {} if self.device is None else {"device": self.device}
        about |= found | {"id_bytes": self._ids.nbytes}
        return about | {"memory": found["code_bytes"] + found["prune_bytes"] + self._ids.nbytes}

    # Files

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the index to one file: beside its place, then renamed, so that a kill leaves the old file or the new.

        A log beside the file, of changes to what the file held before, begins anew. Where another writer has changed
        the file that this index was loaded from, it is not replaced: InUseError.
        """
        from .opening import save_index

        hold = self._lock.read if self._keeping.log is None else self._lock.write  # two cannot begin a log anew
        hold(save_index, self, path)

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
        from .opening import open_index

        return open_index(cls, path, mmap, writable, n_jobs, device, ignore_log)

    @classmethod
    def verify(cls, path: str | os.PathLike[str]) -> dict[str, Any]:
        """Check every byte of an index file and its log: FormatError for what is wrong, else what was checked."""
        from .opening import verify_index

        return verify_index(cls, path)

    def compact(self) -> None:
        """Drop what was removed; of a writable index, write a new file with all changes and begin an empty log."""
        from .opening import compact_index

        self._lock.write(compact_index, self)

    def close(self) -> None:
        """Let go of the log of a writable index, which can be searched on, but not changed."""
        self._lock.write(lambda: self._keeping.close())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # Within

    def _change(self, work: Callable[..., None], *arguments: Any) -> None:
        """Do some work alone, and whole: handlers of signals, which may ask for the lock, run when it is given back."""
        with held_off(only_while=self._lock.is_mine):
            self._lock.write(work, *arguments)

    def _search(self, queries: Codes, wanted: int, filter: ArrayLike | None) -> tuple[Floats, Ints, bool]:  # noqa: A002
        """As many as there are, and whether it is time to build tables."""
        n, pruning = self._ids.n, self._pruning
        began = perf_counter() if self.prune and pruning.may_pay(self._blocks, n) else None
        chosen = choose(filter, self._ids)
        most = wanted if wanted < chosen[0] else chosen[0]  # min() would be a call
        distances, ids = self._nearest(queries, most, chosen)
        return distances, ids, began is not None and pruning.has_paid(perf_counter() - began, n)

    def _nearest(self, queries: Codes, k: int, chosen: Chosen) -> Any:
        if k == 0:
            return np.zeros((len(queries), 0)), np.zeros((len(queries), 0), dtype=np.int64)
        count, bits, positions = chosen
        blocks, ids = self._blocks, self._ids.explicit
        if positions is not None:
            return blocks.search_among(queries, positions, k, self._whole, ids, self._threads, self._unit)
        return blocks.search(queries, k, self._whole, ids, bits, count, self._threads, self._unit)

    def _within(self, queries: Codes, radius: float, filter: ArrayLike | None) -> Any:  # noqa: A002
        count, bits, positions = choose(filter, self._ids)
        limit = math.floor(min(radius / self._unit, 2.0**53))
        weights, ids, threads, unit = self._whole, self._ids.explicit, self._threads, self._unit
        if positions is not None:
            return self._blocks.range_search_among(queries, positions, limit, weights, ids, threads, unit)
        return self._blocks.range_search(queries, limit, weights, ids, bits, count, threads, unit)

    def _set_weights(self, weights: Floats | None) -> None:
        whole, unit = whole_weights(np.ones(self.n_bits) if weights is None else weights, self.n_bits)
        padded = np.zeros(8 * self.n_bytes, dtype=np.int64)  # the bits past n_bits count nothing
        padded[: self.n_bits] = whole
        self._blocks.reweight(padded)
        # what did not pay before may pay now
        self._replace(_weights=weights, _whole=padded, _unit=unit, _pruning=Pruning())

    def _replace(self, **attributes: Any) -> None:
        """Set them in one step, which nothing interrupts."""
        vars(self).update(attributes)

    def _new_blocks(self) -> Any:
        """Where codes are kept: in host memory, or on the device."""
        if self.device is None:
            return _kernels.CodeBlocks(self.n_bytes)
        from ..device.blocks import DeviceBlocks

        return DeviceBlocks(self.n_bytes, self.device)

    def _follow(self, codes: Any) -> None:
        """An empty index of no device goes where its first codes are."""
        if self.device is None and is_on_gpu(codes) and not self._ids.n and self._keeping.log is None:
            self.device = str(codes.device)
            self._blocks = self._new_blocks()

    def _checked_codes(self, codes: Any) -> Any:
        if not is_tensor(codes):
            return check_codes(codes, self.n_bits)
        if self.device is None or self._keeping.log is not None:  # what is logged goes through host memory
            return check_codes(codes.cpu().numpy(), self.n_bits)
        from ..device.blocks import check_code_tensor

        return check_code_tensor(codes, self.n_bits)

    def _take_over(self, other: WeightedHammingIndex, file: dict[str, Any]) -> None:
        """Hold the codes and ids of another index."""
        self._replace(_blocks=other._blocks, _ids=other._ids, _pruning=Pruning(), file=file)

    # Pruning

    def _prepare(self) -> None:
        room = room_for_tables(self._blocks, self._ids, self.n_bytes, self.max_memory) if self.prune else 0.0
        self._pruning.build(self._blocks, self._ids, self._whole, room, self._threads)

    def _prepare_unasked(self) -> None:
        if self._pruning.is_due(self._ids.n):  # no other thread was faster
            try:
                self._prepare()
            except MemoryError:  # the search itself is answered
                self._blocks.forget()
