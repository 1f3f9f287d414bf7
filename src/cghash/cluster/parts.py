"""Codes in parts: a folder with a Parquet file for each partition, and what tells that it is whole.

| file                  | what                                                                                   |
|-----------------------|----------------------------------------------------------------------------------------|
| `_begun.json`         | written first: which model and which data set these are the codes of                   |
| `_model.cghash`       | the model, from which workers encode                                                   |
| `part-000000.parquet` | ids and codes of a partition, as `ParquetStore` writes them, and its fingerprint       |
| `_manifest.json`      | written last: all parts, with what they hold                                           |

Readers of folders of Parquet files leave out names that begin with _.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from numpy.typing import ArrayLike

from .._arrays import Codes, Ints
from .._unfinished import remove_abandoned
from .._validation import check_whole
from ..exceptions import FormatError, InvalidInputError
from ..storage import digest, write_atomically, written_atomically
from ..stores.base import checked, require
from ..stores.origin import Origin, read_header
from ..stores.parquet import KEY, ROWS_IN_A_GROUP, read_codes, to_arrow
from .partitions import Partition

FORMAT, VERSION = "cghash-parts", 1
BEGUN, MODEL, MANIFEST = "_begun.json", "_model.cghash", "_manifest.json"
DIFFERS = {
    "model": "which holds codes of another model",
    "dataset": "which holds codes of another data set, or of this one before it changed",
}
_OURS = r"part-\d{6,}\.parquet|shard-\d{6,}\.index|_manifest\.json|_model\.cghash"  # that work in a folder writes
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
        about = read_json(place / MANIFEST, FORMAT, VERSION, f"{place} holds no codes, or `encode` has not finished")
        try:
            origin = read_header(json.dumps(about["origin"]), str(place / MANIFEST))[0]
            parts = tuple(Part(str(p["file"]), int(p["n_codes"]), str(p["content"])) for p in about["parts"])
        except (KeyError, TypeError, ValueError) as error:
            raise FormatError(f"{place / MANIFEST} is damaged: {error}") from error
        for part in parts:
            if not (place / part.file).is_file():
                raise FormatError(f"{place} is not whole: {part.file} is missing")
        return cls(place, origin, parts)

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
        about = {"origin": json.loads(self.origin.header()), "parts": [asdict(part) for part in self.parts]}
        write_json(self.folder / MANIFEST, FORMAT, VERSION, about)


def begin(folder: Path, kind: str, about: dict[str, Any], words: dict[str, str]) -> None:
    """Make a folder for some work, described in `_begun.json`; one that holds something else is refused.

    Parameters
    ----------
    about : what the work is of
    words : for each entry of it, what to say of a folder where it differs
    """
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / BEGUN).exists():  # a writer may have died before it was whole
        remove_abandoned(folder, re.escape(BEGUN))
    if not any(folder.iterdir()):
        write_json(folder / BEGUN, kind, VERSION, about)
    found = read_json(folder / BEGUN, kind, VERSION, f"out must be a new or empty folder, got {folder}, which is not")
    remove_abandoned(folder, _OURS)
    for name, what in words.items():
        if found.get(name) != about[name]:
            raise InvalidInputError(f"out must be a new folder, or hold the same work, got {folder}, {what}")


def part_name(number: int) -> str:
    return f"part-{number:06d}.parquet"


def write_part(path: Path, origin: Origin, codes: Codes, ids: Ints, source: str) -> Part:
    """Write a part beside its place and rename it: whole, or not there. `source` tells what it was made of."""
    table = to_arrow(origin, codes, ids)
    metadata = table.schema.metadata | {_PARTITION: source.encode()}
    with written_atomically(path) as file:
        require("pyarrow.parquet", "dask").write_table(
            table.replace_schema_metadata(metadata),
            file,
            row_group_size=ROWS_IN_A_GROUP,
            use_dictionary=False,
            write_page_checksum=True,
        )
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


def write_json(path: Path, kind: str, version: int, about: dict[str, Any]) -> None:
    write_atomically(path, json.dumps({"format": kind, "version": version, **about}, indent=1).encode())


def read_json(path: Path, kind: str, version: int, missing: str) -> dict[str, Any]:
    """What `write_json` wrote; FormatError for anything else, in the given words where it is not there."""
    try:
        about = json.loads(path.read_bytes())
        found, number = about["format"], about["version"]
    except FileNotFoundError as error:
        raise FormatError(f"{missing}: {path.name} is missing") from error
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise FormatError(f"{path} is damaged, or not a file of cghash") from error
    if found != kind or type(number) is not int or not 1 <= number <= version:
        raise FormatError(f"{path} must be {kind}, version 1 to {version}, got {found!r}, version {number!r}")
    return about  # type: ignore[no-any-return]
