"""Pictures of people's own: opened with care, upright, and as vectors."""

from __future__ import annotations

import io
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from .._arrays import Bytes, Singles
from ..exceptions import FormatError, MissingDependencyError
from ..lab.features.images import FORMATS, decode

__all__ = ["SUFFIXES", "check_picture", "digit_of", "grey_of", "read_picture"]

Result = TypeVar("Result")
Picture = bytes | str | os.PathLike[str]  # what a file holds, or where it is

SUFFIXES = {  # by the decoder that reads it; the first is what our copies are called
    "JPEG": (".jpg", ".jpeg", ".jpe", ".jfif"),
    "PNG": (".png",),
    "BMP": (".bmp",),
    "GIF": (".gif",),
    "TIFF": (".tif", ".tiff"),
    "PPM": (".ppm", ".pgm", ".pbm", ".pnm"),
    "WEBP": (".webp",),
}
ENDINGS = frozenset(suffix for suffixes in SUFFIXES.values() for suffix in suffixes)
_SMALL = 64  # pixels
_BAND = 1 << 20  # pixels that are turned grey at a time
_LARGEST_DIGIT = 1024  # pixels of a side: larger pictures of a digit are shrunk first
DIGIT, INK = 8, 16  # pixels of a digit's side, and its darkest level, in scikit-learn's digits
FAINT, BLACK, FRAMED = 20, 200, 0.8  # ink below this share is paper; full contrast; filling so much is framed already


def read_picture(
    picture: Picture, use: Callable[[Any], Result], *, name: str = "picture", least: int | None = None
) -> Result:
    """What `use` gives of a decoded picture, as Pillow's: its first frame, upright as its camera says.

    Meanwhile others may have to wait: so many pixels are decoded at a time (`lab.features.images.decode`).

    Parameters
    ----------
    picture : the bytes of a file, or its path; JPEG, PNG, BMP, GIF, TIFF, PPM, or WEBP where Pillow reads it
    use : takes the picture, which is closed afterwards
    name : how messages call bytes
    least : pixels of a side that are enough
    """
    pillow, ops = _pillow()
    name = name if isinstance(picture, bytes) else os.path.basename(picture)
    file = io.BytesIO(picture) if isinstance(picture, bytes) else Path(picture)

    def upright(image: Any) -> Result:
        with suppress(Exception):  # what the camera says is damaged, and raises anything: it stays as it lies
            ops.exif_transpose(image, in_place=True)
        return use(image)

    try:
        return decode(pillow, file, upright, _formats(), least)
    except Exception as error:  # decoders of foreign bytes raise anything
        raise FormatError(f"{name} must be a whole picture: {_one_line(error)}") from error


def check_picture(path: str | os.PathLike[str]) -> str:
    """Decode a picture and say which format it is; FormatError where it cannot be shown."""
    kind = read_picture(path, lambda image: str(image.format), least=_SMALL)
    return "JPEG" if kind == "MPO" else kind  # a JPEG file with further pictures behind the first, as phones write


def grey_of(picture: Picture) -> Bytes:
    """A picture as grey levels (h, w) of 0 to 255; what is transparent is white.

    >>> grey_of(b"P5 2 1 255 " + bytes([0, 200])).tolist()
    [[0, 200]]
    """
    return read_picture(picture, _grey)


def _grey(image: Any) -> Bytes:
    width, height = image.size
    grey = np.empty((height, width), dtype=np.uint8)
    rows = max(1, _BAND // width)
    for top in range(0, height, rows):
        band = image.crop((0, top, width, min(top + rows, height)))
        grey[top : top + rows] = np.asarray(_on_white(band).convert("L"))
    return grey


def _on_white(image: Any) -> Any:
    if "A" not in image.mode and "transparency" not in image.info:
        return image
    pillow, _ = _pillow()
    image = image.convert("RGBA")
    return pillow.alpha_composite(pillow.new("RGBA", image.size, "white"), image)


def digit_of(grey: Bytes) -> Singles:
    """A picture of one digit as scikit-learn's digits are: (64,) of 0 (paper) to 16 (ink), row by row.

    What fills the border is the paper. The ink's surrounding square, in its middle, becomes 8 × 8 means.

    >>> page = np.full((48, 80), 255, dtype=np.uint8)
    >>> page[8:40, 60:64] = 0  # a stroke
    >>> digit_of(page).reshape(8, 8)[3].tolist()
    [0.0, 0.0, 0.0, 8.0, 8.0, 0.0, 0.0, 0.0]
    """
    pillow, _ = _pillow()
    grey = _at_most(pillow, grey, _LARGEST_DIGIT)
    border = np.concatenate([grey[0], grey[-1], grey[:, 0], grey[:, -1]])
    ink = np.abs(grey.astype(np.float32) - np.median(border))
    darkest = float(ink.max())
    if darkest == 0:
        return np.zeros(DIGIT * DIGIT, dtype=np.float32)
    square = pillow.fromarray(_framed(ink, darkest / FAINT))
    small = np.asarray(square.resize((DIGIT, DIGIT), pillow.Resampling.BOX), dtype=np.float32)
    return np.round(small.ravel() * np.float32(INK / (255 if darkest > BLACK else darkest)))


def _at_most(pillow: Any, grey: Bytes, side: int) -> Bytes:
    """The picture, each side of it shrunk to so many pixels where it has more."""
    height, width = grey.shape
    if max(height, width) <= side:
        return grey
    scale = side / max(height, width)
    small = [max(1, round(length * scale)) for length in (width, height)]
    return np.asarray(pillow.fromarray(grey).resize(small, pillow.Resampling.BOX))


def _framed(ink: Singles, faint: float) -> Singles:
    """The square around what is not faint; the whole picture where that is nearly all of it."""
    rows, columns = (np.flatnonzero((ink > faint).any(axis=axis)) for axis in (1, 0))
    side = int(max(np.ptp(rows), np.ptp(columns))) + 1
    if ink.shape[0] == ink.shape[1] and side >= FRAMED * len(ink):
        return ink
    top, left = (side + (int(line[0]) + int(line[-1]) + 1 - side) // 2 for line in (rows, columns))
    return np.pad(ink, side)[top : top + side, left : left + side]


def _formats() -> tuple[str, ...]:
    from PIL import features

    return (*FORMATS, "WEBP") if features.check("webp") else FORMATS


def _one_line(error: Exception) -> str:
    """Why, without the place in memory or on disk that Pillow names."""
    if type(error).__name__ == "UnidentifiedImageError":
        return "it is no picture of a known format"
    return " ".join(str(error).split()) or type(error).__name__


def _pillow() -> tuple[Any, Any]:
    try:
        import PIL.Image
        import PIL.ImageOps
    except ImportError as error:
        raise MissingDependencyError(
            'reading pictures needs Pillow: pip install "cghash[lab]" (in a checkout: pip install ".[lab]")'
        ) from error
    return PIL.Image, PIL.ImageOps
