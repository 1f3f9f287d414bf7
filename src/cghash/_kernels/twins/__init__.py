"""NumPy twins of the native kernels: always there, and the oracle in the tests."""

from __future__ import annotations

from .code_blocks import CodeBlocks as CodeBlocks
from .nearest import NearestLists as NearestLists
from .pair_table import PairTable as PairTable
from .pair_table import block_margins as block_margins
from .pricing import SignedGraph as SignedGraph
from .pricing import dot as dot
from .pricing import project as project
from .pricing import tdot as tdot
from .rankings import rank_codes as rank_codes
from .rankings import rank_keys as rank_keys
from .rows import rank_rows as rank_rows
from .shared_lock import SharedLock as SharedLock
from .stumps import StumpRanks as StumpRanks
from .weights import whole_rows as whole_rows


def instruction_set() -> str:
    return "numpy"
