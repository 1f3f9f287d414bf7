"""The command line: `cghash COMMAND`. Data goes to standard output, talk to standard error."""

from __future__ import annotations

import click

from ._options import debug_option
from ._running import CommandLine, group

COMMANDS = {  # in the order of use: where each lives, and what `cghash --help` says of it
    "demo": ("cghash.cli.demo:demo", "Learn codes of handwritten digits and look at the result."),
    "fit": ("cghash.cli.fit:fit", "Learn a model from items and labels, triplets or duplets."),
    "encode": ("cghash.cli.encode:encode", "Turn items into binary codes."),
    "evaluate": ("cghash.cli.evaluate:evaluate", "Measure how well codes rank items that were labelled or compared."),
    "index": ("cghash.cli.index:index", "Make index files of codes, and change them."),
    "vectors": ("cghash.cli.vectors:vectors", "Make folders of vectors that codes find and vectors rank."),
    "search": ("cghash.cli.search:search", "Find the nearest codes of an index file, or vectors of a folder."),
    "export": ("cghash.cli.export:export", "Hand a model or its codes to ONNX, FAISS, Parquet or DuckDB."),
    "cluster": ("cghash.cli.cluster:cluster", "Learn, encode and search on a Dask cluster, past one machine."),
    "workspace": ("cghash.cli.workspace:workspace", "Make a workspace of pictures, texts or vectors for the page."),
    "serve": ("cghash.cli.serve:serve", "Open a page: search by example, teach by comparing, learn."),
    "lab": ("cghash.cli.lab:lab", "Compare methods on data sets, and draw the figures."),
    "info": ("cghash.cli.info:info", "Show what a model file, a checkpoint or an index file holds."),
}


@debug_option
@click.version_option(package_name="cghash", prog_name="cghash", message="%(prog)s %(version)s")
@group(CommandLine, commands_at=COMMANDS)
def main() -> None:
    """Learn compact binary codes from relative comparisons, by column generation.

    \b
    Examples:
      cghash fit items.npy --labels labels.npy -o model.cghash
      cghash encode model.cghash items.npy -o codes.npy
      cghash evaluate model.cghash test.csv --label-column class
      cghash index build codes.npy --model model.cghash -o items.index
      cghash search items.index --queries new.npy --model model.cghash
      cghash info model.cghash

    Items and labels are read from .npy, .npz, .csv and .parquet files; '-' is standard input or output.
    'cghash COMMAND --help' tells more.
    """
