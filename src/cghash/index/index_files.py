"""Index files: codes, ids, weights and tables as the sections of one file (sections.py)."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _kernels
from .._arrays import Array, Ints
from ..exceptions import FormatError
from .checks import MOST_BITS, check_different
from .code_table import CodeTable
from .ids import IdTable, ids_ascend
from .sections import FLAG, Content, Path, SectionFile, write_sections

LANES = 64  # codes in a block
TABLES_VERSION = 5  # of the tables' layout; those of another are passed over, and built anew when they pay

_TABLES = "tables."  # what the names of the pruning tables' sections begin with
_LONGEST_ABOUT = 1 << 20  # bytes
_LARGEST = 2**63 - 1
_AT_ONCE = 1 << 20  # codes
_ALWAYS_CHECKED = ("about", "weights", "removed", FLAG)  # also when the rest is mapped
_SMALL = 1 << 20  # bytes of a table that is always checked too


@dataclass(frozen=True)
class About:
    """What a file says of itself, in its section `about`."""

    n_bits: int
    n: int  # positions, removed ones included
    n_removed: int
    weighted: bool
    explicit_ids: bool
    ascending: bool  # whether ids are in ascending order
    next_id: int
    prune: bool
    max_memory: int | None
    uuid: str
    parent: str | None  # uuid of the file that this one took the place of: its log is folded in
    tables: dict[str, list[int]]  # shapes
    tables_version: int
    functions: str | None = None  # SHA-256 over the hash functions; earlier files have none

    @property
    def n_bytes(self) -> int:
        return -(-self.n_bits // 8)

    def lengths(self) -> dict[str, int]:
        """The sections that a file must have beside `about` and tables, with their bytes."""
        found = {"codes": -(-self.n // LANES) * LANES * self.n_bytes}
        found |= {"weights": 8 * self.n_bits} if self.weighted else {}
        found |= {"ids": 8 * self.n} if self.explicit_ids else {}
        return found | ({"removed": -(-self.n // 8)} if self.n_removed else {})


DTYPES = {"about": "|u1", "codes": "|u1", "weights": "<f8", "ids": "<i8", "removed": "|u1", FLAG: "|u1"}


def write_table(table: CodeTable, path: Path, parent: str | None, keep_removed: bool = True) -> About:
    """Write what an index holds; tables to prune by go along only where the positions stay as they are."""
    same = keep_removed or not table.ids.n_removed
    positions, ids = (None, table.ids) if same else table.ids.kept()
    tables = table.blocks.prepared() if same else {}
    about = About(
        n_bits=table.n_bits,
        n=ids.n,
        n_removed=ids.n_removed,
        weighted=table.weights is not None,
        explicit_ids=ids.explicit is not None,
        ascending=ids.ascending,
        next_id=ids.next_id,
        prune=table.prune,
        max_memory=table.max_memory,
        uuid=uuid.uuid4().hex,
        parent=parent,
        tables={name: list(array.shape) for name, array in tables.items()},
        tables_version=TABLES_VERSION,
        functions=table.functions,
    )
    contents = [_text(about), Content("codes", DTYPES["codes"], _pieces(table.blocks, positions))]
    arrays = {"weights": table.weights, "ids": ids.explicit, "removed": ids.removed}
    contents += [Content(name, DTYPES[name], [array]) for name, array in arrays.items() if array is not None]
    contents += [Content(_TABLES + name, _on_disk(array), [array]) for name, array in tables.items()]
    contents.append(Content(FLAG, DTYPES[FLAG], [np.zeros(1, np.uint8)]))
    write_sections(path, contents)
    return about


def _text(about: About) -> Content:
    text = json.dumps(vars(about), allow_nan=False).encode()
    return Content("about", DTYPES["about"], [np.frombuffer(text, dtype=np.uint8)])


def _on_disk(array: Array) -> str:
    return array.dtype.newbyteorder("<").str


def _pieces(blocks: Any, positions: Ints | None) -> Iterator[NDArray[np.uint8]]:
    """The blocks of all codes, or of those at some positions."""
    if positions is None:
        yield from blocks.chunks()
        return
    for first in range(0, len(positions), _AT_ONCE):
        some = _kernels.CodeBlocks(blocks.n_bytes)
        some.append(blocks.get(positions[first : first + _AT_ONCE]))
        yield from some.chunks()


def read_table(
    path: Path, mapped: bool, n_jobs: int | None = None, device: Any = None
) -> tuple[CodeTable, About, SectionFile]:
    """What an index file holds, without its log."""
    file = SectionFile(path, mapped)
    about = read_about(file)
    for name, section in file.sections.items():
        if name in _ALWAYS_CHECKED or (name.startswith(_TABLES) and section.length <= _SMALL):
            file.check(name)
    try:
        weights = file.array("weights") if about.weighted else None
        options: dict[str, Any] = {"prune": about.prune, "max_memory": about.max_memory, "functions": about.functions}
        table = CodeTable(about.n_bits, weights, n_jobs=n_jobs, device=device, **options)
        table.attach(file.array("codes"), _id_table(file, about))
        if about.tables and about.tables_version == TABLES_VERSION:
            _adopt(table, {name: file.array(_TABLES + name).reshape(shape) for name, shape in about.tables.items()})
    except ValueError as error:
        raise _does_not_fit(path, error) from error
    return table, about, file


def _adopt(table: CodeTable, tables: dict[str, Array]) -> None:
    try:
        table.blocks.adopt(tables)
    except (KeyError, TypeError, RuntimeError) as error:  # one is missing or of another kind
        raise FormatError(f"tables: {error!r}") from error
    table.keep_within_memory()


def _does_not_fit(path: Path, error: Exception) -> FormatError:
    return FormatError(f"{path} is an index, but its parts do not fit together: {error}")


def about_of(path: Path) -> About:
    """What the file at a path says of itself."""
    return read_about(SectionFile(path))


def read_about(file: SectionFile) -> About:
    """What a file says of itself, after a look at whether it can be so."""
    section = file.sections.get("about")
    if section is None or section.length > _LONGEST_ABOUT:
        raise FormatError(f"{file.path} is damaged: it must have a section 'about' of at most {_LONGEST_ABOUT} bytes")
    file.check("about")
    try:
        about = About(**json.loads(file.array("about").tobytes()))
        _check_facts(about)
        _check_lengths(about, file)
    except (TypeError, ValueError, RecursionError) as error:
        raise _does_not_fit(file.path, error) from error
    return about


def _check_facts(about: About) -> None:
    _check_whole(1, MOST_BITS, n_bits=about.n_bits)
    _check_whole(0, _LARGEST, n=about.n, next_id=about.next_id, tables_version=about.tables_version)
    _check_whole(0, about.n, n_removed=about.n_removed)
    _check_whole(0, _LARGEST, max_memory=0 if about.max_memory is None else about.max_memory)
    if not isinstance(about.tables, dict) or not all(isinstance(shape, list) for shape in about.tables.values()):
        raise FormatError(f"tables must be shapes by name, got {about.tables!r}")
    for name in ("weighted", "explicit_ids", "ascending", "prune"):
        if not isinstance(getattr(about, name), bool):
            raise FormatError(f"{name} must be true or false, got {getattr(about, name)!r}")
    if not about.explicit_ids and (not about.ascending or about.next_id != about.n):
        raise FormatError(f"row numbers of {about.n} codes ascend to {about.n - 1}, got next_id {about.next_id}")
    for name in (about.uuid, about.parent or about.uuid):
        if not isinstance(name, str) or uuid.UUID(name).hex != name:
            raise FormatError(f"uuid and parent must be 32 hexadecimal digits, got {name!r}")


def _check_whole(low: int, high: int, **facts: Any) -> None:
    for name, value in facts.items():
        if type(value) is not int or not low <= value <= high:
            raise FormatError(f"{name} must be a whole number from {low} to {high}, got {value!r}")


def _check_lengths(about: About, file: SectionFile) -> None:
    """Each section is there with the length that the counts ask for, and no other."""
    wanted = about.lengths()
    tables = {_TABLES + name for name in about.tables}
    if {"about", *wanted, *tables} != set(file.sections) - {FLAG}:
        raise FormatError(f"its sections must be about, {', '.join([*wanted, *tables])}, got {list(file.sections)}")
    for name, dtype in DTYPES.items():
        section = file.sections.get(name)
        if section and (section.dtype != dtype or section.length != wanted.get(name, section.length)):
            raise FormatError(f"section {name!r} must be {wanted.get(name)} bytes, {dtype}, got {section}")
    for name, shape in about.tables.items():
        _check_whole(0, _LARGEST, **{f"shape {i} of table {name}": size for i, size in enumerate(shape)})


def _id_table(file: SectionFile, about: About) -> IdTable:
    ids = file.array("ids") if about.explicit_ids else None
    removed = file.array("removed") if about.n_removed else None
    if removed is not None and about.n % 8 and removed[-1] >> about.n % 8:
        raise FormatError("positions past the last are marked as removed")
    table = IdTable(about.n, ids, removed, ascending=about.ascending, next_id=about.next_id)
    if table.n_removed != about.n_removed:
        raise FormatError(f"{about.n_removed} positions must be marked as removed, got {table.n_removed}")
    return table


def verify_file(path: Path) -> SectionFile:
    """Check every section and whether ids are as the file says; FormatError for what is wrong."""
    file = SectionFile(path)
    for name in file.sections:
        file.check(name)
    about = read_about(file)
    try:
        table = _id_table(file, about)
        if table.explicit is not None:
            _check_ids(table, about)
        _check_codes(file.array("codes").reshape(-1, about.n_bytes, LANES), about)
    except ValueError as error:
        raise _does_not_fit(path, error) from error
    return file


def verify_tables(table: CodeTable, path: Path) -> None:
    """FormatError when what a file has to prune by does not say of its codes what is so."""
    try:
        table.blocks.verify(table.ids.explicit, table.ids.allowed)
    except ValueError as error:
        raise FormatError(f"{path} is an index, but its tables do not fit its codes: {error}") from error


def _check_ids(table: IdTable, about: About) -> None:
    ids = table.explicit
    assert ids is not None
    low, high = int(ids.min(initial=0)), int(ids.max(initial=-1))
    if low < 0 or high >= about.next_id:
        raise FormatError(f"ids must be from 0 to {about.next_id - 1}, got {low} to {high}")
    if ids_ascend(ids, about.n) != about.ascending:
        raise FormatError(f"ids must be {'' if about.ascending else 'not '}in ascending order")
    check_different(table.present())


def _check_codes(blocks: NDArray[np.uint8], about: About) -> None:
    """Bits past n_bits are 0, and so are lanes past the last code."""
    unused = 8 * about.n_bytes - about.n_bits
    if unused and blocks.size and int(blocks[:, -1].max()) >> (8 - unused):
        raise FormatError(f"codes must have 0 in the bits past n_bits={about.n_bits}")
    if about.n % LANES and blocks[-1, :, about.n % LANES :].any():
        raise FormatError("what follows the last code must be 0")
