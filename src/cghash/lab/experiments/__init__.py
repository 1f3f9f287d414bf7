"""Experiments: which methods on which data sets (plan), run cell by cell (runner), into raw results that are kept.

| file           | what it is                                                                          |
|----------------|-------------------------------------------------------------------------------------|
| `plan`         | an experiment: data sets, methods, numbers of bits, splits                          |
| `plan_files`   | the same as a TOML file says it; `paper`, `demo` and others come with us            |
| `scaled_items` | the items of its data sets, scaled                                                  |
| `protocol`     | who is trained on, searched and asked: classes seen in training, or never seen      |
| `methods`      | the estimators by name, and the choice of their parameters on training items        |
| `cells`        | one method on one split: fit, encode, criteria, a result for each number of bits    |
| `cell_details` | what is kept of some cells beside numbers: what queries find, how the fit went      |
| `runner`       | all cells, in processes of their own: resumed, parallel, a failure does not stop it |
| `results`      | raw results: one JSON file a cell, or many as lines of one file                     |
| `machine`      | under which circumstances a result was measured                                     |
"""
