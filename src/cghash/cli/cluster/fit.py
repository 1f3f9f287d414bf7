"""`cghash cluster fit`: learn a model from Parquet files that no machine need hold."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from .._data import say
from .._errors import INTERRUPTED
from .._options import label_column_option, model_path, quiet_option
from .._parameters import estimator_options_without, given
from ..fit import summarize
from ._options import client_of, cluster_options, dataset_of, dataset_options

if TYPE_CHECKING:
    from ...cluster import Dataset


@click.command()
@click.argument("items")
@label_column_option
@click.option("--near-column", metavar="NAME", help="Column of lists: vectors that are near to those of ITEMS.")
@click.option("--far-column", metavar="NAME", help="Column of lists: vectors that are farther from them.")
@click.option(
    "-o", "--output", required=True, metavar="MODEL", callback=model_path, help="Model file to write; replaced."
)
@click.option("--every", type=click.IntRange(1), default=1, help="Learn from every N-th partition.  [default: all]")
@click.option("--from-disk", is_flag=True, help="Read items anew for each pass: one partition a worker in memory.")
@estimator_options_without("n_jobs")
@dataset_options
@cluster_options
@quiet_option
@click.option("-v", "--verbose", is_flag=True, help="Say a line for each bit, where there is no progress bar.")
def fit(
    items: str,
    label_column: str | None,
    near_column: str | None,
    far_column: str | None,
    output: str,
    from_disk: bool,
    every: int,
    vector_column: tuple[str, ...],
    partition: str,
    scheduler: str | None,
    workers: int | None,
    quiet: bool,
    verbose: bool,
    **parameters: Any,
) -> int:
    """Learn hash functions and weights from ITEMS, a Parquet file or a folder of them.

    Each partition compares its own items, by labels or, without, by Euclidean neighbours: items must lie in no order,
    so that a partition is a fair sample of all. With --near-column and --far-column each row is a triplet. The same
    partitions give the same model, whatever the number of workers. Ctrl-C stops and keeps the bits learned so far.

    \b
    Examples:
      cghash cluster fit items/ --label-column kind -b 64 -o model.cghash
      cghash cluster fit /data/items --label-column kind --every 100 -o model.cghash
      cghash cluster fit clicks/ --vector-column query --near-column clicked --far-column skipped -o model.cghash
      cghash cluster fit /data/items --from-disk --checkpoint fit.ckpt --scheduler tcp://10.0.0.1:8786 -o m.cghash
    """
    if (near_column is None) != (far_column is None):
        raise click.UsageError("--near-column and --far-column go together: a triplet needs both")
    if near_column is not None and label_column is not None:
        raise click.UsageError("--label-column cannot go with triplets: labels make triplets of their own")
    from ...cluster import fit as learned
    from ...hasher import CGHash

    def data(vector: tuple[str, ...], labels: str | None = None) -> Dataset:
        return dataset_of(items, vector, partition, label_column=labels).thinned(every)

    near, far = (None if name is None else data((name,)) for name in (near_column, far_column))
    dataset = data(vector_column, label_column)
    if near is None and label_column is None:
        say("no labels or triplets: an item's Euclidean neighbours are taken to be near to it", quiet)
    model = CGHash(**given(parameters), verbose=0 if quiet else 1 + verbose)
    with client_of(scheduler, workers) as client:
        model = learned(dataset, model, client, near=near, far=far, in_memory=not from_disk)
    import numpy as np

    model.feature_names_in_ = np.array(dataset.feature_names, dtype=object)
    model.save(output)
    summarize(model, output, quiet)
    return INTERRUPTED if model.result_.status == "interrupted" else 0
