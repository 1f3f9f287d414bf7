"""Small images as PNG inside the page."""

from __future__ import annotations

import base64
import io

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .features.images import require_pillow

__all__ = ["digit_png", "mask_png", "png"]

POSITIVE, NEGATIVE = (0, 114, 178), (230, 159, 0)  # blue and orange


def png(rgba: NDArray[np.uint8]) -> bytes:
    """A PNG file of an (h, w, 4) image.

    Examples
    --------
    >>> png(np.zeros((1, 1, 4), dtype=np.uint8))[1:4]
    b'PNG'
    """
    out = io.BytesIO()
    require_pillow().fromarray(rgba).save(out, "PNG", optimize=True)
    return out.getvalue()


def digit_png(pixels: ArrayLike) -> str:
    """Black ink on nothing, from 64 pixels of 0 to 16, as a data address."""
    image = np.zeros((8, 8, 4), dtype=np.uint8)
    image[..., 3] = np.asarray(pixels, dtype=np.float64).reshape(8, 8) * (255 / 16)
    return _address(image)


def mask_png(values: ArrayLike) -> str:
    """Blue for positive and orange for negative, from 64 numbers of -1 to 1, as a data address."""
    signed = np.asarray(values, dtype=np.float64).reshape(8, 8)
    image = np.empty((8, 8, 4), dtype=np.uint8)
    image[..., :3] = np.where(signed[..., None] > 0, POSITIVE, NEGATIVE)
    image[..., 3] = np.abs(signed) * 255
    return _address(image)


def _address(image: NDArray[np.uint8]) -> str:
    return "data:image/png;base64," + base64.b64encode(png(image)).decode()
