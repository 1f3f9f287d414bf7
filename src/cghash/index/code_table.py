"""CodeTable: codes, ids, weights and tables to prune by, in memory: what changes them, and search."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from .. import _kernels
from .._arrays import Array, Codes, Floats, Ints
from .._tensors import device_of, is_on_gpu, is_tensor
from .._validation import check_jobs, check_whole
from ..codes import check_query_weights, check_weights, whole_rows
from ..exceptions import InvalidInputError
from .changes import ADD, ADD_FROM, ADD_WITH_IDS, REMOVE, REPLACE, REWEIGHT, UNWEIGHT, UPDATE, Change
from .checks import MOST_BITS, check_codes, check_different, check_functions, check_ids
from .ids import IdTable
from .pruning import Pruning
from .selection import select

_MOST_MEMORY = 2**62
_AT_ONCE = 1 << 20  # codes
_WITH_TABLES = 5.0  # times the codes' bytes: what codes and tables together may take

Step = tuple[Change, Callable[[], None]]
"""A change, checked against what is held, and the work that makes it: all of it, or none after an error."""


class OwnWeights(NamedTuple):
    """Weights that queries have of their own."""

    whole: Ints  # (q·8·n_bytes,) as multiples of each query's unit, or (8·n_bytes,) for all
    units: Floats  # (q,) or (1,)


class CodeTable:
    """Codes by position with their ids, weights and settings; parameters as of `WeightedHammingIndex`.

    It knows neither files nor threads: searches may run at the same time, and nothing may change meanwhile.
    """

    weights: Floats | None
    whole: Ints  # (8·n_bytes,) weights as multiples of `unit`
    unit: float
    pruning: Pruning

    def __init__(
        self,
        n_bits: int,
        weights: ArrayLike | None,
        *,
        prune: bool,
        max_memory: int | None,
        n_jobs: int | None,
        device: Any,
        functions: str | None,
    ) -> None:
        if check_whole(n_bits, 1, "n_bits") > MOST_BITS:
            raise InvalidInputError(f"n_bits must be at most {MOST_BITS}, got {n_bits}")
        self.n_bits = int(n_bits)
        self.prune = bool(prune)
        self.max_memory = None if max_memory is None else min(check_whole(max_memory, 0, "max_memory"), _MOST_MEMORY)
        self.functions = None if functions is None else check_functions(functions)
        self.use_threads(n_jobs)
        self.device: str | None = None if device is None else str(device_of(device))
        self.blocks = self._new_blocks()
        self.ids = IdTable()
        self._set_weights(None if weights is None else check_weights(weights, self.n_bits))

    @property
    def n_bytes(self) -> int:
        """Bytes of a code."""
        return -(-self.n_bits // 8)

    def options(self) -> dict[str, Any]:
        """What else than bits and weights it was made with."""
        names = ("prune", "max_memory", "n_jobs", "device", "functions")
        return {name: getattr(self, name) for name in names}

    def use_threads(self, n_jobs: int | None) -> None:
        """Search by so many threads; None and -1 are all cores."""
        self.n_jobs = check_jobs(n_jobs)
        self.n_threads = _kernels.n_threads(self.n_jobs)

    def info(self) -> dict[str, Any]:
        """Sizes and memory."""
        found = self.blocks.info() | {"n_prepared": self.blocks.n_prepared}
        about: dict[str, Any] = {"n_bits": self.n_bits, "n_codes": len(self.ids), "n_removed": self.ids.n_removed}
        about |= {"weighted": self.weights is not None, "instruction_set": _kernels.instruction_set()}
        about |= {} if self.device is None else {"device": self.device}
        about |= found | {"id_bytes": self.ids.nbytes}
        return about | {"memory": found["code_bytes"] + found["prune_bytes"] + self.ids.nbytes}

    # Codes

    def checked(self, codes: Any, in_host_memory: bool) -> Any:
        """Packed codes; a tensor's are brought to the host where they must be, or where the others are."""
        if not is_tensor(codes):
            return check_codes(codes, self.n_bits)
        if self.device is None or in_host_memory:
            return check_codes(codes.cpu().numpy(), self.n_bits)
        from ..device.blocks import check_code_tensor

        return check_code_tensor(codes, self.n_bits)

    def follow(self, codes: Any) -> None:
        """Where it is empty and has no device, go where its first codes are."""
        if self.device is None and is_on_gpu(codes) and not self.ids.n:
            self.device = str(codes.device)
            self.blocks = self._new_blocks()

    def of(self, ids: Ints) -> Codes:
        """The packed codes (n, n_bytes) of items."""
        return self.blocks.get(self.ids.positions(ids))  # type: ignore[no-any-return]

    def hold(self, codes: Codes, ids: IdTable) -> None:
        """Codes (n, n_bytes) and their ids, where there are none yet."""
        self.blocks.append(codes)
        self.ids = ids

    def attach(self, blocks: Array, ids: IdTable) -> None:
        """Codes of a file, in blocks of 64, and their ids, where there are none yet."""
        self.blocks.attach(blocks, ids.n)
        self.ids = ids

    def take_over(self, blocks: Any, ids: IdTable) -> None:
        """Hold these blocks and ids in place of those before."""
        self._replace(blocks=blocks, ids=ids, pruning=Pruning())

    def drop_removed(self) -> None:
        """Keep no codes of removed positions."""
        positions, ids = self.ids.kept()
        blocks = self._new_blocks()
        for first in range(0, len(positions), _AT_ONCE):
            blocks.append(self.blocks.get(positions[first : first + _AT_ONCE]))
        self.take_over(blocks, ids)

    def _new_blocks(self) -> Any:
        """Where codes are kept: in host memory, or on the device."""
        if self.device is None:
            return _kernels.CodeBlocks(self.n_bytes)
        from ..device.blocks import DeviceBlocks

        return DeviceBlocks(self.n_bytes, self.device)

    # Changes: checked first, and made once a log holds them

    def adding(self, codes: Codes, ids: Ints | None) -> Step:
        """Add packed codes under new ids, or under those that come next."""
        fresh = self.ids.new_ids(len(codes), ids)
        which = (ADD_FROM, codes, self.ids.next_id) if fresh is None else (ADD_WITH_IDS, codes, fresh)
        return Change(*which), lambda: self._append(codes, fresh)

    def removing(self, ids: Ints) -> Step:
        """Remove items, which differ."""
        positions = self.ids.positions(ids)
        return Change(REMOVE, ids=ids), lambda: self.ids.remove(positions)

    def updating(self, codes: Codes, ids: Ints) -> Step:
        """Replace the codes of items, which differ."""
        positions = self.ids.positions(ids)
        return Change(UPDATE, codes, ids), lambda: self.blocks.put(positions, codes)

    def replacing(self, codes: Codes, ids: Ints) -> Step:
        """Replace the codes of items, which differ, by others behind all that are here."""
        positions = self.ids.positions(ids)
        return Change(REPLACE, codes, ids), lambda: self._replace_codes(positions, codes, ids)

    def reweighting(self, weights: Floats | None) -> Step:
        """Search under other weights."""
        return Change(UNWEIGHT if weights is None else REWEIGHT, weights=weights), lambda: self._set_weights(weights)

    def repeat(self, change: Change) -> None:
        """Make a change that a log holds; ValueError where it cannot be one of what is held."""
        _, work = self._step_of(change)
        work()

    def _step_of(self, change: Change) -> Step:
        operation, codes = change.operation, change.codes
        if operation in (REWEIGHT, UNWEIGHT):
            return self.reweighting(None if change.weights is None else check_weights(change.weights, self.n_bits))
        packed = None if codes is None else check_codes(codes, self.n_bits)
        if operation == ADD_FROM and int(change.ids[0]) != self.ids.next_id:  # type: ignore[index]
            raise ValueError(f"ids are added from {change.ids} on, but {self.ids.next_id} is next")
        if operation in (ADD, ADD_FROM):
            return self.adding(packed, None)  # type: ignore[arg-type]
        ids = check_ids(change.ids)
        if operation == ADD_WITH_IDS:
            return self.adding(packed, ids)  # type: ignore[arg-type]
        check_different(ids)
        if operation == REMOVE:
            return self.removing(ids)
        return (self.replacing if operation == REPLACE else self.updating)(packed, ids)  # type: ignore[arg-type]

    def _append(self, codes: Codes, ids: Ints | None) -> None:
        """Codes and ids, or neither, where memory ends."""
        before = self.ids.state()
        try:
            self.blocks.append(codes)
            self.ids.append(len(codes), ids)
            self.keep_within_memory()
        except BaseException:
            self.blocks.truncate(before[0])
            self.ids.restore(before)
            raise

    def _replace_codes(self, positions: Ints, codes: Codes, ids: Ints) -> None:
        self._append(codes, ids)  # of two with one id the younger is found
        self.ids.remove(positions)

    def _set_weights(self, weights: Floats | None) -> None:
        own = self.own_weights(np.ones(self.n_bits) if weights is None else weights, 1)
        self.blocks.reweight(own.whole)
        # what did not pay before may pay now
        self._replace(weights=weights, whole=own.whole, unit=float(own.units[0]), pruning=Pruning())

    def _replace(self, **attributes: Any) -> None:
        """Set them in one step, which nothing interrupts."""
        vars(self).update(attributes)

    # Search

    def own_weights(self, weights: ArrayLike, n_queries: int) -> OwnWeights:
        """Weights of so many queries, in place of the table's."""
        rows = check_query_weights(weights, n_queries, self.n_bits)
        whole, units = whole_rows(rows, 8 * self.n_bytes)  # the bits past n_bits count nothing
        return OwnWeights(whole.reshape(-1), units)

    def positions(self, queries: Codes, wanted: int, which: ArrayLike | None, own: OwnWeights | None) -> Ints:
        """The positions (q, k) of the nearest, as `search` finds them; of equally near ones the first come first."""
        return self.search(queries, wanted, which, own, by_position=True)[1]

    def search(
        self,
        queries: Codes,
        wanted: int,
        which: ArrayLike | None,
        own: OwnWeights | None,
        by_position: bool = False,
    ) -> tuple[Floats, Ints, bool]:
        """As many of the nearest as there are, of those that a filter lets through; whether it is time to prepare."""
        n, pruning, blocks = self.ids.n, self.pruning, self.blocks
        began = perf_counter() if self.prune and own is None and pruning.may_pay(blocks, n) else None
        count, bits, positions = select(which, self.ids)
        k = wanted if wanted < count else count  # min() would be a call
        ids, whole, unit = None if by_position else self.ids.explicit, self.whole, self.unit
        if own is not None:
            whole, unit = own.whole, 1.0
        if k == 0:
            distances, found = np.zeros((len(queries), 0)), np.zeros((len(queries), 0), dtype=np.int64)
        elif positions is None:
            how = self.n_threads, unit, own is not None
            distances, found = blocks.search(queries, k, whole, ids, bits, count, *how)
        else:
            how = self.n_threads, unit, own is not None
            distances, found = blocks.search_among(queries, positions, k, whole, ids, *how)
        if own is not None:
            distances *= own.units[:, None]
        return distances, found, began is not None and pruning.has_paid(perf_counter() - began, n)

    def within(
        self, queries: Codes, radius: float, which: ArrayLike | None, own: OwnWeights | None
    ) -> tuple[Ints, Floats, Ints]:
        """All within a radius, of those that a filter lets through: offsets, distances and ids."""
        count, bits, positions = select(which, self.ids)
        units = np.broadcast_to(self.unit if own is None else own.units, len(queries))
        with np.errstate(over="ignore"):
            radii = np.floor(np.minimum(radius / units, 2.0**53)).astype(np.int64)
        how = self.n_threads, 1.0, own is not None
        asked = (radii, self.whole if own is None else own.whole, self.ids.explicit)
        if positions is None:
            offsets, distances, found = self.blocks.range_search(queries, *asked, bits, count, *how)
        else:
            offsets, distances, found = self.blocks.range_search_among(queries, positions, *asked, *how)
        return offsets, distances * np.repeat(units, np.diff(offsets)), found

    # Pruning

    def prepare(self) -> None:
        """Build the tables that search prunes by, if they may be built and an estimate says that they pay."""
        room = self._room_for_tables() if self.prune else 0.0
        self.pruning.build(self.blocks, self.ids, self.whole, room, self.n_threads)

    def _room_for_tables(self) -> float:
        """Bytes that they may take, a bit for each code that may change set aside."""
        held = int(self.blocks.info()["code_bytes"])
        most = _WITH_TABLES * self.ids.n * self.n_bytes - held - self.ids.n / 4
        return most if self.max_memory is None else min(most, float(self.max_memory - held - self.ids.nbytes))

    def prepare_unasked(self) -> None:
        """Build them where scans have cost as much, unless another thread was faster."""
        if self.pruning.is_due(self.ids.n):
            try:
                self.prepare()
            except MemoryError:  # the search itself is answered
                self.blocks.forget()

    def keep_within_memory(self) -> None:
        """Drop the tables when codes, ids and tables together take more than `max_memory`."""
        if self.max_memory is not None and self.blocks.n_prepared and self.info()["memory"] > self.max_memory:
            self.blocks.forget()
