"""Items of an estimator through a device: checked, in blocks, to packed codes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from ._tensors import is_on_gpu, is_tensor
from .device.encoder import Encoder, encode_blocks, encoder_of, rows_of
from .exceptions import InvalidInputError
from .reading import item_blocks

if TYPE_CHECKING:
    from .estimator import CodeEstimator


def encode_on(model: CodeEstimator, X: Any, device: Any = None) -> Any:
    """Codes of items: a tensor on a GPU stays there, all else goes through the device and comes back."""
    encoder = encoder_of(getattr(model, "functions_", model), X.device if device is None else device)
    if is_on_gpu(X):
        _check_items(encoder, tuple(X.shape))
        return encoder.codes(X.to(encoder.device))
    blocks = encode_blocks(encoder, _blocks(model, X, encoder))
    return np.concatenate([np.zeros((0, -(-encoder.n_bits // 8)), dtype=np.uint8), *blocks])


def _blocks(model: CodeEstimator, X: Any, encoder: Encoder) -> Iterator[Any]:
    if isinstance(X, str | os.PathLike):
        names = getattr(model, "feature_names_in_", None)
        for block in item_blocks(X, None if names is None else [str(name) for name in names]):
            _check_items(encoder, block.shape)
            yield block
        return
    items = X.numpy() if is_tensor(X) else np.asanyarray(X)
    _check_items(encoder, items.shape)
    if items.dtype.kind not in "buif":
        raise InvalidInputError(f"X must hold numbers, got dtype {items.dtype}")
    yield from rows_of(items)


def _check_items(encoder: Encoder, shape: tuple[int, ...]) -> None:
    if len(shape) != 2 or shape[1] != encoder.n_features:
        raise InvalidInputError(f"X must have shape (n, {encoder.n_features}), as in fit, got shape {shape}")
