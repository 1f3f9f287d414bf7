"""What goes out of a workspace and comes in: answers as triplets, codes, models."""

from __future__ import annotations

import csv
import os
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from ..estimator import load
from ..exceptions import InvalidInputError
from ..reading.sources import SUFFIXES
from ..storage import written_atomically
from .answer_files import KINDS, read_answers, write_triplets, write_unsure
from .creation import atomic_folder, check_new_folder
from .versions import add_model
from .workspace import Workspace

__all__ = ["ImportResult", "export_workspace", "import_files", "write_triplets"]

MODEL, CODES, IDS, TRIPLETS, UNSURES = "model.cghash", "codes.npy", "ids.csv", "triplets", "unsure"
_BATCH = 1000  # answers that are stored together


@dataclass
class ImportResult:
    """What came in."""

    answers: int = 0  # new ones
    known: int = 0  # that were there already
    versions: list[int] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def export_workspace(workspace: Workspace, folder: str | os.PathLike[str]) -> list[str]:
    """Write answers, and codes and file of the current model, to a new folder; what it holds, in words.

    `triplets.csv`, `.jsonl` and `.parquet` (where pyarrow is) hold the answers that tell something, by the items' ids;
    `unsure.csv` and `.jsonl` those that do not, where there are any;
    `codes.npy` the packed codes (n, bytes) by row, `ids.csv` the id of each row, `model.cghash` the model.

    Parameters
    ----------
    workspace : Workspace
    folder : where; it must not exist yet, or be empty
    """
    target = check_new_folder(folder)
    with atomic_folder(target) as aside:
        told = _write_answers(workspace, aside)
        with open(aside / IDS, "w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows([["id"], *([key] for key in workspace.items.ids())])
        current = workspace.records.current
        if current is None:
            return [*told, f"{IDS}; there is no model yet, and so no codes"]
        shutil.copyfile(workspace.model_path(current), aside / MODEL)
        codes = _write_codes(workspace, current, aside / CODES)
    return [*told, f"{codes[0]} codes of {codes[1]} bits in {CODES} with {IDS}", f"model version {current} as {MODEL}"]


def import_files(workspace: Workspace, files: Sequence[str | os.PathLike[str]], *, use: bool = False) -> ImportResult:
    """Take in triplets and models.

    Parameters
    ----------
    workspace : Workspace
    files : triplets as `cghash fit` reads them, by the items' ids (by row number in .npy and .npz files); answers that
        could not tell, as `export_workspace` writes them; model files, which become versions; folders that
        `export_workspace` wrote
    use : whether the last model is the current one from now on

    Of a file's answers all are stored, or none. A file that was imported before adds nothing; answers keep their source
    and time where the file tells.
    """
    found = ImportResult()
    for path in _expanded(files):
        if path.suffix.lower() in SUFFIXES:
            _import_answers(workspace, path, found)
        else:
            model = load(path)
            if not getattr(model, "hamming", True):
                raise InvalidInputError(f"{path} is a {type(model).__name__}, whose codes have no Hamming distance")
            found.versions.append(add_model(workspace, model, f"{path.stem} (imported)", use=use).version)
    return found


def _write_answers(workspace: Workspace, folder: Path) -> list[str]:
    """Write the answers of all kinds; what they are, in words."""
    counts = [write_triplets(workspace, folder / f"{TRIPLETS}{kind}") for kind in KINDS]
    told = [f"{counts[0]} answers as {TRIPLETS}{', '.join(KINDS)}"]
    if any(a.choice == "unsure" and a.undone is None for a in workspace.records.answers()):
        counts = [write_unsure(workspace, folder / f"{UNSURES}{kind}") for kind in KINDS[:2]]
        told.append(f'{counts[0]} "can\'t tell" as {UNSURES}{", ".join(KINDS[:2])}')
    return told


def _write_codes(workspace: Workspace, version: int, path: Path) -> tuple[int, int]:
    """Write the packed codes of all items; how many there are, and of how many bits."""
    from ..index import WeightedHammingIndex

    index = WeightedHammingIndex.load(workspace.index_path(version))
    with written_atomically(path) as file:
        np.save(file, index.reconstruct(np.arange(len(workspace.items))))
    return len(workspace.items), index.n_bits


def _expanded(files: Sequence[str | os.PathLike[str]]) -> Iterator[Path]:
    """Files, and those of exported folders."""
    for name in files:
        path = Path(name)
        if not path.is_dir():
            yield path
            continue
        known = [path / f"{TRIPLETS}.jsonl", path / f"{UNSURES}.jsonl", path / MODEL]
        if not any(file.is_file() for file in known):
            raise InvalidInputError(f"{path} must be a folder that 'cghash workspace export' wrote, or a file")
        yield from (file for file in known if file.is_file() and file.stat().st_size)


def _import_answers(workspace: Workspace, path: Path, found: ImportResult) -> None:
    records = workspace.records
    answers, weighted = read_answers(workspace, path)
    if weighted:
        found.notes.append(f"{path.name}: weights are not kept, every answer counts once")

    def add() -> int:
        before, _ = records.count_answers()
        for first in range(0, len(answers), _BATCH):
            records.add_answers(answers[first : first + _BATCH])
        return records.count_answers()[0] - before

    added = records.database.change(add)
    found.answers += added
    found.known += len(answers) - added
