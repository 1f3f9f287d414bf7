"""Persistence: the file of an index and the log beside it: opened, saved, folded, verified; where changes go."""

from __future__ import annotations

import os
import pathlib
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from .._file_locks import can_lock
from .._interrupts import held_off
from .._unfinished import remove_abandoned
from .._validation import check_jobs
from ..exceptions import FormatError, InDoubtError, InUseError, InvalidInputError
from ..storage import flush_folder
from .changes import Change
from .code_table import CodeTable
from .index_files import About, about_of, read_table, verify_file, verify_tables, write_table
from .log import Log, log_path, replay
from .sections import Path, SectionFile, is_section_file

_TRIES = 100


@dataclass(frozen=True)
class Seen:
    """What an index was read from: a file, by its uuid, and its log up to some byte."""

    path: str  # without links
    uuid: str
    log_end: int | None  # None where the log was not looked at


class Persistence:
    """Where the changes of an index go before they are made: to its log, if it has one; and what its file is.

    Parameters
    ----------
    seen : what the index was read from
    log : locked, where changes are written to it
    file : where it was loaded from: path, mapped, bytes, log_records, digest
    """

    def __init__(
        self,
        seen: Seen | None = None,
        log: Log | None = None,
        *,
        read_only: bool = False,
        file: dict[str, Any] | None = None,
    ) -> None:
        self.log = log
        self.file = file or {}
        self._seen = seen
        self._read_only = read_only
        self._doubt = ""  # why memory may hold half a change

    @property
    def seen(self) -> Seen | None:
        """What holds the same as this index: what it was read from, with what it logged since."""
        if self._seen is None or self.log is None or self.log.closed or not self.log.base:
            return self._seen
        return Seen(self._seen.path, self.log.base, 0 if self.log.empty else self.log.end)

    # Changes

    def check_whole(self) -> None:
        """Refuse to go on with something half-changed."""
        if self._doubt:
            raise InDoubtError(f"the index takes no more changes: {self._doubt}. Load it again, or build it anew")

    def check(self) -> None:
        """Refuse changes that would be lost, or be made to something half-changed."""
        self.check_whole()
        if self._read_only and self._seen:
            raise InvalidInputError(
                f"{self._seen.path} was loaded to be read only, and changes would be lost: load it with writable=True "
                "to keep them in a log beside it, or with writable='memory' for changes that need not last"
            )
        if self.log is not None:
            self.log.check_open()

    def make(self, change: Change, work: Callable[[], None]) -> None:
        """Log a change, and do the work that makes it. After an error neither is done; `work` undoes its own."""
        self.check()
        self._doubt = "a change was interrupted half-way"
        try:
            if self.log is None:
                work()
            else:
                self.log.keep(change, work)
        except Exception:
            self._doubt = ""
            raise
        self._doubt = ""

    def close(self) -> None:
        """Let others write."""
        if self.log is not None and not self.log.closed:
            self._seen = self.seen
            self.log.close()

    def forked(self, was_written: bool) -> None:
        """In a process that was just forked; another thread may have been at work before."""
        if was_written:
            self._doubt = "another thread was changing it when this process was forked"

    # The file, written anew

    def save(self, table: CodeTable, path: Path, keep_removed: bool = True) -> None:
        """Write an index in one file; a log beside it, whose changes are of the file before, begins anew."""
        self.check_whole()
        with self._locked(path) as log:
            before = log.base if log else None
            if log:
                log.suspend()
            try:
                about = write_table(table, path, before, keep_removed)
                if log:
                    log.restart(about.uuid)
            except BaseException:
                if log:
                    _settle(log, path, before)
                raise
        if self._seen and self._seen.path == os.path.realpath(path):
            self._seen = Seen(self._seen.path, about.uuid, 0)

    def compact(self, table: CodeTable) -> None:
        """Drop removed positions; fold the log, if there is one, into a new file."""
        self.check()
        if self.log is None:
            if table.ids.n_removed:
                table.drop_removed()
            return
        if self.log.empty and not table.ids.n_removed:
            return
        assert self._seen is not None
        path = self._seen.path  # not as the caller said it: links and the working directory may have changed
        self.save(table, path, keep_removed=False)
        fresh, _, file = read_table(path, self.file["mapped"], table.n_jobs, table.device)
        with held_off():
            table.take_over(fresh.blocks, fresh.ids)
            self.file = self.file | {"bytes": file.size, "log_records": 0, "digest": file.digest}

    @contextmanager
    def _locked(self, path: Path) -> Iterator[Log | None]:
        """The index's own log, or that of the file which is to be replaced; None where there is no file."""
        own = self.log
        if own and not own.closed and own.path == log_path(path):
            own.check_open()
            own.check_place()
            yield own
        elif os.path.exists(log_path(path)) or (is_section_file(path) and can_lock()):
            log = Log(path)
            try:
                log.check_nothing_lost(path)
                self._check_unchanged(path, log)
                yield log
            finally:
                log.close(keep=False)
        else:
            self._check_unchanged(path)
            yield None

    def _check_unchanged(self, path: Path, log: Log | None = None) -> None:
        """Refuse to replace a file that another writer has changed since the index was read from it."""
        seen = self._seen
        if seen is None or seen.path != os.path.realpath(path):
            return
        try:
            about = about_of(path)
        except (FormatError, FileNotFoundError):  # damaged since, or gone: nothing to lose
            return
        end = log.end_of(about) if log else 0
        if log and seen.log_end is None and end:
            raise InUseError(
                f"{path} was loaded without its log, {log.path}, whose changes would be lost: save to another file"
            )
        if (about.uuid, end) != (seen.uuid, seen.log_end or 0):
            raise InUseError(
                f"{path} was changed by another writer since it was loaded, and saving over it would lose that: load "
                "it again, or save to another file"
            )


