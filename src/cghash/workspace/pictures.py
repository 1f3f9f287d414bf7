"""Pictures of people's own: opened with care, upright, and as vectors."""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..exceptions import FormatError, MissingDependencyError
from ..lab.features.images import FORMATS, MOST_PIXELS

if TYPE_CHECKING:
    from PIL.Image import Image

__all__ = ["SUFFIXES", "check_picture", "digit_of", "grey_of", "open_picture"]

Grey = NDArray[np.uint8]  # (h, w)
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
DIGIT, INK = 8, 16  # pixels of a digit's side, and its darkest level, in scikit-learn's digits
FAINT, BLACK, FRAMED = 20, 200, 0.8  # ink below this share is paper; full contrast; filling so much is framed already


def open_picture(picture: Picture, *, name: str = "picture") -> Image:
    """Decode a picture: its first frame, upright as its camera says.

    Parameters
    ----------
    picture : the bytes of a file, or its path; JPEG, PNG, BMP, GIF, TIFF, PPM, or WEBP where Pillow reads it
    name : how messages call bytes
    """
    _, ops = _pillow()
    image: Image = _decoded(picture, name)
    try:
        upright: Image = ops.exif_transpose(image)
    except Exception:  # what the camera says is damaged, and raises anything: the picture stays as it lies
        return image
    return upright


def check_picture(path: str | os.PathLike[str]) -> str:
    """Decode a picture and say which format it is; FormatError where it cannot be shown."""
    kind = str(_decoded(path, "", small=True).format)
    return "JPEG" if kind == "MPO" else kind  # a JPEG file with further pictures behind the first, as phones write


def grey_of(picture: Picture) -> Grey:
    """A picture as grey levels (h, w) of 0 to 255; what is transparent is white.

    >>> grey_of(b"P5 2 1 255 " + bytes([0, 200])).tolist()
    [[0, 200]]
    """
    image = open_picture(picture)
    if "A" in image.mode or "transparency" in image.info:
        pillow, _ = _pillow()
        image = image.convert("RGBA")
        image = pillow.alpha_composite(pillow.new("RGBA", image.size, "white"), image)
    return np.array(image.convert("L"), dtype=np.uint8)


def digit_of(grey: Grey) -> NDArray[np.float32]:
    """A picture of one digit as scikit-learn's digits are: (64,) of 0 (paper) to 16 (ink), row by row.

    What fills the border is the paper. The ink's surrounding square, in its middle, becomes 8 × 8 means.

    >>> page = np.full((48, 80), 255, dtype=np.uint8)
    >>> page[8:40, 60:64] = 0  # a stroke
    >>> digit_of(page).reshape(8, 8)[3].tolist()
    [0.0, 0.0, 0.0, 8.0, 8.0, 0.0, 0.0, 0.0]
    """
    border = np.concatenate([grey[0], grey[-1], grey[:, 0], grey[:, -1]])
    ink = np.abs(grey.astype(np.float32) - np.median(border))
    darkest = float(ink.max())
    if darkest == 0:
        return np.zeros(DIGIT * DIGIT, dtype=np.float32)
    pillow, _ = _pillow()
    square = pillow.fromarray(_framed(ink, darkest / FAINT))
    small = np.asarray(square.resize((DIGIT, DIGIT), pillow.Resampling.BOX), dtype=np.float32)
    return np.round(small.ravel() * np.float32(INK / (255 if darkest > BLACK else darkest)))


def _framed(ink: NDArray[np.float32], faint: float) -> NDArray[np.float32]:
    """The square around what is not faint; the whole picture where that is nearly all of it."""
    rows, columns = (np.flatnonzero((ink > faint).any(axis=axis)) for axis in (1, 0))
    side = int(max(np.ptp(rows), np.ptp(columns))) + 1
    if ink.shape[0] == ink.shape[1] and side >= FRAMED * len(ink):
        return ink
    top, left = (side + (int(line[0]) + int(line[-1]) + 1 - side) // 2 for line in (rows, columns))
    return np.pad(ink, side)[top : top + side, left : left + side]


def _decoded(picture: Picture, name: str, small: bool = False) -> Any:
    """The decoded picture; `small` lets JPEG be decoded at a fraction of its size, but to its end."""
    pillow, _ = _pillow()
    name = name if isinstance(picture, bytes) else os.path.basename(picture)
    try:
        image = pillow.open(_file(picture), formats=_formats())
        with image:
            _check_size(image)
            if small:
                image.draft(None, (_SMALL, _SMALL))
            image.load()
            return image
    except Exception as error:  # decoders of foreign bytes raise anything
        raise FormatError(f"{name} must be a whole picture: {_one_line(error)}") from error


def _formats() -> tuple[str, ...]:
    from PIL import features

    return (*FORMATS, "WEBP") if features.check("webp") else FORMATS


def _file(picture: Picture) -> Any:
    return io.BytesIO(picture) if isinstance(picture, bytes) else Path(picture)


def _check_size(image: Any) -> None:
    width, height = image.size
    if width * height > MOST_PIXELS or width < 1 or height < 1:
        raise ValueError(f"it claims {width} × {height} pixels; at most {MOST_PIXELS} are read")


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
