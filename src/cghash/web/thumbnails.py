"""Small pictures of the items: made when first asked for, kept in the workspace, made again when deleted."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

from ..storage import write_atomically
from ..workspace.pictures import read_picture
from ..workspace.workspace import Workspace

__all__ = ["SIZES", "kept_thumbnail", "picture_type", "thumbnail"]

SIZES = (96, 160, 320, 640)  # pixels of the longer side
_MOST_BYTES = 2**22  # of a thumbnail
_TYPES = {".jpg": "image/jpeg", ".png": "image/png", ".gif": "image/gif", ".bmp": "image/bmp", ".webp": "image/webp"}


def picture_type(path: Path) -> str | None:
    """The media type of an original that browsers show; None of others."""
    return _TYPES.get(path.suffix)


def thumbnail(workspace: Workspace, row: int, size: int) -> tuple[bytes, str]:
    """The bytes of a thumbnail, made anew and kept, and their media type."""
    path = workspace.picture(row)
    assert path is not None, "the caller knows that there is a picture"
    suffix, media, data = small(path, size)
    _keep(_place(workspace, row, size, suffix), data)
    return data, media


def kept_thumbnail(workspace: Workspace, row: int, size: int) -> tuple[bytes, str] | None:
    """The same, where it was made before."""
    for suffix, media in ((".png", "image/png"), (".jpg", "image/jpeg")):
        found = _place(workspace, row, size, suffix)
        if found.is_file() and found.stat().st_size <= _MOST_BYTES:  # else it is none of ours
            return found.read_bytes(), media
    return None


def _place(workspace: Workspace, row: int, size: int, suffix: str) -> Path:
    return workspace.inside("thumbnails", str(size), f"{row // 1000:06d}", f"{row}{suffix}")


def small(path: Path, size: int) -> tuple[str, str, bytes]:
    """A picture at most `size` pixels wide and high: the ending of its file, its media type and its bytes."""
    return read_picture(path, lambda image: _written(image, size), least=2 * size)


def _written(image: Any, size: int) -> tuple[str, str, bytes]:
    plain = image.has_transparency_data or max(image.size) <= size or image.mode in ("1", "P")
    mode = "RGBA" if image.has_transparency_data else "RGB" if image.mode != "L" else "L"
    image = image if image.mode == mode else image.convert(mode)
    image.thumbnail((size, size))
    out = io.BytesIO()
    if plain:
        image.save(out, "PNG", optimize=False)
        return ".png", "image/png", out.getvalue()
    image.save(out, "JPEG", quality=82)
    return ".jpg", "image/jpeg", out.getvalue()


def _keep(path: Path, data: bytes) -> None:
    """Write beside and rename; where the folder cannot be written, the thumbnail is made anew each time."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, data)
    except OSError:
        return
