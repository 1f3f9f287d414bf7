"""Learning with torch: on a GPU, and with the same code on CPU tensors.

Items, pairs and columns stay on the device; L-BFGS runs on the host, and only directions, weights and sums cross.

| module      | what it does there                                                               |
|-------------|----------------------------------------------------------------------------------|
| `columns`   | `ColumnSums`: loss, gradient and counts over the triplets                        |
| `margins`   | the built-in losses over blocks of triplets                                      |
| `pairs`     | `PricedPairs`: signed pair weights, their Laplacian                              |
| `passes`    | `Passes`: what the search for a hyperplane asks of the items                     |
| `families`  | items to features, directions to linear or RBF functions                         |
| `neighbors` | the neighbour graph: float32 candidates, float64 distances decide                |
| `start`     | what a fit hands in, checked, and the memory that it needs                       |

Sums are doubles, and each is added up in one fixed order, so that a fit comes out the same every time.
"""
