"""The sections of words and tables: paper and here, ranks, costs, cells and circumstances."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from html import escape

from .claims import AGREES, DISAGREES, Claim, Contest, claims, contests, counted
from .html import Cell, details, listed, paragraph, section, table
from .looks import OURS, TUNED
from .measured import CRITERIA, PAPER_SETS, Measured, title_of
from .ranks import Rank, Rankings
from .tables import cost_table

__all__ = ["cells_section", "costs_section", "opening", "paper_and_here", "ranks_section"]

MANY = 6  # exceptions that are shown at once


def opening(measured: Measured, title: str) -> str:
    """Heading, and what was measured in four numbers."""
    numbers = {
        "data sets": len(measured.datasets()),
        "methods": len(measured.methods()),
        "splits": len({cell["split"] for cell in measured.good}),
        "cells measured": len(measured.good),
    }
    items = "".join(f"<div><dt>{_counted(name, n)}</dt><dd>{n}</dd></div>" for name, n in numbers.items())
    lead = "Which codes find what is relevant, at which length, at which cost. All is computed from raw results."
    return f'<header>\n<h1>{escape(title)}</h1>\n{paragraph(lead, "lead")}\n<dl class="numbers">{items}</dl>\n</header>'


def _counted(name: str, n: int) -> str:
    return name.removesuffix("s") if n == 1 else name


def paper_and_here(measured: Measured) -> str:
    """The paper's claims, each with what these results show."""
    if OURS not in measured.methods():
        return ""
    missing = [title_of(dataset) for dataset in PAPER_SETS if dataset not in measured.datasets()]
    sets = ", ".join(title_of(dataset) for dataset in counted(measured))
    words = (
        f"What the paper says of {OURS} beside its ten competitors (Li, Lin, Shen, van den Hengel, Dick: Learning Hash "
        f"Functions Using Column Generation, ICML 2013), and what these results show. Counted here: {sets or 'none'}. "
        + (f"Of the paper's six data sets these are not in the results: {', '.join(missing)}." if missing else "")
    )
    cards = "\n".join(_claim(claim) for claim in claims(measured))
    tables = [_contests(measured, ours) for ours in (OURS, TUNED)]
    return section("paper", "Paper and here", paragraph(words), f'<div class="claims">\n{cards}\n</div>', *tables)


def _claim(claim: Claim) -> str:
    kind = {AGREES: "agrees", DISAGREES: "disagrees"}.get(claim.verdict, "unmeasured")
    exceptions = ""
    if claim.exceptions:
        many = len(claim.exceptions) > MANY
        found = listed(claim.exceptions)
        exceptions = details(f"{len(claim.exceptions)} exceptions", found) if many else found
    return (
        f'<article class="card">\n<span class="verdict {kind}">{claim.verdict}</span>\n<h3>{escape(claim.words)}</h3>\n'
        f"{paragraph(claim.here) if claim.here else ''}\n{exceptions}\n{paragraph(f'Paper: {claim.place}.', 'note')}\n"
        "</article>"
    )


def _contests(measured: Measured, ours: str) -> str:
    """CGHash, or a variant, and the best of the ten with the longest codes."""
    found = [
        contest
        for key in CRITERIA
        for contest in contests(measured, key, ours=ours)
        if contest.bits == measured.longest(contest.dataset, "seen")
    ]
    if not found:
        return ""
    found.sort(key=lambda contest: measured.datasets().index(contest.dataset))
    heads = ("data set", "criterion", ours, "best of the ten", "", "better by", "splits ahead", "within one deviation")
    rows = [_contest(contest, measured.title(contest.criterion)) for contest in found]
    heading = f"<h3>{ours} and the best of the ten, longest codes</h3>"
    note = "Better by: mean ± deviation of the differences split by split; negative where it is behind."
    return f"{heading}\n{table(heads, rows, f'{ours} and the best of the ten')}\n{paragraph(note, 'note')}"


def _contest(contest: Contest, title: str) -> list[str | Cell]:
    ours, theirs = (Cell(str(contest.ours), "best" if contest.won else ""), str(contest.theirs))
    ahead = f"{contest.n_ahead} of {contest.gain.n}"
    close = "–" if contest.gain.n < 2 else "yes" if contest.close else "no"
    return [title_of(contest.dataset), title, ours, contest.best, theirs, str(contest.gain), ahead, close]


