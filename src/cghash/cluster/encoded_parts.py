"""Codes in parts: `encode` writes a Parquet file for each partition, and `Encoded` is a folder of them that is whole.

| file                  | what                                                                                   |
|-----------------------|----------------------------------------------------------------------------------------|
| `_begun.json`         | written first: which model and which data set these are the codes of                   |
| `_model.cghash`       | the model, from which workers encode                                                   |
| `part-000000.parquet` | ids and codes of a partition, as `ParquetStore` writes them, and its fingerprint       |
| `_manifest.json`      | written last: all parts, with what they hold                                           |
"""

from __future__ import annotations

import hashlib
import os
import warnings
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._arrays import Codes, Ints
from .._progress import counting
from .._validation import check_whole
from ..estimator import load
from ..exceptions import CGHashWarning, FormatError, InvalidInputError
from ..index.checks import check_different
from ..storage import digest
from ..stores.base import checked, require
from ..stores.origin import Origin, origin_of, read_header
from ..stores.parquet import KEY, ROWS_IN_A_GROUP, read_codes, to_arrow, write_codes
from .clients import connected, in_any_order
from .datasets import Dataset
from .partitions import Partition
from .work_folders import MANIFEST, MODEL, begin, read_manifest, write_manifest

FORMAT, VERSION = "cghash-parts", 1
ROWS = 1 << 14  # items in a worker's memory at a time, beside a row group's pages
DIFFERS = {
    "model": "which holds codes of another model",
    "dataset": "which holds codes of another data set, or of this one before it changed",
}
_PARTITION = b"cghash.partition"  # beside the description of the codes


@dataclass(frozen=True)
class Part:
    """One finished file of codes."""

    file: str
    n_codes: int
    content: str  # SHA-256 over ids and codes

    def read(self, folder: Path, origin: Origin) -> tuple[Codes, Ints]:
        """Codes and ids, verified to be those of the manifest."""
        path = folder / self.file
        found, codes, ids = read_codes(path)
        if found.fingerprint != origin.fingerprint or digest([ids, codes]) != self.content:
            raise FormatError(f"{path} is not the part that {MANIFEST} tells of")
        return codes, ids


@dataclass(frozen=True)
class Encoded:
    """A folder of codes that is whole.

    `n_kept` of its parts were there before `encode` was called.
    """

    folder: Path
    origin: Origin
    parts: tuple[Part, ...]
    n_kept: int = 0

    def __len__(self) -> int:
        return sum(part.n_codes for part in self.parts)

    def __repr__(self) -> str:
        return f"<Encoded: {len(self)} codes of {self.origin.n_bits} bits, in {len(self.parts)} parts>"

    @classmethod
    def open(cls, folder: str | os.PathLike[str]) -> Encoded:
        """Read what `encode` wrote; FormatError where it is not whole."""
        place = Path(folder)
        missing = "no codes, or `encode` has not finished"
        origin, parts = read_manifest(
            place,
            str(place),
            FORMAT,
            VERSION,
            missing,
            lambda about: [Part(str(p["file"]), int(p["n_codes"]), str(p["content"])) for p in about["parts"]],
        )
        return cls(place, origin, tuple(parts))

    @classmethod
    def write(
        cls,
        folder: str | os.PathLike[str],
        model: Any,
        codes: ArrayLike,
        ids: ArrayLike | None = None,
        *,
        rows: int = ROWS_IN_A_GROUP,
    ) -> Encoded:
        """Write codes that are there already into a new or empty folder, `rows` of them a part.

        Parameters
        ----------
        model : the fitted estimator whose codes these are, or an `Origin`
        codes : (n, n_bytes) uint8, packed
        ids : (n,) int64, 0 or more, different, optional; default: row numbers
        """
        origin, packed, numbers = checked(model, codes, ids)
        check_whole(rows, 1, "rows")
        place, source = Path(folder), digest([numbers, packed])
        begin(place, FORMAT, {"model": origin.fingerprint, "dataset": source}, DIFFERS)
        parts = []
        for number, first in enumerate(range(0, max(1, len(packed)), rows)):
            here = slice(first, first + rows)
            parts.append(write_part(place / part_name(number), origin, packed[here], numbers[here], source))
        encoded = cls(place, origin, tuple(parts))
        encoded.save()
        return encoded

    def save(self) -> None:
        """Write the manifest, which makes the folder whole."""
        parts = [asdict(part) for part in self.parts]
        write_manifest(self.folder, FORMAT, VERSION, self.origin, {"parts": parts})


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


def part_name(number: int) -> str:
    return f"part-{number:06d}.parquet"


def write_part(path: Path, origin: Origin, codes: Codes, ids: Ints, source: str) -> Part:
    """Write a part beside its place and rename it: whole, or not there. `source` tells what it was made of."""
    table = to_arrow(origin, codes, ids)
    metadata = table.schema.metadata | {_PARTITION: source.encode()}
    write_codes(path, table.replace_schema_metadata(metadata))
    return Part(path.name, len(codes), digest([ids, codes]))


def finished_part(path: Path, origin: Origin, source: str) -> Part | None:
    """The part that a file holds; None where it is not there, not whole, or not of this model and source."""
    pa, parquet = require("pyarrow", "dask"), require("pyarrow.parquet", "dask")
    try:
        metadata = parquet.read_schema(path).metadata or {}
        found, about = read_header(metadata.get(KEY, b""), str(path))
        same = found.fingerprint == origin.fingerprint and metadata.get(_PARTITION) == source.encode()
        return Part(path.name, int(about["n_codes"]), str(about["content"])) if same else None
    except (OSError, FormatError, pa.ArrowException, KeyError, ValueError):
        return None


def identity(partition: Partition) -> str:
    """SHA-256 over what tells one partition from another."""
    return hashlib.sha256(f"{partition.n_rows} {partition.first} {partition.fingerprint}".encode()).hexdigest()


@lru_cache(maxsize=2)
def _loaded(folder: str, fingerprint: str) -> tuple[Any, Origin]:
    """The model of a folder, once for each worker; it encodes on one thread, as other tasks have the other cores."""
    path = Path(folder) / MODEL
    model: Any = load(path)
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
