"""New workspaces: everything goes into a hidden folder beside its place, which is renamed when it is whole."""

from __future__ import annotations

import csv
import json
import os
import secrets
import shutil
from array import array
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from .. import storage
from .._arrays import Array
from .._unfinished import unfinished
from .._validation import check_choice
from ..exceptions import FormatError, InvalidInputError
from .import_plan import ImportPlan, NamedColumns, SourceItem, plan_import
from .item_sources import LabelledTable, PictureFolder, Table, open_table
from .item_table import ItemTable
from .item_vectors import Progress, VectorSource
from .item_writer import ItemWriter, NewItem, disk_errors
from .pictures import SUFFIXES, check_picture
from .workspace import FORMAT, ITEMS, PICTURES, VERSION, WORKSPACE, Workspace

__all__ = ["atomic_folder", "build_workspace", "check_new_folder", "create_workspace"]

SKIPPED = "skipped.csv"
_CHUNK = 512  # pictures that are looked at together
PICTURE_WAYS = ("link", "copy")
_NAMED = 20  # skipped pictures that workspace.json names


def create_workspace(
    folder: str | os.PathLike[str],
    source: str | os.PathLike[str] | Array,
    *,
    vectors: str | os.PathLike[str] | Array | None = None,
    embed: str | None = None,
    sentence_model: str | os.PathLike[str] | None = None,
    labels: str | os.PathLike[str] | None = None,
    title: str | None = None,
    id_column: str | None = None,
    text_column: str | None = None,
    pictures: str = "link",
    follow_links: bool = False,
    progress: Progress | None = None,
) -> Workspace:
    """Make a workspace and open it.

    Parameters
    ----------
    folder : where; it must not exist yet, or be empty
    source : the items: a folder of pictures; a .csv, .tsv, .jsonl or .parquet file with a row an item, whose column
        `image` or `file` names pictures below the file's folder; an .npy or .npz file of vectors, or an array (n, d)
    vectors : the items' vectors, in their order: an .npy, .npz, .csv or .parquet file, an array (n, d), or the name of
        a column of `source`; an array or column `id` in the file tells which item each is of
    embed : how to compute vectors otherwise: "gist" (pictures), "tfidf" or "sentences" (texts); by default what fits
    sentence_model : the model of "sentences": a name that sentence-transformers knows, or a folder that holds one;
        all-MiniLM-L6-v2 otherwise. Texts that are searched for are embedded by the same
    labels : the column that holds labels, or a file with one label an item
    title : what people call it; the name of the source otherwise
    id_column : the column that holds ids, else one called `id`, else they are row numbers
    text_column : the column that holds texts, else one called `text`, else the one with the longest if they are long
    pictures : "link", where the disk has hard links, so that a change to a picture's file changes the workspace's too;
        or "copy"
    follow_links : whether symbolic links in a folder of pictures may lead out of it; they are left out otherwise
    progress : is called with (what is done, how many are, of how many)

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     lines = "id,text,year\\nfirst,a red boat at sea,1990\\nsecond,apple pie with red apples,2001\\n"
    ...     _ = Path(folder, "items.csv").write_text(lines)
    ...     with create_workspace(f"{folder}/ws", f"{folder}/items.csv") as workspace:
    ...         workspace.about["kind"], workspace.items.rows(["year>=1995"]).tolist()
    ('texts', [1])
    """
    check_choice(pictures, PICTURE_WAYS, "pictures")
    target = check_new_folder(folder)
    vector_source = VectorSource(vectors, embed, sentence_model)
    asked = NamedColumns(id_column, text_column, None if labels is None else os.fspath(labels))
    table, asked = _opened(source, asked, follow_links)
    plan = plan_import(table, asked, as_numbers=vectors is None)
    named = title or _title(source)
    return build_workspace(target, plan, vector_source, asked.labels, named, progress, copy=pictures == "copy")


def build_workspace(
    target: Path,
    plan: ImportPlan,
    vector_source: VectorSource,
    labels: str | None,
    title: str,
    progress: Progress | None,
    *,
    copy: bool = False,
) -> Workspace:
    """Write the folder of a workspace; `copy` pictures where they could be linked."""
    tell = progress or (lambda stage, done, total: None)
    vector_source.check(plan)
    with atomic_folder(target) as folder:
        kept, skipped = _write_items(folder, plan, copy, tell)
        items = ItemTable(folder / ITEMS)
        try:
            embedder, n_dimensions = vector_source.write(folder, items, plan, kept, tell)
        finally:
            items.close()
        about = {
            "format": FORMAT,
            "version": VERSION,
            "key": secrets.token_hex(16),  # whose answers are whose, in a database of several workspaces
            "title": title,
            "kind": plan.kind,
            "items": len(kept),
            "dimension": n_dimensions,
            "created": datetime.now(UTC).isoformat(timespec="seconds"),
            "labels": labels,
            "vectors": embedder.about(),
            "notes": plan.notes + vector_source.notes,
            "skipped": {"count": len(skipped), "first": skipped[:_NAMED]},
        }
        storage.write_atomically(folder / WORKSPACE, json.dumps(about, indent=2, ensure_ascii=False).encode())
    workspace = Workspace.open(target)
    workspace.embedder = embedder
    return workspace


