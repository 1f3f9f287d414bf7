"""The log beside an index file: changes since the file was written, each on the disk before it is made.

A header (magic, version, uuid of the index file, CRC-32), then records: length of the payload, operation, CRC-32 of
these; payload; CRC-32 of all that. What is left of a record that a kill tore is its beginning, or ends in zeros: it was
never acknowledged, and is dropped. Anything else that does not match is a FormatError. Integers are little-endian.
"""

from __future__ import annotations

import os
import struct
import uuid
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from ..exceptions import CGHashError, FormatError, InUseError, InvalidInputError
from ..storage import flush_folder
from .sections import Path, crc_of

if TYPE_CHECKING:
    from .files import About
    from .weighted_hamming import WeightedHammingIndex

MAGIC, VERSION = b"\x89CGHLG\r\n", 1
ADD, ADD_WITH_IDS, REMOVE, UPDATE, REWEIGHT, UNWEIGHT = range(1, 7)

_HEADER = struct.Struct("<8sI16sI")  # magic, version, uuid of the index file, CRC-32
_RECORD = struct.Struct("<QB3xI")  # length of the payload, operation, CRC-32 of these
_CRC = struct.Struct("<I")
_SMALL = 1 << 20  # bytes that are copied together for the sake of one write


@dataclass(frozen=True)
class Change:
    """One call that changed an index; payloads are codes, then ids, or weights."""

    operation: int
    codes: NDArray[np.uint8] | None = None
    ids: NDArray[np.int64] | None = None
    weights: NDArray[np.float64] | None = None

    def payload(self) -> list[memoryview]:
        arrays = ((self.codes, "|u1"), (self.ids, "<i8"), (self.weights, "<f8"))
        return [
            np.ascontiguousarray(array, dtype=dtype).reshape(-1).view(np.uint8).data
            for array, dtype in arrays
            if array is not None
        ]

    def apply(self, index: WeightedHammingIndex) -> None:
        if self.operation in (ADD, ADD_WITH_IDS):
            index.add(self.codes, self.ids)  # type: ignore[arg-type]
        elif self.operation == REMOVE:
            index.remove(self.ids)  # type: ignore[arg-type]
        elif self.operation == UPDATE:
            index.update(self.codes, self.ids)  # type: ignore[arg-type]
        else:
            index.reweight(self.weights)


def change_of(operation: int, payload: bytes, n_bytes: int) -> Change:
    """The inverse of `payload`; ValueError when the lengths cannot be."""
    code, identity = {ADD: (n_bytes, 0), REMOVE: (0, 8)}.get(operation, (n_bytes, 8))
    if operation in (REWEIGHT, UNWEIGHT):
        return Change(operation, weights=_array(payload, "<f8") if operation == REWEIGHT else None)
    if not ADD <= operation <= UPDATE or len(payload) % (code + identity):
        raise ValueError(f"operation {operation} with {len(payload)} bytes")
    n = len(payload) // (code + identity)
    codes = np.frombuffer(payload, dtype=np.uint8, count=n * code).reshape(n, code) if code else None
    return Change(operation, codes, _array(payload[n * code :], "<i8") if identity else None)


def _array(payload: bytes, dtype: str) -> NDArray[Any]:
    array = np.frombuffer(payload, dtype=dtype)
    return array.astype(array.dtype.newbyteorder("="), copy=False)


def log_path(path: Path) -> str:
    """Where the log of an index file is: beside the file itself, also when a link leads there."""
    return os.path.realpath(path) + ".log"


def replay(path: Path, about: About, index: WeightedHammingIndex) -> int:
    """Make the changes that the log beside an index file holds; how many there are."""
    try:
        file = open(log_path(path), "rb")  # noqa: SIM115
    except FileNotFoundError:
        return 0
    with file:
        return _replayed(file, about, index)[0]


