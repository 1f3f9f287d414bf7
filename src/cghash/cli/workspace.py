"""`cghash workspace COMMAND`: folders of items, for the page."""

from __future__ import annotations

import time
from dataclasses import asdict
from shlex import quote
from typing import TYPE_CHECKING, Any

import click

from ._options import json_option, output_path, quiet_option
from ._output import say, show_facts, show_json
from ._running import group

if TYPE_CHECKING:
    from ..workspace import Workspace

database_option = click.option(
    "--database",
    metavar="URL",
    help="Where the answers are: a path, or postgresql://…  [default: $CGHASH_DATABASE, else DIR/answers.sqlite]",
)


@group()
def workspace() -> None:
    """Make workspaces, which 'cghash serve' opens in a browser, and move answers and models in and out.

    A workspace is a folder that holds everything: items, vectors, answers, models.

    \b
    Examples:
      cghash workspace new birds --items photos/
      cghash workspace new news --items articles.csv --labels topic
      cghash workspace info birds
      cghash workspace export birds out/birds
      cghash workspace import birds answers.csv model.cghash
    """


@workspace.command(short_help="Make a workspace of pictures, texts or vectors.")
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
    from .._progress import Progress
    from ..workspace import create_workspace

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


@workspace.command(short_help="Show what a workspace holds.")
@click.argument("folder", metavar="DIR")
@database_option
@json_option
def info(folder: str, database: str | None, as_json: bool) -> None:
    """Show what the workspace in DIR holds: items, attributes, vectors, answers, models.

    \b
    Examples:
      cghash workspace info birds
      cghash workspace info birds --json | jq .answers
    """
    from ..workspace import Workspace

    with Workspace.open(folder, database) as workspace:
        facts = _facts(workspace)
    if as_json:
        show_json(facts, ascii_only=False)
    else:
        show_facts(folder, _for_people(facts))


def _facts(workspace: Workspace) -> dict[str, Any]:
    damaged = workspace.records.damage()  # first: what is damaged is not counted
    n, undone = workspace.records.count_answers()
    return {
        **workspace.about,
        "attributes": [asdict(attribute) for attribute in workspace.items.attributes],
        "answers": {"count": n, "undone": undone},
        "models": [{"version": v.version, "name": v.name, "bits": v.bits} for v in workspace.records.versions()],
        "current": workspace.records.current,
        "damaged": damaged,
    }


def _for_people(facts: dict[str, Any]) -> list[tuple[str, str]]:
    skipped = facts["skipped"]["count"]
    current = f", version {facts['current']} is used" if facts["current"] is not None else ""
    model = f" by {facts['vectors']['model']}" if "model" in facts["vectors"] else ""
    undone = f", {facts['answers']['undone']} of them taken back" if facts["answers"]["undone"] else ""
    return [
        ("title", facts["title"]),
        ("items", f"{facts['items']} ({facts['kind']})" + (f", {skipped} left out" if skipped else "")),
        ("vectors", f"{facts['dimension']} numbers ({facts['vectors']['source']}{model})"),
        ("attributes", "; ".join(map(_attribute, facts["attributes"])) or "none"),
        ("labels", facts["labels"] or "none"),
        ("answers", f"{facts['answers']['count']}{undone}"),
        ("models", f"{len(facts['models'])}{current}"),
        ("created", facts["created"]),
        *(("damaged", row) for row in facts["damaged"]),
    ]


def _attribute(about: dict[str, Any]) -> str:
    """An attribute in a few words.

    >>> _attribute({"name": "year", "kind": "number", "values": None, "least": 1990, "most": 2001})
    'year (1990 to 2001)'
    """
    if about["kind"] == "number":
        return f"{about['name']} ({about['least']} to {about['most']})"
    values = about["values"]
    return f"{about['name']} ({'many values' if values is None else f'{len(values)} values'})"


@workspace.command(short_help="Write answers, codes and the model to a folder.")
@click.argument("folder", metavar="DIR")
@click.argument("output", metavar="[OUT]", required=False)
@click.option(
    "--triplets",
    metavar="FILE",
    callback=lambda context, option, value: value and output_path(context, option, value),
    help="Write the answers alone: to a .csv, .jsonl or .parquet file.",
)
@database_option
@quiet_option
def export(folder: str, output: str | None, triplets: str | None, database: str | None, quiet: bool) -> None:
    """Write what the workspace in DIR has learned to the new folder OUT.

    triplets.csv, .jsonl and .parquet hold the answers as anchor, near, far by the items' ids, with source and time;
    unsure.csv and .jsonl those that could not tell;
    codes.npy and ids.csv the codes of the current model; model.cghash that model.

    \b
    Examples:
      cghash workspace export birds out/birds
      cghash workspace export birds --triplets answers.csv
    """
    if output is None and triplets is None:
        raise click.UsageError("name a folder to write, or a file with --triplets")
    from ..workspace import Workspace
    from ..workspace.exchange import export_workspace, write_triplets

    with Workspace.open(folder, database) as workspace:
        if triplets is not None:
            say(f"{write_triplets(workspace, triplets)} answers, wrote {triplets}", quiet)
        if output is not None:
            for words in export_workspace(workspace, output):
                say(words, quiet)
            say(f"wrote {output}", quiet)


@workspace.command("import", short_help="Take in answers and models.")
@click.argument("folder", metavar="DIR")
@click.argument("files", metavar="FILE...", nargs=-1, required=True)
@click.option("--use", is_flag=True, help="Use the model from now on.")
@database_option
@quiet_option
def import_(folder: str, files: tuple[str, ...], use: bool, database: str | None, quiet: bool) -> None:
    """Take answers and models into the workspace in DIR.

    FILE holds triplets as .csv, .jsonl or .parquet with the ids anchor, near, far, or row numbers as .npy; or answers
    that could not tell, with the ids anchor, left, right; or it is a model file, which becomes a version; or a folder
    that 'cghash workspace export' wrote. The same file twice adds its answers once.

    \b
    Examples:
      cghash workspace import birds answers.csv
      cghash workspace import birds model.cghash --use
      cghash workspace import birds out/birds
    """
    from ..workspace import Workspace
    from ..workspace.exchange import import_files

    with Workspace.open(folder, database) as workspace:
        found = import_files(workspace, files, use=use)
    for note in found.notes:
        say(note, quiet)
    known = f", {found.known} were there already" if found.known else ""
    models = "".join(f", model version {version}" for version in found.versions)
    say(f"{found.answers} answers imported{known}{models}", quiet)
