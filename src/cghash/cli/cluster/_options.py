"""Options that the commands of a cluster share: who does the work, and where the items are."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from ...cluster import Dataset


def cluster_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Where the workers are."""
    for option in (
        click.option("--workers", type=click.IntRange(1), help="Processes of this machine.  [default: one a core]"),
        click.option("--scheduler", metavar="ADDRESS", help="Of a Dask cluster, such as tcp://10.0.0.1:8786."),
    ):
        command = option(command)
    return command


def client_of(scheduler: str | None, workers: int | None) -> AbstractContextManager[Any]:
    """The cluster that the options name."""
    if scheduler is not None and workers is not None:
        raise click.UsageError("--workers are processes of this machine: they cannot go with --scheduler")
    from ...cluster import connected

    return connected(scheduler, n_workers=workers)


id_option = click.option("--id-column", metavar="NAME", help="Column of whole numbers.  [default: row numbers]")


def dataset_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Which columns of Parquet files are read, and in which partitions."""
    for option in (
        click.option(
            "--partition",
            type=click.Choice(["row-group", "file"]),
            default="row-group",
            show_default=True,
            help="What a worker takes at a time; file, where row groups are small.",
        ),
        click.option(
            "--vector-column",
            metavar="NAME",
            multiple=True,
            help="Column of lists; or, given several times, columns of numbers.  "
            "[default: those that the model was fitted on, else 'vector']",
        ),
    ):
        command = option(command)
    return command


def dataset_of(
    items: str,
    vector_column: tuple[str, ...],
    partition: str,
    *,
    id_column: str | None = None,
    label_column: str | None = None,
    features: list[str] | None = None,
) -> Dataset:
    """The items that the options name; `features` are the names that a model knows."""
    from ...cluster import Dataset

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


def folder_path(context: click.Context, parameter: click.Parameter, value: str) -> str:
    """Refuse a file where a folder is to be, before the work is done."""
    if value == "-" or Path(value).is_file():
        raise click.BadParameter(f"{value!r} is not a folder", context, parameter)
    return value