class Log:
    """The log of an index file, locked: no other process or `Log` can write to it until it is closed."""

    def __init__(self, path: Path) -> None:
        self.path = log_path(path)
        existed = os.path.exists(self.path)
        self._file = os.fdopen(os.open(self.path, os.O_RDWR | os.O_CREAT, 0o666), "r+b")
        self._end = 0
        self._broken = False
        try:
            self._lock(path)
            self.base = _base(self._file)
            if not existed:
                flush_folder(os.path.dirname(self.path))
        except BaseException:
            self.close()
            raise

    def _lock(self, path: Path) -> None:
        try:
            import fcntl
        except ImportError as error:
            raise CGHashError(
                f"{path}: writing to a loaded index needs flock, which this system lacks: build it anew"
            ) from error
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise InUseError(f"{path} is open for writing elsewhere: one writer at a time") from error

    def replay(self, about: About, index: WeightedHammingIndex) -> int:
        """As the function, and cut off a torn record; from here on changes can be written."""
        n, end = _replayed(self._file, about, index)
        if end:
            os.ftruncate(self._file.fileno(), end)
            self.base, self._end = about.uuid, end
        else:
            self.restart(about.uuid)
        return n

    @property
    def empty(self) -> bool:
        return self._end <= _HEADER.size

    def restart(self, base: str) -> None:
        """Forget all changes: they are in the index file of that uuid now."""
        self._broken = True
        os.ftruncate(self._file.fileno(), 0)
        head = _HEADER.pack(MAGIC, VERSION, uuid.UUID(base).bytes, 0)[: -_CRC.size]
        self.base, self._end = base, 0
        self._append([head, _CRC.pack(zlib.crc32(head))])
        self._broken = False

    @contextmanager
    def written(self, change: Change) -> Iterator[None]:
        """Write a change and flush it to the disk, then let it be made; cut it off when either fails."""
        self.check_open()
        if self._broken:
            raise OSError(f"{self.path} could not be mended after an error: load the index again to change it")
        end = self._end
        try:
            self._append(_record(change))
            yield
        except BaseException:
            self._cut(end)
            raise

    @property
    def closed(self) -> bool:
        return self._file.closed

    def check_open(self) -> None:
        if self.closed:
            raise InvalidInputError("the index was closed: load it again to change it")

    def close(self) -> None:
        """Let others write."""
        self._file.close()

    def _append(self, parts: list[Any]) -> None:
        at = self._end
        small = sum(map(len, parts)) <= _SMALL
        for part in [b"".join(parts)] if small else parts:
            left = memoryview(part)
            while len(left):
                written = os.pwrite(self._file.fileno(), left, at)
                left, at = left[written:], at + written
        os.fsync(self._file.fileno())
        self._end = at

    def _cut(self, end: int) -> None:
        self._broken = True
        with suppress(OSError):
            os.ftruncate(self._file.fileno(), end)
            self._end, self._broken = end, False


def _record(change: Change) -> list[Any]:
    payload = change.payload()
    head = _RECORD.pack(sum(map(len, payload)), change.operation, 0)[: -_CRC.size]
    parts = [head, _CRC.pack(zlib.crc32(head)), *payload]
    return [*parts, _CRC.pack(crc_of(parts))]


def _base(file: BinaryIO) -> str | None:
    """The uuid of a log's index file; None where not even the header was written."""
    file.seek(0)
    head = file.read(_HEADER.size)
    if len(head) < _HEADER.size and (MAGIC.startswith(head[: len(MAGIC)]) or not any(head)):
        return None
    if not head.startswith(MAGIC):
        raise FormatError(f"{file.name} is not the log of an index: it must begin with {MAGIC!r}, got {head[:8]!r}")
    _, version, base, crc = _HEADER.unpack(head)
    if version != VERSION:
        raise FormatError(f"{file.name} has format version {version}; this cghash reads version {VERSION}")
    if crc != zlib.crc32(head[: -_CRC.size]):
        raise FormatError(f"{file.name} is damaged: its header does not match its checksum")
    return uuid.UUID(bytes=base).hex


def _replayed(file: BinaryIO, about: About, index: WeightedHammingIndex) -> tuple[int, int]:
    """How many changes there are, and where the last ends; 0 where the log is empty or folded in already."""
    base = _base(file)
    if base is None or base == about.parent:
        return 0, 0
    if base != about.uuid:
        raise FormatError(f"{file.name} is the log of another index file: it names {base}, not {about.uuid}")
    n, end = 0, _HEADER.size
    for n, (operation, payload, end) in enumerate(_records(file), 1):  # noqa: B007
        try:
            change_of(operation, payload, index.n_bytes).apply(index)
        except ValueError as error:
            raise FormatError(f"{file.name} is damaged: record {n} does not fit the index: {error}") from error
    return n, end


def _records(file: BinaryIO) -> Iterator[tuple[int, bytes, int]]:
    """Operation, payload and end of each record, up to a torn one."""
    size, at = os.fstat(file.fileno()).st_size, _HEADER.size
    while size - at >= _RECORD.size:
        file.seek(at)
        head = file.read(_RECORD.size)
        if len(head) < _RECORD.size:  # cut off since
            return
        length, operation, crc = _RECORD.unpack(head)
        if crc != zlib.crc32(head[: -_CRC.size]):
            if not any(head) and _only_zeros(file):
                return
            raise FormatError(f"{file.name} is damaged at byte {at}: a record does not match its checksum")
        end = at + _RECORD.size + length + _CRC.size
        if end > size:
            return
        payload, tail = file.read(length), file.read(_CRC.size)
        if len(tail) < _CRC.size:
            return
        if _CRC.unpack(tail)[0] != crc_of([head, payload]):
            if end == size and not any(tail):
                return
            raise FormatError(f"{file.name} is damaged at byte {at}: a record does not match its checksum")
        yield operation, payload, end
        at = end


def _only_zeros(file: BinaryIO) -> bool:
    return not any(any(piece) for piece in iter(lambda: file.read(1 << 16), b""))
