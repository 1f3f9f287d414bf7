"""The log beside an index file: changes since the file was written, each on the disk before it is made.

A header (magic, version, uuid of the index file, CRC-32; integers are little-endian), then records (changes.py).
Each knows the other: the log names the uuid of its index file, whose flag says that changes are in a log.
"""

from __future__ import annotations

import os
import pathlib
import struct
import uuid
import zlib
from collections.abc import Callable
from contextlib import suppress
from typing import Any, BinaryIO
from weakref import WeakSet

from .._file_locks import can_lock, lock, unlock
from .._unfinished import naming
from ..exceptions import CGHashError, FormatError, InDoubtError, InUseError, InvalidInputError
from ..storage import flush_folder
from .changes import Change, change_of, records
from .code_table import CodeTable
from .index_files import About, about_of
from .sections import FLAG, Path, SectionFile

MAGIC, VERSION = b"\x89CGHLG\r\n", 1
SUFFIX = ".log"

_WINDOWS = os.name == "nt"

_HEADER = struct.Struct("<8sI16sI")  # magic, version, uuid of the index file, CRC-32
_CRC = struct.Struct("<I")
_SMALL = 1 << 20  # bytes that are copied together for the sake of one write


def log_path(path: Path) -> str:
    """Where the log of an index file is: beside the file itself, also when a link leads there."""
    return os.path.realpath(path) + SUFFIX


def replay(file: SectionFile, about: About, table: CodeTable) -> tuple[int, int]:
    """Make the changes that the log beside an index file holds; how many there are, and where the last ends."""
    flag = file.flag  # before the log is looked at: a writer may begin it now, and set the flag then
    try:
        log = open(log_path(file.path), "rb")  # noqa: SIM115
    except FileNotFoundError:
        _check_log_is_there(file, flag, None, about)
        return 0, 0
    with log:
        return _replayed(log, file, about, table, flag)


class Log:
    """The log of an index file, locked: no other process or `Log` can write to it until it is closed.

    `suspend` comes before what may put a new index file in its place, `resume` or `restart` after it: in between,
    whatever happens, no change is taken, as it might be written to a log that nobody reads.
    """

    _file: Any = None  # until it is opened

    def __init__(self, path: Path) -> None:
        """Lock it; where there is none, make one."""
        self.path = log_path(path)
        self._place = os.path.realpath(path)
        self._identity: tuple[int, int] | None = None  # of the index file
        self._held: BinaryIO | None = None  # which is open, so that no other gets its number
        self._end = 0
        self._doubt = ""  # why no change is taken
        self._has_flag = True  # of the index file: set already, or there is none to set
        self._is_new = False
        _LOGS.add(self)
        self._lock(path)
        try:
            self.base = _base(self._file)
        except BaseException:
            self.close()
            raise

    def _lock(self, path: Path) -> None:
        if not can_lock():
            raise CGHashError(
                f"{path}: writing to a loaded index needs file locks, which this system lacks: build it anew"
            )
        while True:
            handle, self._is_new = _opened(self.path)
            # no buffer, whose lock a fork may find taken
            self._file = open(self.path, "r+b", buffering=0, opener=lambda *_, opened=handle: opened)  # noqa: SIM115
            try:
                if not lock(handle):
                    raise InUseError(f"{path} is open for writing elsewhere: one writer at a time")
                if self._is_at_its_path():
                    return
            except BaseException:
                self._file.close()
                raise
            self._file.close()  # deleted by who had it before

    def _is_at_its_path(self) -> bool:
        with suppress(FileNotFoundError):
            return os.path.samestat(os.stat(self.path), os.fstat(self._file.fileno()))
        return False

    def replay(self, file: SectionFile, about: About, table: CodeTable) -> tuple[int, int]:
        """As the function, and cut off a torn record; from here on changes can be written."""
        n, end = _replayed(self._file, file, about, table, file.flag)
        if end:
            os.ftruncate(self._file.fileno(), end)
            self.base, self._end = about.uuid, end
        else:
            self.restart(about.uuid)
        self._hold()
        self._has_flag = file.flag or FLAG not in file.sections
        if self._is_new:
            flush_folder(os.path.dirname(self.path))
        return n, self._end

    @property
    def empty(self) -> bool:
        return self._end <= _HEADER.size

    @property
    def end(self) -> int:
        """Where the last record ends."""
        return self._end

    def end_of(self, about: About) -> int:
        """Where the last change of an index file ends in it; 0 where it has none."""
        ends = (end for _, _, end in records(self._file, _HEADER.size))
        return max(ends, default=0) if self.base == about.uuid else 0

    def suspend(self) -> None:
        self._doubt = "a new index file was being written"

    def resume(self) -> None:
        """Go on: the index file is the same as before."""
        self._doubt = ""

    def restart(self, base: str) -> None:
        """Forget all changes: they are in the index file of that uuid now."""
        self.suspend()
        with naming(pathlib.Path(self.path)):
            os.ftruncate(self._file.fileno(), 0)
        head = _HEADER.pack(MAGIC, VERSION, uuid.UUID(base).bytes, 0)[: -_CRC.size]
        self._end = 0
        self._append([head, _CRC.pack(zlib.crc32(head))])
        self.base, self._has_flag = base, False
        self._hold()
        self.resume()

    def keep(self, change: Change, make: Callable[[], None]) -> None:
        """Write a change and flush it to the disk, then make it; cut it off when either fails."""
        self.check_place()
        self._set_flag()
        end = self._end
        try:
            self._append(change.record())
            make()
        except BaseException:
            self._cut(end)
            raise

    @property
    def closed(self) -> bool:
        return bool(self._file.closed)

    def check_open(self) -> None:
        """Refuse changes of an index that was closed, that another process opened, or that may not fit its files."""
        if self.closed:
            raise InvalidInputError(self._doubt or "the index was closed: load it again to change it")
        if self._doubt:
            raise InDoubtError(
                f"{self.path} takes no more changes: {self._doubt} when an error came, and what is on the disk could "
                "not be made sure of. What was acknowledged is there: load the index again to go on"
            )

    def check_place(self) -> None:
        """Refuse to go on where another program has put another index file in the place of the log's, or taken it."""
        if self._identity is None or self._identity != _identity(self._place):
            raise InUseError(
                f"{self._place} was replaced, moved or removed by another program: load the index again to change it"
            )

    def check_nothing_lost(self, path: Path) -> None:
        """Refuse to begin anew a log of changes to an index file that is not there, but elsewhere perhaps."""
        about = None
        with suppress(FormatError, FileNotFoundError):
            about = about_of(path)
        if self.base in (None, *((about.uuid, about.parent) if about else ())):
            return
        if next(records(self._file, _HEADER.size), None) is not None:
            raise InUseError(
                f"{self.path} holds changes to another index file: if that was moved, put this log beside it, "
                "under its name; else delete it"
            )

    def close(self, *, keep: bool = True) -> None:
        """Let others write; a log that was made here, and is not to be kept, goes."""
        if self.closed:
            return
        goes = self._is_new and not keep
        with suppress(OSError):
            if goes and not _WINDOWS:  # before others can lock it
                os.unlink(self.path)
            unlock(self._file.fileno())  # a forked process may not have closed it yet
        self._let_go()
        with suppress(OSError):
            if goes and _WINDOWS:  # which removes no file that anybody has open
                os.unlink(self.path)

    def forked(self) -> None:
        """In a process that was forked: leave the file to the one that opened it."""
        self._doubt = "the index was opened for writing before this process was forked: load it here to change it"
        self._let_go()

    def _hold(self) -> None:
        """Take the index file that is in its place now for the log's."""
        before, self._held, self._identity = self._held, None, None
        if before is not None:
            before.close()
        if _WINDOWS:  # which replaces no file that anybody has open, and does not give its number again soon
            self._identity = _identity(self._place)
            return
        with suppress(FileNotFoundError):  # another program has removed it: `check_place` says so
            self._held = open(self._place, "rb", buffering=0)  # noqa: SIM115
            self._identity = _identity(self._held.fileno())

    def _let_go(self) -> None:
        for file in (self._held, self._file):
            if file is not None:
                file.close()

    def _set_flag(self) -> None:
        if not self._has_flag:
            with naming(pathlib.Path(self._place)):
                SectionFile(self._place).set_flag()
            self._has_flag = True

    def _append(self, parts: list[Any]) -> None:
        at = self._end
        small = sum(map(len, parts)) <= _SMALL
        with naming(pathlib.Path(self.path)):
            for part in [b"".join(parts)] if small else parts:
                left = memoryview(part)
                while len(left):
                    written = _write_at(self._file.fileno(), left, at)
                    left, at = left[written:], at + written
            os.fsync(self._file.fileno())
        self._end = at

    def _cut(self, end: int) -> None:
        self._doubt = "a change was being written"
        with suppress(OSError):
            os.ftruncate(self._file.fileno(), end)
            os.fsync(self._file.fileno())
            self._end, self._doubt = end, ""


