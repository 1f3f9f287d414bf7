"""Small pictures of the items: made when first asked for, kept in the workspace, made again when deleted."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

from ..storage import write_atomically
from ..workspace.folder import Workspace
from ..workspace.pictures import open_picture

__all__ = ["SIZES", "picture_type", "thumbnail"]

SIZES = (96, 160, 320, 640)  # pixels of the longer side
_TYPES = {".jpg": "image/jpeg", ".png": "image/png", ".gif": "image/gif", ".bmp": "image/bmp", ".webp": "image/webp"}


def picture_type(path: Path) -> str | None:
    """The media type of an original that browsers show; None of others."""
    return _TYPES.get(path.suffix)


def thumbnail(workspace: Workspace, row: int, size: int) -> tuple[bytes, str]:
    """The bytes of a thumbnail and their media type."""
    path = workspace.picture(row)
    assert path is not None, "the caller knows that there is a picture"
    place = "thumbnails", str(size), f"{row // 1000:06d}"
    for suffix, media in ((".png", "image/png"), (".jpg", "image/jpeg")):
        if (found := workspace.inside(*place, f"{row}{suffix}")).exists():
            return found.read_bytes(), media
    image = open_picture(path)
    suffix, media, data = _small(image, size)
    _keep(workspace.inside(*place, f"{row}{suffix}"), data)
    return data, media


def _small(image: Any, size: int) -> tuple[str, str, bytes]:
    plain = image.has_transparency_data or max(image.size) <= size or image.mode in ("1", "P")
    image = image.convert("RGBA" if image.has_transparency_data else "RGB" if image.mode != "L" else "L")
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
