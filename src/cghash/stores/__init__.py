"""Hand the codes, or the model, to the systems that you already run.

| module     | what it makes                                   | the nearest under the weights                       |
|------------|-------------------------------------------------|-----------------------------------------------------|
| `faiss`    | an index of FAISS, which its own tools read     | proven; `binary`: where it says so; `hnsw`: likely   |
| `postgres` | a table of PostgreSQL, with a graph of pgvector | likely by the graph; proven by a scan, and in SQL   |
| `parquet`  | a Parquet file: `id`, `code`                    | proven                                              |
| `duckdb`   | a table of DuckDB                               | proven, in SQL                                      |
| `onnx`     | the model itself: floats in, packed codes out   | –                                                   |

Every store of codes has `write`, `open`, `search`, `search_items` and `info` (`Store`), and carries the `Origin` of
its codes: bits, weights, and a fingerprint of the functions that made them.
"""

from __future__ import annotations

from .base import Found, Store
from .origin import Origin, origin_of

__all__ = ["Found", "Origin", "Store", "origin_of"]
