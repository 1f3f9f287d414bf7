"""The estimator's parameters as options. Their defaults are those of its signature, which is their one place."""

from __future__ import annotations

import ast
from collections.abc import Callable
from functools import cache
from importlib.resources import files
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])


@cache
def defaults() -> dict[str, Any]:
    """The parameters of CGHash and their defaults; read from its source, so that `--help` need not import it.

    >>> defaults()["n_bits"]
    64
    """
    tree = ast.parse(files("cghash").joinpath("hasher.py").read_text(encoding="utf-8"))
    of_class = next(node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == "CGHash")
    init = next(node for node in of_class.body if isinstance(node, ast.FunctionDef) and node.name == "__init__")
    positional = zip(init.args.args[1:], init.args.defaults, strict=True)
    keywords = zip(init.args.kwonlyargs, init.args.kw_defaults, strict=True)
    return {argument.arg: ast.literal_eval(value) for argument, value in (*positional, *keywords) if value is not None}


def parameter(
    name: str, *flags: str, words: str, when_none: str = "", **settings: Any
) -> tuple[str, Callable[[Any], Any]]:
    """An option for one parameter of the estimator; not given, it is None and the estimator's default holds."""
    value = defaults()[name]
    shown = when_none if value is None else str(value)
    told = f"{words}  [default: {shown}]" if shown else words
    return name, click.option(*(flags or (f"--{name.replace('_', '-')}",)), name, help=told, **settings)


def given(values: dict[str, Any]) -> dict[str, Any]:
    """The parameters that the user gave."""
    return {name: value for name, value in values.items() if value is not None}


def estimator_options(command: F) -> F:
    """Give a command an option for each parameter of CGHash but `verbose`."""
    return estimator_options_without()(command)


def estimator_options_without(*names: str) -> Callable[[F], F]:
    """As `estimator_options`, leaving out parameters that mean nothing to a command."""

    def decorate(command: F) -> F:
        for name, option in reversed(_OPTIONS):
            command = command if name in names else option(command)
        return command

    return decorate


_OPTIONS: tuple[tuple[str, Callable[[Any], Any]], ...] = (
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
