"""Search and encoding with torch: on a GPU, and with the same code on CPU tensors.

| module     | what it does                                                                  |
|------------|-------------------------------------------------------------------------------|
| `learning` | the backend of fits: columns, pairs, sums over items, neighbours there        |
| `blocks`   | `DeviceBlocks`: codes that stay on the device, with the face of `CodeBlocks`   |
| `search`   | the nearest codes: a bound for all codes, exact distances for those that pass  |
| `bounds`   | weights rounded down to few bits: distances that are never too large           |
| `scans`    | passes over the codes in torch operations, for CPU tensors                     |
| `kernels`  | the same passes in Triton, for a GPU; `launches` starts them                   |
| `pair_kernels` | sums over pairs and features in Triton, for `cghash.learning.device`       |
| `alone`    | all passes of a single query, recorded as one                                  |
| `encoding` | items on the device to packed codes; `signs`: linear ones by a kernel          |
| `streams`  | items from host memory or Parquet through the device, copies overlapped        |

torch is imported when something is asked of a device, and Triton when that is a GPU.
"""
