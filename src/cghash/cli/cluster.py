"""`cghash cluster COMMAND`: the same work on a Dask cluster."""

from __future__ import annotations

import re
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ._inputs import feature_names, load_model, truncated
from ._options import (
    estimator_options,
    first_bits_option,
    given,
    label_column_option,
    learned_model_option,
    options,
    quiet_option,
)
from ._output import say
from ._running import INTERRUPTED, group
from .fit import summarize
from .search import Question, search_options

if TYPE_CHECKING:
    from ..cluster import Dataset


def folder_path(context: click.Context, parameter: click.Parameter, value: str) -> str:
    """Refuse a file where a folder is to be, before the work is done."""
    if value == "-" or Path(value).is_file():
        raise click.BadParameter(f"{value!r} is not a folder", context, parameter)
    return value


folder_option = click.option(
    "-o", "--output", required=True, metavar="FOLDER", callback=folder_path, help="Where to; new, or to go on with."
)
id_option = click.option("--id-column", metavar="NAME", help="Column of whole numbers.  [default: row numbers]")
cluster_options = options(  # where the workers are
    click.option("--scheduler", metavar="ADDRESS", help="Of a Dask cluster, such as tcp://10.0.0.1:8786."),
    click.option("--workers", type=click.IntRange(1), help="Processes of this machine.  [default: one a core]"),
)
dataset_options = options(  # which columns of Parquet files are read, and in which partitions
    click.option(
        "--vector-column",
        metavar="NAME",
        multiple=True,
        help="Column of lists; or, given several times, columns of numbers.  "
        "[default: those that the model was fitted on, else 'vector']",
    ),
    click.option(
        "--partition",
        type=click.Choice(["row-group", "file"]),
        default="row-group",
        show_default=True,
        help="What a worker takes at a time; file, where row groups are small.",
    ),
)


@group()
def cluster() -> None:
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


@cluster.command(short_help="Put the items of Parquet files in random order.")
@click.argument("items")
@label_column_option
@folder_option
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
    from ..cluster import shuffle as mixed

    dataset = _dataset_of(items, vector_column, partition, id_column=id_column, label_column=label_column)
    with _client_of(scheduler, workers) as client:
        found = mixed(dataset, output, client, parts=parts, seed=seed, verbose=not quiet)
    say(f"{len(found)} items in {len(found.partitions)} parts, wrote {output}", quiet)


@cluster.command(short_help="Learn a model from Parquet files.")
@click.argument("items")
@label_column_option
@click.option("--near-column", metavar="NAME", help="Column of lists: vectors that are near to those of ITEMS.")
@click.option("--far-column", metavar="NAME", help="Column of lists: vectors that are farther from them.")
@learned_model_option
@click.option("--every", type=click.IntRange(1), default=1, help="Learn from every N-th partition.  [default: all]")
@click.option("--from-disk", is_flag=True, help="Read items anew for each pass: one partition a worker in memory.")
@estimator_options("n_jobs")
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
    from ..cluster import fit as learned
    from ..hasher import CGHash

    def data(vector: tuple[str, ...], labels: str | None = None) -> Dataset:
        return _dataset_of(items, vector, partition, label_column=labels).thinned(every)

    near, far = (None if name is None else data((name,)) for name in (near_column, far_column))
    dataset = data(vector_column, label_column)
    if near is None and label_column is None:
        say("no labels or triplets: an item's Euclidean neighbours are taken to be near to it", quiet)
    model = CGHash(**given(parameters), verbose=0 if quiet else 1 + verbose)
    with _client_of(scheduler, workers) as client:
        model = learned(dataset, model, client, near=near, far=far, in_memory=not from_disk)
    import numpy as np

    model.feature_names_in_ = np.array(dataset.feature_names, dtype=object)
    model.save(output)
    summarize(model, output, quiet)
    return INTERRUPTED if model.result_.status == "interrupted" else 0


