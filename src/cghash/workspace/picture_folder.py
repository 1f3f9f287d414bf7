"""A folder of pictures as a table."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from .._arrays import Array
from ..exceptions import InvalidInputError
from .pictures import ENDINGS
from .tables import Located

__all__ = ["PictureFolder"]


class PictureFolder:
    """The pictures in a folder and those below it, by name; an item's id is its path from the folder.

    Hidden files are left out, and so are workspaces below the folder. A link to a file counts as the file, but one that
    leads out of the folder is left out unless `follow_links`; a link to a folder is not followed. The folder just
    below, where there is one, is the attribute `folder`.
    """

    def __init__(self, folder: str | os.PathLike[str], *, follow_links: bool = False) -> None:
        self.root = Path(folder)
        self.name = os.fspath(folder)
        self.vector_columns: list[str] = []
        found = [os.path.relpath(path, folder).replace(os.sep, "/") for path in _files(folder)]
        pictures = sorted(path for path in found if os.path.splitext(path)[1].lower() in ENDINGS)
        self.n_others = len(found) - len(pictures)
        self.paths = pictures if follow_links else [path for path in pictures if self._is_inside(path)]
        self.n_links_out = len(pictures) - len(self.paths)
        if not self.paths:
            holds = f"{self.n_others} files of other kinds" if self.n_others else "no file"
            holds = f"{self.n_links_out} links that lead out of it" if self.n_links_out else holds
            raise InvalidInputError(f"{folder} must hold pictures ({', '.join(sorted(ENDINGS))}), got {holds}")
        parted = any("/" in path for path in self.paths)
        self.columns = ["id", "image", "folder"] if parted else ["id", "image"]

    def _is_inside(self, path: str) -> bool:
        return Path(os.path.realpath(self.root / path)).is_relative_to(os.path.realpath(self.root))

    def rows(self) -> Iterator[Located]:
        for path in self.paths:
            top, slash, _ = path.partition("/")
            yield path, [path, path, top if slash else None][: len(self.columns)]

    def vectors(self, column: str) -> Iterator[Array]:
        raise InvalidInputError(f"{self.name} is a folder of pictures, which has no column of vectors {column!r}")

    def picture(self, cell: str, place: str) -> Path:
        return self.root / cell


def _files(folder: str | os.PathLike[str]) -> Iterator[str]:
    for here, folders, files in os.walk(folder):
        if "workspace.json" in files and "items.sqlite" in files:
            folders.clear()
            continue
        folders[:] = [name for name in folders if not name.startswith(".")]
        yield from (os.path.join(here, name) for name in files if not name.startswith("."))
