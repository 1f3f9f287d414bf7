"""Changes of an index, and the records that a log holds of them (log.py).

A record: length of the payload, operation, CRC-32 of these; payload; CRC-32 of all that. What is left of a record that
a kill tore is its beginning, or ends in zeros: it was never acknowledged, and is dropped. Anything else that does not
match is a FormatError. Integers are little-endian.
"""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO

import numpy as np

from .._arrays import Array, Codes, Floats, Ints
from ..exceptions import FormatError
from .sections import crc_of

ADD, ADD_WITH_IDS, REMOVE, UPDATE, REWEIGHT, UNWEIGHT, ADD_FROM, REPLACE = range(1, 9)

_RECORD = struct.Struct("<QB3xI")  # length of the payload, operation, CRC-32 of these
_CRC = struct.Struct("<I")


@dataclass(frozen=True)
class Change:
    """One call that changed an index; payloads are codes, then ids, or weights.

    ADD_FROM has the first id alone; those after it follow. ADD, of earlier logs, does not say which ids it gave.
    UPDATE puts a code in the place of the one before; REPLACE puts it behind all others, and removes the one before.
    """

    operation: int
    codes: Codes | None = None
    ids: Ints | int | None = None
    weights: Floats | None = None

    def record(self) -> list[Any]:
        """Its bytes in a log, in parts."""
        arrays = ((self.codes, "|u1"), (self.ids, "<i8"), (self.weights, "<f8"))
        payload = [
            np.ascontiguousarray(array, dtype=dtype).reshape(-1).view(np.uint8).data
            for array, dtype in arrays
            if array is not None
        ]
        head = _RECORD.pack(sum(map(len, payload)), self.operation, 0)[: -_CRC.size]
        parts = [head, _CRC.pack(zlib.crc32(head)), *payload]
        return [*parts, _CRC.pack(crc_of(parts))]


def change_of(operation: int, payload: bytes, n_bytes: int) -> Change:
    """The change that a record holds, of codes of so many bytes; ValueError when the lengths cannot be."""
    if operation in (REWEIGHT, UNWEIGHT):
        return Change(operation, weights=_array(payload, "<f8") if operation == REWEIGHT else None)
    if not (ADD <= operation <= UPDATE or operation in (ADD_FROM, REPLACE)):
        raise ValueError(f"operation {operation} is not known")
    code = 0 if operation == REMOVE else n_bytes
    identity = 0 if operation in (ADD, ADD_FROM) else 8  # bytes for each item
    first = 8 if operation == ADD_FROM else 0
    n, left = divmod(len(payload) - first, code + identity)
    if n < 0 or left:
        raise ValueError(f"operation {operation} with {len(payload)} bytes")
    codes = np.frombuffer(payload, dtype=np.uint8, count=n * code).reshape(n, code) if code else None
    return Change(operation, codes, _array(payload[n * code :], "<i8") if first or identity else None)


def _array(payload: bytes, dtype: str) -> Array:
    array = np.frombuffer(payload, dtype=dtype)
    return array.astype(array.dtype.newbyteorder("="), copy=False)


def records(file: BinaryIO, begin: int) -> Iterator[tuple[int, bytes, int]]:
    """Operation, payload and end of each record from a byte on, up to a torn one."""
    size, at = os.fstat(file.fileno()).st_size, begin
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
