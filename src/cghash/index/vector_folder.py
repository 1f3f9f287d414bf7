"""The folder of a VectorIndex: which of its files hold the present generation, and who may write.

| file              | what it holds                                                                          |
|-------------------|----------------------------------------------------------------------------------------|
| `about.json`      | what the index is, and the number g of the generation; replaced in one step            |
| `model.cghash`    | the model that makes codes of vectors                                                  |
| `codes-g.cghash`  | codes and ids, an index file with its log beside it: what it holds counts              |
| `vectors-g.bin`   | a row of bytes for each position of the codes (vector_rows.py); rows past them are void |
| `lock`            | locked by the one writer                                                               |
"""

from __future__ import annotations

import json
import os
import re
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from .._file_locks import can_lock, lock, unlock
from .._unfinished import naming
from ..exceptions import CGHashError, FormatError, InUseError
from ..storage import json_object, write_atomically
from .code_table import CodeTable
from .index_files import write_table
from .persistence import Persistence, opened
from .vector_rows import KINDS, FileRows, RowFormat, Rows

FORMAT, VERSION = "cghash-vectors", 1
METRICS = ("cosine", "euclidean", "inner")
ABOUT, MODEL, LOCK = "about.json", "model.cghash", "lock"
_OURS = re.compile(r"(codes-\d+\.cghash(\.log)?|vectors-\d+\.bin)")
_MOST_DIM = 1 << 20
_AT_ONCE = 1 << 14  # rows that are written together


@dataclass(frozen=True)
class About:
    """What `about.json` says."""

    generation: int
    mark: str  # what the checksums of the rows begin with
    metric: str
    vectors: str
    dim: int | None  # None before the first vectors
    scales: list[float] | None
    candidates: int

    def rows(self) -> RowFormat | None:
        """How vectors are kept."""
        if self.dim is None:
            return None
        scales = None if self.scales is None else np.array(self.scales, dtype=np.float32)
        return RowFormat(self.vectors, self.dim, scales, self.mark)

    def codes_in(self, folder: Path) -> Path:
        return folder / f"codes-{self.generation}.cghash"

    def rows_in(self, folder: Path) -> Path:
        return folder / f"vectors-{self.generation}.bin"

    def write(self, folder: Path) -> None:
        """Make this generation the present one."""
        text = json.dumps({"format": FORMAT, "version": VERSION, **asdict(self)}, allow_nan=False, indent=1)
        write_atomically(folder / ABOUT, text.encode())


def read_about(folder: Path) -> About:
    """What the folder of an index holds; FormatError where it is none."""
    path = folder / ABOUT
    if not path.is_file():
        raise FormatError(f"{folder} is not the folder of a VectorIndex: it must hold {ABOUT}")
    try:
        told = json_object(path.read_bytes())
        if told.pop("format", None) != FORMAT:
            raise ValueError(f"format must be {FORMAT!r}")
        if (version := told.pop("version", None)) != VERSION:
            raise ValueError(f"version must be {VERSION}, got {version!r}; pip install --upgrade cghash")
        about = About(**told)
        _check(about)
    except (ValueError, TypeError) as error:
        raise FormatError(f"{path} is damaged, or not of a VectorIndex: {error}") from error
    return about


def _check(about: About) -> None:
    def whole(value: Any, low: int, high: int) -> bool:
        return type(value) is int and low <= value <= high

    if not whole(about.generation, 0, 2**53) or not whole(about.candidates, 1, 2**53):
        raise ValueError("generation and candidates must be whole numbers")
    if about.metric not in METRICS or about.vectors not in KINDS or not isinstance(about.mark, str):
        raise ValueError(f"metric must be one of {METRICS}, and vectors one of {tuple(KINDS)}")
    if about.dim is not None and not whole(about.dim, 1, _MOST_DIM):
        raise ValueError(f"dim must be a whole number from 1 to {_MOST_DIM}, got {about.dim!r}")
    if (about.scales is not None) != (about.vectors == "int8" and about.dim is not None):
        raise ValueError("scales must be those of int8 vectors")
    if about.scales is not None:
        scales = np.array(about.scales, dtype=np.float64)
        if scales.shape != (about.dim,) or not np.all((scales >= 0) & (scales < np.inf)):
            raise ValueError(f"scales must be {about.dim} numbers of at least 0")


def locked(folder: Path) -> int:
    """Hold the folder as its one writer, until the handle that this gives is closed."""
    if not can_lock():
        raise CGHashError(f"{folder}: writing needs file locks, which this system lacks")
    handle = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT, 0o666)
    if not lock(handle):
        os.close(handle)
        raise InUseError(f"{folder} is open for writing elsewhere: one writer at a time")
    return handle


def released(handle: int | None) -> None:
    """Let others write, also while a forked process has the lock open."""
    if handle is not None:
        unlock(handle)
        os.close(handle)


def write_generation(folder: Path, about: About, table: CodeTable, rows: Rows | None) -> None:
    """Write codes and vectors, without what was removed, and make them the present generation."""
    number = read_about(folder).generation + 1 if (folder / ABOUT).exists() else 0
    about = replace(about, generation=number)
    write_table(table, about.codes_in(folder), None, keep_removed=False)
    with naming(about.rows_in(folder)), open(about.rows_in(folder), "wb") as file:
        if rows is not None:
            positions, _ = table.ids.kept()
            for first in range(0, len(positions), _AT_ONCE):
                file.write(np.ascontiguousarray(rows.rows[positions[first : first + _AT_ONCE]]).data)
        file.flush()
        os.fsync(file.fileno())
    about.write(folder)
    remove_others(folder, about)


def read_generation(
    folder: Path, writable: bool, n_jobs: int | None
) -> tuple[About, CodeTable, Persistence, Rows | None]:
    """What the present generation holds; once more where a writer replaces it meanwhile."""
    about = read_about(folder)
    while True:
        try:
            table, persistence = opened(about.codes_in(folder), True, writable, n_jobs)
            made = about.rows()
            rows = None if made is None else FileRows(made, about.rows_in(folder), table.ids.n, writable)
            return about, table, persistence, rows
        except FileNotFoundError as error:
            now = read_about(folder)
            if now.generation == about.generation:
                name = Path(str(error.filename)).name
                raise FormatError(f"{folder} lacks {name}, which {ABOUT} names: put it back") from error
            about = now


def remove_others(folder: Path, about: About) -> None:
    """Remove files of generations that are not the present one."""
    keep = {about.codes_in(folder).name, about.codes_in(folder).name + ".log", about.rows_in(folder).name}
    with suppress(OSError):
        for name in os.listdir(folder):
            if _OURS.fullmatch(name) and name not in keep:
                with suppress(OSError):
                    (folder / name).unlink()