def ranks_section(measured: Measured) -> str:
    """Average ranks by protocol and by criterion."""
    rankings = Rankings(measured)
    if not rankings.ranks:
        return ""
    columns = {"all": rankings.average()}
    if len(measured.protocols) > 1:
        columns |= {p: rankings.average(_of("protocol", p)) for p in measured.protocols}
    columns |= {measured.title(key): rankings.average(_of("criterion", key)) for key in CRITERIA}
    rows: list[list[str | Cell]] = [
        [
            Cell(method, "ours" if method.startswith(OURS) else ""),
            *(_rank(means, method) for means in columns.values()),
            f"{rankings.count(method)} of {rankings.n_tables}",
        ]
        for method in rankings.order()
    ]
    words = (
        "The mean of a method's places over data sets and criteria (mAP and top: larger is better; error: smaller), "
        f"with the longest codes. 1 is the best; equal values share their places. There are {rankings.n_tables} "
        "rankings; methods that do not stand in all of them come last, since their means are over others."
    )
    heads = ("method", *columns, "rankings")
    return section("ranks", "Average ranks", paragraph(words), table(heads, rows, "Average ranks"))


def _of(field: str, value: str) -> Callable[[Rank], bool]:
    return lambda rank: getattr(rank, field) == value


def _rank(means: dict[str, float], method: str) -> Cell:
    if method not in means:
        return Cell("–")
    return Cell(f"{means[method]:.2f}", "best" if means[method] == min(means.values()) else "")


def costs_section(measured: Measured) -> str:
    """Time, bytes and memory, a table a data set."""
    parts = []
    for dataset in measured.datasets():
        protocol = next(p for p in measured.protocols if dataset in measured.datasets(p))
        parts.append(f"<div><h3>{escape(title_of(dataset))}</h3>\n{cost_table(measured, dataset, protocol)}</div>")
    words = (
        "Means over splits with the longest codes. Fit: one fit, which gives all shorter codes too where codes have "
        "prefixes. Choice: of parameters by cross-validation, before the fit. Bits: fewer than asked for where a "
        "method has no more. Peak: of the whole process, data included."
    )
    if not parts:
        return ""
    tables = "\n".join(parts)
    return section("costs", "Time, bytes, memory", paragraph(words), f'<div class="figures">\n{tables}\n</div>')


def cells_section(measured: Measured) -> str:
    """How many cells there are of how many, which failed, and under which circumstances they were measured."""
    expected = _expected(measured)
    words = f"{len(measured.good)} of {expected} cells were measured; {len(measured.failed)} failed"
    left = expected - len(measured.cells)
    words += f"; {left} are not in the results." if left > 0 else "."
    if measured.n_twice:
        words += f" {measured.n_twice} came twice; the later ones stand."
    files = '<p>Tables: <a href="summary.csv">summary.csv</a>, <a href="cells.csv">cells.csv</a>.</p>'
    return section("cells", "Cells", paragraph(words), _failures(measured), _circumstances(measured), files)


def _expected(measured: Measured) -> int:
    """Each method at each of its numbers of bits, on all splits of the data set and protocol."""
    splits: dict[tuple[str, str], set[int]] = defaultdict(set)
    for cell in measured.cells:
        splits[cell["dataset"], cell["protocol"]].add(cell["split"])
    asked = {(cell["dataset"], cell["protocol"], cell["method"], cell["bits"]) for cell in measured.cells}
    return sum(len(splits[dataset, protocol]) for dataset, protocol, _, _ in asked)


def _failures(measured: Measured) -> str:
    if not measured.failed:
        return ""
    groups: dict[tuple[str, str, str, str], list[str]] = defaultdict(list)
    for cell in measured.failed:
        key = (title_of(cell["dataset"]), cell["protocol"], cell["method"], str(cell.get("error", "no message")))
        groups[key].append(f"{cell['bits']} bits of split {cell['split']}")
    rows = [
        [f"{method}, {dataset} ({protocol})", "; ".join(where), error]
        for (dataset, protocol, method, error), where in groups.items()
    ]
    return table(("failed", "cells", "error"), rows, "Cells that failed")


def _circumstances(measured: Measured) -> str:
    facts: dict[str, set[str]] = defaultdict(set)
    for cell in measured.cells:
        for key in ("commit", "cpu", "cores", "command"):
            if cell.get(key) is not None:
                facts[key].add(str(cell[key]))
        for package, version in (cell.get("versions") or {}).items():
            facts[f"{package} version"].add(str(version))
    lines = [f"{name}: {', '.join(sorted(values))}" for name, values in facts.items()]
    return f'<div class="provenance">\n{listed(lines)}\n</div>' if lines else ""
