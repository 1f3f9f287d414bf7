"""Search and encoding with torch: on a GPU, and with the same code on CPU tensors.

| module           | what it does                                                                        |
|------------------|-------------------------------------------------------------------------------------|
| `learning`       | the backend of fits: columns, pairs, sums over items, neighbours there              |
| `blocks`         | `DeviceBlocks`: codes that stay on the device, with the face of `CodeBlocks`        |
| `search`         | the nearest codes: a bound for all codes, exact distances for those that pass       |
| `bounds`         | weights rounded down to few bits: distances that are never too large                |
| `scans`          | passes over the codes in torch operations, for CPU tensors                          |
| `kernels`        | the same passes in Triton, for a GPU; `triton_passes` starts them                   |
| `pair_kernels`   | sums over pairs and features in Triton, for `learning`                              |
| `recorded_query` | all passes of a single query, recorded as one                                       |
| `encoder`        | items to packed codes, in blocks from host memory; `signs`: linear ones by a kernel |

torch is imported when something is asked of a device, and Triton when that is a GPU.
"""
