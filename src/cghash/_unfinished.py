"""Files and folders that are being written: hidden beside their place, and gone unless they took its name.

They are called `.NAME.XXXXXXXX.tmp`, with eight hexadecimal digits. Their writer holds a lock on them, and is dead when
another can take it: the next writer of the same place removes what dead ones left. Without locks nothing is removed.
"""

from __future__ import annotations

import errno
import os
import re
import secrets
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ._file_locks import can_lock, lock

__all__ = ["is_of_the_disk", "naming", "remove_abandoned", "unfinished"]

# only writing gives these: a full disk, a quota, a limit on the size of files, a disk that cannot be written to
_OF_THE_DISK = (errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC), errno.EFBIG, errno.EROFS)
_NO_LOCKS = -1  # of a system or a file system that has none
_ENDING = r"\.[0-9a-f]{8}\.tmp"


@contextmanager
def unfinished(place: Path, make: Callable[[Path], object]) -> Iterator[Path]:
    """A new file or folder beside a place, which is gone at the end unless it was renamed.

    Parameters
    ----------
    place : where the whole one will be; errors of the disk name it
    make : makes the file or folder, which must not exist yet
    """
    remove_abandoned(place.parent, re.escape(place.name))
    path, lock = None, None
    try:
        with naming(place):
            while path is None or lock is None:  # another writer came between, and took it for abandoned
                path = place.parent / f".{place.name}.{secrets.token_hex(4)}.tmp"
                make(path)
                lock = _locked(path)
            yield path
    finally:
        if path is not None:
            _remove(path)
        _unlock(lock)


def remove_abandoned(folder: Path, names: str = ".+") -> None:
    """Remove what dead writers left in a folder.

    Parameters
    ----------
    names : a regular expression of the names that the files were to have
    """
    ours = re.compile(rf"\.(?:{names}){_ENDING}", re.DOTALL)
    with suppress(OSError):
        for name in filter(ours.fullmatch, os.listdir(folder)):
            with suppress(OSError):
                _remove_if_abandoned(folder / name)


def is_of_the_disk(error: Exception) -> bool:
    """Whether a disk did not take what was to be written, which trying again does not change."""
    return isinstance(error, OSError) and error.errno in _OF_THE_DISK


@contextmanager
def naming(place: Path) -> Iterator[None]:
    """Errors of the disk name the place, not nothing and not what lies beside it."""
    try:
        yield
    except OSError as error:
        if is_of_the_disk(error) and isinstance(error.filename2, str):  # a copy names what it was of first
            error.filename = error.filename2
            del error.filename2
        if isinstance(error.filename, str):
            beside = re.escape(os.fspath(place.parent / f".{place.name}"))
            error.filename = re.sub(beside + _ENDING, lambda _: os.fspath(place), error.filename, count=1)
        elif is_of_the_disk(error) or error.errno == errno.EIO:
            error.filename = os.fspath(place)
        raise


def _remove_if_abandoned(path: Path) -> None:
    lock = _locked(path)
    if lock is not None and lock != _NO_LOCKS:
        _remove(path)
    _unlock(lock)


def _remove(path: Path) -> None:
    """Remove what is there; nothing is once it was renamed."""
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            path.unlink()


def _locked(path: Path) -> int | None:
    """Hold a file or folder until `_unlock`, or until the process is dead; None where another does or it is gone."""
    if os.name == "nt" or not can_lock():  # Windows renames no file that anybody has open
        return _NO_LOCKS
    how = os.O_RDONLY if path.is_dir() else os.O_RDWR | os.O_NONBLOCK  # NFS locks only what may be written
    try:
        handle = os.open(path, how | os.O_NOFOLLOW)
    except FileNotFoundError:
        return None
    try:
        mine = lock(handle) and os.path.samestat(os.fstat(handle), os.lstat(path))
    except FileNotFoundError:
        mine = False
    except OSError:
        os.close(handle)
        return _NO_LOCKS
    if not mine:
        os.close(handle)
        return None
    return handle


def _unlock(lock: int | None) -> None:
    if lock is not None and lock != _NO_LOCKS:
        os.close(lock)
