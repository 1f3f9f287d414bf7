"""A lock on an open file, which ends with its holder: no other process, nor another opening of the file, has it then.

The file itself is locked, not one beside it, so that a lock cannot outlive what it is for. Windows has no `flock` and
locks bytes, which nobody else can read then: there it is one byte that files of this kind do not reach.
"""

from __future__ import annotations

import os
from typing import Any

_FAR = 2**31 - 2


def can_lock() -> bool:
    """Whether the system has locks."""
    return _flock() is not None or _msvcrt() is not None


def lock(handle: int) -> bool:
    """Lock an open file, and say whether nobody else has; OSError where its file system has no locks."""
    try:
        if (fcntl := _flock()) is not None:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        else:
            _far(handle, "LK_NBLCK")
    except BlockingIOError:
        return False
    return True


def unlock(handle: int) -> None:
    """Let others lock it, also while a forked process has it open."""
    if (fcntl := _flock()) is not None:
        fcntl.flock(handle, fcntl.LOCK_UN)
    else:
        _far(handle, "LK_UNLCK")


def _far(handle: int, mode: str) -> None:
    """Lock or unlock the byte that Windows locks."""
    msvcrt = _msvcrt()
    os.lseek(handle, _FAR, os.SEEK_SET)
    try:
        msvcrt.locking(handle, getattr(msvcrt, mode), 1)
    except PermissionError as error:
        raise BlockingIOError(error.errno, "another holds the lock") from error


def _flock() -> Any:
    try:
        import fcntl
    except ImportError:
        return None
    return fcntl


def _msvcrt() -> Any:
    try:
        import msvcrt
    except ImportError:
        return None
    return msvcrt
