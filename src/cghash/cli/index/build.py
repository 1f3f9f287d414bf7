"""`cghash index build`: codes into a new index file."""

from __future__ import annotations

import time

import click

from .._codes import Source, source_options
from .._data import say
from .._options import index_path, quiet_option


@click.command()
@source_options
@click.option("-o", "--output", required=True, metavar="FILE", callback=index_path, help="The index file to write.")
@click.option(
    "-b", "--n-bits", type=int, help="Take only the first bits of the model; without a model, bits of a code."
)
@click.option("--no-prune", is_flag=True, help="No tables to prune by: a fifth of the memory, and searches scan.")
@quiet_option
def build(
    codes: str | None,
    items: str | None,
    model: str | None,
    ids: str | None,
    id_column: str | None,
    output: str,
    n_bits: int | None,
    no_prune: bool,
    quiet: bool,
) -> None:
    """Put packed CODES, or items through a model, into a new index file.

    CODES is what 'cghash encode' writes as .npy or .csv; '-' is standard input. With --model the index has the model's
    weights; without, every bit counts as 1. Ids are row numbers unless they are given.

    \b
    Examples:
      cghash index build codes.npy --model model.cghash -o items.index
      cghash index build --items items.npy --model model.cghash --ids ids.npy -o items.index
      cghash index build codes.csv --id-column number --model model.cghash --no-prune -o items.index
    """
    source = Source(codes, items, model, ids, id_column)
    from ...estimator import functions_of
    from ...index import WeightedHammingIndex

    began = time.perf_counter()
    found = source.read(n_bits, quiet)
    functions = None if found.model is None else functions_of(found.model)
    index = WeightedHammingIndex(found.n_bits, found.weights, prune=not no_prune, functions=functions)
    for piece, its_ids in found.pieces():
        index.add(piece, its_ids)
    index.prepare()
    index.save(output)
    kind = "unweighted" if found.weights is None else "weighted"
    say(
        f"{len(index)} codes of {index.n_bits} bits, {kind}, in {time.perf_counter() - began:.1f} s, wrote {output}",
        quiet,
    )
