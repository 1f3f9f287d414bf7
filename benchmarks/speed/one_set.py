"""The triplets that the workers of a cluster hold, as one process would hold them; tests compare with it too."""

from __future__ import annotations

from typing import Any

import numpy as np

from cghash.cluster.learning.fit_partitions import FitPartition
from cghash.learning.triplets import TripletSet


def joined(partitions: list[FitPartition]) -> TripletSet:
    """The triplets of all partitions as one set over all items: what a single process learns from."""
    sets = [partition.triplets for partition in partitions]
    offsets = np.cumsum([0, *(partition.n_items for partition in partitions)])
    n = sum(t.n_triplets for t in sets)

    def items(name: str) -> Any:
        return np.concatenate([getattr(t, name) + offset for t, offset in zip(sets, offsets, strict=False)])

    def pointers(name: str) -> Any:
        return np.concatenate([[0], np.cumsum(np.concatenate([np.diff(getattr(t, name)) for t in sets]))])

    weights = np.concatenate([t.weights * (t.n_triplets / n) for t in sets])
    parts = items("anchors"), items("near"), pointers("near_ptr"), items("far"), pointers("far_ptr"), weights
    return TripletSet(*parts, int(offsets[-1]))
