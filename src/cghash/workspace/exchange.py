"""What goes out of a workspace and comes in: answers as triplets, codes, models."""

from __future__ import annotations

import csv
import hashlib
import json
import os
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..exceptions import CGHashError, InvalidInputError, MissingDependencyError
from ..models import load
from ..reading import read_triplets
from ..reading.sources import SUFFIXES, source_of
from ..storage import written_atomically
from .folder import Workspace
from .making import check_target
from .records import SOURCES, Answer
from .tables import open_table
from .versions import add_model
from .whole import whole_folder

__all__ = ["Imported", "export_workspace", "import_files", "write_triplets"]

COLUMNS = ("anchor", "near", "far", "source", "created", "key")
MODEL, CODES, IDS, TRIPLETS = "model.cghash", "codes.npy", "ids.csv", "triplets"
_BATCH = 1000  # answers that are stored together


@dataclass
class Imported:
    """What came in."""

    answers: int = 0  # new ones
    known: int = 0  # that were there already
    versions: list[int] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def export_workspace(workspace: Workspace, folder: str | os.PathLike[str]) -> list[str]:
    """Write answers, and codes and file of the current model, to a new folder; what it holds, in words.

    `triplets.csv`, `.jsonl` and `.parquet` (where pyarrow is) hold the answers that tell something, by the items' ids;
    `codes.npy` the packed codes (n, bytes) by row, `ids.csv` the id of each row, `model.cghash` the model.

    Parameters
    ----------
    workspace : Workspace
    folder : where; it must not exist yet, or be empty
    """
    target = check_target(folder)
    with whole_folder(target) as aside:
        kinds = (".csv", ".jsonl", ".parquet") if _has_parquet() else (".csv", ".jsonl")
        counts = [write_triplets(workspace, aside / f"{TRIPLETS}{kind}") for kind in kinds]
        told = [f"{counts[0]} answers as {TRIPLETS}{', '.join(kinds)}"]
        with open(aside / IDS, "w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows([["id"], *([key] for key in workspace.items.ids())])
        current = workspace.records.current
        if current is None:
            return [*told, f"{IDS}; there is no model yet, and so no codes"]
        shutil.copyfile(workspace.model_path(current), aside / MODEL)
        codes = _write_codes(workspace, current, aside / CODES)
    return [*told, f"{codes[0]} codes of {codes[1]} bits in {CODES} with {IDS}", f"model version {current} as {MODEL}"]


def write_triplets(workspace: Workspace, path: str | os.PathLike[str]) -> int:
    """Write the answers that tell something to a .csv, .jsonl or .parquet file; how many there are.

    Its columns are the ids anchor, near and far, then source ("test" ones are never learned from), created and key.
    """
    kind = Path(path).suffix.lower()
    writers = {".csv": _write_csv, ".jsonl": _write_jsonl, ".parquet": _write_parquet}
    if kind not in writers:
        raise InvalidInputError(
            f"triplets must go to a file that ends in {', '.join(writers)}, got {os.fspath(path)!r}"
        )
    rows = list(_triplets(workspace))
    writers[kind](Path(path), rows)
    return len(rows)


def import_files(workspace: Workspace, files: Sequence[str | os.PathLike[str]], *, use: bool = False) -> Imported:
    """Take in triplets and models.

    Parameters
    ----------
    workspace : Workspace
    files : triplets as `cghash fit` reads them, by the items' ids (by row number in .npy and .npz files); model files,
        which become versions; folders that `export_workspace` wrote
    use : whether the last model is the current one from now on

    A file that was imported before adds nothing; answers keep their source and time where the file tells.
    """
    found = Imported()
    for path in _expanded(files):
        if path.suffix.lower() in SUFFIXES:
            _import_triplets(workspace, path, found)
        else:
            model = load(path)
            if not getattr(model, "hamming", True):
                raise InvalidInputError(f"{path} is a {type(model).__name__}, whose codes have no Hamming distance")
            found.versions.append(add_model(workspace, model, f"{path.stem} (imported)", use=use).version)
    return found


def _triplets(workspace: Workspace) -> Iterator[tuple[str, ...]]:
    ids = workspace.items.ids()
    for answer in workspace.records.answers():
        if answer.triplet is not None:
            yield (*(ids[row] for row in answer.triplet), answer.source, answer.created, answer.key)


def _write_csv(path: Path, rows: list[tuple[str, ...]]) -> None:
    with written_atomically(path) as file:
        text = (_csv_line(row).encode() for row in (COLUMNS, *rows))
        file.writelines(text)


def _csv_line(cells: Sequence[str]) -> str:
    from io import StringIO

    line = StringIO()
    csv.writer(line, lineterminator="\n").writerow(cells)
    return line.getvalue()


def _write_jsonl(path: Path, rows: list[tuple[str, ...]]) -> None:
    with written_atomically(path) as file:
        for row in rows:
            file.write(json.dumps(dict(zip(COLUMNS, row, strict=True)), ensure_ascii=False).encode() + b"\n")


def _write_parquet(path: Path, rows: list[tuple[str, ...]]) -> None:
    try:
        import pyarrow as pa
        import pyarrow.parquet as parquet
    except ImportError as error:
        raise MissingDependencyError(
            'writing .parquet needs pyarrow: pip install "cghash[parquet]" (in a checkout: pip install ".[parquet]")'
        ) from error
    columns = zip(*rows, strict=True) if rows else ((),) * len(COLUMNS)
    table = pa.table({name: pa.array(cells, pa.string()) for name, cells in zip(COLUMNS, columns, strict=True)})
    with written_atomically(path) as file:
        parquet.write_table(table, file)


def _has_parquet() -> bool:
    from importlib.util import find_spec

    return find_spec("pyarrow") is not None


def _write_codes(workspace: Workspace, version: int, path: Path) -> tuple[int, int]:
    """Write the packed codes of all items; how many there are, and of how many bits."""
    from ..index import WeightedHammingIndex

    index = WeightedHammingIndex.load(workspace.index_path(version))
    np.save(path, index.reconstruct(np.arange(len(workspace.items))))
    return len(workspace.items), index.n_bits


def _expanded(files: Sequence[str | os.PathLike[str]]) -> Iterator[Path]:
    """Files, and those of exported folders."""
    for name in files:
        path = Path(name)
        if not path.is_dir():
            yield path
            continue
        known = [path / f"{TRIPLETS}.jsonl", path / MODEL]
        if not any(file.is_file() for file in known):
            raise InvalidInputError(f"{path} must be a folder that 'cghash workspace export' wrote, or a file")
        yield from (file for file in known if file.is_file() and file.stat().st_size)


def _import_triplets(workspace: Workspace, path: Path, found: Imported) -> None:
    numbered = source_of(path).kind in ("npy", "npz")
    ids = None if numbered else np.array(workspace.items.ids(), dtype=object)
    rows, weights = read_triplets(path, len(workspace.items), ids)
    if weights is not None:
        found.notes.append(f"{path.name}: weights are not kept, every answer counts once")
    answers = iter(_answers(path, rows))
    before, _ = workspace.records.count_answers()
    while batch := list(islice(answers, _BATCH)):
        workspace.records.add_answers(batch)
    added = workspace.records.count_answers()[0] - before
    found.answers += added
    found.known += len(rows) - added


def _answers(path: Path, rows: NDArray[np.int64]) -> Iterator[Answer]:
    """Triplets as answers; those without a key have one of the file's content and the row."""
    digest = hashlib.sha256(path.read_bytes()).hexdigest()[:16]
    told = _told(path, len(rows))
    for row, (anchor, near, far) in enumerate(rows.tolist()):
        about = told[row] if told else {}
        source = about.get("source")
        yield Answer(
            key=str(about.get("key") or f"import-{digest}-{row}")[:200],
            anchor=anchor,
            left=near,
            right=far,
            choice="left",
            source=source if source in SOURCES else "import",
            created=_time(about.get("created")),
        )


def _told(path: Path, n: int) -> list[dict[str, Any]]:
    """What the file tells beside the items, row by row; nothing where it has no such columns."""
    try:
        table = open_table(path, COLUMNS)
        rows = [dict(zip(table.columns, cells, strict=True)) for _, cells in table.rows()]
    except CGHashError:  # no header, or lists for objects: the triplets themselves were read
        return []
    return rows if len(rows) == n else []


def _time(text: Any) -> str:
    try:
        return datetime.fromisoformat(str(text)).isoformat(timespec="milliseconds")
    except ValueError:
        return ""
