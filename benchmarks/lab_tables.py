"""Tables of the laboratory's results."""

from __future__ import annotations

from typing import Any

from cghash.lab.reporting import markdown_table
from cghash.lab.reporting.ranks import Rankings
from cghash.lab.reporting.values import Measured
from markdown_tables import bold, table

Row = dict[str, Any]


def seen(rows: list[Row]) -> str:
    """The three criteria of each data set and method, of classes seen in training."""
    return markdown_table(rows, "seen") + "\n"


def unseen(rows: list[Row]) -> str:
    """The same of classes never seen in training."""
    return markdown_table(rows, "unseen") + "\n"


def ranks(rows: list[Row]) -> str:
    """Average ranks over data sets and criteria, by protocol, and how to read them."""
    rankings = Rankings(Measured(rows))
    lines = [[row.method, *(bold(*average) for average in row.averages), row.rankings] for row in rankings.rows()]
    return f"{table(['method', *rankings.columns(), 'rankings'], lines)}\n{rankings.words()}\n"


def bytes_an_item(rows: list[Row]) -> str:
    """Mean average precision of each method by the number of bits, on items not trained on where there are some."""
    measured = Measured(rows)
    (dataset,) = measured.datasets()
    protocol = measured.main_protocol(dataset)
    lengths = measured.bits(dataset, protocol)
    spreads = {
        method: {bits: measured.spread(dataset, protocol, method, bits, "map") for bits in lengths}
        for method in measured.methods(dataset, protocol)
    }
    order = sorted(spreads, key=lambda method: -max(s.mean for s in spreads[method].values() if s.n))
    lines = [[method, *(str(s) if s.n else "–" for s in spreads[method].values())] for method in order]
    return table(["method", *(f"{bits} bits" for bits in lengths)], lines)


def circumstances(rows: list[Row], command: str) -> str:
    """One line: by which command, at which commits, on what."""
    commits = sorted({row["commit"] or "unknown" for row in rows})
    processors = sorted({f"{row['cpu']}, {row['cores']} cores" for row in rows})
    versions = ", ".join(f"{name} {number}" for name, number in rows[0]["versions"].items())
    seconds = sum(_seconds(rows))
    at = f"commit{'s'[: len(commits) > 1]} {', '.join(commits)}"
    return (
        f"Measured by `{command}` at {at}; {'; '.join(processors)}; {versions}. "
        f"Fitting and choosing parameters took {seconds / 60:.0f} processor minutes in all."
    )


def _seconds(rows: list[Row]) -> list[float]:
    """Seconds of each fit and choice, counted once where one fit served all lengths."""
    fits = {}
    for row in rows:
        if row["status"] == "ok":
            task = (row["dataset"], row["protocol"], row["split"], row["method"])
            fits[(*task, "choice")] = row.get("seconds_choice", 0.0)
            fits[(*task, None if row["trained_once"] else row["bits"])] = row["seconds_fit"]
    return list(fits.values())
