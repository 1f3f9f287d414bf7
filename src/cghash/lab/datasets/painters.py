"""Pictures of items: from their features, from an array in a file, from image files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..._arrays import Array, Bytes, Ints
from ...exceptions import FormatError
from ...reading.binary_files import read_arrays
from ...reading.sources import source_of

__all__ = ["ArrayInFile", "Features", "ImageFiles"]


@dataclass(frozen=True)
class Features:
    """Items that are pixels themselves.

    Examples
    --------
    >>> Features(np.array([[-1.0, 1.0, 0.0, 0.0]]), (2, 2), -1.0, 1.0)(np.array([0])).tolist()
    [[[0, 255], [128, 128]]]
    """

    X: Array  # (n, h · w)
    shape: tuple[int, int]
    low: float  # the feature that is black
    high: float  # and white

    def __call__(self, rows: Ints) -> Bytes:
        levels = (self.X[rows].astype(np.float32) - self.low) * (255 / (self.high - self.low))
        images: Bytes = np.rint(levels).clip(0, 255).astype(np.uint8).reshape(-1, *self.shape)
        return images


@dataclass(frozen=True)
class ArrayInFile:
    """The array `images` of an .npz file, one for each of n items."""

    path: Path
    n: int

    def __call__(self, rows: Ints) -> Bytes:
        images = read_arrays(source_of(self.path)).get("images")
        if images is None or images.ndim != 3 or images.dtype != np.uint8 or len(images) != self.n:
            raise FormatError(f"{self.path} must hold an array images ({self.n}, h, w) of uint8")
        return images[rows]


@dataclass(frozen=True)
class ImageFiles:
    """Thumbnails of image files, one for each item."""

    folder: Path
    names: Sequence[str]

    def __call__(self, rows: Ints) -> Bytes:
        from ..features import thumbnails

        return thumbnails([self.folder / self.names[row] for row in rows])
