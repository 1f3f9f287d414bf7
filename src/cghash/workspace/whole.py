"""A folder that is there when it is whole, or not at all."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from glob import escape
from pathlib import Path

from .. import storage

__all__ = ["whole_folder"]


@contextmanager
def whole_folder(target: str | os.PathLike[str]) -> Iterator[Path]:
    """A hidden folder beside the target that takes its name at the end; an error throws it away.

    A kill leaves it, hidden and locked by nobody: whoever makes the same target next throws it away.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with whole_folder(f"{folder}/new") as aside:
    ...         _ = (aside / "words.txt").write_text("whole")
    ...         before = os.path.exists(f"{folder}/new")
    ...     before, os.listdir(folder)
    (False, ['new'])
    """
    place = Path(os.path.realpath(target))
    for left in place.parent.glob(f".{escape(place.name)}.*.tmp"):
        _remove_abandoned(left)
    aside = place.parent / f".{place.name}.{secrets.token_hex(4)}.tmp"
    aside.mkdir()
    lock = _locked(aside)
    try:
        yield aside
        _flush(aside)
        os.replace(aside, place)
        storage.flush_folder(place.parent)
    except BaseException:
        shutil.rmtree(aside, ignore_errors=True)
        raise
    finally:
        if lock is not None:
            os.close(lock)


def _locked(folder: Path) -> int | None:
    """Hold a folder as long as this process lives; None where another does, or where the system has no such locks."""
    try:
        import fcntl
    except ImportError:
        return None
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(handle)
        return None
    return handle


def _remove_abandoned(folder: Path) -> None:
    with suppress(OSError):
        lock = _locked(folder)
        if lock is not None:
            shutil.rmtree(folder, ignore_errors=True)
            os.close(lock)


def _flush(folder: Path) -> None:
    """Bring the files of a folder, and the names of those below, to the disk."""
    for path in folder.iterdir():
        if path.is_dir():
            storage.flush_folder(path)
        else:
            with open(path, "rb") as file:
                os.fsync(file.fileno())
    storage.flush_folder(folder)
