"""Models as files (storage.py): parameters, functions, weights path and the training summary."""

from __future__ import annotations

import json
import os
import warnings
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from . import storage
from ._arrays import Floats
from ._validation import check_whole
from .checkpoints import functions_in, weights_path
from .exceptions import CGHashWarning, FormatError
from .learning.column_generation import State
from .learning.result import FitResult

KIND, VERSION = "cghash-model", 1
MOST_FEATURES = 1 << 27  # an item of them takes a gigabyte


def save_model(model: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted CGHash."""
    arrays = {f"functions.{name}": array for name, array in model.functions_.arrays().items()}
    arrays["weights"] = np.concatenate(model.weights_path_)
    if model.mean_margins_ is not None:
        arrays |= {"mean_margins": model.mean_margins_, "query_cut": np.array([model.query_cut_])}
    about = {
        "parameters": plain_parameters(model),
        "family": model.functions_.family,
        "n_features_in": int(model.n_features_in_),
        "feature_names_in": [str(name) for name in getattr(model, "feature_names_in_", [])],
        "result": model.result_.to_dict(),
    }
    storage.save(path, KIND, VERSION, arrays, about)


def load_model(cls: type, path: str | os.PathLike[str]) -> Any:
    """Read a fitted CGHash; FormatError when the file is not one."""
    arrays, about = storage.load(path, KIND, VERSION)
    try:
        model = with_parameters(cls, about)
        functions = functions_in(arrays, about)
        name_features(model, about)
        result = FitResult.from_dict(about["result"])
        weights = weights_path(arrays["weights"], len(functions))
        if not functions.takes(model.n_features_in_):
            raise FormatError(f"its functions do not take items of {model.n_features_in_} features")
        if len(result.columns) != len(functions):
            raise FormatError(f"its result is of {len(result.columns)} columns, and it has {len(functions)} functions")
        model._keep(State(functions, weights, result.columns), result, quiet=True)
        if "mean_margins" in arrays:  # not in files from before `query`, nor of functions without margins
            model.mean_margins_, model.query_cut_ = _margins(arrays, len(functions))
    except (KeyError, ValueError) as error:
        raise FormatError(f"{path} is a cghash model, but its parts do not fit together: {error}") from error
    return model


def _margins(arrays: storage.Arrays, n_bits: int) -> tuple[Floats, float]:
    """Mean |margin| of each bit, and how many of them it counts at most for a query."""
    means, cut = arrays["mean_margins"], arrays["query_cut"]
    if means.shape != (n_bits,) or means.dtype != np.float64 or not np.all(np.isfinite(means) & (means > 0)):
        raise FormatError(f"mean_margins must be {n_bits} positive numbers, one for each function")
    if cut.shape != (1,) or cut.dtype != np.float64 or not cut[0] > 0:
        raise FormatError("query_cut must be one positive number")
    return means, float(cut[0])


def with_parameters(cls: type, about: dict[str, Any]) -> Any:
    """An estimator with the parameters of a file, which are checked as `fit` does."""
    parameters, plain = about["parameters"], str | int | float | None
    if not isinstance(parameters, dict) or not all(isinstance(value, plain) for value in parameters.values()):
        raise FormatError("its parameters must be an object of numbers and words")
    unknown = set(parameters) - set(cls._get_param_names())  # type: ignore[attr-defined]
    if unknown:
        raise FormatError(f"it has no parameter {min(unknown)!r:.40}")
    model = cls(**parameters)
    model._check_parameters()
    check_random_state(parameters.get("random_state"))
    return model


def name_features(model: Any, about: dict[str, Any]) -> None:
    """Give a loaded model the number of its features, and their names where it had them."""
    names = about["feature_names_in"]
    model.n_features_in_ = check_whole(about["n_features_in"], 1, "n_features_in")
    if model.n_features_in_ > MOST_FEATURES:
        raise FormatError(f"n_features_in must be at most {MOST_FEATURES}, got {model.n_features_in_}")
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise FormatError(f"feature_names_in must be a list of words, got {names!r:.40}")
    if len(names) not in (0, model.n_features_in_):
        raise FormatError(f"it names {len(names)} of its {model.n_features_in_} features")
    if names:
        model.feature_names_in_ = np.array(names, dtype=object)


def plain_parameters(model: Any) -> dict[str, Any]:
    """The constructor's parameters that JSON can hold; others fall back to defaults, a tree to its family, and warn."""
    plain = {}
    for name, value in model.get_params(deep=False).items():
        value = os.fspath(value) if isinstance(value, os.PathLike) else value
        value = value.item() if isinstance(value, np.generic) else value
        if isinstance(value, str | int | float | bool | None):
            plain[name] = value
        else:
            if name == "hash_function":
                plain[name] = model.functions_.family
            warnings.warn(
                f"parameter {name}={value!r} is not stored: the loaded model encodes the same, but fitting it again "
                f"would use {plain.get(name, 'the default')}",
                CGHashWarning,
                stacklevel=4,
            )
    json.dumps(plain)
    return plain
