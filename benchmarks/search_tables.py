"""Tables of the rows that benchmarks/speed/search.py measured."""

from __future__ import annotations

import math
from typing import Any

from markdown_tables import shown, table

Row = dict[str, Any]

OURS, SCAN, FASTSCAN = "cghash", "cghash, scan alone", "FAISS fast-scan + refine"
SIZES = {10**6: "1 M", 10**7: "10 M", 10**8: "100 M"}


def at_once(rows: list[Row], k: int = 10, threads: int | None = None) -> str:
    """ms a query of batch and single side by side, for one k and number of threads (default: the most measured)."""
    header = ["codes", "n", "bits", "batch: cghash", "FAISS, exact", "times faster", "single: cghash", "FAISS, exact",
              "times faster", "scan alone", "reading once"]  # fmt: skip
    wanted = threads or max((r["threads"] for r in full(rows)), default=0)
    cells = {cell(r): r for r in full(rows) if (r["k"], r["threads"]) == (k, wanted)}
    lines = []
    for codes, n, bits in dict.fromkeys(key[:3] for key in cells):
        line = [codes, size(n), str(bits)]
        for how in ("batch", "single"):
            r = cells[codes, n, bits, k, how, wanted]
            line += [digits(v) for v in (r["ms"][OURS], faiss_ms(rows, r), over(rows, r))]
        lines.append([*line, digits(r["ms"][SCAN]), digits(r["read_ms"])])
    return table(header, lines)


def times(rows: list[Row]) -> str:
    """ms a query, k = 10 and 100; how many times faster than FAISS's exact answer; share of the limit."""
    header = ["codes", "n", "bits", "k", "queries", "threads", "cghash", "scan alone", "FAISS, exact", "refine factor",
              "reading once", "× FAISS", "scan × FAISS", "reading / scan"]  # fmt: skip
    return table(header, (
        [r["codes"], size(r["n"]), str(r["bits"]), str(r["k"]), r["queries"], str(r["threads"]),
         *(digits(r["ms"].get(name)) for name in (OURS, SCAN, FASTSCAN)), shown(r.get("factor")), digits(r["read_ms"]),
         digits(over(rows, r)), digits(over(rows, r, SCAN)), digits(r["read_ms"] / r["ms"][SCAN])]
        for r in full(rows)
    ), words=1)  # fmt: skip


def rivals(rows: list[Row]) -> str:
    """ms a query and recall of the ways that are not exact, or not fast: k = 10, all threads."""
    header = ["codes", "n", "bits", "queries", "method", "ms a query", "recall of 10", "seconds to build", "cghash, ms"]
    most = max((r["threads"] for r in rows if "ms" in r), default=0)
    lines = []
    for r in rows:
        if "recall" in r and r["k"] == 10 and r["threads"] == most:
            for name in set(r["ms"]) - {OURS, SCAN, FASTSCAN}:
                about = [r["codes"], size(r["n"]), str(r["bits"]), r["queries"], name, digits(r["ms"][name])]
                built = digits(r.get("build_seconds", {}).get(name))
                lines.append([*about, shown(r["recall"].get(name), 3), built, digits(r["ms"][OURS])])
    return table(header, sorted(lines, key=lambda line: line[4]), words=1)


def building(rows: list[Row]) -> str:
    """Adding, preparing, memory over that of the codes."""
    header = ["codes", "n", "bits", "added, M a second", "tables, seconds a million", "memory, scan", "memory, tables"]
    names = ("million_codes_a_second", "prepare_seconds_a_million", "memory_scan", "memory")
    return table(header, (
        [r["codes"], size(r["n"]), str(r["bits"]), *(digits(r[name]) for name in names)]
        for r in rows if "memory_scan" in r
    ), words=1)  # fmt: skip


def instruction_sets(rows: list[Row]) -> str:
    """The batch of 100, k = 10, when we and FAISS are held to another instruction set."""
    header = ["codes", "n", "bits", "threads", "set", "cghash, ms", "scan alone", "FAISS, held too", "FAISS, free"]
    return table(header, (
        [r["codes"], size(r["n"]), str(r["bits"]), str(r["threads"]), r["instruction_set"],
         *(digits(r["ms"].get(name)) for name in (OURS, SCAN, FASTSCAN)), digits(faiss_ms(rows, r))]
        for r in rows if "isa" in r
    ), words=1)  # fmt: skip


def goals(rows: list[Row]) -> str:
    """What was to be reached, the worst each time: ratios for 10 M codes, k = 10, all threads; else all rows."""
    header = ["goal", "wanted", "reached", ""]
    lines = []
    for name, sign, wanted, reached in goal_values(rows):
        met = reached is not None and (reached >= wanted if sign == "≥" else reached <= wanted)
        verdict = "–" if reached is None else "yes" if met else "**no**"
        lines.append([name, f"{sign} {wanted:g}", digits(reached), verdict])
    return table(header, lines)


