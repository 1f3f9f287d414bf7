"""The workspace of a curator: items, vectors, answers, models, in one folder.

| module            | what it holds                                                                    |
|-------------------|----------------------------------------------------------------------------------|
| `workspace`       | `Workspace`: the folder, opened                                                  |
| `creation`        | `create_workspace`: a new folder, whole or not at all                            |
| `demo`            | `demo_workspace`: handwritten digits                                             |
|                   | **items and vectors**                                                            |
| `item_sources`    | items in tables, from .csv to .npz, and in folders of pictures                   |
| `import_plan`     | which column is what, and the items one after another                            |
| `item_table`      | `ItemTable`: the items, read from any number of threads                          |
| `item_writer`     | `ItemWriter`: the same, written as they come                                     |
| `item_filters`    | `colour=red`, `year>=1990`, `title~sea`                                          |
| `item_vectors`    | the vectors of a new workspace, given or computed                                |
| `embedders`       | vectors of pictures and texts, also of those that are searched for               |
| `pictures`        | pictures decoded with care                                                       |
|                   | **answers and versions**                                                         |
| `records`         | `Records`: answers, model versions and jobs, kept in a database                  |
| `database`        | SQLite or PostgreSQL, behind the same calls                                      |
| `untrusted`       | JSON and SQLite files that strangers may have written                            |
| `versions`        | models and their indexes; searching them                                         |
| `answer_cache`    | `AnswerCache`: the answers in memory: counts, contradictions, agreement          |
| `answer_files`    | answers as .csv, .jsonl and .parquet files, written and read                     |
| `exchange`        | answers, codes and models out and in                                             |
|                   | **asking and learning**                                                          |
| `questions`       | which three items to ask about next                                              |
| `answer_triplets` | the triplets that answers, and the vectors, teach                                |
| `fitting`         | a model version from answers, and what it changed                                |
| `quality`         | how well a ranking agrees with answers and labels                                |
| `jobs`            | fits in the background, as the server sees them                                  |
| `worker`          | the process that fits                                                            |
"""

from __future__ import annotations

from .creation import create_workspace
from .workspace import Workspace

__all__ = ["Workspace", "create_workspace"]
