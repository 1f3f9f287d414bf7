"""`cghash workspace new`: a folder of pictures, a table or vectors become a workspace."""

from __future__ import annotations

import time
from shlex import quote
from typing import Any

import click

from .._data import say
from .._options import quiet_option


@click.command()
@click.argument("folder", metavar="DIR")
@click.option(
    "--items",
    required=True,
    metavar="PATH",
    help="A folder of pictures; a .csv, .tsv, .jsonl or .parquet file; an .npy or .npz file of vectors.",
)
@click.option(
    "--vectors",
    metavar="FILE",
    help="Vectors of the items, in their order or with a column id: .npy, .npz, .csv, .parquet; or a column of PATH.",
)
@click.option(
    "--embed",
    type=click.Choice(["gist", "tfidf", "sentences"]),
    help="How to compute vectors otherwise.  [default: gist of pictures, tfidf of texts]",
)
@click.option(
    "--sentence-model",
    metavar="MODEL",
    help="Model of '--embed sentences': a name known to sentence-transformers, or a folder.  "
    "[default: all-MiniLM-L6-v2]",
)
@click.option("--labels", metavar="COLUMN", help="Column that holds labels, or a file with one label an item.")
@click.option("--id-column", metavar="NAME", help="Column that holds the ids.  [default: id, else row numbers]")
@click.option(
    "--text-column", metavar="NAME", help="Column that holds the texts.  [default: text, else the longest texts]"
)
@click.option(
    "--pictures",
    type=click.Choice(["link", "copy"]),
    default="link",
    show_default=True,
    help="Hard links to pictures, where the disk has them, or copies.",
)
@click.option("--follow-links", is_flag=True, help="Take pictures that symbolic links lead to outside of the folder.")
@click.option("--title", metavar="TEXT", help="What people call it.  [default: the name of PATH]")
@quiet_option
def new(folder: str, items: str, quiet: bool, **settings: Any) -> None:
    """Make a workspace in DIR, which must not exist yet or be empty.

    A folder of pictures is read with those below it. A table has a row an item: column 'image' or 'file' names
    pictures beside it, column 'text' holds texts, the others are attributes to filter by. Pictures that cannot be read
    are left out and told.

    \b
    Examples:
      cghash workspace new birds --items photos/
      cghash workspace new news --items articles.csv --labels topic
      cghash workspace new mail --items mail.csv --embed sentences --sentence-model models/ours
      cghash workspace new songs --items songs.parquet --vectors embeddings.npy --title "Our songs"
      cghash workspace new points --items vectors.npy
    """
    from ..._progress import Progress
    from ...workspace import create_workspace

    began = time.perf_counter()
    with (
        Progress(not quiet, lines=False) as progress,
        create_workspace(folder, items, progress=progress, **settings) as made,
    ):
        about = made.about
    for note in about["notes"]:
        say(note, quiet)
    for key, reason in about["skipped"]["first"][:5]:
        say(f"left out: {key}: {reason}", quiet)
    say(
        f"{about['items']} items ({about['kind']}), vectors of {about['dimension']} numbers "
        f"({about['vectors']['source']}), in {time.perf_counter() - began:.1f} s; look: cghash serve {folder}"
        + (f" --sentence-model {quote(about['vectors']['model'])}" if "model" in about["vectors"] else ""),
        quiet,
    )
