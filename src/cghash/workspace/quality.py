"""How good a model version is and what it changes: agreement with answers, overlap of results, precision and recall."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._arrays import Floats, Ints
from ..codes import unpack
from ..criteria import Retrieval, retrieve_by_codes, retrieve_by_vectors
from .versions import Ranking, VectorSearch

__all__ = ["agreement", "compared_rows", "most_changed", "overlaps", "retrieval", "sampled_rows", "split_of"]


_QUERIES, _DATABASE = 500, 20000  # items that precision and recall are measured with
_DEPTH = 10  # nearest items that two rankings are compared by
_COMPARED, _FEW = 300, 12  # queries that they are compared by, and how many at least
_NUMBERS = 1 << 32  # of vectors that a comparison may look at


def agreement(search: Ranking, triplets: Any) -> float | None:
    """Share of triplets (t, 3) that a ranking satisfies, ties counting half; None without triplets."""
    rows = np.asarray(triplets, dtype=np.int64).reshape(-1, 3)
    if not len(rows):
        return None
    margins = search.margins(rows)
    return float(np.mean(margins > 0) + 0.5 * np.mean(margins == 0))


def sampled_rows(n: int, count: int, seed: int = 0) -> Ints:
    """`count` different rows of n, ascending, the same each time."""
    rows = np.random.default_rng(seed).permutation(n)[:count]
    return np.sort(rows).astype(np.int64)


def compared_rows(vectors: Any, *searches: Ranking) -> Ints:
    """Queries that rankings are compared by: fewer where all vectors (n, d) must be looked at for each."""
    slow = any(isinstance(search, VectorSearch) for search in searches)
    count = min(_COMPARED, max(_FEW, _NUMBERS // vectors.size)) if slow else _COMPARED
    return sampled_rows(len(vectors), count)


def overlaps(one: Ranking, other: Ranking, rows: Ints) -> Floats:
    """For each query row, the share of its ten nearest items that two rankings have in common."""
    nearest = [(_ten(one, row), _ten(other, row)) for row in rows.tolist()]
    return np.array([len(np.intersect1d(a, b)) / max(1, len(a)) for a, b in nearest])


def most_changed(before: Ranking, after: Ranking, vectors: Any, count: int) -> tuple[list[tuple[int, float]], float]:
    """Rows whose nearest items differ most between two rankings of vectors (n, d), with what they share; the mean."""
    rows = compared_rows(vectors, before)
    shares = overlaps(before, after, rows)
    most = np.argsort(shares, kind="stable")[:count]
    return list(zip(rows[most].tolist(), shares[most].tolist(), strict=True)), float(shares.mean())


def _ten(search: Ranking, row: int) -> Ints:
    found = search.nearest(row, _DEPTH + 1, None)[1]
    others: Ints = found[found != row][:_DEPTH]
    return others


def split_of(labels: NDArray[np.str_]) -> tuple[Ints, Ints]:
    """Rows of queries, and of the items among which they are searched; of items that have a label."""
    labelled = np.flatnonzero(labels != "")
    chosen = np.random.default_rng(0).permutation(labelled)[: _QUERIES + _DATABASE]
    n_queries = min(_QUERIES, len(chosen) // 5)
    return chosen[:n_queries], chosen[n_queries:]


def retrieval(search: Ranking, labels: NDArray[np.str_] | None) -> Retrieval | None:
    """Precision, recall and mean average precision by labels (n,), empty where there is none.

    None where they cannot be measured: without labels, with few, or where no query shares its label.
    """
    if labels is None:
        return None
    queries, database = split_of(labels)
    if not np.isin(labels[queries], labels[database]).any():
        return None
    told = (labels[queries], labels[database], min(50, len(database)), min(3, len(database)))
    if isinstance(search, VectorSearch):
        return retrieve_by_vectors(search.vectors[queries], search.vectors[database], *told, n_jobs=1)
    query_bits, database_bits = (unpack(search.codes[rows], search.bits) for rows in (queries, database))
    return retrieve_by_codes(query_bits, database_bits, search.weights, *told, n_jobs=1)