def check_new_folder(folder: str | os.PathLike[str]) -> Path:
    """The path of a folder to be made; InvalidInputError where that place is taken, or cannot be."""
    path = Path(folder)
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        hint = f"; 'cghash serve {os.fspath(folder)}' opens the workspace there" if (path / WORKSPACE).is_file() else ""
        raise InvalidInputError(f"folder must not exist yet, or be empty, got {os.fspath(folder)!r}{hint}")
    if not path.resolve().parent.is_dir():
        raise InvalidInputError(f"folder must lie in a folder that exists, got {os.fspath(folder)!r}")
    return path


def _opened(source: Any, asked: NamedColumns, follow_links: bool) -> tuple[Table, NamedColumns]:
    """The table of a source, and what was asked with the labels' column."""
    if not isinstance(source, np.ndarray) and os.path.isdir(source):
        table: Table = PictureFolder(source, follow_links=follow_links)
    else:
        table = open_table(source, asked.names)
    if asked.labels is None or asked.labels in table.columns or not os.path.isfile(asked.labels):
        return table, asked
    from ..reading import read_labels

    n = sum(1 for _ in table.rows())
    found = read_labels(asked.labels, n, as_written=True)
    if found.ndim != 1:
        raise InvalidInputError(f"{asked.labels} must hold one label an item, got shape {found.shape}")
    return LabelledTable(table, found.tolist()), NamedColumns(asked.id, asked.text, "label")


def _title(source: Any) -> str:
    return "vectors" if isinstance(source, np.ndarray) else Path(source).resolve().stem


def _write_items(folder: Path, plan: ImportPlan, copy: bool, tell: Progress) -> tuple[array[int], list[list[str]]]:
    """Write the items; the rows of the source that were kept, and what was not, with the reason."""
    kept: array[int] = array("q")
    skipped: list[list[str]] = []
    with disk_errors(folder / ITEMS), ItemWriter(folder / ITEMS, plan.attributes) as writer:
        source_items = plan.items()
        first = 0
        while chunk := list(islice(source_items, _CHUNK)):
            formats = _looked_at(chunk) if plan.image else [""] * len(chunk)
            new: list[NewItem] = []
            for place, (item, found) in enumerate(zip(chunk, formats, strict=True), first):
                if isinstance(found, FormatError):
                    skipped.append([_readable(item.id), str(found)])
                    continue
                file = _placed(folder, item, len(kept), found, copy) if found else None
                new.append(NewItem(item.id, item.values, file, item.text, item.place))
                kept.append(place)
            writer.add(new)
            first += len(chunk)
            tell("items", first, plan.n)
    _note_what_is_left_out(folder, skipped, plan)
    if not kept:
        raise InvalidInputError(f"{plan.table.name} must hold pictures that can be read, got none: {skipped[0][1]}")
    return kept, skipped


def _looked_at(items: list[SourceItem]) -> list[str | FormatError]:
    """The format of each picture, or why it is left out."""
    from ..lab.features.parallel import each

    return list(each(_format, items, n_jobs=-1))


def _format(item: SourceItem) -> str | FormatError:
    try:
        if item.picture is None:
            raise FormatError("it names no picture")
        if not item.picture.is_file():
            raise FormatError(f"there is no file {_readable(item.picture.name)}")
        if _readable(item.id) != item.id:
            raise FormatError("its name is not UTF-8")
        return check_picture(item.picture)
    except FormatError as error:
        return error


def _readable(name: str) -> str:
    return name.encode("utf-8", "replace").decode("utf-8")


def _placed(folder: Path, item: SourceItem, row: int, kind: str, copy: bool) -> str:
    """Link or copy a picture to a name of ours; the name below DIR/items."""
    assert item.picture is not None
    name = f"{row // 1000:03d}/{row:06d}{SUFFIXES[kind][0]}"
    target = folder / PICTURES / name
    target.parent.mkdir(parents=True, exist_ok=True)
    origin = os.path.realpath(item.picture)
    if not copy:
        try:
            os.link(origin, target)
        except OSError:  # another file system, or one without links
            copy = True
    if copy:
        shutil.copyfile(origin, target)
    return name


def _note_what_is_left_out(folder: Path, skipped: list[list[str]], plan: ImportPlan) -> None:
    others = getattr(plan.table, "n_others", 0)
    if others:
        plan.notes.append(f"{others} files that are no pictures are left out")
    links = getattr(plan.table, "n_links_out", 0)
    if links:
        plan.notes.append(f"{links} links that lead out of the folder are left out; --follow-links takes them")
    if not skipped:
        return
    plan.notes.append(f"{len(skipped)} pictures could not be read and are left out; {SKIPPED} names them")
    with open(folder / SKIPPED, "w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([["id", "reason"], *skipped])


@contextmanager
def atomic_folder(target: str | os.PathLike[str]) -> Iterator[Path]:
    """A hidden folder beside the target that takes its name at the end; an error throws it away.

    A kill leaves it: whoever makes the same target next throws it away.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with atomic_folder(f"{folder}/new") as aside:
    ...         _ = (aside / "words.txt").write_text("whole")
    ...         before = os.path.exists(f"{folder}/new")
    ...     before, os.listdir(folder)
    (False, ['new'])
    """
    place = Path(os.path.realpath(target))
    with unfinished(place, Path.mkdir) as aside:
        yield aside
        _flush(aside)
        os.replace(aside, place)
        storage.flush_folder(place.parent)


def _flush(folder: Path) -> None:
    """Bring the files of a folder, and the names of those below, to the disk."""
    for path in folder.iterdir():
        if path.is_dir():
            storage.flush_folder(path)
        else:
            with open(path, "rb") as file:
                os.fsync(file.fileno())
    storage.flush_folder(folder)
