"""Tables of what was tried against every writer, every format and the server."""

from __future__ import annotations

from typing import Any

from markdown_tables import table

Row = dict[str, Any]

FAULTS = {"kill": "kills", "interrupt": "interrupts", "io-error": "errors of the disk", "full-disk": "full disks"}
FOUND = ("lost", "unreadable", "wrong", "unheard", "stuck", "left")


def faults(rows: list[Row]) -> str:
    """Moments at which each writer was hit, after how many of them it refused to go on, and what was wrong then."""
    writers = dict.fromkeys(row["writer"] for row in rows if row["fault"] in FAULTS)
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
