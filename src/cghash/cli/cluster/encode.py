"""`cghash cluster encode`: Parquet files of vectors to Parquet files of codes."""

from __future__ import annotations

from typing import Any

import click

from .._data import feature_names, load_model, say, truncated
from .._options import quiet_option
from ._options import client_of, cluster_options, dataset_of, dataset_options, folder_path, id_option


@click.command()
@click.argument("model")
@click.argument("items")
@click.option(
    "-o", "--output", required=True, metavar="FOLDER", callback=folder_path, help="Where to; new, or to go on with."
)
@click.option("-b", "--n-bits", type=int, help="Take only the first bits.  [default: all]")
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
    from ...cluster import encode as encoded_by

    hasher = load_model(model)
    if n_bits is not None:
        hasher = truncated(hasher, n_bits)
    dataset = dataset_of(items, **columns, features=feature_names(hasher))
    with client_of(scheduler, workers) as client:
        encoded = encoded_by(dataset, hasher, output, client, verbose=not quiet)
    kept = f", {encoded.n_kept} of them were there" if encoded.n_kept else ""
    say(f"{len(encoded)} codes of {hasher.n_bits_} bits, {len(encoded.parts)} parts{kept}, wrote {output}", quiet)
