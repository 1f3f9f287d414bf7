"""NumPy twins of the native kernels: always there, and the oracle in the tests."""

from __future__ import annotations

from .code_blocks import CodeBlocks
from .nearest import NearestLists
from .pairs import PairTable, block_margins
from .pricing import SignedGraph, dot, project, tdot
from .rankings import rank_codes, rank_keys
from .shared_lock import SharedLock
from .stumps import StumpRanks

__all__ = [
    "CodeBlocks",
    "NearestLists",
    "PairTable",
    "SharedLock",
    "SignedGraph",
    "StumpRanks",
    "block_margins",
    "dot",
    "instruction_set",
    "project",
    "rank_codes",
    "rank_keys",
    "tdot",
]


def instruction_set() -> str:
    return "numpy"
