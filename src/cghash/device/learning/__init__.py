"""Learning with torch: on a GPU, and with the same code on CPU tensors.

Items, pairs and columns stay on the device; L-BFGS runs on the host. Directions, weights and sums cross, and once a
column its bits.

| module      | what it does there                                                               |
|-------------|----------------------------------------------------------------------------------|
| `backend`   | `DeviceBackend`: what a fit hands in, checked, and the memory that it needs      |
| `columns`   | `ColumnSums`: loss, gradient and counts over the triplets                        |
| `pairs`     | `PairWeights`: signed pair weights, their Laplacian                              |
| `item_sums` | `ItemSums`: what the search for a hyperplane asks of the items                   |
| `families`  | items to features, directions to linear or RBF functions                         |
| `recorded`  | evaluations of both problems on a GPU, each a graph of kernels                   |
| `neighbors` | the neighbour graph: float32 candidates, float64 distances decide                |

Sums are doubles, and each is added up in one fixed order, so that a fit comes out the same every time.
"""
