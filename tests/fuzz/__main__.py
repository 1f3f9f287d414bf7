"""Fuzz every format that we read: whatever the bytes, the outcome is usable content or an error of ours.

    python tests/fuzz [--format NAME] [--inputs N] [--keep] [SECONDS]

Each kind of files runs in a process of its own, under limits of memory and time. With `--format`, that format alone,
led by coverage where atheris is installed; without it, or with `--inputs`, mutations of the seeds, the same in every
run. An input that ends in another error, takes too long or too much memory stays in out/fuzz. `make fuzz` runs it.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import warnings
from contextlib import suppress
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import formats
import running


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--format", action="append", choices=list(formats.HOMES), help="one or more formats")
    parser.add_argument("--inputs", type=int, help="how many of each format; 0 is the sample of the tests")
    parser.add_argument("--keep", action="store_true", help="write the counts to benchmarks/results/fuzz.json")
    parser.add_argument("seconds", type=int, nargs="?", default=300, help="for all formats together")
    asked = parser.parse_args()
    names = asked.format or list(formats.HOMES)
    if asked.format is None:
        return _each_home(asked.inputs, asked.keep, asked.seconds)
    if asked.inputs is None and len(names) == 1 and _has_atheris():
        running.prepare()
        running.by_coverage(formats.format_of(names[0]), asked.seconds)
    return _run(names, asked.inputs, asked.keep, asked.seconds / len(names))


def _each_home(inputs: int | None, keep: bool, seconds: int) -> int:
    """A process for the formats of each module: one that crashes leaves the others alone."""
    codes = []
    for home in dict.fromkeys(formats.HOMES.values()):
        names = [name for name, its in formats.HOMES.items() if its == home]
        share = max(1, seconds * len(names) // len(formats.HOMES))
        chosen = [word for name in names for word in ("--format", name)]
        count = [] if inputs is None else ["--inputs", str(inputs)]
        kept = ["--keep"] if keep else []
        command = [sys.executable, str(Path(__file__).parent), *chosen, *count, *kept, str(share)]
        codes.append(subprocess.run(command, check=False).returncode)
        if codes[-1] not in (0, 1):
            print(f"{home}: ended with {codes[-1]}; its last input is {running.FINDINGS}/*.current", flush=True)
    return int(any(codes))


def _run(names: list[str], inputs: int | None, keep: bool, seconds: float) -> int:
    running.prepare()
    kinds = [formats.format_of(name) for name in names]
    for kind in kinds:
        for seed in kind.seeds():
            with suppress(Exception):
                running.tried(kind, seed)  # whatever is imported is
    running.limit_memory()
    failed = 0
    for kind in kinds:
        counts = running.by_chance(kind, seconds, kind.sample if inputs == 0 else inputs)
        row = counts.row()
        failed += row["failures"]
        print(f"{kind.name}: " + ", ".join(f"{count} {word}" for word, count in row.items()), flush=True)
        if keep:
            _keep({"format": kind.name} | row)
        for words, count in counts.failures.most_common():
            print(f"    {count} × {words}", flush=True)
    running.clean()
    return int(failed > 0)


def _keep(row: dict[str, object]) -> None:
    sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
    from common import write_rows

    write_rows("fuzz", "python tests/fuzz --inputs N --keep", [row], ("format",))


def _has_atheris() -> bool:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import atheris  # noqa: F401
    except ImportError:
        return False
    return True


if __name__ == "__main__":
    sys.exit(main())
