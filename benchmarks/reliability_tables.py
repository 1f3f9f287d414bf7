"""Tables of what was tried against every writer, every format and the server."""

from __future__ import annotations

from typing import Any

from markdown_tables import shown, table

Row = dict[str, Any]

FAULTS = {"kill": "kills", "interrupt": "interrupts", "io-error": "errors of the disk", "full-disk": "full disks"}
FOUND = ("lost", "unreadable", "wrong", "unheard", "stuck", "left")


def faults(rows: list[Row]) -> str:
    """Moments at which each writer was hit, after how many of them it refused to go on, and what was wrong then."""
    writers = dict.fromkeys(row["writer"] for row in rows)
    lines = []
    for writer in writers:
        mine = {row["fault"]: row for row in rows if row["writer"] == writer}
        moments = [str(mine[fault]["moments"]) if fault in mine else "–" for fault in FAULTS]
        refused = sum(row["refused"] for row in mine.values())
        lines.append([writer, *moments, str(refused), found(list(mine.values()))])
    return table(["writer", *FAULTS.values(), "refused to go on", "lost, wrong or stuck"], lines)


def found(rows: list[Row]) -> str:
    """What was wrong, in words; 0 where nothing was."""
    counts = {kind: sum(row[kind] for row in rows) for kind in FOUND}
    return ", ".join(f"{n} {kind}" for kind, n in counts.items() if n) or "0"


def lost_machines(rows: list[Row]) -> str:
    """Kills of workers and schedulers of a cluster while it worked, and what came of them."""
    lines = []
    for row in rows:
        numbers = [row[name] for name in ("moments", "refused", "wrong", "stuck")]
        lines.append([row["work"], row["victim"], *map(str, numbers), shown(row["longest"])])
    header = ["while it does", "killed", "kills", "`ClusterError`", "wrong", "stuck", "longest to an answer, s"]
    return table(header, lines, words=2)


def fuzz(rows: list[Row]) -> str:
    """Damaged files of each format, and what they ended in."""
    names = ("inputs", "usable", "refused", "failures")
    header = ["format", "inputs", "usable content", "an error of ours", "anything else"]
    return table(header, ([row["format"], *(str(row[name]) for name in names)] for row in rows))