_LOGS: WeakSet[Log] = WeakSet()


def _forked() -> None:
    for log in list(_LOGS):
        log.forked()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)


def _identity(place: str | int) -> tuple[int, int] | None:
    """The file at a path or a descriptor, by device and number; None where there is none."""
    try:
        found = os.stat(place)
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino


def _opened(path: str) -> tuple[int, bool]:
    """A file to read and write, and whether it is new."""
    flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0)
    try:
        return os.open(path, flags | os.O_EXCL, 0o666), True
    except FileExistsError:
        return os.open(path, flags, 0o666), False


def _write_at(handle: int, data: memoryview, at: int) -> int:
    """Write some of the data at a byte of a file, and say how much."""
    if hasattr(os, "pwrite"):
        return os.pwrite(handle, data, at)
    os.lseek(handle, at, os.SEEK_SET)
    return os.write(handle, data)


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


def _replayed(log: BinaryIO, file: SectionFile, about: About, table: CodeTable, flag: bool) -> tuple[int, int]:
    """How many changes there are, and where the last ends; 0 where the log is empty or folded in already."""
    base = _base(log)
    _check_log_is_there(file, flag, base, about)
    if base is None or base == about.parent:
        return 0, 0
    if base != about.uuid:
        raise FormatError(f"{log.name} is the log of another index file: it names {base}, not {about.uuid}")
    n, end = 0, _HEADER.size
    for n, (operation, payload, end) in enumerate(records(log, _HEADER.size), 1):  # noqa: B007
        try:
            table.repeat(change_of(operation, payload, table.n_bytes))
        except ValueError as error:
            raise FormatError(f"{log.name} is damaged: record {n} does not fit the index: {error}") from error
    return n, end


def _check_log_is_there(file: SectionFile, flag: bool, base: str | None, about: About) -> None:
    if flag and base in (None, about.parent):
        raise FormatError(
            f"{file.path} lacks its log: changes were written to it, and {log_path(file.path)} "
            f"{'is not there' if base is None else 'is of an earlier file'}. Put it beside the index file again, under "
            "the same name; if it is lost, load(..., ignore_log=True) reads what the index file itself holds"
        )
