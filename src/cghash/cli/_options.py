"""Options that several commands share, among them the estimator's parameters."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from .._parameters import Parameters

F = TypeVar("F", bound=Callable[..., Any])


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
first_bits_option = click.option("-b", "--n-bits", type=int, help="Take only the first bits.  [default: all]")


def options(*those: Callable[[F], F]) -> Callable[[F], F]:
    """Several options as one, in the order in which help shows them."""

    def decorate(command: F) -> F:
        for option in reversed(those):
            command = option(command)
        return command

    return decorate


def output_path(context: click.Context, parameter: click.Parameter, value: str) -> str:
    """Refuse a place that cannot be written to, before the work is done and not after."""
    path = Path(value)
    if value != "-" and path.is_dir():
        raise click.BadParameter(f"{value!r} is a folder", context, parameter)
    if value != "-" and not path.parent.is_dir():
        raise click.BadParameter(f"folder {str(path.parent)!r} does not exist", context, parameter)
    return value


def output_file(metavar: str, words: str, what: str) -> Callable[[F], F]:
    """The option for a file to write; `what` it holds is never written to standard output."""

    def file_path(context: click.Context, parameter: click.Parameter, value: str) -> str:
        if value == "-":
            raise click.BadParameter(f"{what} is not written to standard output: name a file", context, parameter)
        return output_path(context, parameter, value)

    return click.option("-o", "--output", required=True, metavar=metavar, callback=file_path, help=words)


learned_model_option = output_file("MODEL", "Model file to write; replaced.", "a model")


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


DEFAULTS = {name: parameter.default for name, parameter in inspect.signature(Parameters).parameters.items()}


def given(values: dict[str, Any]) -> dict[str, Any]:
    """The parameters of the estimator that the user gave: an option that was not is None, and the default holds."""
    return {name: value for name, value in values.items() if value is not None}


def parameter(
    name: str, *flags: str, words: str, when_none: str = "", **settings: Any
) -> tuple[str, Callable[[Any], Any]]:
    """An option for one parameter of the estimator."""
    default = DEFAULTS[name]
    shown = when_none if default is None else str(default)
    told = f"{words}  [default: {shown}]" if shown else words
    return name, click.option(*(flags or (f"--{name.replace('_', '-')}",)), name, help=told, **settings)


def estimator_options(*left_out: str) -> Callable[[F], F]:
    """An option for each parameter of CGHash but `verbose`, and those that mean nothing to a command."""
    return options(*(option for name, option in _PARAMETERS if name not in left_out))


_PARAMETERS: tuple[tuple[str, Callable[[Any], Any]], ...] = (
    parameter("n_bits", "-b", "--n-bits", type=int, words="Bits to learn at most."),
    parameter(
        "loss",
        type=click.Choice(["squared_hinge", "hinge", "logistic", "exponential"]),
        words="Loss of a triplet's margin.",
    ),
    parameter("regularizer", type=click.Choice(["l1", "linf"]), words="Norm of the weights."),
    parameter(
        "C",
        "-C",
        type=float,
        when_none="as fits the regularizer, and whether there are labels",
        words="Weight of the l1 norm against the mean loss; under linf, the largest weight of a bit.",
    ),
    parameter(
        "hash_function",
        type=click.Choice(["linear", "stump", "tree", "rbf", "rbf-kmeans"]),
        words="Family of the hash functions.",
    ),
    parameter(
        "sampling",
        type=click.Choice(["mixed", "neighbors", "classes"]),
        when_none="mixed; classes without labels",
        words="Triplets from labels: nearest relevant and irrelevant items, items drawn from whole classes, or both.",
    ),
    parameter("n_neighbors", "-k", "--n-neighbors", type=int, words="Near and far items of each item."),
    parameter(
        "method",
        type=click.Choice(["refined", "paper"]),
        words="How functions are searched for; 'paper' switches every later improvement off.",
    ),
    parameter("tol", type=float, words="A violation up to this counts as optimal."),
    parameter("time_limit", type=float, metavar="SECONDS", words="No further bit is begun after this time."),
    parameter(
        "checkpoint",
        type=click.Path(dir_okay=False),
        metavar="FILE",
        words="Holds the state after each bit; the same command after a kill goes on from it.",
    ),
    parameter("n_jobs", "-j", "--n-jobs", type=int, when_none="all cores", words="Threads."),
    parameter("random_state", "--seed", type=int, when_none="drawn anew", words="The same seed gives the same codes."),
)
