"""`cghash lab COMMAND`: experiments that compare methods."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ._options import output_path, quiet_option, whole_numbers
from ._output import say, show_facts
from ._running import group

if TYPE_CHECKING:
    from ..lab.experiments.plan import Experiment
    from ..lab.experiments.results import Store
    from ..lab.experiments.runner import Event


@group()
def lab() -> None:
    """Compare methods: which codes find what is relevant, at which length, at which cost.

    \b
    Examples:
      cghash lab run paper
      cghash lab report out/lab/paper
      cghash lab run paper --dataset isolet --splits 5 --bits 10,20,30,40,50,60
      cghash lab run paper --dataset mine.npz --method CGHash,ITQ,LSH
      cghash lab show paper > mine.toml && cghash lab run mine.toml
    """


def names(context: click.Context, parameter: click.Parameter, value: tuple[str, ...]) -> list[str]:
    """Names with commas between, or given several times; a file's name may hold commas."""
    return [name for part in value for name in ([part] if Path(part).is_file() else part.split(",")) if name]


@lab.command(short_help="Run an experiment; what was measured already is kept.")
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
    from ..lab.experiments.plan_files import part_of, read_experiment
    from ..lab.experiments.results import Store
    from ..lab.experiments.runner import run as run_all
    from ..lab.experiments.scaled_items import prepared

    read = read_experiment(experiment, imports=[*imports, *methods])
    plan = part_of(read, datasets, methods, bits or (), splits, protocols)
    plan = prepared(_labelled(plan, labels, label_column), data, lambda error: say(f"left out: {error}", quiet))
    folder = Path(output or f"out/lab/{plan.name}")
    folder.mkdir(parents=True, exist_ok=True)
    _say_other_code(plan, Store(folder), fresh, quiet)
    began = time.monotonic()
    with tasks_done(plan, quiet) as progress:
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
    from ..lab.experiments.machine import code_digest

    n = 0 if fresh else sum(store.of_other_code(plan, task, code_digest()) for task in plan.tasks())
    if n:
        say(f"{n} results are there that other sources of cghash measured; --fresh measures them again", quiet)


@contextmanager
def tasks_done(plan: Experiment, quiet: bool) -> Iterator[Callable[[Event], None]]:
    """Shows each task that has ended: a bar on a terminal, a line a task in a log."""
    from .._progress import Progress

    with Progress(not quiet) as progress:

        def show(event: Event) -> None:
            words = f"{event.task.name}: {event.error or f'{event.seconds:.1f} s'}"
            left = f"about {_duration(event.seconds_left)} left"
            line = f"{event.done}/{event.total} {words} ({left})"
            progress("tasks", event.done, event.total, f"{left}; {words}", line)
            if event.error:
                progress.note(f"failed: {words}")

        progress("tasks", 0, sum(1 for _ in plan.tasks()), line="")
        yield show


def _duration(seconds: float) -> str:
    minutes = seconds / 60
    return f"{seconds:.0f} s" if minutes < 2 else f"{minutes:.0f} min" if minutes < 120 else f"{minutes / 60:.1f} h"


@lab.command(short_help="Draw the figures and write the page of an experiment's results.")
@click.argument("results", nargs=-1, required=True)
@click.option("-o", "--output", metavar="FOLDER", help="Folder of the report.  [default: report/ beside the results]")
@click.option("--title", help="Heading of the page.")
@quiet_option
def report(results: tuple[str, ...], output: str | None, title: str | None, quiet: bool) -> None:
    """Write index.html, figures (PNG, SVG) and tables (CSV) from RESULTS: folders of 'cghash lab run', or .jsonl files.

    Several are shown together. Only raw results are read: nothing is measured again.

    \b
    Examples:
      cghash lab report out/lab/paper
      cghash lab report out/lab/paper out/lab/mine -o out/both --title "Paper and mine"
      cghash lab report benchmarks/results/lab/paper.jsonl -o out/report
    """
    from ..lab.experiments.results import read_results
    from ..lab.reporting import write_report

    place = Path(results[0])
    folder = Path(output) if output else (place if place.is_dir() else place.parent) / "report"
    cells = [cell for path in results for cell in read_results(path)]
    page = write_report(cells, folder) if title is None else write_report(cells, folder, title)
    say(f"{len(cells)} results", quiet)
    click.echo(page)


@lab.command("list", short_help="Show the experiments, data sets and methods that there are.")
def list_all() -> None:
    """Show the experiments, the data sets and where they come from, and the methods.

    \b
    Examples:
      cghash lab list
    """
    from ..lab.datasets import DATASETS
    from ..lab.experiments.methods import NAMES
    from ..lab.experiments.plan_files import built_in, read_experiment

    show_facts("experiments", [(name, read_experiment(name).title) for name in built_in()])
    show_facts("data sets", [(name, about.about) for name, about in DATASETS.items()])
    show_facts("methods", [(name, _first_line(name)) for name in NAMES])


def _first_line(name: str) -> str:
    from .. import CGHash, peers
    from ..lab.experiments.methods import EUCLIDEAN

    if name == EUCLIDEAN:
        return "The items themselves, by Euclidean distance: a reference."
    kind = CGHash if name == "CGHash" else getattr(peers, name)
    return str(kind.__doc__).strip().splitlines()[0]


@lab.command(short_help="Print an experiment's file, to begin one's own from.")
@click.argument("experiment")
def show(experiment: str) -> None:
    """Print the file of EXPERIMENT, to begin one's own from.

    \b
    Examples:
      cghash lab show paper
      cghash lab show paper > mine.toml && cghash lab run mine.toml
    """
    from ..lab.experiments.plan_files import source_of

    click.echo(source_of(experiment), nl=False)


@lab.command(short_help="Put all results of a folder into one file.")
@click.argument("folder")
@click.option("-o", "--output", required=True, metavar="FILE", callback=output_path, help="The .jsonl file to write.")
@quiet_option
def collect(folder: str, output: str, quiet: bool) -> None:
    """Put all results of FOLDER into one file, a line each, which 'cghash lab report' reads as well.

    \b
    Examples:
      cghash lab collect out/lab/paper -o paper.jsonl
    """
    from ..lab.experiments.results import collect as collect_all

    say(f"{collect_all(folder, output)} results, wrote {output}", quiet)
