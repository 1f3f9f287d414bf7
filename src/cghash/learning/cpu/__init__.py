"""The backend of the CPU: items and triplets in memory, native kernels or their NumPy twins.

| module      | what it does                                                                     |
|-------------|----------------------------------------------------------------------------------|
| `backend`   | `CpuBackend`: the face of all this                                               |
| `columns`   | `ColumnSums`: loss, gradient and counts over the triplets                        |
| `pairs`     | `PairWeights`: signed pair weights, their Laplacian                              |
| `item_sums` | `ItemSums`: what the search for a hyperplane asks of the items                   |
| `features`  | standardised features, and products with them                                    |
| `neighbors` | the neighbour graph; its parts are `neighbor_blocks` (products of blocks, by     |
|             | threads), `neighbor_bounds` (which are not needed) and `neighbor_items`          |
"""