@cluster.command(short_help="Turn Parquet files of vectors into Parquet files of codes.")
@click.argument("model")
@click.argument("items")
@folder_option
@first_bits_option
@dataset_options
@id_option
@cluster_options
@quiet_option
def encode(
    model: str,
    items: str,
    output: str,
    n_bits: int | None,
    scheduler: str | None,
    workers: int | None,
    quiet: bool,
    **columns: Any,
) -> None:
    """Turn ITEMS, a Parquet file or a folder of them, into the binary codes of MODEL, a part for each partition.

    Parts have the columns 'id' and 'code'. Finished parts are kept: the same command goes on after a kill.

    \b
    Examples:
      cghash cluster encode model.cghash items.parquet -o codes/
      cghash cluster encode model.cghash items/ --vector-column embedding --id-column key -o codes/ --workers 4
      cghash cluster encode model.cghash /data/items -o /data/codes --scheduler tcp://10.0.0.1:8786
    """
    from ..cluster import encode as encoded_by

    hasher = truncated(load_model(model), n_bits)
    dataset = _dataset_of(items, **columns, features=feature_names(hasher))
    with _client_of(scheduler, workers) as client:
        encoded = encoded_by(dataset, hasher, output, client, verbose=not quiet)
    kept = f", {encoded.n_kept} of them were there" if encoded.n_kept else ""
    say(f"{len(encoded)} codes of {hasher.n_bits_} bits, {len(encoded.parts)} parts{kept}, wrote {output}", quiet)


@cluster.command(short_help="Make an index of such codes, in shards.")
@click.argument("codes")
@folder_option
@click.option(
    "--codes-per-shard", type=click.IntRange(1), help="Codes that fill a shard; whole parts go in.  [default: 16777216]"
)
@cluster_options
@quiet_option
def index(
    codes: str, output: str, codes_per_shard: int | None, scheduler: str | None, workers: int | None, quiet: bool
) -> None:
    """Make an index of CODES, a folder that 'cghash cluster encode' wrote: an index file for each shard.

    \b
    Examples:
      cghash cluster index codes/ -o index/
      cghash cluster index /data/codes -o /data/index --codes-per-shard 50000000 --scheduler tcp://10.0.0.1:8786
    """
    from ..cluster import ShardedIndex
    from ..cluster.sharded_index import CODES

    with _client_of(scheduler, workers) as client:
        built = ShardedIndex.build(codes, output, client, codes=codes_per_shard or CODES, verbose=not quiet)
        say(f"{len(built)} codes of {built.n_bits} bits in {len(built.shards)} shards, wrote {output}", quiet)


@cluster.command(short_help="Find the nearest codes of such an index, exactly.")
@click.argument("index")
@search_options
@cluster_options
@quiet_option
def search(index: str, scheduler: str | None, workers: int | None, **asked: Any) -> None:
    """Find the codes of INDEX, which 'cghash cluster index' made, nearest to each query, exactly, by (distance, id).

    Queries and answers are as with 'cghash search'; a model must be the one that made the codes.

    \b
    Examples:
      cghash cluster search index/ --queries new.npy --model model.cghash
      cghash cluster search /data/index --queries codes.npy -k 100 -o found.csv --scheduler tcp://10.0.0.1:8786
    """
    question = Question(**asked)
    from ..cluster import ShardedIndex

    with _client_of(scheduler, workers) as client, ShardedIndex.open(index, client) as held:
        question.put_to(held, lambda model: held.origin.check(model, index))


def _client_of(scheduler: str | None, workers: int | None) -> AbstractContextManager[Any]:
    """The cluster that the options name."""
    if scheduler is not None and workers is not None:
        raise click.UsageError("--workers are processes of this machine: they cannot go with --scheduler")
    from ..cluster import connected

    return connected(scheduler, n_workers=workers)


def _dataset_of(
    items: str,
    vector_column: tuple[str, ...],
    partition: str,
    *,
    id_column: str | None = None,
    label_column: str | None = None,
    features: list[str] | None = None,
) -> Dataset:
    """The items that the options name; `features` are the names that a model knows."""
    from ..cluster import Dataset

    columns = list(vector_column) or _columns_of(features or []) or ["vector"]
    vector = columns[0] if len(columns) == 1 else columns
    by = partition.replace("-", " ")
    return Dataset.from_parquet(items, vector=vector, ids=id_column, labels=label_column, partition=by)


def _columns_of(features: list[str]) -> list[str]:
    """Columns from the names of features: a column of lists has vector[0], vector[1], …

    >>> _columns_of(["v[0]", "v[1]"]), _columns_of(["height", "width"])
    (['v'], ['height', 'width'])
    """
    stems = {match[1] if (match := re.fullmatch(r"(.+)\[\d+\]", name)) else None for name in features}
    return [str(stems.pop())] if len(stems) == 1 and None not in stems else features
