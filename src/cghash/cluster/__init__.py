"""Past one machine: Dask runs what a model does, partition by partition (extra `dask`).

| module        | what it does                                                                            |
|---------------|-----------------------------------------------------------------------------------------|
| `datasets`    | `Dataset`: items in partitions, of Parquet files, Dask arrays or arrays                 |
"""

from __future__ import annotations

from .datasets import Dataset

__all__ = ["Dataset"]
