"""An index and its file together with its log: opened, saved, folded, verified."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, TypeVar

from .._validation import check_jobs
from ..exceptions import FormatError, InUseError
from .files import read_index, verify_file, write_index
from .log import Log, log_path, replay
from .sections import Path, SectionFile

if TYPE_CHECKING:
    from .weighted_hamming import WeightedHammingIndex

    Index = TypeVar("Index", bound=WeightedHammingIndex)

_TRIES = 100
_AT_ONCE = 1 << 20  # codes


def open_index(
    cls: type[Index], path: Path, mapped: bool, writable: bool, n_jobs: int | None, device: Any = None
) -> Index:
    """The index of a file and its log; once more when another process has put a new file in its place meanwhile."""
    check_jobs(n_jobs)
    for _ in range(_TRIES):
        index, about, file = read_index(cls, path, mapped, n_jobs, device)
        log = Log(path) if writable else None
        try:
            n_changes = log.replay(about, index) if log else replay(path, about, index)
            if _is_still_there(path, file):
                index._log = log
                index.file = {"path": os.fspath(path), "mapped": mapped, "bytes": file.size, "log_records": n_changes}
                index.file |= {"digest": file.digest}
                return index  # type: ignore[return-value]
        except BaseException as error:
            if log:
                log.close()
            if not isinstance(error, FormatError) or _is_still_there(path, file):
                raise
        if log:
            log.close()
    raise InUseError(f"{path} is written anew again and again: {_TRIES} attempts to read it failed")


def _is_still_there(path: Path, file: SectionFile) -> bool:
    found = os.stat(path)
    return (found.st_dev, found.st_ino) == file.identity


def save_index(index: WeightedHammingIndex, path: Path, keep_removed: bool = True) -> None:
    """Write an index in one file; a log beside it, whose changes are of the file before, begins anew."""
    own = index._log is not None and not index._log.closed and index._log.path == log_path(path)
    log = index._log if own else Log(path) if os.path.exists(log_path(path)) else None
    try:
        about = write_index(index, path, log.base if log else None, keep_removed)
        if log:
            log.restart(about.uuid)
    finally:
        if log and not own:
            log.close()


def compact_index(index: WeightedHammingIndex) -> None:
    """Drop removed positions; fold the log, if there is one, into a new file."""
    if index._log is None:
        if index._ids.n_removed:
            _drop_removed(index)
        return
    index._log.check_open()
    if index._log.empty and not index._ids.n_removed:
        return
    path = index.file["path"]
    save_index(index, path, keep_removed=False)
    fresh, _, file = read_index(type(index), path, index.file["mapped"], index.n_jobs, index.device)
    index._take_over(fresh)
    index.file |= {"bytes": file.size, "log_records": 0, "digest": file.digest}


def _drop_removed(index: WeightedHammingIndex) -> None:
    positions, ids = index._ids.kept()
    blocks = index._new_blocks()
    for first in range(0, len(positions), _AT_ONCE):
        blocks.append(index._blocks.get(positions[first : first + _AT_ONCE]))
    fresh = type(index)(index.n_bits)
    fresh._blocks, fresh._ids = blocks, ids
    index._take_over(fresh)


def verify_index(cls: type[WeightedHammingIndex], path: Path) -> dict[str, Any]:
    """Check every byte of a file and its log; FormatError for what is wrong, else what was checked."""
    file = verify_file(path)
    index = open_index(cls, path, mapped=True, writable=False, n_jobs=None)
    facts = {name: index.file[name] for name in ("bytes", "log_records")}
    return {"n_codes": len(index), "sections": len(file.sections)} | facts
