"""`cghash index compact`: an index file without its log."""

from __future__ import annotations

import click

from .._data import say
from .._options import quiet_option


@click.command()
@click.argument("index")
@quiet_option
def compact(index: str, quiet: bool) -> None:
    """Write INDEX anew with all that its log holds, without what was removed, and with tables to prune by.

    A kill leaves the old file with its log, or the new one.

    \b
    Examples:
      cghash index compact items.index
    """
    from ...index import WeightedHammingIndex

    with WeightedHammingIndex.load(index, writable=True) as held:
        before, records = len(held) + held.info()["n_removed"], held.file["log_records"]
        held.compact()
        if held.prune and not held.info()["n_prepared"]:
            held.prepare()
            if held.info()["n_prepared"]:
                held.save(index)
        say(
            f"{records} log records folded in, {before - len(held)} removed codes dropped, {len(held)} in {index}",
            quiet,
        )
