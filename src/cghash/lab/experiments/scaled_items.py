"""The items of an experiment's data sets, as it scales them, alike for every method."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from ..._arrays import Array
from ...exceptions import InvalidInputError, MissingDataError
from ...storage import digest
from ..datasets import DataSet, load
from .plan import DataSpec, Experiment

__all__ = ["items_of", "prepared", "scaled"]


def items_of(spec: DataSpec, folder: str | None) -> DataSet:
    """Items with labels, scaled."""
    where = {"labels": spec.labels, "label_column": spec.label_column} if spec.path else {}
    data = load(spec.path or spec.name, folder=folder, **where)  # type: ignore[arg-type]
    if data.y is None:
        raise InvalidInputError(
            f"{spec.name} must have labels, by which methods are compared, got none: an array y in the .npz, a second "
            "file (labels, --labels) or a column (label_column, --label-column)"
        )
    if not np.isfinite(data.X).all():
        raise InvalidInputError(f"{spec.name} must hold finite numbers, got nan or infinity")
    if spec.scaling == "hellinger" and data.X.min() < 0:
        raise InvalidInputError(f"scaling 'hellinger' is for counts; {spec.name} has the number {data.X.min():g}")
    return replace(data, X=scaled(data.X, spec.scaling))


def prepared(
    experiment: Experiment, folder: str | None, left_out: Callable[[MissingDataError], None] | None = None
) -> Experiment:
    """The experiment with a digest of each data set; one that cannot be had is left out if somebody is told."""
    there = []
    for spec in experiment.datasets:
        try:
            data = items_of(spec, folder)
        except MissingDataError as error:
            if left_out is None:
                raise
            left_out(error)
        else:
            there.append(replace(spec, digest=digest([data.X, np.asarray(data.y)])[:12]))
    if not there:
        raise InvalidInputError(f"none of the data sets can be had: {', '.join(s.name for s in experiment.datasets)}")
    return replace(experiment, datasets=tuple(there))


def scaled(X: Array, scaling: str) -> Array:
    """Items by the name of their scaling.

    Examples
    --------
    >>> scaled(np.array([[3.0, 4.0]]), "unit").tolist(), scaled(np.array([[1.0, 3.0]]), "hellinger").round(2).tolist()
    ([[0.6, 0.8]], [[0.5, 0.87]])
    """
    if scaling == "none":
        return X
    if scaling == "hellinger":
        X = np.sqrt(X)
    lengths = np.linalg.norm(X, axis=1, keepdims=True)
    unit: Array = X / np.where(lengths > 0, lengths, 1)
    return unit
