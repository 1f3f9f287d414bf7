"""Fitted peers as files (storage.py): parameters, and the learned attributes by their names."""

from __future__ import annotations

import math
import os
import warnings
from typing import Any, TypeVar

import numpy as np

from .. import storage
from ..codes import check_weights
from ..exceptions import FormatError
from ..model_files import name_features, plain_parameters, with_parameters

KIND, VERSION = "cghash-peer", 1
_FEATURES = 1 << 22  # that a file may name, however little it learned of them
P = TypeVar("P")


def save_peer(model: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted peer."""
    arrays, plain = learned(model)
    about = {
        "peer": type(model).__name__,
        "parameters": plain_parameters(model),
        "state": plain,
        "n_features_in": int(model.n_features_in_),
        "feature_names_in": [str(name) for name in getattr(model, "feature_names_in_", [])],
    }
    storage.save(path, KIND, VERSION, arrays, about)


_APART = ("n_features_in_", "feature_names_in_")


def learned(model: Any) -> tuple[storage.Arrays, dict[str, Any]]:
    """What a fitted peer learned: arrays, and numbers and words, by their names."""
    values = {name: value for name, value in vars(model).items() if name.endswith("_") and name not in _APART}
    arrays = {name: value for name, value in values.items() if isinstance(value, np.ndarray)}
    plain = {name: getattr(value, "item", lambda v=value: v)() for name, value in values.items() if name not in arrays}
    return arrays, plain


def load_peer(cls: type[P], path: str | os.PathLike[str]) -> P:
    """Read a fitted peer of this class; FormatError when the file is not one."""
    arrays, about = storage.load(path, KIND, VERSION)
    if about.get("peer") != cls.__name__:
        raise FormatError(f"{path} must be a model of {cls.__name__}, got one of {about.get('peer')!r}")
    try:
        model = with_parameters(cls, about)
        for name, value in (*arrays.items(), *about["state"].items()):
            if not name.endswith("_") or name.startswith("_") or hasattr(cls, name):
                raise FormatError(f"{name} is not a learned attribute")
            if not _is_plain(value):
                raise FormatError(f"{name} must be words, numbers that are finite, or an array of these")
            setattr(model, name, value)
        name_features(model, about)
        _check_features(model, sum(array.size for array in arrays.values()))
        model._n_features_out = model.n_bits_
        _try_out(model)
    except (KeyError, TypeError, AttributeError, ValueError, IndexError, ArithmeticError, MemoryError) as error:
        raise FormatError(f"{path} is a model of {cls.__name__}, but its parts do not fit together: {error}") from error
    return model  # type: ignore[no-any-return]


def _is_plain(value: Any) -> bool:
    if isinstance(value, np.ndarray):
        return value.dtype.kind in "biuf" and (value.dtype.kind != "f" or bool(np.isfinite(value).all()))
    if isinstance(value, int):
        return abs(value) < 2**63
    return isinstance(value, str) or (isinstance(value, float) and math.isfinite(value))


def _check_features(model: Any, n_learned: int) -> None:
    """Refuse more features than items can have, unless the file has learned as many numbers: items of them are made."""
    if model.n_features_in_ > max(_FEATURES, n_learned):
        raise FormatError(f"it says {model.n_features_in_} features, and its arrays hold {n_learned} numbers")


def _try_out(model: Any) -> None:
    """Encode two items, then three: arrays that do not fit together say so here, and not at the first query."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        tried = {n: model._bits(np.zeros((n, model.n_features_in_))) for n in (2, 3)}
    for n, bits in tried.items():
        if bits.ndim != 2 or bits.shape[0] != n or bits.dtype != np.bool_:
            raise FormatError(f"it gives {n} items bits of shape {bits.shape} and type {bits.dtype}")
    if not isinstance(model.n_bits_, int) or not 1 <= model.n_bits_ <= bits.shape[1]:
        raise FormatError(f"it gives {bits.shape[1]} bits where {model.n_bits_!r} are said")
    if not model.hamming and bits.shape[1] != 8 * -(-model.n_bits_ // 8):
        raise FormatError(f"its codes have {bits.shape[1]} bits where {model.n_bits_} are said")
    check_weights(model.weights_, model.n_bits_)
