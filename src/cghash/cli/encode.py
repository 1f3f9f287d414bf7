"""`cghash encode`: items to codes, a block at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import click

from ._codes import code_blocks
from ._inputs import Labelled, load_model, truncated
from ._options import (
    device_option,
    first_bits_option,
    id_column_option,
    label_column_option,
    output_path,
    quiet_option,
)
from ._output import opened, refuse_npy_on_terminal, say, write_csv, write_npy

if TYPE_CHECKING:
    from .._arrays import Codes

_FORMATS = {".npy": "npy", ".csv": "csv", ".hex": "hex", ".txt": "hex"}


@click.command()
@click.argument("model")
@click.argument("items")
@click.option(
    "-o", "--output", default="-", metavar="FILE", callback=output_path, help="Where to; '-' is standard output."
)
@click.option(
    "--format",
    "kind",
    type=click.Choice(["npy", "csv", "hex"]),
    help="npy: uint8 array; csv: a number a column; hex: a line of hexadecimal an item.  "
    "[default: as FILE ends, else hex]",
)
@click.option("--bits", is_flag=True, help="Write bits, 0 and 1, instead of packed bytes.")
@first_bits_option
@id_column_option
@label_column_option
@device_option
@quiet_option
def encode(
    model: str,
    items: str,
    output: str,
    kind: str | None,
    bits: bool,
    n_bits: int | None,
    id_column: str | None,
    label_column: str | None,
    device: str | None,
    quiet: bool,
) -> None:
    """Turn ITEMS into the binary codes of MODEL.

    ITEMS is .npy (read in blocks, so it may be larger than memory), .npz (array X), .csv or .parquet; '-' is standard
    input. Columns are found by the names that the model was fitted on. Bit j of a code is bit j % 8, from the least,
    of byte j // 8. Ids go into the first column of csv.

    \b
    Examples:
      cghash encode model.cghash items.npy -o codes.npy
      cghash encode model.cghash items.csv --id-column name -o codes.csv
      cghash encode model.cghash items.npy --bits --n-bits 16 -o bits.npy
      cghash encode model.cghash items.npy --device cuda -o codes.npy
      cghash encode model.cghash - < items.csv | sort | uniq -c
    """
    kind = kind or _format_of(output)
    if kind == "hex" and bits:
        raise click.UsageError("--bits needs --format npy or csv: hexadecimal digits are packed bits")
    refuse_npy_on_terminal(output, kind)
    if device is not None:
        from .._tensors import device_of

        device_of(device)  # an error now, and not after some of the output
    hasher = truncated(load_model(model, ranks=False), n_bits)
    read = Labelled(items, None, label_column, id_column).read_for(hasher, model, quiet)
    width = hasher.n_bits_ if bits else -(-hasher.n_bits_ // 8)
    with opened(output) as file:
        blocks = code_blocks(hasher, read.X, bits, quiet, device)
        _write(file, kind, blocks, (len(read.X), width), bits, (id_column, read.ids))
    to = "" if output == "-" else f", wrote {output}"
    say(f"{len(read.X)} codes of {hasher.n_bits_} bits{to}", quiet)


def _format_of(output: str) -> str:
    """The format that a name ends in, hex for no suffix or one of no format; that of another format is refused."""
    from ..reading.sources import SUFFIXES

    suffix = Path(output).suffix.lower()
    if suffix in SUFFIXES and suffix not in _FORMATS:
        raise click.UsageError(
            f"--output must end in {', '.join(_FORMATS)}, or come with --format, got {output!r}; "
            "'cghash export' writes other formats"
        )
    return _FORMATS.get(suffix, "hex")


def _write(
    file: BinaryIO,
    kind: str,
    blocks: Iterable[Codes],
    shape: tuple[int, int],
    bits: bool,
    ids: tuple[str | None, Any],
) -> None:
    if kind == "npy":
        import numpy as np

        write_npy(file, np.dtype(np.uint8), shape, blocks)
    elif kind == "hex":
        for block in blocks:
            file.writelines(row.tobytes().hex().encode() + b"\n" for row in block)
    else:
        id_column, its_ids = ids
        names = [f"{'bit' if bits else 'byte'}{j}" for j in range(shape[1])]
        write_csv(file, names if its_ids is None else [id_column, *names], _rows(blocks, its_ids))


def _rows(blocks: Iterable[Codes], ids: Any) -> Iterator[list[Any]]:
    """The bytes or bits of each item, after its id where there are ids."""
    row = 0
    for block in blocks:
        rows = block.tolist()
        if ids is None:
            yield from rows
        else:
            yield from ([i, *cells] for i, cells in zip(ids[row : row + len(rows)].tolist(), rows, strict=True))
        row += len(block)
