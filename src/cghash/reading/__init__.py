"""Items, labels and comparisons from files: .npy, .npz, .csv, .tsv, .txt, .jsonl, .parquet, and standard input.

| module             | what it reads                                                                         |
|--------------------|---------------------------------------------------------------------------------------|
| `sources`          | where bytes come from, which format they are, and how much memory they may take       |
| `text_files`       | rows of .csv, .tsv, .txt and .jsonl with their line numbers; what a header is         |
| `binary_files`     | .npy, .npz and .parquet; nothing is ever unpickled                                    |
| `parquet_footer`   | what a .parquet file says of its columns                                              |
| `item_files`       | the items (n, d), with labels and ids that lie beside the features; or blocks of rows |
| `label_files`      | one label an item                                                                     |
| `comparison_files` | triplets and duplets, by row number or by id                                          |

Every error names the file, what it must hold, what was found, and the line where there are lines.
"""

from __future__ import annotations

from .comparison_files import read_duplets, read_triplets
from .item_files import Items, item_blocks, read_items
from .label_files import alike_labels, plain_labels, read_labels

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
