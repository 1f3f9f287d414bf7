"""Dataset: items in partitions, which workers read where they are."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from .._validation import check_choice, check_whole
from ..exceptions import InvalidInputError
from .array_partitions import array_partitions, dask_partitions
from .parquet_listing import list_parquet
from .parquet_partitions import Columns
from .partitions import Block, Partition

ROWS = 1 << 16  # of a partition of an array
PARTITIONS = ("row group", "file")


@dataclass(frozen=True)
class Dataset:
    """Items, and labels where there are some, in partitions; made by one of the `from_…` functions.

    A partition is a description of a few hundred bytes: workers read the items themselves, from files that they must
    be able to see under the same path. `partition.read()` gives `(ids, X, y)`, `partition.read_batches(rows)` the
    same in pieces.

    Examples
    --------
    >>> X = np.arange(20, dtype=np.float32).reshape(10, 2)
    >>> data = Dataset.from_arrays(X, y=np.arange(10) % 2, rows=4)
    >>> data
    <Dataset of X: 10 items of 2 features, float32, with labels, in 3 partitions>
    >>> data.partitions[2].read().ids
    array([8, 9])
    """

    name: str
    partitions: tuple[Partition, ...]
    columns: tuple[str, ...] = ()  # that hold one feature each, or one that holds lists

    @classmethod
    def from_parquet(
        cls,
        path: str | os.PathLike[str],
        *,
        vector: str | Sequence[str] = "vector",
        ids: str | None = None,
        labels: str | None = None,
        partition: str = "row group",
    ) -> Dataset:
        """Items of a Parquet file, or of all files of a folder that end in .parquet, in the order of their names.

        Files of Arrow's own format (.arrow, .feather) are read too; their record batches are what row groups are here.
        Only footers are read. The rows' order, and so the default ids, is that of files, row groups and rows.

        Parameters
        ----------
        path : file, or folder, whose folders are searched as well; names that begin with _ or . are left out
        vector : a column of lists, all of one length, or a column of numbers for each feature
        ids : column of whole numbers, 0 or more; default: row numbers over the whole data set
        labels : column of labels, one a row
        partition : "row group", default: the smallest part that can be read alone, so that many workers share a large
            file; or "file", where row groups are small. One row group is in memory at a time in either case.
        """
        by_file = check_choice(partition, PARTITIONS, "partition") == "file"
        columns = Columns(vector if isinstance(vector, str) else tuple(vector), ids, labels)
        if not columns.features:
            raise InvalidInputError("vector must name at least one column, got none")
        names = (vector,) if isinstance(vector, str) else tuple(vector)
        return cls(os.fspath(path), list_parquet(Path(path), columns, by_file), names)

    @classmethod
    def from_dask(cls, X: Any, y: Any = None, ids: Any = None) -> Dataset:
        """Items of Dask arrays; a partition is a block of rows, computed by the worker that reads it.

        Parameters
        ----------
        X : dask array (n, d), not persisted, whose blocks have known sizes
        y, ids : dask arrays (n,), optional; they are cut as X is
        """
        return cls("X", dask_partitions(X, y, ids))

    @classmethod
    def from_arrays(cls, X: Any, y: Any = None, ids: Any = None, *, rows: int = ROWS) -> Dataset:
        """Items of arrays: small ones, which travel to the workers, or an .npy file that is mapped, which stays.

        Parameters
        ----------
        X : array (n, d), or `np.load(path, mmap_mode="r")`
        y, ids : arrays (n,), optional
        rows : items of a partition
        """
        return cls("X", array_partitions(X, y, ids, check_whole(rows, 1, "rows")))

    def __len__(self) -> int:
        return sum(part.n_rows for part in self.partitions)

    @property
    def n_features(self) -> int:
        """Features of an item."""
        return self.partitions[0].n_features

    @property
    def feature_names(self) -> list[str]:
        """The names of the columns of features, or of the places in a column of lists; none, where there are none."""
        if len(self.columns) == 1 and self.n_features > 1:
            return [f"{self.columns[0]}[{i}]" for i in range(self.n_features)]
        return list(self.columns)

    @property
    def dtype(self) -> str:
        """What items are read as: float32 or float64."""
        return self.partitions[0].dtype

    @property
    def has_labels(self) -> bool:
        """Whether items have a label each."""
        return self.partitions[0].has_labels

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 over the partitions' fingerprints, in hexadecimal."""
        total = hashlib.sha256()
        for part in self.partitions:
            total.update(f"{len(part.fingerprint)} {part.fingerprint} {part.n_rows} ".encode())
        return total.hexdigest()

    def thinned(self, step: int) -> Dataset:
        """Every step-th partition: a fair sample, where the items lie in no order.

        >>> Dataset.from_arrays(np.zeros((100, 2)), rows=10).thinned(4)
        <Dataset of X, every 4th partition: 30 items of 2 features, float64, in 3 partitions>
        """
        if check_whole(step, 1, "step") == 1:
            return self
        return Dataset(f"{self.name}, every {step}th partition", self.partitions[::step], self.columns)

    def read(self) -> Block:
        """All items, in this process: for what fits into memory."""
        blocks = [part.read() for part in self.partitions]
        y = np.concatenate([block.y for block in blocks if block.y is not None]) if self.has_labels else None
        return Block(np.concatenate([block.ids for block in blocks]), np.concatenate([block.X for block in blocks]), y)

    def __repr__(self) -> str:
        labelled = ", with labels" if self.has_labels else ""
        return (
            f"<Dataset of {self.name}: {len(self)} items of {self.n_features} features, {self.dtype}{labelled}, "
            f"in {len(self.partitions)} partitions>"
        )
