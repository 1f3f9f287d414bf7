"""A table of codes in PostgreSQL: names, columns, and the three SQL functions that belong to it.

Bit j of a code is the j-th of `bit(n)` from the left, `get_bit(code, j)`. Both what a difference weighs and the
expanded code are looked up a byte at a time, in arrays of 256 numbers that are constants of the functions.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from .._arrays import Ints
from .._validation import check_whole
from ..codes import expansion_of
from ..exceptions import FormatError, InvalidInputError
from .base import require
from .origin import Origin, read_header
from .ranking import least_distances

sql = require("psycopg.sql", "postgres")

VERSION = 1  # of the table: its columns and functions
OWN = ("id", "code", "expanded")  # columns of ours; others are the user's
MOST_BITS = 1024  # of a code
MOST_EXPANDED = 64000  # what pgvector indexes
_LONGEST = 63  # bytes of a name in PostgreSQL
_PIECE = 62  # bits that fit into a bigint, without its sign

_BYTES = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1).astype(np.int64)  # (256, 8), leftmost first
_MIRRORED = _BYTES @ (1 << np.arange(8))  # (256,) the byte whose lowest bit is the leftmost of this one


@dataclass(frozen=True, eq=False)
class Layout:
    """What a table of codes is called and how it is made.

    Parameters
    ----------
    schema, table : names
    origin : of the codes
    expanded_bits : bits of the expanded codes
    counts : (n_bits,) how often each bit is repeated in them
    """

    schema: str
    table: str
    origin: Origin
    expanded_bits: int
    counts: Ints

    @cached_property
    def least(self) -> Ints:
        """The least distance, in whole units, of a code whose expansion is 0, 1, … bits away."""
        return least_distances(self.origin.whole[0], self.counts)

    @property
    def lost(self) -> int:
        """Bits of positive weight that the expansion has no place for."""
        return int(np.sum((self.counts == 0) & (self.origin.whole[0] > 0)))

    @property
    def relation(self) -> Any:
        """The table, quoted."""
        return sql.Identifier(self.schema, self.table)

    def named(self, suffix: str) -> Any:
        """A function or an index of the table, quoted."""
        return sql.Identifier(self.schema, f"{self.table}_{suffix}")

    @cached_property
    def header(self) -> str:
        """What the table says of itself."""
        expansion = {"expanded_bits": self.expanded_bits, "counts": self.counts.tolist()}
        return self.origin.header(table_version=VERSION, **expansion)

    def columns(self) -> dict[str, tuple[str, bool, str]]:
        """Type, NOT NULL and 's' for generated, of the columns of ours, as the catalogue has them."""
        code, expanded = f"bit({self.origin.n_bits})", f"bit({self.expanded_bits})"
        return dict(zip(OWN, (("bigint", True, ""), (code, True, ""), (expanded, True, "s")), strict=True))

    def functions(self) -> dict[str, tuple[str, str, str]]:
        """Arguments, result and body of each function, by the end of its name."""
        unit = repr(self.origin.whole[1])
        found = sql.SQL("SELECT t.id, {}(t.code, $1) FROM {} t ORDER BY 2, 1 LIMIT $2")
        nearest = found.format(self.named("distance"), self.relation).as_string()
        of_two = "first bit, second bit", "double precision IMMUTABLE"
        return {
            "expand": ("code bit", "bit IMMUTABLE", f"SELECT ({self._expanded()})::bit({self.expanded_bits})"),
            "distance": (*of_two, f"SELECT {unit}::double precision * ({self._weighed()})"),
            "nearest": ("query bit, k integer", "TABLE (id bigint, distance double precision) STABLE", nearest),
        }

    def _weighed(self) -> str:
        tables = self.origin.byte_tables[:, _MIRRORED].tolist()
        return " + ".join(_looked_up(table, "$1 # $2", b) for b, table in enumerate(tables))

    def _expanded(self) -> str:
        pieces = [f"{_looked_up(table, '$1', b)}::bit({m})" for b, m, table in self._pieces()]
        return " || ".join(pieces) or "B'0'"

    def _pieces(self) -> Iterator[tuple[int, int, list[int]]]:
        """Byte, number of bits, and what these are for each of its 256 values."""
        counts = np.zeros(8 * self.origin.n_bytes, dtype=np.int64)
        counts[: self.origin.n_bits] = self.counts
        for b, times in enumerate(counts.reshape(-1, 8)):
            source = np.repeat(np.arange(8), times)
            for first in range(0, len(source), _PIECE):
                bits = _BYTES[:, source[first : first + _PIECE]]  # (256, m)
                m = bits.shape[1]
                yield b, m, (bits @ (np.int64(1) << np.arange(m)[::-1])).tolist()


def layout_of(origin: Origin, schema: str, table: str, expanded_bits: int) -> Layout:
    """The layout of a new table, or what is wrong with it."""
    if origin.n_bits > MOST_BITS:
        raise InvalidInputError(f"codes must have at most {MOST_BITS} bits for PostgreSQL, got {origin.n_bits}")
    if check_whole(expanded_bits, 1, "n_bits") > MOST_EXPANDED:
        raise InvalidInputError(f"n_bits must be at most {MOST_EXPANDED} for pgvector, got {expanded_bits}")
    return Layout(schema, table, origin, expanded_bits, expansion_of(origin.weights, expanded_bits))


def layout_from(header: str | None, schema: str, table: str, where: str) -> Layout:
    """The layout of a table that says this of itself; FormatError for anything else."""
    if header is None:
        raise FormatError(f"{where} is not a table of codes, or does not exist")
    origin, about = read_header(header, where)
    version = about.get("table_version")
    if type(version) is not int or not 1 <= version <= VERSION:
        raise FormatError(f"{where} has table version {version!r}; this cghash reads versions 1 to {VERSION}")
    try:
        layout = Layout(schema, table, origin, about["expanded_bits"], np.array(about["counts"], dtype=np.int64))
        whole = len(layout.counts) == origin.n_bits and layout.counts.min() >= 0
        whole = whole and layout.counts.sum() <= layout.expanded_bits <= MOST_EXPANDED
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise FormatError(f"{where} has a description whose parts do not fit together: {error}") from error
    if not whole:
        raise FormatError(f"{where} has a description whose expansion is not one of {origin.n_bits} bits")
    return layout


def check_name(name: Any, what: str, room: int = 0) -> str:
    """A name that PostgreSQL takes as it is, with room for an ending of so many bytes.

    Examples
    --------
    >>> check_name('my "codes"; DROP TABLE x', "table")
    'my "codes"; DROP TABLE x'
    """
    most = _LONGEST - room
    try:
        fits = isinstance(name, str) and 1 <= len(name.encode()) <= most and "\0" not in name
    except UnicodeEncodeError:
        fits = False
    if not fits:
        raise InvalidInputError(f"{what} must be a name of 1 to {most} bytes, none of them NUL, got {name!r}")
    return str(name)


def beside_values(name: Any) -> Any:
    """A quoted name for a statement that is given values, in which psycopg reads `%` as the place of one."""
    return sql.SQL(name.as_string().replace("%", "%%"))


def _looked_up(table: list[int], bits: str, byte: int) -> str:
    values = ",".join(map(str, table))
    return f"('{{{values}}}'::bigint[])[1 + substring({bits}, {8 * byte + 1}, 8)::bit(8)::integer]"
