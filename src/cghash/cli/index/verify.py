"""`cghash index verify`: every byte of an index file."""

from __future__ import annotations

import click

from .._data import say
from .._options import quiet_option


@click.command()
@click.argument("index")
@quiet_option
def verify(index: str, quiet: bool) -> None:
    """Check every byte of INDEX and of its log: checksums, counts and ids.

    The exit code is 0 when all is well, and 2 when something is wrong, which the message names.

    \b
    Examples:
      cghash index verify items.index
      cghash index verify -q items.index && cp items.index /backup
    """
    from ...index import WeightedHammingIndex

    found = WeightedHammingIndex.verify(index)
    say(
        f"{index}: {found['n_codes']} codes; {found['bytes']} bytes in {found['sections']} sections "
        f"and {found['log_records']} log records are as they were written",
        quiet,
    )
