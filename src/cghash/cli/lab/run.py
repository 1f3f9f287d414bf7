"""`cghash lab run`: the cells of an experiment, one after the other or side by side."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from .._data import say
from .._options import quiet_option, whole_numbers

if TYPE_CHECKING:
    from ...lab.experiments.plan import Experiment
    from ...lab.experiments.results import Store
    from ...lab.experiments.runner import Event


def names(context: click.Context, parameter: click.Parameter, value: tuple[str, ...]) -> list[str]:
    """Names with commas between, or given several times; a file's name may hold commas."""
    return [name for part in value for name in ([part] if Path(part).is_file() else part.split(",")) if name]


@click.command()
@click.argument("experiment")
@click.option("--dataset", "datasets", multiple=True, callback=names, help="Only these data sets; or paths of items.")
@click.option(
    "--method",
    "methods",
    multiple=True,
    callback=names,
    help="Only these methods; or others, by name, or module:Class.",
)
@click.option(
    "--import",
    "imports",
    multiple=True,
    metavar="module:Class",
    help="Let the .toml file name this class; its code runs.",
)
@click.option("--bits", callback=whole_numbers, metavar="LIST", help="Numbers of bits, such as 10,20,30.")
@click.option("--splits", type=click.IntRange(min=1), help="How many random splits.")
@click.option(
    "--protocol",
    "protocols",
    multiple=True,
    callback=names,
    help="What is searched. seen: the training items; heldout: others; unseen: other classes.",
)
@click.option("--labels", metavar="FILE", help="Labels of items given by their path.")
@click.option("--label-column", metavar="NAME", help="Column of items given by their path that holds the labels.")
@click.option("-o", "--output", metavar="FOLDER", help="Folder of the results.  [default: out/lab/NAME]")
@click.option("--data", metavar="FOLDER", help="Folder of data sets.  [default: what CGHASH_DATA names]")
@click.option("-j", "--jobs", type=click.IntRange(min=1), help="Processes at a time.  [default: all cores]")
@click.option("--limit", type=click.FloatRange(min=0, min_open=True), help="Seconds after which a task is given up.")
@click.option("--fresh", is_flag=True, help="Measure again what is there.")
@quiet_option
def run(
    experiment: str,
    datasets: list[str],
    methods: list[str],
    imports: tuple[str, ...],
    bits: list[int] | None,
    splits: int | None,
    protocols: list[str],
    labels: str | None,
    label_column: str | None,
    output: str | None,
    data: str | None,
    jobs: int | None,
    limit: float | None,
    fresh: bool,
    quiet: bool,
) -> None:
    """Run EXPERIMENT: 'paper', another name of 'cghash lab list', or a .toml file.

    Results go to a folder, one JSON file for each data set, split, method and number of bits. The same command again
    runs what is missing or failed. A data set that cannot be had is left out, with a word about it.

    \b
    Examples:
      cghash lab run paper
      cghash lab run paper --dataset isolet --splits 5 --bits 10,20,30,40,50,60
      cghash lab run paper --dataset mine.npz --method CGHash,ITQ,LSH -o out/mine
      cghash lab run paper --dataset mine.csv --label-column kind --method CGHash,ITQ
      cghash lab run paper --protocol unseen --method CGHash,SDH,KSH
      cghash lab run mine.toml --import mine:MedianCut -j 4
    """
    from ...lab.experiments.plan_files import part_of, read_experiment
    from ...lab.experiments.results import Store
    from ...lab.experiments.runner import run as run_all
    from ...lab.experiments.scaled_items import prepared

    read = read_experiment(experiment, imports=[*imports, *methods])
    plan = part_of(read, datasets, methods, bits or (), splits, protocols)
    plan = prepared(_labelled(plan, labels, label_column), data, lambda error: say(f"left out: {error}", quiet))
    folder = Path(output or f"out/lab/{plan.name}")
    folder.mkdir(parents=True, exist_ok=True)
    _say_other_code(plan, Store(folder), fresh, quiet)
    began = time.monotonic()
    with told(plan, quiet) as progress:
        try:
            failed = run_all(plan, Store(folder), data=data, n_jobs=jobs, limit=limit, fresh=fresh, told=progress)
        except KeyboardInterrupt:
            say(f"stopped; what was measured is in {folder}, and the same command goes on from there", quiet)
            raise
    say(f"{_duration(time.monotonic() - began)}; results in {folder}; look: cghash lab report {folder}", quiet)
    if failed:
        number = "1 task" if len(failed) == 1 else f"{len(failed)} tasks"
        click.echo(f"cghash: error: {number} failed; the first: {failed[0].task.name}: {failed[0].error}", err=True)
        click.get_current_context().exit(1)


def _labelled(plan: Experiment, labels: str | None, label_column: str | None) -> Experiment:
    """The experiment, told where the labels of the user's own items are."""
    if labels is None and label_column is None:
        return plan
    if not any(spec.path for spec in plan.datasets):
        raise click.UsageError("--labels and --label-column are for items given by their path, with --dataset")
    return replace(
        plan,
        datasets=tuple(
            replace(spec, labels=labels, label_column=label_column) if spec.path else spec for spec in plan.datasets
        ),
    )


def _say_other_code(plan: Experiment, store: Store, fresh: bool, quiet: bool) -> None:
    from ...lab.experiments.machine import code_digest

    n = 0 if fresh else sum(store.of_other_code(plan, task, code_digest()) for task in plan.tasks())
    if n:
        say(f"{n} results are there that other sources of cghash measured; --fresh measures them again", quiet)


@contextmanager
def told(plan: Experiment, quiet: bool) -> Iterator[Callable[[Event], None]]:
    """Shows each task that has ended: a bar on a terminal, a line a task in a log."""
    from ..._progress import Progress

    with Progress(not quiet) as progress:

        def tell(event: Event) -> None:
            words = f"{event.task.name}: {event.error or f'{event.seconds:.1f} s'}"
            left = f"about {_duration(event.seconds_left)} left"
            line = f"{event.done}/{event.total} {words} ({left})"
            progress("tasks", event.done, event.total, f"{left}; {words}", line)
            if event.error:
                progress.note(f"failed: {words}")

        progress("tasks", 0, sum(1 for _ in plan.tasks()), line="")
        yield tell


def _duration(seconds: float) -> str:
    minutes = seconds / 60
    return f"{seconds:.0f} s" if minutes < 2 else f"{minutes:.0f} min" if minutes < 120 else f"{minutes / 60:.1f} h"
