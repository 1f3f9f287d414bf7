"""A folder that is there when it is whole, or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .. import storage
from .._unfinished import unfinished

__all__ = ["whole_folder"]


@contextmanager
def whole_folder(target: str | os.PathLike[str]) -> Iterator[Path]:
    """A hidden folder beside the target that takes its name at the end; an error throws it away.

    A kill leaves it: whoever makes the same target next throws it away.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with whole_folder(f"{folder}/new") as aside:
    ...         _ = (aside / "words.txt").write_text("whole")
    ...         before = os.path.exists(f"{folder}/new")
    ...     before, os.listdir(folder)
    (False, ['new'])
    """
    place = Path(os.path.realpath(target))
    with unfinished(place, Path.mkdir) as aside:
        yield aside
        _flush(aside)
        os.replace(aside, place)
        storage.flush_folder(place.parent)


def _flush(folder: Path) -> None:
    """Bring the files of a folder, and the names of those below, to the disk."""
    for path in folder.iterdir():
        if path.is_dir():
            storage.flush_folder(path)
        else:
            with open(path, "rb") as file:
                os.fsync(file.fileno())
    storage.flush_folder(folder)
