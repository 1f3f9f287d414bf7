"""An index and its file together with its log: opened, saved, folded, verified."""

from __future__ import annotations

import os
import pathlib
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, TypeVar

from .._interrupts import held_off
from .._unfinished import remove_abandoned
from .._validation import check_jobs
from ..exceptions import FormatError, InUseError, InvalidInputError
from ..storage import flush_folder
from .files import about_of, read_index, verify_file, verify_tables, write_index
from .keeping import Keeping, Seen
from .log import Log, can_lock, end_of, log_path, replay
from .sections import Path, SectionFile, is_section_file

if TYPE_CHECKING:
    from .weighted_hamming import WeightedHammingIndex

    Index = TypeVar("Index", bound=WeightedHammingIndex)

_TRIES = 100
_AT_ONCE = 1 << 20  # codes


def open_index(
    cls: type[Index],
    path: Path,
    mapped: bool,
    writable: Any = False,
    n_jobs: int | None = None,
    device: Any = None,
    ignore_log: bool = False,
) -> Index:
    """The index of a file and its log; once more when another process has put a new file in its place meanwhile."""
    check_jobs(n_jobs)
    _check_writable(writable, ignore_log)
    for _ in range(_TRIES):
        index, about, file = read_index(cls, path, mapped, n_jobs, device)
        log = Log(path) if writable is True else None
        try:
            if log:
                _remove_abandoned(path)
            n_changes, end = 0, 0
            if not ignore_log:
                n_changes, end = log.replay(file, about, index) if log else replay(file, about, index)
            if _is_still_there(path, file):
                seen = Seen(os.path.realpath(path), about.uuid, None if ignore_log else end if n_changes else 0)
                index._keeping = Keeping(seen, log, read_only=not writable)
                index.file = {"path": os.fspath(path), "mapped": mapped, "bytes": file.size, "log_records": n_changes}
                index.file |= {"digest": file.digest}
                return index  # type: ignore[return-value]
        except BaseException as error:
            if log:
                log.close(keep=False)
            if not isinstance(error, FormatError) or _is_still_there(path, file):
                raise
        if log:
            log.close()
    raise InUseError(f"{path} is written anew again and again: {_TRIES} attempts to read it failed")


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


def save_index(index: WeightedHammingIndex, path: Path, keep_removed: bool = True) -> None:
    """Write an index in one file; a log beside it, whose changes are of the file before, begins anew."""
    index._keeping.check_whole()
    with _locked(index, path) as log:
        before = log.base if log else None
        if log:
            log.suspend()
        try:
            about = write_index(index, path, before, keep_removed)
            if log:
                log.restart(about.uuid)
        except BaseException:
            if log:
                _settle(log, path, before)
            raise
    keeping = index._keeping
    if keeping.seen and keeping.seen.path == os.path.realpath(path):
        keeping.seen = Seen(keeping.seen.path, about.uuid, 0)


@contextmanager
def _locked(index: WeightedHammingIndex, path: Path) -> Iterator[Log | None]:
    """The index's own log, or that of the file which is to be replaced; None where there is no file."""
    own = index._keeping.log
    if own and not own.closed and own.path == log_path(path):
        own.check_open()
        own.check_place()
        yield own
    elif os.path.exists(log_path(path)) or (is_section_file(path) and can_lock()):
        log = Log(path)
        try:
            log.check_nothing_lost(path)
            _check_unchanged(index._keeping.seen, path, log)
            yield log
        finally:
            log.close(keep=False)
    else:
        _check_unchanged(index._keeping.seen, path)
        yield None


def _check_unchanged(seen: Seen | None, path: Path, log: Log | None = None) -> None:
    """Refuse to replace a file that another writer has changed since the index was read from it."""
    if seen is None or seen.path != os.path.realpath(path):
        return
    try:
        about = about_of(path)
    except (FormatError, FileNotFoundError):  # damaged since, or gone: nothing to lose
        return
    end = end_of(log, about) if log else 0
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


def compact_index(index: WeightedHammingIndex) -> None:
    """Drop removed positions; fold the log, if there is one, into a new file."""
    keeping = index._keeping
    keeping.check()
    if keeping.log is None:
        if index._ids.n_removed:
            _drop_removed(index)
        return
    if keeping.log.empty and not index._ids.n_removed:
        return
    assert keeping.seen is not None
    path = keeping.seen.path  # not as the caller said it: links and the working directory may have changed
    save_index(index, path, keep_removed=False)
    fresh, _, file = read_index(type(index), path, index.file["mapped"], index.n_jobs, index.device)
    index._take_over(fresh, index.file | {"bytes": file.size, "log_records": 0, "digest": file.digest})


def _drop_removed(index: WeightedHammingIndex) -> None:
    positions, ids = index._ids.kept()
    blocks = index._new_blocks()
    for first in range(0, len(positions), _AT_ONCE):
        blocks.append(index._blocks.get(positions[first : first + _AT_ONCE]))
    fresh = type(index)(index.n_bits)
    fresh._blocks, fresh._ids = blocks, ids
    index._take_over(fresh, index.file)


def verify_index(cls: type[WeightedHammingIndex], path: Path) -> dict[str, Any]:
    """Check every byte of a file and its log; FormatError for what is wrong, else what was checked."""
    file = verify_file(path)
    verify_tables(read_index(cls, path, mapped=True, n_jobs=None)[0], path)
    index = open_index(cls, path, mapped=True)
    facts = {name: index.file[name] for name in ("bytes", "log_records")}
    return {"n_codes": len(index), "sections": len(file.sections)} | facts
