"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path

import click

debug_option = click.option("--debug", is_flag=True, expose_value=False, help="Show the trace of an error.")
quiet_option = click.option("-q", "--quiet", is_flag=True, help="Say nothing but errors and warnings.")
json_option = click.option("--json", "as_json", is_flag=True, help="Write JSON, for programs.")
label_column_option = click.option(
    "--label-column", metavar="NAME", help="Column of ITEMS that holds the labels; not a feature."
)
id_column_option = click.option(
    "--id-column", metavar="NAME", help="Column of ITEMS that holds the items' ids; not a feature."
)
device_option = click.option(
    "--device", metavar="NAME", help="Work on a GPU: cuda, cuda:1, … Linear and RBF functions.  [default: the CPU]"
)
labels_option = click.option(
    "--labels", metavar="FILE", help="Labels, one an item: .npy, .csv, .txt or .parquet of one column."
)
triplets_option = click.option(
    "--triplets",
    metavar="FILE",
    help="Comparisons: .npy (t, 3), or .csv, .jsonl or .parquet with columns anchor, near, far and optionally weight; "
    "row numbers, or ids with --id-column.",
)


def output_path(context: click.Context, parameter: click.Parameter, value: str) -> str:
    """Refuse a place that cannot be written to, before the work is done and not after."""
    path = Path(value)
    if value != "-" and path.is_dir():
        raise click.BadParameter(f"{value!r} is a folder", context, parameter)
    if value != "-" and not path.parent.is_dir():
        raise click.BadParameter(f"folder {str(path.parent)!r} does not exist", context, parameter)
    return value


def model_path(context: click.Context, parameter: click.Parameter, value: str) -> str:
    """The same for a model, which is always a file."""
    if value == "-":
        raise click.BadParameter("a model is not written to standard output: name a file", context, parameter)
    return output_path(context, parameter, value)


def index_path(context: click.Context, parameter: click.Parameter, value: str) -> str:
    """The same for an index."""
    if value == "-":
        raise click.BadParameter("an index is not written to standard output: name a file", context, parameter)
    return output_path(context, parameter, value)


def whole_numbers(context: click.Context, parameter: click.Parameter, value: str | None) -> list[int] | None:
    """A list such as 16,32,64."""
    if value is None:
        return None
    try:
        return [int(number) for number in value.split(",")]
    except ValueError:
        raise click.BadParameter(
            f"must be whole numbers with commas between, such as 16,32,64, got {value!r}", context, parameter
        ) from None
