"""`cghash export faiss | parquet | duckdb`: codes, of a file or of items through a model."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from .._codes import Coded, Source, source_options
from .._data import say
from .._options import index_path, quiet_option

if TYPE_CHECKING:
    from ...stores import Store

output_option = click.option(
    "-o", "--output", required=True, metavar="FILE", callback=index_path, help="The file to write."
)
bits_option = click.option("-b", "--n-bits", type=int, help="Take only the first bits of the model.")


def codes_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """What the three commands share."""
    for option in (quiet_option, bits_option, output_option, source_options):
        command = option(command)
    return command


@click.command()
@codes_options
@click.option(
    "--kind",
    type=click.Choice(["exact", "binary", "hnsw"]),
    default="exact",
    show_default=True,
    help="exact: IndexPQ over scaled centroids; binary, hnsw: plain Hamming distance of bits repeated by weight.",
)
@click.option("--expanded-bits", type=int, default=256, show_default=True, help="Bits of a code of binary and hnsw.")
def faiss(kind: str, expanded_bits: int, **given: Any) -> None:
    """Write CODES, or items through a model, as an index of FAISS.

    FAISS reads the file: read_index, or read_index_binary where the kind is not exact.

    \b
    Examples:
      cghash export faiss codes.npy --model model.cghash -o codes.faiss
      cghash export faiss --items items.npy --model model.cghash --kind hnsw --expanded-bits 512 -o codes.faiss
    """
    from ...stores.faiss import FaissStore

    _write(FaissStore.write, given, kind=kind, n_bits=expanded_bits)


@click.command()
@codes_options
def parquet(**given: Any) -> None:
    """Write CODES, or items through a model, as a Parquet file: columns 'id' and 'code', and a description.

    \b
    Examples:
      cghash export parquet codes.npy --model model.cghash -o codes.parquet
    """
    from ...stores.parquet import ParquetStore

    _write(ParquetStore.write, given)


@click.command()
@codes_options
@click.option("--table", default="codes", show_default=True, help="Name of the table; other tables stay.")
def duckdb(table: str, **given: Any) -> None:
    """Write CODES, or items through a model, into a table of a DuckDB file, in one transaction.

    \b
    Examples:
      cghash export duckdb codes.npy --model model.cghash -o codes.duckdb
      cghash export duckdb codes.npy --model model.cghash --ids ids.npy --table photos -o shop.duckdb
    """
    from ...stores.duckdb import DuckDBStore

    _write(DuckDBStore.write, given, table=table)


def read_codes(given: dict[str, Any], quiet: bool) -> tuple[Coded, Any]:
    """What the command line says of codes: ids and the model, and all codes (n, n_bytes) at once."""
    n_bits = given.pop("n_bits")
    source = Source(**given)
    if source.model is None:
        raise click.UsageError("--model is needed: its weights and its fingerprint go with the codes")
    import numpy as np

    found = source.read(n_bits, quiet)
    return found, np.concatenate([np.zeros((0, -(-found.n_bits // 8)), np.uint8), *found.blocks])


def _write(write: Callable[..., Store], given: dict[str, Any], **options: Any) -> None:
    output, quiet = given.pop("output"), given.pop("quiet")
    found, codes = read_codes(given, quiet)
    write(output, found.model, codes, found.ids, **options)
    say(f"{found.n} codes of {found.n_bits} bits, wrote {output}", quiet)
