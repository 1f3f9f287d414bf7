"""`cghash export postgres`: codes into a database."""

from __future__ import annotations

from typing import Any

import click

from .._codes import source_options
from .._data import say
from .._options import quiet_option
from .codes import bits_option, read_codes


@click.command()
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
    from ...stores.postgres import PostgresStore

    if upsert and not (given["ids"] or given["id_column"]):
        raise click.UsageError("--upsert needs --ids or --id-column: which codes are meant")
    found, codes = read_codes(given, quiet)
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


def _columns(path: str) -> dict[str, Any]:
    from ...reading.arrays import read_arrays, read_columns
    from ...reading.sources import source_of

    readers = {"parquet": read_columns, "npz": read_arrays}
    source = source_of(path)
    if source.kind not in readers:
        raise click.UsageError(f"--payload must be a .parquet or .npz file, got {path}")
    return readers[source.kind](source)
