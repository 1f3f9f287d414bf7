"""`cghash encode`: items to codes, a block at a time."""

from __future__ import annotations

import mmap
import sys
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import click

from ._data import Labelled, check_features, feature_names, load_model, say, say_ignored, truncated
from ._options import device_option, id_column_option, label_column_option, output_path, quiet_option

if TYPE_CHECKING:
    from .._arrays import Codes
    from ..estimator import CodeEstimator

_ROWS = 1 << 14  # items at a time
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
@click.option("-b", "--n-bits", type=int, help="Take only the first bits.  [default: all]")
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
    _check_output(output, kind, bits)
    if device is not None:
        from .._tensors import device_of

        device_of(device)  # an error now, and not after some of the output
    hasher = load_model(model, ranks=False)
    if n_bits is not None:
        hasher = truncated(hasher, n_bits)
    read = Labelled(items, None, label_column, id_column).read(feature_names(hasher))
    say_ignored(read, quiet)
    check_features(read, hasher, model)
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


def _check_output(output: str, kind: str, bits: bool) -> None:
    if kind == "hex" and bits:
        raise click.UsageError("--bits needs --format npy or csv: hexadecimal digits are packed bits")
    if output == "-" and kind == "npy" and sys.stdout.isatty():
        raise click.UsageError("npy is not for a terminal: name a file with -o, or redirect")


def opened(output: str) -> AbstractContextManager[BinaryIO]:
    """Standard output for `-`, else a file that is there when it is whole."""
    from ..storage import written_atomically

    if output == "-":
        return nullcontext(sys.stdout.buffer)
    return written_atomically(output)


def code_blocks(model: CodeEstimator, X: Any, bits: bool, quiet: bool, device: str | None = None) -> Iterator[Codes]:
    """Codes or bits of items, some rows at a time."""
    from .._progress import Progress
    from ..codes import unpack

    step = _ROWS if device is None else 16 * _ROWS
    starts = range(0, len(X), step)
    with Progress(not quiet and len(starts) >= 4, lines=False) as progress:
        for done, first in enumerate(starts, 1):
            block = X[first : first + step]
            if device is None:
                yield model.transform(block) if bits else model.encode(block)
            else:
                codes = model.encode(block, device=device)
                yield unpack(codes, model.n_bits_) if bits else codes
            _release(X)
            progress("encoding", done, len(starts))


def _release(X: Any) -> None:
    """Give back the memory of a mapped file's part that was read; the kernel would, but only when others need it."""
    mapped = getattr(X, "_mmap", None)
    if mapped is not None and hasattr(mmap, "MADV_DONTNEED"):
        mapped.madvise(mmap.MADV_DONTNEED)


def _write(
    file: BinaryIO,
    kind: str,
    blocks: Iterable[Codes],
    shape: tuple[int, int],
    bits: bool,
    ids: tuple[str | None, Any],
) -> None:
    if kind == "npy":
        from numpy.lib import format as npy

        npy.write_array_header_1_0(file, {"descr": "|u1", "fortran_order": False, "shape": shape})
        for block in blocks:
            file.write(block.tobytes())
    elif kind == "hex":
        for block in blocks:
            file.writelines(row.tobytes().hex().encode() + b"\n" for row in block)
    else:
        _write_csv(file, blocks, [f"{'bit' if bits else 'byte'}{j}" for j in range(shape[1])], *ids)


def _write_csv(file: BinaryIO, blocks: Iterable[Codes], names: list[str], id_column: str | None, ids: Any) -> None:
    import csv
    import io

    text = io.TextIOWrapper(file, encoding="utf-8", newline="", write_through=True)
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(names if ids is None else [id_column, *names])
    row = 0
    for block in blocks:
        rows = block.tolist()
        if ids is not None:
            rows = [[i, *cells] for i, cells in zip(ids[row : row + len(rows)].tolist(), rows, strict=True)]
        writer.writerows(rows)
        row += len(block)
    text.detach()
