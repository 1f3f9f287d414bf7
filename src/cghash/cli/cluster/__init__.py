"""`cghash cluster COMMAND`: the same work on a Dask cluster."""

from __future__ import annotations

import click

from .._group import CommandLine

COMMANDS = {  # in the order of use
    "shuffle": ("cghash.cli.cluster.shuffle:shuffle", "Put the items of Parquet files in random order."),
    "fit": ("cghash.cli.cluster.fit:fit", "Learn a model from Parquet files."),
    "encode": ("cghash.cli.cluster.encode:encode", "Turn Parquet files of vectors into Parquet files of codes."),
    "index": ("cghash.cli.cluster.index:index", "Make an index of such codes, in shards."),
    "search": ("cghash.cli.cluster.search:search", "Find the nearest codes of such an index, exactly."),
}


@click.group(cls=CommandLine, commands_at=COMMANDS, invoke_without_command=True)
@click.pass_context
def cluster(context: click.Context) -> None:
    """Work past one machine: on a Dask cluster, or on processes of this machine where none is named.

    Workers read and write the files themselves, and must see them under the same paths. What is finished is kept: the
    same command goes on after a kill.

    \b
    Examples:
      cghash cluster shuffle items/ --label-column kind -o mixed/
      cghash cluster fit items/ --label-column kind -o model.cghash
      cghash cluster encode model.cghash items/ -o codes/ --workers 4
      cghash cluster encode model.cghash /data/items -o /data/codes --scheduler tcp://10.0.0.1:8786
      cghash cluster index codes/ -o index/
      cghash cluster search index/ --queries new.npy --model model.cghash
    """
    if context.invoked_subcommand is None:
        click.echo(context.get_help())
