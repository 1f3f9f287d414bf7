"""DeviceBlocks: codes that stay on a device, with the face of `_kernels.CodeBlocks`."""

from __future__ import annotations

from collections.abc import Iterator
from threading import Lock
from typing import Any

import numpy as np

from .._arrays import Codes, Floats, Ints
from .._kernels.twins.scanned_blocks import ScannedBlocks
from .._tensors import device_of, import_torch, is_tensor, memory_for
from ..exceptions import DeviceMemoryError, InvalidInputError
from .scans import DeviceWeights, Segment, Tensor, passes_of
from .search import BATCH, Search, batches, gathered

SMALL_SAMPLE, LARGE_SAMPLE = 1 << 18, 1 << 22  # codes, whose k-th nearest bounds that of all
WHOLE = 1024  # capacities and samples are multiples of it, which kernels read at once
_LANES = 64  # codes of a block in files
_AT_ONCE = 1 << 22  # codes that are brought to words together
_LOWER = "add fewer codes, take fewer bits, or spread the codes over several indexes"
_LOWER_SEARCH = "search fewer queries at once, or for a smaller k or radius"


class DeviceBlocks(ScannedBlocks):
    """Packed codes by position 0 … n − 1, as int32 words on a device.

    They are allocated in segments that never move: there is no moment at which old and new copies are both there.
    `threads`, which other blocks work with, mean nothing here.
    """

    def __init__(self, n_bytes: int, device: Any) -> None:
        self.n_bytes = n_bytes
        self.device = device_of(device)
        self.passes = passes_of(self.device)
        self.segments: list[Segment] = []
        self.n_codes = 0
        self.version = object()  # another one after each change of codes
        self.one_query = Lock()
        self._samples: dict[bool, tuple[Tensor, Tensor]] = {}
        self._weights: DeviceWeights | None = None
        self._marks: tuple[Any, Tensor] | None = None

    @property
    def n_words(self) -> int:
        return -(-self.n_bytes // 4)

    # Codes

    def append(self, codes: Codes | Tensor) -> None:
        """Add codes (n, n_bytes), from host memory or the device; all of them, or none where memory lacks."""
        before = self.n_codes
        try:
            for first in range(0, len(codes), _AT_ONCE):
                self._append(codes[first : first + _AT_ONCE], len(codes) - first)
        except BaseException:
            self.truncate(before)
            raise

    def _append(self, codes: Codes | Tensor, to_come: int) -> None:
        words = self._words(codes)  # (n, W)
        done = 0
        while done < len(words):
            segment = self._segment_with_room(to_come - done)
            count = min(len(words) - done, segment.capacity - segment.n)
            segment.words[:, segment.n : segment.n + count] = words[done : done + count].T
            segment.n += count
            self.n_codes += count
            done += count
        self._changed()

    def _segment_with_room(self, to_come: int) -> Segment:
        if self.segments and self.segments[-1].n < self.segments[-1].capacity:
            return self.segments[-1]
        try:
            words = self._allocated(max(to_come, self.n_codes // 8))
        except DeviceMemoryError:
            words = self._allocated(to_come)
        self.segments.append(Segment(words, self.n_codes))
        return self.segments[-1]

    def _allocated(self, n: int) -> Tensor:
        torch = import_torch()
        capacity = -(-n // WHOLE) * WHOLE
        with memory_for(f"room for {n} codes", 4 * self.n_words * capacity, self.device, _LOWER, ahead=True):
            return torch.zeros((self.n_words, capacity), dtype=torch.int32, device=self.device)

    def truncate(self, n_codes: int) -> None:
        """Keep the first so many codes."""
        if not 0 <= n_codes <= self.n_codes:
            raise ValueError("n_codes must be at most what is there")
        self.segments = [segment for segment in self.segments if segment.offset < n_codes]
        if self.segments:
            self.segments[-1].n = n_codes - self.segments[-1].offset
        self.n_codes = n_codes
        self._changed()

    def get(self, positions: Ints) -> Codes:
        """Codes at positions, in host memory."""
        self._check_positions(positions)
        torch = import_torch()
        at = torch.from_numpy(np.ascontiguousarray(positions)).to(self.device)
        octets = self._words_at(at).view(torch.uint8)[:, : self.n_bytes]
        return np.asarray(octets.cpu().numpy())

    def put(self, positions: Ints, codes: Codes | Tensor) -> None:
        self._check_positions(positions)
        torch = import_torch()
        words = self._words(codes)
        at = torch.from_numpy(np.ascontiguousarray(positions)).to(self.device)
        for segment, here in self._by_segment(at):
            segment.words[:, at[here] - segment.offset] = words[here].T
        self._changed()

    def attach(self, blocks: Codes, n_codes: int) -> None:
        """Take over n codes from blocks of 64 whose equal bytes stand together, as `chunks` gives them."""
        n_blocks = -(-n_codes // _LANES)
        if self.n_codes:
            raise ValueError("attach needs empty blocks")
        if n_codes < 0 or blocks.size != n_blocks * _LANES * self.n_bytes:
            raise ValueError("blocks must hold 64 codes a block")
        whole = blocks.reshape(n_blocks, self.n_bytes, _LANES)
        step = _AT_ONCE // _LANES
        try:
            for first in range(0, n_blocks, step):
                rows = whole[first : first + step].transpose(0, 2, 1).reshape(-1, self.n_bytes)
                self._append(rows[: n_codes - self.n_codes], n_codes - self.n_codes)
        except BaseException:
            self.truncate(0)
            raise

    def chunks(self) -> list[Codes]:
        """The blocks in order; lanes past the last code are 0."""
        return [self._chunk(first) for first in range(0, self.n_codes, _AT_ONCE)]

    def _chunk(self, first: int) -> Codes:
        codes = self.get(np.arange(first, min(first + _AT_ONCE, self.n_codes)))
        padded = np.pad(codes, ((0, -len(codes) % _LANES), (0, 0)))
        return np.ascontiguousarray(padded.reshape(-1, _LANES, self.n_bytes).transpose(0, 2, 1)).reshape(-1)

    # Search

    def search(
        self, queries: Codes, k: int, weights: Ints, ids: Ints | None, allowed: Codes | None, n_allowed: int,
        n_threads: int, unit: float = 1.0, own: bool = False,
    ) -> tuple[Floats, Ints]:  # fmt: skip
        """The k nearest of each query: distances, as multiples of `unit`, and ids (q, k), padded with (∞, -1)."""
        with memory_for("the search", None, self.device, _LOWER_SEARCH):
            found = [search.nearest(k) for _, search in self._searches(queries, weights, ids, allowed, own)]
        none = np.zeros((0, k), dtype=np.int64)
        whole, near = (np.concatenate([none, *(answer[i] for answer in found)]) for i in (0, 1))
        return np.where(near < 0, np.inf, whole * np.float64(unit)), near

    def range_search(
        self, queries: Codes, radii: Ints, weights: Ints, ids: Ints | None, allowed: Codes | None, n_allowed: int,
        n_threads: int, unit: float = 1.0, own: bool = False,
    ) -> tuple[Ints, Floats, Ints]:  # fmt: skip
        """All codes within each query's radius: offsets (q + 1,), distances, as multiples of `unit`, and ids."""
        with memory_for("the search", None, self.device, _LOWER_SEARCH):
            searches = self._searches(queries, weights, ids, allowed, own)
            found = [search.within(radii[rows]) for rows, search in searches]
        offsets, whole, near = gathered(found)
        return offsets, whole * np.float64(unit), near

    def _among(self, positions: Ints, ids: Ints | None) -> tuple[DeviceBlocks, Ints, None]:
        return self._some(positions), positions if ids is None else ids[positions], None

    def sample(self, small: bool = False) -> tuple[Tensor, Tensor]:
        """Some codes (W, m), a multiple of `WHOLE`, and their positions, evenly spread; kept until codes change.

        A small sample is for many queries, whose limits fall as codes are looked at.
        """
        if small not in self._samples:
            torch = import_torch()
            most = SMALL_SAMPLE if small else max(SMALL_SAMPLE, min(LARGE_SAMPLE, self.n_codes // 64))
            m = min(self.n_codes, most) // WHOLE * WHOLE
            positions = torch.arange(m, device=self.device) * self.n_codes // max(m, 1)
            self._samples[small] = self._words_at(positions).T.contiguous(), positions
        return self._samples[small]

    def info(self) -> dict[str, Any]:
        """Bytes of codes on the device."""
        return {"code_bytes": sum(segment.words.nbytes for segment in self.segments), "prune_bytes": 0}

    # Within

    def _changed(self) -> None:
        self.version, self._samples = object(), {}

    def _searches(
        self, queries: Codes, weights: Ints, ids: Ints | None, allowed: Codes | None, own: bool
    ) -> Iterator[tuple[slice, Search]]:
        """One batch after the other: what each has on the device is given back before the next.

        With weights of their own, queries are searched one by one.
        """
        words = self._words_of(queries)
        marks = None if allowed is None else self._marks_of(allowed)
        each = np.broadcast_to(weights.reshape(-1, 8 * self.n_bytes), (len(queries), 8 * self.n_bytes)) if own else None
        for rows in batches(len(queries), 1 if own else BATCH):
            asked = self._weights_of(weights) if each is None else self._new_weights(each[rows][0])
            yield rows, Search(self, words[rows].contiguous(), asked, ids, marks)

    def _some(self, positions: Ints) -> DeviceBlocks:
        """Blocks of the codes at some positions."""
        some = DeviceBlocks(self.n_bytes, self.device)
        some._weights = self._weights
        for first in range(0, len(positions), _AT_ONCE):
            at = import_torch().from_numpy(np.ascontiguousarray(positions[first : first + _AT_ONCE])).to(self.device)
            some._append(self._words_at(at).view(import_torch().uint8)[:, : self.n_bytes], len(positions) - first)
        return some

    def _weights_of(self, weights: Ints) -> DeviceWeights:
        """Weights of all queries; they stay on the device for the next search."""
        new = self._new_weights(weights)
        if self._weights is None or not np.array_equal(self._weights.weights, new.weights):
            self._weights = new
        return self._weights

    def _new_weights(self, weights: Ints) -> DeviceWeights:
        padded = np.zeros(32 * self.n_words, dtype=np.int64)
        padded[: len(weights)] = weights
        return DeviceWeights(padded, self.device)

    def _marks_of(self, allowed: Codes) -> Tensor:
        """Marks on the device; those of removed positions stay there as long as they are the same array."""
        if self._marks is None or self._marks[0] is not allowed:
            self._marks = allowed, import_torch().from_numpy(np.array(allowed)).to(self.device)
        return self._marks[1]

    def _words(self, codes: Codes | Tensor) -> Tensor:
        """Codes (n, n_bytes) as words (n, W) on the device."""
        return self._words_of(codes).to(self.device)

    def _words_of(self, codes: Codes | Tensor) -> Tensor:
        """Codes (n, n_bytes) as words (n, W), where they are."""
        torch = import_torch()
        octets: Tensor = codes if is_tensor(codes) else torch.from_numpy(np.array(codes))
        if octets.shape[1] != self.n_bytes:
            raise ValueError("codes must have n_bytes bytes")
        if self.n_bytes % 4:
            octets = torch.nn.functional.pad(octets, (0, -self.n_bytes % 4))
        return octets.contiguous().view(torch.int32)

    def _words_at(self, at: Tensor) -> Tensor:
        torch = import_torch()
        words = torch.empty((len(at), self.n_words), dtype=torch.int32, device=self.device)
        for segment, here in self._by_segment(at):
            words[here] = segment.words[:, at[here] - segment.offset].T
        return words

    def _by_segment(self, at: Tensor) -> list[tuple[Segment, Any]]:
        """For each segment, which of the positions are in it."""
        if len(self.segments) == 1:
            return [(self.segments[0], slice(None))]
        return [(s, (at >= s.offset) & (at < s.offset + s.n)) for s in self.segments]

    def _check_positions(self, positions: Ints) -> None:
        if np.any((positions < 0) | (positions >= self.n_codes)):
            raise ValueError("positions must lie between 0 and n_codes - 1")


def check_code_tensor(codes: Tensor, n_bits: int) -> Tensor:
    """Packed codes (n, ⌈n_bits/8⌉) uint8 as a tensor, whose bits past n_bits are 0."""
    torch = import_torch()
    n_bytes = -(-n_bits // 8)
    if codes.dtype != torch.uint8 or codes.ndim != 2 or codes.shape[1] != n_bytes:
        raise InvalidInputError(
            f"codes must be packed uint8 of shape (n, {n_bytes}) for {n_bits} bits, "
            f"got shape {tuple(codes.shape)}, dtype {codes.dtype}"
        )
    unused = 8 * n_bytes - n_bits
    if unused and len(codes) and int(codes[:, -1].max()) >> (8 - unused):
        raise InvalidInputError(f"codes must have 0 in the bits past n_bits={n_bits}, got some that have not")
    return codes
