"""`cghash lab list`: what there is to compare."""

from __future__ import annotations

import click

from .._tables import show_facts


@click.command()
def list_all() -> None:
    """Show the experiments, the data sets and where they come from, and the methods.

    \b
    Examples:
      cghash lab list
    """
    from ...lab.datasets import DATASETS
    from ...lab.experiments.methods import NAMES
    from ...lab.experiments.plan_files import built_in, read_experiment

    show_facts("experiments", [(name, read_experiment(name).title) for name in built_in()])
    show_facts("data sets", [(name, about.about) for name, about in DATASETS.items()])
    show_facts("methods", [(name, _first_line(name)) for name in NAMES])


def _first_line(name: str) -> str:
    from ... import CGHash, peers
    from ...lab.experiments.methods import EUCLIDEAN

    if name == EUCLIDEAN:
        return "The items themselves, by Euclidean distance: a reference."
    kind = CGHash if name == "CGHash" else getattr(peers, name)
    return str(kind.__doc__).strip().splitlines()[0]
