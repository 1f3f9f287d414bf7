"""A data set: items, labels, the customary split, and pictures of the items where there are some."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..._arrays import Array, Ints
from ...exceptions import InvalidInputError

__all__ = ["DataSet"]

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
