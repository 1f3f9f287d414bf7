"""`cghash cluster index`: an index of codes, in shards."""

from __future__ import annotations

import click

from .._data import say
from .._options import quiet_option
from ._options import client_of, cluster_options, folder_path


@click.command()
@click.argument("codes")
@click.option(
    "-o", "--output", required=True, metavar="FOLDER", callback=folder_path, help="Where to; new, or to go on with."
)
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
    from ...cluster import ShardedIndex
    from ...cluster.sharded_index import CODES

    with client_of(scheduler, workers) as client:
        built = ShardedIndex.build(codes, output, client, codes=codes_per_shard or CODES, verbose=not quiet)
        say(f"{len(built)} codes of {built.n_bits} bits in {len(built.shards)} shards, wrote {output}", quiet)
