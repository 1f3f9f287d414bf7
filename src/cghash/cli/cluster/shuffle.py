"""`cghash cluster shuffle`: the items of Parquet files in random order."""

from __future__ import annotations

import click

from .._data import say
from .._options import label_column_option, quiet_option
from ._options import client_of, cluster_options, dataset_of, dataset_options, folder_path, id_option


@click.command()
@click.argument("items")
@label_column_option
@click.option(
    "-o", "--output", required=True, metavar="FOLDER", callback=folder_path, help="Where to; new, or to go on with."
)
@click.option("--parts", type=click.IntRange(1), help="Files to write.  [default: one a partition]")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="The same seed, the same order.")
@dataset_options
@id_option
@cluster_options
@quiet_option
def shuffle(
    items: str,
    label_column: str | None,
    output: str,
    parts: int | None,
    seed: int,
    vector_column: tuple[str, ...],
    id_column: str | None,
    partition: str,
    scheduler: str | None,
    workers: int | None,
    quiet: bool,
) -> None:
    """Write ITEMS, a Parquet file or a folder of them, in random order, so that every part is a fair sample of all.

    The files have columns 'id', 'vector' and, with --label-column, 'label'. What is finished is kept: the same command
    goes on after a kill.

    \b
    Examples:
      cghash cluster shuffle items/ --label-column kind -o mixed/
      cghash cluster shuffle /data/items --parts 1000 -o /data/mixed --scheduler tcp://10.0.0.1:8786
      cghash cluster fit mixed/ --label-column label -o model.cghash
    """
    from ...cluster import shuffle as mixed

    dataset = dataset_of(items, vector_column, partition, id_column=id_column, label_column=label_column)
    with client_of(scheduler, workers) as client:
        found = mixed(dataset, output, client, parts=parts, seed=seed, verbose=not quiet)
    say(f"{len(found)} items in {len(found.partitions)} parts, wrote {output}", quiet)
