"""Items, labels and comparisons from files: .npy, .npz, .csv, .tsv, .txt, .jsonl, .parquet, and standard input.

| module        | what it reads                                                                |
|---------------|------------------------------------------------------------------------------|
| `sources`     | where bytes come from, and which format they are                             |
| `text`        | rows of .csv, .tsv, .txt and .jsonl with their line numbers; what a header is |
| `arrays`      | .npy, .npz and .parquet; nothing is ever unpickled                           |
| `items`       | the items (n, d), with labels and ids that lie beside the features           |
| `blocks`      | the items of .npy and .parquet files, some rows at a time                    |
| `labels`      | one label an item                                                            |
| `comparisons` | triplets and duplets, by row number or by id                                 |

Every error names the file, what it must hold, what was found, and the line where there are lines.
"""

from __future__ import annotations

from .blocks import item_blocks
from .comparisons import read_duplets, read_triplets
from .items import Items, read_items
from .labels import alike_labels, plain_labels, read_labels

__all__ = [
    "Items",
    "alike_labels",
    "item_blocks",
    "plain_labels",
    "read_duplets",
    "read_items",
    "read_labels",
    "read_triplets",
]
