"""`cghash index add`: more codes into an index file."""

from __future__ import annotations

import click

from .._codes import Source, source_options
from .._data import say
from .._options import quiet_option


@click.command()
@click.argument("index")
@source_options
@quiet_option
def add(
    index: str,
    codes: str | None,
    items: str | None,
    model: str | None,
    ids: str | None,
    id_column: str | None,
    quiet: bool,
) -> None:
    """Add packed CODES, or items through a model, to INDEX: all of them, or on an error none.

    They are in the log beside INDEX, on the disk, when the command ends. Ids are new ones unless they are given; an id
    that INDEX has already is an error.

    \b
    Examples:
      cghash index add items.index codes.npy
      cghash index add items.index --items more.npy --model model.cghash --ids ids.txt
      cghash encode model.cghash more.npy --format npy | cghash index add items.index -
    """
    source = Source(codes, items, model, ids, id_column)
    import numpy as np

    from ...estimator import functions_of
    from ...index import WeightedHammingIndex

    with WeightedHammingIndex.load(index, writable=True) as held:
        found = source.read(held.n_bits, quiet)
        if found.model is not None:
            held.check_model(functions_of(found.model))
        held.add(np.concatenate(list(found.blocks)), found.ids)
        say(f"{found.n} codes added, {len(held)} in {index}", quiet)
