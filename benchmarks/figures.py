"""The figures of the documentation, from the results that git keeps.

python benchmarks/figures.py
"""

from __future__ import annotations

import json
import shutil
import tempfile
from pathlib import Path

import page_tables
from cghash.lab.experiments.results import read_results
from cghash.lab.reporting import write_report

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results" / "lab"
FIGURES = ROOT / "docs" / "figures"


def main() -> None:
    for results in sorted(RESULTS.glob("*.jsonl")):
        target = FIGURES / results.stem
        shutil.rmtree(target, ignore_errors=True)
        with tempfile.TemporaryDirectory() as folder:
            write_report(read_results(results), folder)
            target.mkdir(parents=True)
            for figure in sorted((Path(folder) / "figures").glob("*.png")):
                shutil.copy(figure, target)
        size = sum(file.stat().st_size for file in target.iterdir())
        print(f"wrote {target.relative_to(ROOT)}: {len(list(target.iterdir()))} figures, {size / 1e6:.1f} MB")
    curator = RESULTS.parent / "curator.json"
    if curator.is_file():
        (FIGURES / "curator.png").write_bytes(page_tables.curator_figure(json.loads(curator.read_text())["rows"]))
        print("wrote docs/figures/curator.png")


if __name__ == "__main__":
    main()
