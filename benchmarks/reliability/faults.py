"""Every writer, hit at random moments: what was acknowledged is there, and everything still works.

A writer runs in a child process. It is killed, interrupted (Ctrl-C, often twice; it goes on with the same object), or a
call that changes its files fails, as on a broken or a full disk (disk.c; it goes on as well). Then a fresh process
looks at the files. A moment counts when it came during a change. What can be found:

lost        an acknowledged change is not there, or another value
unreadable  a file cannot be opened
wrong       the object gave wrong answers, or its memory is not what was acknowledged
unheard     a call failed, and the change was acknowledged all the same
stuck       the object, or who opens the files next, waits for ever
left        a file that nobody needs stays after one more change

`refused` counts moments after which the object refused to go on and said so, which is right.

    python benchmarks/reliability/faults.py [--writer NAME] [--fault kill|interrupt|io-error|full-disk] [--moments 200]
"""

from __future__ import annotations

import argparse
import gc
import sys
import tempfile
import time
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))
from disk import FAULTS, Disk, started_with_disk

KINDS = ("lost", "unreadable", "wrong", "unheard", "stuck", "left")
HITS = ("kill", "interrupt", *FAULTS)
_TRIES = 20  # moments in vain for each that counts


def cell(writer: Any, fault: str, moments: int, seed: int, verbose: bool, place: Any) -> dict[str, Any]:
    """Hit a writer so many times by one fault."""
    clean = place.clean(fault, seed)
    counts: Counter[str] = Counter()
    examples: dict[str, str] = {}
    began = time.monotonic()
    for number in range(moments * _TRIES):
        outcome = place.moment(fault, clean, 1000 * seed + number)
        counts["tried"] += 1
        if not outcome.hit:
            continue
        counts["moments"] += 1
        counts["raised"] += outcome.raised
        counts["refused"] += outcome.refused
        for kind, words in dict(reversed(outcome.problems)).items():
            counts[kind] += 1
            told = f"[seed {1000 * seed + number}] {outcome.where} {words}".strip()
            examples.setdefault(kind, told)
            if verbose:
                print(f"  {kind}: {told}", flush=True)
        if counts["moments"] == moments:
            break
    row = {"writer": writer.name, "fault": fault}
    row |= {name: counts[name] for name in ("moments", "tried", "raised", "refused", *KINDS)}
    row |= {"seconds": round(time.monotonic() - began, 1)}
    if not verbose:
        for kind, words in examples.items():
            print(f"  {kind}: {words[-400:]}", flush=True)
    return row


def told(row: dict[str, Any]) -> str:
    found = ", ".join(f"{row[kind]} {kind}" for kind in KINDS if row[kind]) or "nothing lost"
    return (
        f"{row['writer']:<22} {row['fault']:<10} {row['moments']:>4} moments, {row['raised']:>4} raised, "
        f"{row['refused']:>4} refused: {found} ({row['seconds']} s)"
    )


def main() -> int:
    from writers import NAMES, WRITERS

    from common import write_rows

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--writer", action="append", choices=list(WRITERS), help="again for several; default: all")
    parser.add_argument("--except", action="append", default=[], choices=list(WRITERS), dest="others")
    parser.add_argument("--fault", action="append", choices=HITS, help="again for several; default: all")
    parser.add_argument("--moments", type=int, default=200, help="for each writer and fault")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--dry", action="store_true", help="do not write benchmarks/results/faults.json")
    parser.add_argument("--verbose", action="store_true", help="print each problem")
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    disk, rows = Disk(), []
    for name in asked.writer or [name for name in NAMES if name not in asked.others]:
        writer = WRITERS[name]()
        with tempfile.TemporaryDirectory(prefix="cghash-faults-", ignore_cleanup_errors=True) as folder:
            rows += _cells(writer, Path(folder).resolve(), disk, asked)
        if not asked.dry:
            write_rows("faults", "python benchmarks/reliability/faults.py", rows, ("writer", "fault"))
    bad = sum(row[kind] for row in rows for kind in KINDS)
    return 1 if bad or any(row["moments"] < asked.moments for row in rows) else 0


def _cells(writer: Any, folder: Path, disk: Disk, asked: argparse.Namespace) -> list[dict[str, Any]]:
    from moments import Place

    writer.start(folder)
    gc.freeze()
    try:
        place = Place(folder / "files", writer, disk)
        rows = []
        for fault in asked.fault or writer.faults:
            if fault in writer.faults:
                rows.append(cell(writer, fault, asked.moments, asked.seed, asked.verbose, place))
                print(told(rows[-1]), flush=True)
        return rows
    finally:
        writer.stop()


if __name__ == "__main__":
    started_with_disk()
    raise SystemExit(main())
