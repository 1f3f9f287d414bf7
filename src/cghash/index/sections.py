"""Named arrays in one file, each from the start of a page on, so that they can be mapped.

A header, whole pages long: magic, version, number of sections, size of the file; for each section its name, dtype,
offset, length and CRC-32; last its own CRC-32. Then the sections in the order of the table, each filled up with zeros
to a whole page, which its CRC-32 covers too. Integers are little-endian. One section, `logged`, is a flag that is set
in place later: its CRC-32 is that of the flag at 0.
"""

from __future__ import annotations

import hashlib
import mmap
import os
import stat
import struct
import sys
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO

import numpy as np

from .._arrays import Array
from ..exceptions import FormatError
from ..storage import described, written_atomically

MAGIC, VERSION = b"\x89CGHIX\r\n", 1
PAGE = 4096
FLAG = "logged"
DTYPES = ("|u1", "|i1", "<u2", "<i2", "<u4", "<i4", "<u8", "<i8", "<f4", "<f8")

Path = str | os.PathLike[str]

_HEAD = struct.Struct("<8sIIQ")  # magic, version, number of sections, size of the file
_ENTRY = struct.Struct("<48s8sQQI4x")  # name, dtype, offset, length, CRC-32
_CRC = struct.Struct("<I")
_MOST = 1 << 12  # sections
_PIECE = 1 << 24  # bytes at a time
# A private map takes no memory until it is written to; unreserved, it may also be larger than the memory.
_NO_RESERVE = getattr(mmap, "MAP_NORESERVE", 0x4000 if sys.platform == "linux" else 0)


@dataclass(frozen=True)
class Section:
    """Where an array is."""

    name: str
    dtype: str
    offset: int
    length: int
    crc: int

    @property
    def end(self) -> int:
        """Where its last page ends."""
        return self.offset + _paged(self.length)


@dataclass(frozen=True)
class Content:
    """What is to be written: an array, whole or in pieces."""

    name: str
    dtype: str
    pieces: Iterable[Array]


def write_sections(path: Path, contents: list[Content]) -> None:
    """Write a file beside its place and rename it."""
    with written_atomically(path) as file:
        file.write(bytes(_header_size(len(contents))))
        written = [_write_one(file, content) for content in contents]
        size = file.tell()
        file.seek(0)
        file.write(_header(written, size))


class SectionFile:
    """The arrays of a file: mapped, copy on write, or read and checked."""

    def __init__(self, path: Path, mapped: bool = True) -> None:
        self.path = path
        if os.path.isdir(path):
            raise FormatError(f"{path} is a folder, not an index of cghash")
        with open(path, "rb") as file:
            found = os.fstat(file.fileno())
            if not stat.S_ISREG(found.st_mode):
                raise FormatError(f"{path} must be a file, got a pipe or a device")
            self.size, self.identity = found.st_size, (found.st_dev, found.st_ino)
            self.sections = {section.name: section for section in _read_header(path, file, self.size)}
            self._mapped = _map(file, self.size) if mapped else None
            self._read = {} if mapped else {name: self._checked(file, s) for name, s in self.sections.items()}

    @property
    def digest(self) -> str:
        """SHA-256 over the header, which holds the checksums of all sections."""
        return hashlib.sha256(_header(list(self.sections.values()), self.size)).hexdigest()

    def array(self, name: str) -> Array:
        """A section as a flat array; may be written to, which does not reach the file."""
        section = self.sections[name]
        held = self._read[name] if self._mapped is None else self._mapped[section.offset : section.end]
        array = held[: section.length].view(np.dtype(section.dtype))
        return array.astype(array.dtype.newbyteorder("="), copy=False)

    @property
    def flag(self) -> bool:
        """Whether the flag is set; a file of earlier versions has none."""
        if FLAG not in self.sections:
            return False
        value = self.array(FLAG).tolist()
        if value not in ([0], [1]):
            raise FormatError(f"{self.path} is damaged: section {FLAG!r} must be one byte, 0 or 1, got {value[:2]}")
        return bool(value[0])

    def set_flag(self) -> None:
        """Set the flag in the file, on the disk too."""
        with open(self.path, "r+b", buffering=0) as file:
            file.seek(self.sections[FLAG].offset)
            file.write(b"\1")
            os.fsync(file.fileno())

    def check(self, name: str) -> None:
        """FormatError when a mapped section does not match its checksum."""
        section = self.sections[name]
        if self._mapped is not None:
            self._compare(section, self._mapped[section.offset : section.end])

    def _checked(self, file: BinaryIO, section: Section) -> Array:
        file.seek(section.offset)
        held = np.fromfile(file, dtype=np.uint8, count=section.end - section.offset)
        if held.size != section.end - section.offset:
            raise FormatError(f"{self.path} was cut short while it was read")
        self._compare(section, held)
        return held

    def _compare(self, section: Section, held: Array) -> None:
        pieces = [b"\0", held[1:]] if section.name == FLAG else _split(held)
        if crc_of(pieces) != section.crc:
            raise FormatError(f"{self.path} is damaged: section {section.name!r} does not match its checksum")


