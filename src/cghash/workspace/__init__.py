"""The workspace of a curator: items, vectors, answers, models, in one folder.

| module           | what it does                                                                      |
|------------------|-----------------------------------------------------------------------------------|
| `folder`         | `Workspace`: the folder, opened                                                   |
| `making`         | `create_workspace`: a new folder, whole or not at all                             |
| `tables`         | items in .csv, .tsv, .jsonl, .parquet, .npy and .npz files                        |
| `picture_folder` | a folder of pictures as such a table                                              |
| `importing`      | which column is what, and the items one after another                             |
| `items`          | `ItemTable`: the items, read from any number of threads                           |
| `item_writer`    | the same, written as they come                                                    |
| `filters`        | `colour=red`, `year>=1990`, `title~sea`                                           |
| `pictures`       | pictures decoded with care                                                        |
| `embedding`      | vectors of pictures and texts, also of those that are searched for                |
| `tfidf`          | vectors of texts from the words in them                                           |
| `vectors`        | the vectors of a new workspace, given or computed                                 |
| `whole`          | a folder that is there when it is whole                                           |
| `demo`           | `demo_workspace`: handwritten digits                                              |
| `database`       | SQLite or PostgreSQL, behind the same calls                                       |
| `records`        | answers, model versions and jobs                                                  |
| `versions`       | models and their indexes; searching them                                          |
| `answers`        | the answers in memory: counts, contradictions, agreement                          |
| `questions`      | which three items to ask about next                                               |
| `lessons`        | what is learned from answers                                                      |
| `learning`       | a model version from answers, and what it changed                                 |
| `quality`        | how well a way to rank agrees with answers and labels                             |
| `jobs`           | fits in the background, as the server sees them                                   |
| `worker`         | the process that fits                                                             |
| `exchange`       | answers, codes and models out and in                                              |
"""

from __future__ import annotations

from .folder import Workspace
from .making import create_workspace

__all__ = ["Workspace", "create_workspace"]
