"""Grey images from files; a defective file is an error that names it."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...exceptions import FormatError, InvalidInputError, MissingDependencyError
from .parallel import each

__all__ = ["Grey", "Image", "check_grey", "collect", "one_blas_thread", "read_grey", "square", "thumbnails"]

Grey = NDArray[np.uint8]  # (h, w)
Image = str | os.PathLike[str] | ArrayLike  # a file, or an (h, w) array

FORMATS = ("JPEG", "PNG", "BMP", "GIF", "TIFF", "PPM")  # decoders that are let near foreign bytes
MOST_PIXELS = 1 << 26  # larger ones are refused before they are decoded


def read_grey(path: str | os.PathLike[str], *, largest: int | None = None) -> Grey:
    """Read an image as grey levels of 0 to 255 (ITU-R 601 luma, as Pillow's mode L).

    Parameters
    ----------
    path : JPEG, PNG, BMP, GIF, TIFF or PPM
    largest : images whose longer side has more pixels are shrunk to it

    Returns
    -------
    image : (h, w) uint8
    """
    pillow = _pillow()
    if not Path(path).is_file():
        raise FormatError(f"{path} must be an image file, but there is no such file")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # of bombs and of truncated metadata
            with pillow.open(path, formats=FORMATS) as image:
                _check_size(image)
                grey = image.convert("L")
    except Exception as error:  # decoders of foreign bytes raise anything
        raise FormatError(f"{path} must be a whole image file: {error}") from error
    if largest is not None and max(grey.size) > largest:
        scale = largest / max(grey.size)
        grey = grey.resize([max(1, round(side * scale)) for side in grey.size], pillow.Resampling.BICUBIC)
    return np.array(grey, dtype=np.uint8)


def thumbnails(paths: Sequence[str | os.PathLike[str]], side: int = 64, n_jobs: int | None = None) -> Grey:
    """Grey thumbnails of image files: (n, side, side) uint8, the centre square of each.

    Parameters
    ----------
    paths : n image files
    side : pixels of a thumbnail's side
    n_jobs : threads
    """
    images = np.empty((len(paths), side, side), dtype=np.uint8)
    for i, image in enumerate(each(lambda path: square(read_grey(path), side), paths, n_jobs)):
        images[i] = image
    return images


def square(image: Grey, side: int) -> Grey:
    """The centre square of an image, at side × side pixels.

    >>> square(np.arange(6, dtype=np.uint8).reshape(2, 3), 2).tolist()
    [[0, 1], [3, 4]]
    """
    height, width = image.shape
    edge = min(height, width)
    top, left = (height - edge) // 2, (width - edge) // 2
    crop = np.ascontiguousarray(image[top : top + edge, left : left + edge])
    if edge == side:
        return crop
    pillow = _pillow()
    return np.array(pillow.fromarray(crop).resize((side, side), pillow.Resampling.BICUBIC), dtype=np.uint8)


def check_grey(image: Image, *, largest: int | None = None) -> Grey:
    """An image as (h, w) uint8: read where it is a path, checked where it is an array."""
    if isinstance(image, str | os.PathLike):
        return read_grey(image, largest=largest)
    grey = np.asarray(image)
    if grey.ndim != 2 or grey.dtype != np.uint8 or grey.size == 0:
        raise InvalidInputError(
            f"images must be paths or (h, w) arrays of uint8, got shape {grey.shape}, dtype {grey.dtype}"
        )
    return grey


def collect(rows: Iterable[NDArray[np.float32]], n: int, width: int) -> NDArray[np.float32]:
    """Rows of features as one (n, width) array, made as they are taken."""
    X = np.empty((n, width), dtype=np.float32)
    with one_blas_thread():
        for i, row in enumerate(rows):
            X[i] = row
    return X


def one_blas_thread() -> Any:
    """The matrices of one image are small: more threads only wait for each other."""
    from threadpoolctl import threadpool_limits

    return threadpool_limits(1, user_api="blas")


def _check_size(image: Any) -> None:
    width, height = image.size
    if width * height > MOST_PIXELS or width < 1 or height < 1:
        raise ValueError(f"it claims {width} × {height} pixels; at most {MOST_PIXELS} are read")


def _pillow() -> Any:
    try:
        import PIL.Image
    except ImportError as error:
        raise MissingDependencyError(
            'reading images needs Pillow: pip install "cghash[lab]" (in a checkout: pip install ".[lab]")'
        ) from error
    return PIL.Image
