"""Turn the measurements in benchmarks/results into the tables of the documentation.

Reads the JSON files there that TABLES names, and writes docs/measurements/*.md, which docs/measurements.md includes. A
table whose measurement is missing says how to make it.

    python benchmarks/tables.py
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import cluster_tables
import lab_tables
import page_tables
import quality_tables
import reliability_tables
import search_tables
import store_tables
from cghash.lab.experiments.results import read_results
from markdown_tables import bold, shown, table

RESULTS = Path(__file__).parent / "results"
PAGES = Path(__file__).parents[1] / "docs" / "measurements"

Row = dict[str, Any]


def fit(rows: list[Row]) -> str:
    """Seconds of a fit, by phase, over its floor."""
    header = "items,bits,seconds,graph,pricing,master,rest,floor,over floor,memory above X (MB),satisfied"
    phases = ("graph", "pricing", "master", "rest")
    return table(header.split(","), (
        [str(r["items"]), str(r["bits"]), shown(r["seconds"]), *(shown(r["phases"].get(p)) for p in phases),
         shown(sum(r["floor"].values())), shown(r["over_floor"]), shown(r.get("peak_above_X_MB")),
         shown(r.get("satisfied"))]
        for r in rows if "phases" in r
    ), words=0)  # fmt: skip


def growth(rows: list[Row]) -> str:
    """Seconds of pricing and master problems until so many bits, and how often each was evaluated."""
    steps = sorted({int(m) for r in rows for m in r.get("learning_seconds_at_bits", {})})
    lines = []
    for r in rows:
        if "phases" in r:
            at = {int(m): s for m, s in r["learning_seconds_at_bits"].items()}
            counts = [str(n) for n in r.get("evaluations", ("–", "–"))]
            lines.append([str(r["items"]), str(r["triplets"]), *(shown(at.get(m)) for m in steps), *counts])
    header = ["items", "triplets", *(f"{m} bits" for m in steps), "evaluations: pricing", "master"]
    return table(header, lines, words=0)


def yardstick(rows: list[Row]) -> str:
    """Ours and a plain NumPy/SciPy program of the same steps."""
    header = ["items", "bits", "cghash, seconds", "plain, seconds", "times faster", "plain satisfied"]
    names = ("items", "bits", "seconds", "plain_seconds", "times_faster", "plain_satisfied")
    return table(header, ([shown(r.get(n)) for n in names] for r in rows if "plain_seconds" in r), words=0)


def criteria(rows: list[Row]) -> str:
    """Seconds of all criteria, over their floor and beside sorting."""
    names = "queries,items,size,seconds,processor_seconds,floor_processor_seconds,over_floor"
    header = "distances,queries,items,bits or features,seconds,processor seconds,floor,over floor,NumPy,MB"
    last = "numpy_processor_seconds", "peak_MB"
    lines = ([r["distances"], *(shown(r.get(name)) for name in (*names.split(","), *last))] for r in rows)
    return table(header.split(","), lines)


def defaults(rows: list[Row]) -> str:
    """mAP of family × sampling × C on each set, one table for each protocol; the best of a column in bold."""
    words = {"seen": "Classes seen in training", "unseen": "Classes held out of training"}
    protocols = dict.fromkeys(r["protocol"] for r in rows)
    return "\n".join(
        f"{words.get(protocol, protocol)}, mAP:\n\n" + choices([r for r in rows if r["protocol"] == protocol])
        for protocol in protocols
    )


def choices(rows: list[Row]) -> str:
    sets = list(dict.fromkeys(r["set"] for r in rows))
    names = list(dict.fromkeys((r["family"], r["sampling"], r["C"]) for r in rows))
    values = [[mean_of(rows, "map", set=s, family=f, sampling=how, C=C) for s in sets] for f, how, C in names]
    values = [[*line, None if None in line else statistics.mean(line)] for line in values]
    best = [max((v for v in column if v is not None), default=None) for column in zip(*values, strict=True)]
    lines = []
    for (family, sampling, C), line in zip(names, values, strict=True):
        cells = [bold(shown(v, 3), v is not None and v == b) for v, b in zip(line, best, strict=True)]
        lines.append([family, sampling, f"{C:g}", *cells])
    return table(["family", "sampling", "C", *sets, "mean"], lines, words=2)


def paper(rows: list[Row]) -> str:
    """The three criteria of each set and method, mean ± deviation over seeds."""
    lines = []
    for name, method in dict.fromkeys((r["set"], r["method"]) for r in rows):
        mine = [r for r in rows if (r["set"], r["method"]) == (name, method)]
        criteria = [spread(mine, "map"), spread(mine, "top"), spread(mine, "knn_error", 4)]
        lines.append([name, method, *criteria, spread(mine, "bits", 0), spread(mine, "seconds", 1), str(len(mine))])
    header = ["set", "settings", "mAP", "top-50", "3-NN error", "bits", "seconds", "splits"]
    return table(header, lines, words=2)


SPLITS = "python benchmarks/quality/paper.py --sets usps --methods paper,paper+roots --splits 100 --output paper_splits"
QUERIES = "python benchmarks/quality/queries.py"
SEARCH = "python benchmarks/speed/search.py"
# Each page: the file of its measurement, what makes its table, and the command that measures
TABLES: dict[str, tuple[str, Callable[[Any], str], str]] = {
    "fit": ("fit", fit, "python benchmarks/speed/fit.py"),
    "hinge": ("fit_hinge", fit, "python benchmarks/speed/fit.py --loss hinge --output fit_hinge"),
    "growth": ("fit", growth, "python benchmarks/speed/fit.py"),
    "yardstick": ("fit", yardstick, "python benchmarks/speed/fit.py"),
    "criteria": ("criteria", criteria, "python benchmarks/speed/criteria.py"),
    "defaults": ("defaults", defaults, "python benchmarks/quality/defaults.py"),
    "unlabelled": ("unlabelled", quality_tables.unlabelled, "python benchmarks/quality/unlabelled.py"),
    "queries_recall": ("queries", partial(quality_tables.queries, cell=quality_tables.top_100), QUERIES),
    "queries_labels": ("queries", partial(quality_tables.queries, cell=quality_tables.label_gains, least=1), QUERIES),
    "queries_embeddings": ("queries", quality_tables.embeddings, QUERIES),
    "landmarks": ("landmarks", quality_tables.landmarks, "python benchmarks/quality/landmarks.py"),
    "paper": ("paper", paper, "python benchmarks/quality/paper.py"),
    "paper_splits": ("paper_splits", paper, SPLITS),
    "expansion": ("expansion", store_tables.expansion, "python benchmarks/quality/expansion.py"),
    "stores": ("stores", store_tables.stores, "python benchmarks/speed/stores.py"),
    "cluster": ("cluster", cluster_tables.cluster, "python benchmarks/speed/cluster.py"),
    "cluster_encode": ("cluster_encode", cluster_tables.cluster, "python benchmarks/speed/cluster.py --works encode"),
    "scaling": ("cluster", cluster_tables.scaling, "python benchmarks/speed/cluster.py"),
    "scaling_encoding": ("cluster", cluster_tables.encoding, "python benchmarks/speed/cluster.py"),
    "curator": ("curator", page_tables.curator, "python benchmarks/quality/curator.py"),
    "serve": ("serve", page_tables.serve, "python benchmarks/speed/serve.py"),
    "faults": ("faults", reliability_tables.faults, "python benchmarks/reliability/faults.py"),
    "lost_machines": ("lost_machines", reliability_tables.lost_machines, "python benchmarks/reliability/cluster.py"),
    "fuzz": ("fuzz", reliability_tables.fuzz, "python tests/fuzz --inputs N --keep"),
    "search": ("search", search_tables.at_once, SEARCH),
    "search_100": ("search", partial(search_tables.at_once, k=100), SEARCH),
    "search_one_thread": ("search", partial(search_tables.at_once, threads=1), SEARCH),
    "search_rivals": ("search", search_tables.rivals, SEARCH),
    "search_building": ("search", search_tables.building, SEARCH),
    "search_instruction_sets": ("search", search_tables.instruction_sets, SEARCH),
    "search_goals": ("search", search_tables.goals, SEARCH),
    "lab_seen": ("lab/paper.jsonl", lab_tables.seen, "make paper"),
    "lab_unseen": ("lab/paper.jsonl", lab_tables.unseen, "make paper"),
    "lab_ranks": ("lab/paper.jsonl", lab_tables.ranks, "make paper"),
    "lab_embeddings": ("lab/embeddings.jsonl", lab_tables.bytes_an_item, "make embeddings"),
}


def page(name: str, results: Path = RESULTS) -> str:
    """What docs/measurements/<name>.md says now."""
    file, make, command = TABLES[name]
    file = file if file.endswith(".jsonl") else f"{file}.json"
    path = results / file
    if not path.is_file():
        return f"Not measured yet; `{command}` writes `benchmarks/results/{file}`.\n"
    if file.endswith(".jsonl"):
        rows = read_results(path)
        return f"{make(rows)}\n{lab_tables.circumstances(rows, command)}\n"
    measured = json.loads(path.read_text(encoding="utf-8"))
    return f"{make(measured['rows'])}\n{circumstances(measured, command)}\n"


def circumstances(measured: Row, command: str) -> str:
    """One line: by which command, at which commit, on what."""
    versions = ", ".join(f"{name} {number}" for name, number in measured.get("versions", {}).items())
    return (
        f"Measured by `{measured.get('command', command)}` at commit {measured.get('commit') or 'unknown'}; "
        f"{measured.get('cpu', 'unknown processor')}, {measured.get('cores', '?')} cores; {versions}."
    )


def mean_of(rows: list[Row], name: str, **where: Any) -> float | None:
    values = [r[name] for r in rows if all(r[key] == value for key, value in where.items())]
    return statistics.mean(values) if values else None


def spread(rows: list[Row], name: str, digits: int = 3) -> str:
    values = [float(r[name]) for r in rows if r.get(name) is not None]
    if not values:
        return "–"
    deviation = f" ± {statistics.stdev(values):.{digits}f}" if len(values) > 1 and digits > 1 else ""
    return f"{statistics.mean(values):.{digits}f}{deviation}"


def main() -> None:
    PAGES.mkdir(parents=True, exist_ok=True)
    for name in TABLES:
        (PAGES / f"{name}.md").write_text(page(name), encoding="utf-8")
        print(f"wrote {PAGES.name}/{name}.md")


if __name__ == "__main__":
    main()