def goal_values(rows: list[Row]) -> list[tuple[str, str, float, float | None]]:
    """Goal, ≥ or ≤, wanted, reached."""
    made = [r for r in rows if "memory_scan" in r]
    short, every = (32, 64), (32, 64, 128)
    near_limit = (r["read_ms"] / r["ms"][SCAN] for r in goal_cells(rows, "uniform", "single", *short))
    held = [r for r in rows if r.get("isa") == "avx2" and r["n"] == 10**7]
    return [
        ("uniform, ≤ 64 bits, batch: × FAISS", "≥", 6, times_faster(rows, "uniform", "batch", *short)),
        ("uniform, ≤ 64 bits, single: × FAISS", "≥", 1.6, times_faster(rows, "uniform", "single", *short)),
        ("uniform, ≤ 64 bits, single: reading once / scan", "≥", 0.95, least(near_limit)),
        ("uniform, 64 bits, single, pruning: × FAISS", "≥", 8, times_faster(rows, "uniform", "single", 64)),
        ("uniform, 128 bits, batch: × FAISS", "≥", 4, times_faster(rows, "uniform", "batch", 128)),
        ("uniform, 128 bits, single: × FAISS", "≥", 1.5, times_faster(rows, "uniform", "single", 128)),
        ("learned, batch: × FAISS", "≥", 50, times_faster(rows, "learned", "batch", *every)),
        ("learned, single: × FAISS", "≥", 200, times_faster(rows, "learned", "single", *every)),
        ("AVX2 alone, uniform, batch: × FAISS", "≥", 3, least(over(rows, r) for r in held)),
        ("the same: × FAISS on AVX2", "≥", 3, least(r["ms"][FASTSCAN] / r["ms"][OURS] for r in held)),
        ("adding, million codes a second", "≥", 20, least(r["million_codes_a_second"] for r in made)),
        ("tables, seconds a million codes", "≤", 1, most(r["prepare_seconds_a_million"] for r in made)),
        ("memory of the scan / codes", "≤", 1.1, most(r["memory_scan"] for r in made)),
        ("memory with tables / codes", "≤", 5, most(r["memory"] for r in made)),
        ("ours / scan alone, in all cells", "≤", 1.1, most(r["ms"][OURS] / r["ms"][SCAN] for r in full(rows))),
    ]


def times_faster(rows: list[Row], codes: str, how: str, *bits: int) -> float | None:
    return least(over(rows, r) for r in goal_cells(rows, codes, how, *bits))


def everything(rows: list[Row]) -> str:
    """All tables but the goals, every cell of them."""
    return "\n".join(make(rows) for make in (times, rivals, building, instruction_sets))


# Which rows


def full(rows: list[Row]) -> list[Row]:
    """Cells of all methods that compare with all codes."""
    return [r for r in rows if "read_ms" in r and "build_seconds" not in r]


def goal_cells(rows: list[Row], codes: str, how: str, *bits: int) -> list[Row]:
    """The cells that a goal speaks of: 10 M codes, k = 10, the most threads."""
    threads = max((r["threads"] for r in full(rows)), default=0)
    wanted = [(codes, 10**7, b, 10, how, threads) for b in bits]
    return [r for r in full(rows) if cell(r) in wanted]


def cell(row: Row) -> tuple[Any, ...]:
    return tuple(row[name] for name in ("codes", "n", "bits", "k", "queries", "threads"))


# Numbers


def faiss_ms(rows: list[Row], row: Row) -> float | None:
    """FAISS's exact answer in this cell, by the number of threads up to the cell's that serves it best."""
    same = [r for r in full(rows) if cell(r)[:-1] == cell(row)[:-1] and r["threads"] <= row["threads"]]
    return least(r["ms"].get(FASTSCAN) for r in same)


def over(rows: list[Row], row: Row, name: str = OURS) -> float | None:
    """How many times faster than FAISS's exact answer."""
    return ratio(faiss_ms(rows, row), row["ms"][name])


def ratio(a: float | None, b: float) -> float | None:
    return None if a is None else a / b


def least(values: Any) -> float | None:
    return min((v for v in values if v is not None), default=None)


def most(values: Any) -> float | None:
    return max((v for v in values if v is not None), default=None)


def size(n: int) -> str:
    return SIZES.get(n, f"{n:,}".replace(",", " "))


def digits(value: float | None) -> str:
    """Three significant digits, without an exponent."""
    if value is None or value == 0:
        return "–" if value is None else "0"
    return f"{value:.{max(0, 2 - math.floor(math.log10(abs(value))))}f}"
