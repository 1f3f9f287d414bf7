"""Past one machine: Dask runs what a model does, partition by partition (extra `dask`).

| module          | what it does                                                               |
|-----------------|----------------------------------------------------------------------------|
| `datasets`      | `Dataset`: items in partitions, of Parquet files, Dask arrays or arrays    |
| `clients`       | `connected`: a cluster that runs already, or processes of this machine     |
| `shuffling`     | `shuffle`: items in random order, so that each partition is a fair sample  |
| `fitting`       | `fit`: learn a model; `learning/` holds how                                |
| `encoded_parts` | `encode`: the codes of a data set in parts; `Encoded`: a folder of these   |
| `sharded_index` | `ShardedIndex`: exact search of index files that workers map               |
"""

from __future__ import annotations

from .clients import connected
from .datasets import Dataset
from .encoded_parts import Encoded, encode
from .fitting import fit
from .sharded_index import ShardedIndex
from .shuffling import shuffle

__all__ = ["Dataset", "Encoded", "ShardedIndex", "connected", "encode", "fit", "shuffle"]
