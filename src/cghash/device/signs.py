"""Linear codes by the Triton kernel: product, sign and packing in one pass over the items."""

from __future__ import annotations

import torch

from . import kernels
from .encoder import LinearEncoder, Tensor, check_finite

_BITS = 64  # functions a program
# how items are multiplied: number of parts of the coefficients, rows and features a program, warps, stages
_HOW = {
    torch.float16: (2, 128, 64, 8, 3),  # 2 parts of 11 bits
    torch.bfloat16: (4, 128, 32, 8, 3),  # 3 of 8 bits; the fourth is 0
    torch.float32: (1, 64, 32, 4, 3),
}


def encode(encoder: LinearEncoder, X: Tensor) -> Tensor:
    """Words (n, ⌈ℓ/32⌉) of items (n, d)."""
    n_parts, rows, step, warps, stages = _HOW[X.dtype]
    parts, intercept = _parts(encoder, X.dtype, n_parts)
    n_words = len(intercept) // 32
    words = torch.empty((len(X), n_words), dtype=torch.int32, device=X.device)
    wrong = torch.zeros(1, dtype=torch.int32, device=X.device)
    if len(X):
        kernels.encode[(-(-len(X) // rows), len(intercept) // _BITS)](
            X, X.stride(0), len(X), X.shape[1], parts, intercept, words, n_words, wrong,
            PARTS=n_parts, PRECISION="tf32x3" if X.dtype == torch.float32 else "ieee", ROWS=rows, STEP=step,
            BITS=_BITS, num_warps=warps, num_stages=stages,
        )  # fmt: skip
    check_finite(not int(wrong))
    return words[:, : -(-encoder.n_bits // 32)].contiguous()


def _parts(encoder: LinearEncoder, dtype: torch.dtype, n_parts: int) -> tuple[Tensor, Tensor]:
    """Coefficients as sums of parts (blocks, d, n_parts, 64) in the items' type, and intercepts; made once."""
    if dtype not in encoder._parts:
        n_blocks = -(-encoder.n_bits // _BITS)
        rest = encoder.coef.new_zeros((n_blocks * _BITS, encoder.n_features))
        rest[: encoder.n_bits] = encoder.coef
        parts = []
        for _ in range(n_parts):
            parts.append(rest.to(dtype))
            rest = rest - parts[-1].double()
        stacked = torch.stack(parts).view(n_parts, n_blocks, _BITS, -1).permute(1, 3, 0, 2).contiguous()
        intercept = torch.zeros(n_blocks * _BITS, dtype=torch.float32, device=encoder.device)
        intercept[: encoder.n_bits] = encoder.intercept.float()
        encoder._parts[dtype] = stacked, intercept
    return encoder._parts[dtype]
