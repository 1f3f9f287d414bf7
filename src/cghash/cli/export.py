"""`cghash export FORMAT`: models and codes for other systems."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from ._codes import Coded, Source, source_options
from ._inputs import load_model, truncated
from ._options import first_bits_option, options, output_file, quiet_option
from ._output import say
from ._running import group

if TYPE_CHECKING:
    from ..stores import Store

bits_option = click.option("-b", "--n-bits", type=int, help="Take only the first bits of the model.")
codes_options = options(
    source_options, output_file("FILE", "The file to write.", "an index"), bits_option, quiet_option
)


@group()
def export() -> None:
    """Hand a model, or codes with their weights and a fingerprint of the model, to the systems that you run.

    \b
    Examples:
      cghash export onnx model.cghash -o model.onnx
      cghash export faiss codes.npy --model model.cghash -o codes.faiss
      cghash export parquet --items items.npy --model model.cghash -o codes.parquet
      cghash export duckdb codes.npy --model model.cghash --table photos -o shop.duckdb
      cghash export postgres codes.npy --model model.cghash --database postgresql://ann@db/shop --table photos
    """


@export.command(short_help="A model as an ONNX graph: floats in, packed codes out.")
@click.argument("model")
@output_file("FILE", "The ONNX file to write.", "a model")
@click.option(
    "--dtype", type=click.Choice(["float32", "float64"]), default="float32", show_default=True, help="Of the items."
)
@first_bits_option
@quiet_option
def onnx(model: str, output: str, dtype: str, n_bits: int | None, quiet: bool) -> None:
    """Write MODEL, of linear or RBF functions, as an ONNX graph.

    Its input 'items' (n, d) are floats, its output 'codes' (n, bytes) is what 'cghash encode' writes. Of RBF functions
    a second output, 'certain' (n), says whose codes are proven to be the same.

    \b
    Examples:
      cghash export onnx model.cghash -o model.onnx
      cghash export onnx model.cghash --dtype float64 --n-bits 16 -o model.onnx
    """
    from ..stores.onnx import to_onnx

    hasher = truncated(load_model(model), n_bits)
    to_onnx(hasher, output, dtype=dtype)
    say(f"a graph from {hasher.n_features_in_} {dtype} to {hasher.n_bits_} bits, wrote {output}", quiet)


@export.command(short_help="Codes as an index of FAISS.")
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
    from ..stores.faiss import FaissStore

    _write(FaissStore.write, given, kind=kind, n_bits=expanded_bits)


@export.command(short_help="Codes as a Parquet file.")
@codes_options
def parquet(**given: Any) -> None:
    """Write CODES, or items through a model, as a Parquet file: columns 'id' and 'code', and a description.

    \b
    Examples:
      cghash export parquet codes.npy --model model.cghash -o codes.parquet
    """
    from ..stores.parquet import ParquetStore

    _write(ParquetStore.write, given)


@export.command(short_help="Codes as a table of a DuckDB file.")
@codes_options
@click.option("--table", default="codes", show_default=True, help="Name of the table; other tables stay.")
def duckdb(table: str, **given: Any) -> None:
    """Write CODES, or items through a model, into a table of a DuckDB file, in one transaction.

    \b
    Examples:
      cghash export duckdb codes.npy --model model.cghash -o codes.duckdb
      cghash export duckdb codes.npy --model model.cghash --ids ids.npy --table photos -o shop.duckdb
    """
    from ..stores.duckdb import DuckDBStore

    _write(DuckDBStore.write, given, table=table)


@export.command(short_help="Codes as a table of a PostgreSQL database.")
@source_options
@click.option(
    "--database",
    envvar="CGHASH_DATABASE",
    show_envvar=True,
    required=True,
    metavar="URL",
    help="postgresql://… of the database.",
)
@click.option("--table", default="codes", show_default=True, help="Name of the table; other tables stay.")
@click.option("--payload", metavar="FILE", help="Further columns, one row a code: .parquet or .npz.")
@click.option("--upsert", is_flag=True, help="Add to a table of codes, and replace those of ids that are there.")
@click.option("--expanded-bits", type=int, default=256, show_default=True, help="Bits of a code repeated by weight.")
@click.option("--hnsw/--no-hnsw", default=True, show_default=True, help="Whether to build a graph of pgvector.")
@click.option("--memory", type=int, metavar="MB", help="What building the graph may take.  [default: the server's]")
@bits_option
@quiet_option
def postgres(
    database: str,
    table: str,
    payload: str | None,
    upsert: bool,
    expanded_bits: int,
    hnsw: bool,
    memory: int | None,
    quiet: bool,
    **given: Any,
) -> None:
    """Write CODES, or items through a model, into a table of a PostgreSQL database, in one transaction.

    The table has the columns 'id', 'code' and 'expanded', and those of --payload. SELECT * FROM TABLE_nearest(code, k)
    is an exact search in SQL. A table of codes of the same name is replaced, or added to with --upsert.

    \b
    Examples:
      cghash export postgres codes.npy --model model.cghash --database postgresql://ann@db/shop
      cghash export postgres --items items.npy --model model.cghash --ids ids.npy --payload titles.parquet \\
          --database postgresql://ann@db/shop --table photos --memory 2000
      cghash export postgres new.npy --model model.cghash --ids new_ids.npy --table photos --upsert
    """
    from ..stores.postgres import PostgresStore

    if upsert and not (given["ids"] or given["id_column"]):
        raise click.UsageError("--upsert needs --ids or --id-column: which codes are meant")
    found, codes = _read_codes(given, quiet)
    columns = None if payload is None else _columns(payload)
    if upsert:
        with PostgresStore.open(database, found.model, table=table) as store:
            changed = store.upsert(found.model, codes, found.ids, payload=columns)
        say(f"{found.n} codes of {found.n_bits} bits, {changed} of them new or changed, in table {table}", quiet)
        return
    PostgresStore.write(
        database,
        found.model,
        codes,
        found.ids,
        table=table,
        payload=columns,
        n_bits=expanded_bits,
        hnsw=hnsw,
        memory=memory,
    ).close()
    say(f"{found.n} codes of {found.n_bits} bits, wrote table {table}", quiet)


def _read_codes(given: dict[str, Any], quiet: bool) -> tuple[Coded, Any]:
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
    found, codes = _read_codes(given, quiet)
    write(output, found.model, codes, found.ids, **options)
    say(f"{found.n} codes of {found.n_bits} bits, wrote {output}", quiet)


def _columns(path: str) -> dict[str, Any]:
    from ..reading.binary_files import read_arrays, read_columns
    from ..reading.sources import source_of

    readers = {"parquet": read_columns, "npz": read_arrays}
    source = source_of(path)
    if source.kind not in readers:
        raise click.UsageError(f"--payload must be a .parquet or .npz file, got {path}")
    return readers[source.kind](source)