def _settle(log: Log, path: Path, before: str | None) -> None:
    """After an error, go on with the file that stands there, the one before or the new; else take no more changes."""
    with held_off(), suppress(OSError, FormatError):
        about = about_of(path)
        if about.uuid == before:
            log.resume()
        elif before and about.parent == before:
            flush_folder(os.path.dirname(os.path.realpath(path)))
            log.restart(about.uuid)


def opened(
    path: Path,
    mapped: bool,
    writable: Any = False,
    n_jobs: int | None = None,
    device: Any = None,
    ignore_log: bool = False,
) -> tuple[CodeTable, Persistence]:
    """What a file and its log hold; once more when another process has put a new file in its place meanwhile."""
    check_jobs(n_jobs)
    _check_writable(writable, ignore_log)
    for _ in range(_TRIES):
        table, about, file = read_table(path, mapped, n_jobs, device)
        log = Log(path) if writable is True else None
        try:
            if log:
                _remove_abandoned(path)
            n_changes, end = (0, None) if ignore_log else _replayed(table, about, file, log)
            if _is_still_there(path, file):
                facts = {"path": os.fspath(path), "mapped": mapped, "bytes": file.size, "log_records": n_changes}
                seen = Seen(os.path.realpath(path), about.uuid, end)
                return table, Persistence(seen, log, read_only=not writable, file=facts | {"digest": file.digest})
        except BaseException as error:
            if log:
                log.close(keep=False)
            if not isinstance(error, FormatError) or _is_still_there(path, file):
                raise
        if log:
            log.close()
    raise InUseError(f"{path} is written anew again and again: {_TRIES} attempts to read it failed")


def _replayed(table: CodeTable, about: About, file: SectionFile, log: Log | None) -> tuple[int, int]:
    """How many changes the log holds, which are made; where the last ends."""
    n_changes, end = log.replay(file, about, table) if log else replay(file, about, table)
    return n_changes, end if n_changes else 0


def _remove_abandoned(path: Path) -> None:
    place = pathlib.Path(os.path.realpath(path))
    remove_abandoned(place.parent, re.escape(place.name))


def _check_writable(writable: Any, ignore_log: bool) -> None:
    if writable not in (True, False, "memory"):
        raise InvalidInputError(f"writable must be True, False or 'memory', got {writable!r}")
    if ignore_log and writable is True:
        raise InvalidInputError(
            "ignore_log needs writable=False or 'memory', as changes in the log would be lost: save to another file"
        )


def _is_still_there(path: Path, file: SectionFile) -> bool:
    found = os.stat(path)
    return (found.st_dev, found.st_ino) == file.identity


def verified(path: Path) -> dict[str, Any]:
    """Check every byte of a file and its log; FormatError for what is wrong, else what was checked."""
    file = verify_file(path)
    verify_tables(read_table(path, mapped=True)[0], path)
    table, persistence = opened(path, mapped=True)
    facts = {name: persistence.file[name] for name in ("bytes", "log_records")}
    return {"n_codes": len(table.ids), "sections": len(file.sections)} | facts