def is_section_file(path: Path) -> bool:
    """Whether a file begins as one of these."""
    if not os.path.isfile(path):
        return False
    with open(path, "rb") as file:
        return file.read(len(MAGIC)) == MAGIC


def crc_of(pieces: Iterable[Any]) -> int:
    """CRC-32 of pieces, one behind the other."""
    crc = 0
    for piece in pieces:
        crc = zlib.crc32(piece, crc)
    return crc


def _write_one(file: BinaryIO, content: Content) -> Section:
    offset, length, crc = file.tell(), 0, 0
    for piece in content.pieces:
        for part in _split(np.ascontiguousarray(piece, dtype=np.dtype(content.dtype)).reshape(-1)):
            file.write(part)
            length, crc = length + len(part), zlib.crc32(part, crc)
    filling = bytes(_paged(length) - length)
    file.write(filling)
    return Section(content.name, content.dtype, offset, length, zlib.crc32(filling, crc))


def _split(array: Array) -> Iterator[memoryview]:
    data = array.view(np.uint8).data
    for first in range(0, len(data), _PIECE):
        yield data[first : first + _PIECE]


def _header(sections: list[Section], size: int) -> bytes:
    parts = [_HEAD.pack(MAGIC, VERSION, len(sections), size)]
    parts += [_ENTRY.pack(s.name.encode("ascii"), s.dtype.encode(), s.offset, s.length, s.crc) for s in sections]
    content = b"".join(parts).ljust(_header_size(len(sections)) - _CRC.size, b"\0")
    return content + _CRC.pack(zlib.crc32(content))


def _header_size(n_sections: int) -> int:
    return _paged(_HEAD.size + n_sections * _ENTRY.size + _CRC.size)


def _paged(length: int) -> int:
    return -(-length // PAGE) * PAGE


def _read_header(path: Path, file: BinaryIO, size: int) -> list[Section]:
    head = file.read(_HEAD.size)
    if not head.startswith(MAGIC):
        found = described(path)
        raise FormatError(
            f"{path} is not an index of cghash: it must begin with {MAGIC!r}, got {head[:8]!r}"
            + (f"; it is {found}" if found else "")
        )
    if len(head) < _HEAD.size:
        raise FormatError(f"{path} is cut short: it ends within its header")
    _, version, n_sections, told_size = _HEAD.unpack(head)
    if version != VERSION:
        newer = "; a newer cghash wrote it: pip install --upgrade cghash" if version > VERSION else ""
        raise FormatError(f"{path} has format version {version}; this cghash reads version {VERSION}{newer}")
    if told_size != size:
        raise FormatError(f"{path} is damaged: it must have {told_size} bytes, got {size}")
    if n_sections > _MOST or _header_size(n_sections) > size:
        raise FormatError(f"{path} is damaged: it tells of {n_sections} sections in {size} bytes")
    content = head + file.read(_header_size(n_sections) - len(head))
    if zlib.crc32(content[: -_CRC.size]) != _CRC.unpack(content[-_CRC.size :])[0]:
        raise FormatError(f"{path} is damaged: its header does not match its checksum")
    entries = _ENTRY.iter_unpack(content[_HEAD.size : _HEAD.size + n_sections * _ENTRY.size])
    return _follow_each_other(path, [_section(path, *entry) for entry in entries], len(content), size)


def _section(path: Path, name: bytes, dtype: bytes, offset: int, length: int, crc: int) -> Section:
    try:
        section = Section(name.rstrip(b"\0").decode("ascii"), dtype.rstrip(b"\0").decode("ascii"), offset, length, crc)
    except UnicodeDecodeError as error:
        raise FormatError(f"{path} is damaged: a section is named {name!r}, of dtype {dtype!r}") from error
    if section.dtype not in DTYPES:
        raise FormatError(f"{path} is damaged: section {section.name!r} is of dtype {section.dtype!r}")
    if length % np.dtype(section.dtype).itemsize:
        raise FormatError(f"{path} is damaged: section {section.name!r} has {length} bytes of dtype {section.dtype}")
    return section


def _follow_each_other(path: Path, sections: list[Section], begin: int, size: int) -> list[Section]:
    if len({section.name for section in sections}) != len(sections):
        raise FormatError(f"{path} is damaged: two of its sections have one name")
    end = begin
    for section in sections:
        if section.offset != end or section.end > size:
            raise FormatError(f"{path} is damaged: section {section.name!r} is not where the one before it ends")
        end = section.end
    if end != size:
        raise FormatError(f"{path} is damaged: its sections end at {end} of {size} bytes")
    return sections


def _map(file: BinaryIO, size: int) -> Array:
    if not hasattr(mmap, "MAP_PRIVATE"):
        return np.frombuffer(mmap.mmap(file.fileno(), size, access=mmap.ACCESS_COPY), dtype=np.uint8)
    flags, protection = mmap.MAP_PRIVATE | _NO_RESERVE, mmap.PROT_READ | mmap.PROT_WRITE
    return np.frombuffer(mmap.mmap(file.fileno(), size, flags=flags, prot=protection), dtype=np.uint8)
