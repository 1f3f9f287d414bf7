"""A lock on an open file, released when its holder closes the file or dies.

The file itself is locked, not one beside it, so that a lock cannot outlive what it is for. Windows has no `flock` and
locks bytes, which nobody else can read then: there it is the last byte below 2 GB.
"""

from __future__ import annotations

import os
from importlib import import_module
from typing import Any

_FAR = 2**31 - 2  # the byte that is locked on Windows


def _if_there(module: str) -> Any:
    try:
        return import_module(module)
    except ImportError:
        return None


_fcntl, _msvcrt = _if_there("fcntl"), _if_there("msvcrt")


def can_lock() -> bool:
    """Whether the system has locks."""
    return bool(_fcntl or _msvcrt)


def lock(handle: int) -> bool:
    """Lock an open file, and say whether nobody else has; OSError where its file system has no locks."""
    try:
        if _fcntl:
            _fcntl.flock(handle, _fcntl.LOCK_EX | _fcntl.LOCK_NB)
        else:
            _lock_byte(handle, _msvcrt.LK_NBLCK)
    except BlockingIOError:
        return False
    return True


def unlock(handle: int) -> None:
    """Let others lock it, also while a forked process has it open."""
    if _fcntl:
        _fcntl.flock(handle, _fcntl.LOCK_UN)
    else:
        _lock_byte(handle, _msvcrt.LK_UNLCK)


def _lock_byte(handle: int, how: int) -> None:
    os.lseek(handle, _FAR, os.SEEK_SET)
    try:
        _msvcrt.locking(handle, how, 1)
    except PermissionError as error:
        raise BlockingIOError(error.errno, "another holds the lock") from error
