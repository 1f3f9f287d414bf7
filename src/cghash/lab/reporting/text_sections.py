"""The sections of words and tables: paper and here, ranks, costs, cells and circumstances."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from html import escape

from .claims import AGREES, DISAGREES, Claim, claims
from .contests import ELEVEN, TOLD, Contest, at_longest, counted
from .html import Cell, details, listed, paragraph, section, table
from .line_styles import OURS, PAPER_TEN, TUNED
from .ranks import Rankings
from .tables import cost_table
from .values import CRITERIA, PAPER_SETS, Measured, title_of, title_of_protocol

__all__ = ["cells_section", "costs_section", "opening", "paper_and_here", "ranks_section"]

MANY = 6  # exceptions that are shown at once


LEAD = "Which codes find what is relevant, at which length, at which cost. All is computed from raw results."


def opening(
    measured: Measured, title: str, lead: str | None = None, numbers: Mapping[str, object] | None = None
) -> str:
    """Heading, and some numbers: by default what was measured."""
    shown = _counts(measured) if numbers is None else numbers
    items = "".join(f"<div><dt>{escape(name)}</dt><dd>{escape(str(n))}</dd></div>" for name, n in shown.items())
    words = paragraph(LEAD if lead is None else lead, "lead")
    return f'<header>\n<h1>{escape(title)}</h1>\n{words}\n<dl class="numbers">{items}</dl>\n</header>'


def _counts(measured: Measured) -> dict[str, int]:
    counts = {
        "data sets": len(measured.datasets()),
        "methods": len(measured.methods()),
        "splits": len({cell["split"] for cell in measured.good}),
        "cells measured": len(measured.good),
    }
    return {_counted(name, n): n for name, n in counts.items()}


def _counted(name: str, n: int) -> str:
    return name.removesuffix("s") if n == 1 else name


def paper_and_here(measured: Measured) -> str:
    """The paper's claims, each with what these results show."""
    if OURS not in measured.methods() or not counted(measured):
        return ""
    missing = [title_of(dataset) for dataset in PAPER_SETS if dataset not in measured.datasets()]
    absent = [method for method in PAPER_TEN if method not in measured.methods()]
    sets = ", ".join(title_of(dataset) for dataset in counted(measured))
    words = (
        f"What the paper says of {OURS} beside its ten competitors (Li, Lin, Shen, van den Hengel, Dick: Learning Hash "
        f"Functions Using Column Generation, ICML 2013), and what these results show. Counted here: {sets or 'none'}. "
        + (f"Of the paper's six data sets these are not in the results: {', '.join(missing)}. " if missing else "")
        + (f"Of its ten methods these are not, so nothing is said of them: {', '.join(absent)}." if absent else "")
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
    """CGHash, or a variant, with the longest codes: beside the best of the ten, and of the ten and ITQ-CCA."""
    rivals = {"the ten": PAPER_TEN} | (
        {f"the ten and {TOLD}": ELEVEN} if TOLD in measured.methods(protocol="seen") else {}
    )
    found = [
        (contest, name)
        for key in CRITERIA
        for name, methods in rivals.items()
        for contest in at_longest(measured, key, ours, methods)
    ]
    if not found:
        return ""
    found.sort(key=lambda pair: measured.datasets().index(pair[0].dataset))
    heads = (
        "data set",
        "criterion",
        ours,
        "rivals",
        "their best",
        "",
        "better by",
        "splits ahead",
        "within one deviation",
    )
    rows = [
        _contest(contest, name, measured.title(contest.criterion, contest.dataset, "seen")) for contest, name in found
    ]
    heading = f"<h3>{ours} and the best of the ten, longest codes</h3>"
    note = (
        "On the splits that both have. Their best: the one that it is least ahead of. Better by: mean ± deviation of "
        "the differences split by split; negative where it is behind."
    )
    return f"{heading}\n{table(heads, rows, f'{ours} and the best of the ten')}\n{paragraph(note, 'note')}"


def _contest(contest: Contest, rivals: str, title: str) -> list[str | Cell]:
    ours, theirs = (Cell(str(contest.ours), "best" if contest.won else ""), str(contest.theirs))
    ahead = f"{contest.n_ahead} of {contest.gain.n}"
    close = "–" if contest.gain.n < 2 else "yes" if contest.close else "no"
    return [title_of(contest.dataset), title, ours, rivals, contest.best, theirs, str(contest.gain), ahead, close]


def ranks_section(measured: Measured) -> str:
    """Average ranks by protocol and by criterion."""
    rankings = Rankings(measured)
    if not rankings.ranks:
        return ""
    rows: list[list[str | Cell]] = [
        [
            Cell(row.method, "ours" if row.method.startswith(OURS) else ""),
            *(Cell(text, "best" if best else "") for text, best in row.averages),
            row.rankings,
        ]
        for row in rankings.rows()
    ]
    heads = ("method", *rankings.columns(), "rankings")
    parts = paragraph(rankings.words()), table(heads, rows, "Average ranks"), _uneven(measured)
    return section("ranks", "Average ranks", *parts)


def _uneven(measured: Measured) -> str:
    """Where methods have different splits: how many each has with the longest codes, and how many all have."""
    lines = []
    for protocol in measured.protocols:
        for dataset in measured.datasets(protocol):
            splits = measured.splits(dataset, protocol, measured.longest(dataset, protocol))
            if len(set(map(tuple, splits.values()))) > 1:
                common = len(set.intersection(*map(set, splits.values())))
                numbers = ", ".join(f"{method} {len(found)}" for method, found in sorted(splits.items()))
                where = f"{title_of(dataset)}, {title_of_protocol(protocol)}"
                lines.append(f"{where}: {common or 'no'} {_counted('splits', common)} in common, of {numbers}.")
    words = "Here methods have different splits; where none is common, each is ranked by its own:"
    return f"{paragraph(words)}\n{listed(lines)}" if lines else ""


def costs_section(measured: Measured) -> str:
    """Time, bytes and memory, a table a data set."""
    parts = []
    for dataset in measured.datasets():
        protocol = measured.main_protocol(dataset)
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
    words += _left_out(measured) + _sources(measured)
    files = '<p>Tables: <a href="summary.csv">summary.csv</a>, <a href="cells.csv">cells.csv</a>.</p>'
    return section("cells", "Cells", paragraph(words), _failures(measured), _circumstances(measured), files)


def _left_out(measured: Measured) -> str:
    """How many cells may not be averaged with the others of their method, and whose they are."""
    if not measured.left_out:
        return ""
    whose = "; ".join(
        f"{n} of {method} on {title_of(dataset)}, {title_of_protocol(protocol)}"
        for (dataset, protocol, method), n in sorted(measured.left_out.items())
    )
    return (
        f" {measured.left_out.total()} were left out, since they were asked for differently (other settings) than "
        f"most cells of the same method, and no mean may be over both: {whose}."
    )


def _sources(measured: Measured) -> str:
    """Whether the cells are of several commits or several states of the sources, and of which."""
    said = ""
    for key, name in {"commit": "commits", "code": "states of the sources (digests)"}.items():
        found = sorted({str(cell[key]) for cell in measured.cells if cell.get(key)})
        if len(found) > 1:
            said += f" They are of {len(found)} {name}: {', '.join(found)}."
    return said


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
        for key in ("commit", "code", "cpu", "cores"):
            if cell.get(key) is not None:
                facts[key].add(str(cell[key]))
        for package, version in (cell.get("versions") or {}).items():
            facts[f"{package} version"].add(str(version))
    lines = [f"{name}: {', '.join(sorted(values))}" for name, values in facts.items()]
    return f'<div class="provenance">\n{listed(lines)}\n</div>' if lines else ""
