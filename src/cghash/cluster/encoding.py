"""encode: the codes of a data set, a part for each partition, whatever happens to the workers."""

from __future__ import annotations

import os
import warnings
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from .. import models
from .._progress import counting
from .._validation import check_whole
from ..exceptions import CGHashWarning, FormatError, InvalidInputError
from ..index.checks import check_different
from ..stores.origin import Origin, origin_of
from .clients import connected, in_any_order
from .datasets import Dataset
from .partitions import Partition
from .parts import DIFFERS, FORMAT, MODEL, Encoded, Part, begin, finished_part, identity, part_name, write_part

ROWS = 1 << 14  # items in a worker's memory at a time, beside a row group's pages


def encode(
    dataset: Dataset,
    model: Any,
    out: str | os.PathLike[str],
    client: Any = None,
    *,
    rows: int = ROWS,
    verbose: bool = False,
) -> Encoded:
    """Write the codes of a data set: a Parquet file for each partition, with columns `id` and `code`.

    Workers read, encode and write; neither items nor codes travel. A part is written beside its place and renamed, and
    a manifest comes last, so what is there is whole. Called again after a kill, it goes on: parts of the same model
    and the same partition are kept.

    Parameters
    ----------
    dataset : the items
    model : fitted CGHash, or a peer that ranks by Hamming distance
    out : folder, which all workers see under this path; new, empty, or one that the same work was begun in
    client : `distributed.Client`, address of a scheduler, or None: processes of this machine
    rows : items that a worker holds at a time
    verbose : whether to tell of the progress

    Examples
    --------
    >>> import tempfile
    >>> from cghash.peers import LSH
    >>> X = np.random.default_rng(0).normal(size=(100, 4))
    >>> model = LSH(16, random_state=0).fit(X)
    >>> with tempfile.TemporaryDirectory() as folder, connected(n_workers=1) as client:
    ...     encoded = encode(Dataset.from_arrays(X, rows=40), model, folder, client)
    >>> len(encoded), len(encoded.parts)
    (100, 3)
    """
    origin = origin_of(model)
    check_whole(rows, 1, "rows")
    if dataset.n_features != model.n_features_in_:
        raise InvalidInputError(
            f"dataset must hold items of the model's {model.n_features_in_} features, got {dataset.n_features}"
        )
    _check_columns(dataset, model)
    folder = Path(os.path.abspath(out))
    begin(folder, FORMAT, {"model": origin.fingerprint, "dataset": dataset.fingerprint}, DIFFERS)
    _save_model(model, folder / MODEL)
    parts = {i: finished_part(folder / part_name(i), origin, identity(p)) for i, p in enumerate(dataset.partitions)}
    missing = [i for i, part in parts.items() if part is None]
    with counting(len(parts), "encoding", verbose) as done:
        done(len(parts) - len(missing))
        if missing:
            calls = ((dataset.partitions[i], str(folder), i, origin.fingerprint, rows) for i in missing)
            with connected(client) as opened:
                for number, part in in_any_order(opened, encode_part, calls):
                    parts[missing[number]] = part
                    done(1)
    encoded = Encoded(folder, origin, tuple(parts[i] for i in sorted(parts)), len(parts) - len(missing))  # type: ignore[misc]
    encoded.save()
    return encoded


def encode_part(partition: Partition, folder: str, number: int, fingerprint: str, rows: int) -> Part:
    """Encode one partition, on a worker."""
    model, origin = _loaded(folder, fingerprint)
    codes = np.empty((partition.n_rows, origin.n_bytes), np.uint8)
    ids = np.empty(partition.n_rows, np.int64)
    first = 0
    for block in partition.read_batches(rows):
        here = slice(first, first + len(block.ids))
        codes[here], ids[here] = model.encode(block.X), block.ids
        first = here.stop
    check_different(ids, f"ids of {partition.name}")
    return write_part(Path(folder) / part_name(number), origin, codes, ids, identity(partition))


@lru_cache(maxsize=2)
def _loaded(folder: str, fingerprint: str) -> tuple[Any, Origin]:
    """The model of a folder, once for each worker; it encodes on one thread, as other tasks have the other cores."""
    path = Path(folder) / MODEL
    model: Any = models.load(path)
    if "n_jobs" in model.get_params():
        model.set_params(n_jobs=1)
    if hasattr(model, "feature_names_in_"):
        del model.feature_names_in_  # vectors have no names; their number is checked
    origin = origin_of(model)
    if origin.fingerprint != fingerprint:
        raise FormatError(f"{path} is not the model that the work was begun with")
    return model, origin


def _check_columns(dataset: Dataset, model: Any) -> None:
    """Columns of numbers must be those that the model was fitted on, in their order; a column of lists has any name."""
    known = list(getattr(model, "feature_names_in_", []))
    if len(dataset.columns) > 1 and known and dataset.feature_names != known:
        raise InvalidInputError(
            f"vector must name the columns that the model was fitted on, {known}, got {dataset.feature_names}"
        )


def _save_model(model: Any, path: Path) -> None:
    if not path.exists():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", CGHashWarning)  # of parameters that only fitting again would need
            model.save(path)
