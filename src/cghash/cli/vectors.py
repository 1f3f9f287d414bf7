"""`cghash vectors COMMAND`: folders of vectors that codes find and vectors rank."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ._codes import Source
from ._inputs import Labelled, feature_names, load_model, say_ignored
from ._options import options, quiet_option
from ._output import say
from ._running import group

if TYPE_CHECKING:
    from ..index import VectorIndex

_AT_ONCE = 1 << 14  # vectors


@group()
def vectors() -> None:
    """Make folders of vectors, which 'cghash search' searches, and change them.

    Codes in memory give a shortlist, asked with the vector; the vectors, in a file, rank it. What a command changes is
    on the disk when it ends.

    \b
    Examples:
      cghash vectors build items.npy --model model.cghash -o shop.vectors
      cghash vectors tune shop.vectors --queries held_out.npy --recall 0.95
      cghash search shop.vectors --queries new.npy -k 10
      cghash vectors add shop.vectors more.npy
    """


ids_options = options(
    click.option("--ids", metavar="FILE", help="Whole numbers, one an item: .npy, .csv, .txt or .parquet."),
    click.option("--id-column", metavar="NAME", help="Column of ITEMS that holds their ids; not a feature."),
)


@vectors.command(short_help="Put items into a new folder.")
@click.argument("items")
@click.option("--model", required=True, metavar="FILE", help="Model that turns vectors into codes.")
@click.option("-o", "--output", required=True, metavar="FOLDER", help="New folder to write.")
@click.option(
    "--metric",
    type=click.Choice(["cosine", "euclidean", "inner"]),
    default="cosine",
    show_default=True,
    help="What ranks the shortlist.",
)
@click.option(
    "--vectors",
    "kind",
    type=click.Choice(["float16", "float32", "int8"]),
    default="float16",
    show_default=True,
    help="How vectors are kept.",
)
@ids_options
@quiet_option
def build(
    items: str, model: str, output: str, metric: str, kind: str, ids: str | None, id_column: str | None, quiet: bool
) -> None:
    """Put ITEMS into a new folder, with codes of them, the model and the vectors.

    \b
    Examples:
      cghash vectors build items.npy --model model.cghash -o shop.vectors
      cghash vectors build items.npy --model model.cghash --vectors int8 --metric euclidean -o shop.vectors
    """
    if Path(output).exists():
        raise click.UsageError(
            f"--output must be a new folder, and {output!r} is there: 'cghash vectors add' adds to it"
        )
    from ..index import VectorIndex

    began = time.perf_counter()
    VectorIndex(load_model(model), metric=metric, vectors=kind).save(output)
    with VectorIndex.load(output, writable=True) as index:
        _add(index, items, ids, id_column, quiet)
        said = f"{len(index)} vectors as {kind}, codes of {index.model.n_bits_} bits"
    say(f"{said}, in {time.perf_counter() - began:.1f} s, wrote {output}", quiet)


@vectors.command(short_help="Add items to a folder.")
@click.argument("folder")
@click.argument("items")
@ids_options
@quiet_option
def add(folder: str, items: str, ids: str | None, id_column: str | None, quiet: bool) -> None:
    """Add ITEMS to FOLDER. Ids are new ones unless they are given; one that FOLDER has already is an error.

    \b
    Examples:
      cghash vectors add shop.vectors more.npy
    """
    from ..index import VectorIndex

    with VectorIndex.load(folder, writable=True) as index:
        n = _add(index, items, ids, id_column, quiet)
        say(f"{n} vectors added, {len(index)} in {folder}", quiet)


def _add(index: VectorIndex, items: str, ids: str | None, id_column: str | None, quiet: bool) -> int:
    source = Source(None, items, "", ids, id_column)
    read = Labelled(items, id_column=id_column).read_for(index.model, items, quiet)
    index.add(read.X, source.ids_of(read))
    return len(read.X)


@vectors.command(short_help="Choose how many codes the vectors rank.")
@click.argument("folder")
@click.option("--queries", required=True, metavar="FILE", help="Vectors like those that will ask, not in FOLDER.")
@click.option("--recall", type=click.FloatRange(0, 1, min_open=True), default=0.95, show_default=True)
@click.option("-k", "--neighbors", type=click.IntRange(1), default=10, show_default=True)
@quiet_option
def tune(folder: str, queries: str, recall: float, neighbors: int, quiet: bool) -> None:
    """Choose the least number of candidates that finds so much of the true neighbours, and keep it in FOLDER.

    \b
    Examples:
      cghash vectors tune shop.vectors --queries held_out.npy --recall 0.99 -k 10
    """
    from ..index import VectorIndex

    with VectorIndex.load(folder, writable=True) as index:
        chosen = index.tune(vectors_for(index, queries, None, quiet).X, recall, neighbors)
        say(f"{chosen} candidates find {recall:.4g} of the {neighbors} nearest, kept in {folder}", quiet)


@vectors.command(short_help="Check every byte of a folder.")
@click.argument("folder")
@quiet_option
def verify(folder: str, quiet: bool) -> None:
    """Check every byte of FOLDER: codes, ids, log and vectors.

    \b
    Examples:
      cghash vectors verify shop.vectors
    """
    from ..index import VectorIndex

    found = VectorIndex.verify(folder)
    say(f"{folder}: {found['n_codes']} vectors as {found['vectors']} and their codes are as they were written", quiet)


@vectors.command(short_help="Write a folder anew without what was removed.")
@click.argument("folder")
@quiet_option
def compact(folder: str, quiet: bool) -> None:
    """Write the files of FOLDER anew, with what its log holds and without what was removed or replaced.

    \b
    Examples:
      cghash vectors compact shop.vectors
    """
    from ..index import VectorIndex

    with VectorIndex.load(folder, writable=True) as index:
        before = index.info()["n_removed"]
        index.compact()
        say(f"{before} removed vectors dropped, {len(index)} in {folder}", quiet)


def vectors_for(index: VectorIndex, queries: str, id_column: str | None, quiet: bool) -> Any:
    """Queries (q, d) from a file, in the order of the model's features."""
    read = Labelled(queries, id_column=id_column).read(feature_names(index.model))
    say_ignored(read, quiet)
    return read
