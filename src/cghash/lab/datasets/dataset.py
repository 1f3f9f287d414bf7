"""A data set: items, labels, the customary split, and pictures of the items where there are some."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..._arrays import Array, Bytes, Ints
from ...exceptions import FormatError, InvalidInputError
from ...reading.binary_files import read_arrays
from ...reading.sources import source_of

__all__ = ["ArrayInFile", "DataSet", "Features", "ImageFiles", "Painter"]

Painter = Callable[[Ints], NDArray[np.uint8]]  # rows to (m, h, w)


@dataclass(frozen=True, eq=False, repr=False)
class DataSet:
    """Items with labels.

    Attributes
    ----------
    name : its name in the registry, or its path
    X : (n, d) items, float32 or float64
    y : (n,) int64 labels from 0; (n, L) uint8 of 0 and 1 where an item has several; None where there are none
    n_train : the leading rows that form the customary train split, None where there is none
    classes : names of the labels
    groups : (n,) who an item is from (ISOLET: group of speakers), or None
    source : where it comes from, in words
    painter : paints rows, or None

    Examples
    --------
    >>> data = DataSet("two", np.zeros((2, 4), np.float32), np.array([0, 1]), classes=("a", "b"))
    >>> data
    DataSet('two', 2 × 4, 2 classes)
    >>> data.images is None
    True
    """

    name: str
    X: Array
    y: Array | None
    n_train: int | None = None
    classes: tuple[str, ...] = ()
    groups: Ints | None = None
    source: str = ""
    painter: Painter | None = None

    @property
    def multi_label(self) -> bool:
        """Whether an item may have several labels."""
        return self.y is not None and self.y.ndim == 2

    @cached_property
    def images(self) -> NDArray[np.uint8] | None:
        """Pictures of all items, (n, h, w), painted when first asked for; None where there are none."""
        return None if self.painter is None else self.pictures(np.arange(len(self.X)))

    def pictures(self, rows: ArrayLike) -> NDArray[np.uint8]:
        """Pictures of some items.

        Parameters
        ----------
        rows : (m,) row numbers

        Returns
        -------
        images : (m, h, w) uint8
        """
        if self.painter is None:
            raise InvalidInputError(f"{self.name} has no pictures of its items")
        return self.painter(np.asarray(rows, dtype=np.int64))

    def __repr__(self) -> str:
        n, d = self.X.shape
        labels = f"{len(self.classes)} {'labels, several an item' if self.multi_label else 'classes'}"
        train = "" if self.n_train is None else f", {self.n_train} to train"
        return f"DataSet({self.name!r}, {n} × {d}, {labels if self.y is not None else 'no labels'}{train})"


@dataclass(frozen=True)
class Features:
    """Paints items that are pixels themselves.

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
    """Paints items from the array `images` of an .npz file, one for each of n items."""

    path: Path
    n: int

    def __call__(self, rows: Ints) -> Bytes:
        images = read_arrays(source_of(self.path)).get("images")
        if images is None or images.ndim != 3 or images.dtype != np.uint8 or len(images) != self.n:
            raise FormatError(f"{self.path} must hold an array images ({self.n}, h, w) of uint8")
        return images[rows]


@dataclass(frozen=True)
class ImageFiles:
    """Paints items as thumbnails of image files, one for each."""

    folder: Path
    names: Sequence[str]

    def __call__(self, rows: Ints) -> Bytes:
        from ..features import thumbnails

        return thumbnails([self.folder / self.names[row] for row in rows])
