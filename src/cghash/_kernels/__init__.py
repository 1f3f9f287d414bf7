"""The inner loops, native where they were built, NumPy everywhere else.

| name           | what it computes                                          | used by (in cghash)       |
|----------------|-----------------------------------------------------------|---------------------------|
| `CodeBlocks`   | codes in blocks of 64, the nearest of a query among them   | index                     |
| `PairTable`    | columns as bits over pair slots; loss, gradient, counts   | learning.cpu.columns      |
| `StumpRanks`   | items' ranks in features; the best stump of each feature  | learning.families.ranks   |
| `SignedGraph`  | Laplacian and gain of signed pair weights                 | learning.cpu.pairs        |
| `dot`, `tdot`  | the two passes over the features, Z·v and Zᵀ·r            | learning.cpu.features     |
| `project`      | items times hyperplanes, in one fixed order of summation  | learning.families.linear  |
| `NearestLists` | least scores of each item, from blocks of products        | learning.cpu.neighbors    |
| `rank_codes`, `rank_keys` | what the criteria count in rankings with ties  | criteria.ranking          |
| `rank_rows`    | the nearest of a shortlist, by the vectors themselves     | index                     |
| `whole_rows`   | weights as whole multiples of a unit                      | codes                     |
| `SharedLock`   | many readers or one writer, whatever interrupts them      | index                     |

`CGHASH_KERNELS=numpy` chooses the NumPy twins, `native` insists on the extension; `CGHASH_ISA` names an
instruction set of the extension (`avx512vbmi`, `avx512`, `avx2`, `baseline`). The twins are the oracle in the tests:
same names, same answers.
"""

from __future__ import annotations

import os
from types import ModuleType

from . import twins as twins

try:
    from . import _native  # type: ignore[attr-defined, unused-ignore]
except ImportError:  # built without a compiler
    _native = None


def _choose() -> ModuleType:
    wanted = os.environ.get("CGHASH_KERNELS", "")
    if wanted not in ("", "numpy", "native"):
        raise ImportError(f"CGHASH_KERNELS must be 'numpy' or 'native', got {wanted!r}")
    if wanted == "native" and _native is None:
        raise ImportError("CGHASH_KERNELS=native, but the native extension was not built")
    return twins if wanted == "numpy" or _native is None else _native


native: ModuleType | None = _native
_chosen = _choose()
CodeBlocks = _chosen.CodeBlocks
NearestLists = _chosen.NearestLists
PairTable = _chosen.PairTable
SharedLock = _chosen.SharedLock
SignedGraph = _chosen.SignedGraph
StumpRanks = _chosen.StumpRanks
dot = _chosen.dot
project = _chosen.project
rank_codes = _chosen.rank_codes
rank_keys = _chosen.rank_keys
rank_rows = _chosen.rank_rows
tdot = _chosen.tdot
whole_rows = _chosen.whole_rows


def instruction_set() -> str:
    """Name of the instruction set in use, `numpy` for the twins."""
    return str(_chosen.instruction_set())


def n_threads(n_jobs: int | None) -> int:
    """How many threads `n_jobs` means: None and -1 are all cores that this process may use."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if n_jobs is None:
        return cores
    return n_jobs if n_jobs > 0 else max(1, cores + 1 + n_jobs)
