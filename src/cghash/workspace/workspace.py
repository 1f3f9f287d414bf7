"""The workspace: one folder with items, vectors, models and what people answered.

DIR/workspace.json   what the workspace is; written last: without it there is none
DIR/items.sqlite     the items; never changed
DIR/items/           their pictures
DIR/vectors.npy      their vectors (n, d), float32
DIR/embedder.cghash  the words of a collection of texts, where they make the vectors
DIR/models/          model versions, and DIR/indexes/ the index of each
DIR/answers.sqlite   answers, versions and jobs, unless a database is named
DIR/thumbnails/, DIR/checkpoints/   may be deleted at any time
"""

from __future__ import annotations

import os
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .._arrays import Singles
from ..exceptions import FormatError, InvalidInputError
from ..reading.binary_files import read_array
from ..reading.sources import source_of
from .embedders import Embedder, Sentences, UnnamedSentences, open_embedder
from .item_table import ItemTable
from .untrusted import read_json

if TYPE_CHECKING:
    from .records import Records

__all__ = ["Workspace"]

FORMAT, VERSION = "cghash-workspace", 1
KINDS = ("images", "texts", "vectors")
WORKSPACE, ITEMS, PICTURES, VECTORS = "workspace.json", "items.sqlite", "items", "vectors.npy"
EMBEDDER, ANSWERS = "embedder.cghash", "answers.sqlite"
DATABASE = "CGHASH_DATABASE"  # an environment variable
_COMPARED = 4  # items whose texts a sentence model must embed as they are


class Workspace:
    """An opened workspace.

    Attributes
    ----------
    folder : Path
    about : what workspace.json holds
    items : ItemTable
    vectors : (n, d) float32, memory-mapped
    database : where the answers are: a path, or the URL of a PostgreSQL database

    Examples
    --------
    >>> import tempfile
    >>> from cghash.workspace import Workspace, create_workspace
    >>> folder = tempfile.TemporaryDirectory()
    >>> with create_workspace(f"{folder.name}/ws", np.eye(3)) as workspace:
    ...     workspace.about["kind"], len(workspace.items), workspace.vectors.shape, workspace.labels
    ('vectors', 3, (3, 3), None)
    >>> folder.cleanup()
    """

    def __init__(self, folder: Path, about: dict[str, Any], database: str) -> None:
        self.folder = folder
        self.about = about
        self.database = database
        self.items = ItemTable(self.inside(ITEMS))
        self.vectors = _vectors(self.inside(VECTORS), (about["items"], about["dimension"]))
        if len(self.items) != about["items"]:
            raise FormatError(f"{folder / ITEMS} must hold {about['items']} items, got {len(self.items)}")

    @classmethod
    def open(
        cls,
        folder: str | os.PathLike[str],
        database: str | os.PathLike[str] | None = None,
        *,
        sentence_model: str | os.PathLike[str] | None = None,
    ) -> Workspace:
        """Open a workspace.

        Parameters
        ----------
        folder : what `create_workspace` made
        database : where the answers are, a path or the URL of a PostgreSQL database; else the environment variable
            CGHASH_DATABASE, else DIR/answers.sqlite
        sentence_model : the model that made the vectors, where they are sentence embeddings: a name that
            sentence-transformers knows, or a folder; without it texts cannot be searched for. What the workspace itself
            says of it is never loaded, since it may come from a stranger
        """
        path = Path(folder)
        where = os.fspath(database) if database is not None else os.environ.get(DATABASE, "")
        workspace = cls(path, _about(path), where or os.fspath(_inside(path, ANSWERS)))
        if sentence_model is not None:
            try:
                workspace._embed_by(Sentences(sentence_model, fetch=False))
            except BaseException:
                workspace.close()
                raise
        return workspace

    @cached_property
    def labels(self) -> NDArray[np.str_] | None:
        """The labels of all items (n,), as text and empty where there is none; None without a column of labels."""
        name = self.about.get("labels")
        if name is None:
            return None
        return np.array(["" if value is None else str(value) for value in self.items.column(name)])

    @cached_property
    def embedder(self) -> Embedder:
        """What embeds a text or a picture that is searched for."""
        return open_embedder(self.inside(EMBEDDER), self.about["vectors"])

    @cached_property
    def records(self) -> Records:
        """Answers, model versions and jobs."""
        from .records import open_records

        return open_records(self.database, self.about["key"], len(self.items))

    def _embed_by(self, sentences: Sentences) -> None:
        """Embed texts by a model, which must give the vectors of some items."""
        if not isinstance(self.embedder, UnnamedSentences):
            raise InvalidInputError(
                f"sentence_model must be left out of {self.folder}, whose vectors are {self.embedder.words}"
            )
        rows = np.unique(np.linspace(0, len(self.items) - 1, _COMPARED).astype(int))
        sentences.check([item.text or "" for item in self.items.get(rows)], self.vectors[rows])
        self.embedder = sentences

    def picture(self, row: int) -> Path | None:
        """The file of an item's picture, or None."""
        name = self.items.get([row])[0].file
        if name is None:
            return None
        path = (self.inside(PICTURES) / name).resolve()
        if not path.is_relative_to((self.folder / PICTURES).resolve()) or not path.is_file():
            raise FormatError(f"the picture of item {row} must be below {PICTURES}/ of the workspace, and is not")
        return path

    def inside(self, *names: str) -> Path:
        """The path of a file or folder of the workspace; FormatError where links lead out of it, as strangers' may,
        or where it is neither."""
        return _inside(self.folder, *names)

    def model_path(self, version: int) -> Path:
        """The file of a model version."""
        return self.inside("models", f"{version:04d}.cghash")

    def index_path(self, version: int) -> Path:
        """The index of all items under a model version."""
        self.inside("indexes", f"{version:04d}.index.log")  # which is read and written with it
        return self.inside("indexes", f"{version:04d}.index")

    def close(self) -> None:
        """Close the files; the workspace cannot be used any more."""
        self.items.close()
        if "records" in self.__dict__:
            self.records.close()

    def __enter__(self) -> Workspace:
        return self

    def __exit__(self, *error: Any) -> None:
        self.close()


def _inside(folder: Path, *names: str) -> Path:
    path = folder.joinpath(*names)
    if not path.resolve().is_relative_to(folder.resolve()):
        raise FormatError(f"{path} must lie in the workspace, and is, or is below, a link that leads out of it")
    if path.exists() and not (path.is_file() or path.is_dir()):  # who reads a pipe waits for whoever writes it
        raise FormatError(f"{path} must be a file")
    return path


def _about(folder: Path) -> dict[str, Any]:
    path = folder / WORKSPACE
    if not path.is_file():
        raise InvalidInputError(f"{folder} must be a workspace ('cghash workspace new' makes one), got no {WORKSPACE}")
    try:
        about = read_json(path.read_text("utf-8"), finite=True)
        found, version = about["format"], about["version"]
    except (KeyError, TypeError, ValueError) as error:
        raise FormatError(f"{path} must describe a workspace: {error}") from error
    if found != FORMAT or version != VERSION:
        raise FormatError(f"{path} must have the format {FORMAT!r}, version {VERSION}; got {found!r}, {version!r}")
    _check_about(path, about)
    return about  # type: ignore[no-any-return]


def _check_about(path: Path, about: dict[str, Any]) -> None:
    kinds: dict[str, type | tuple[type, ...]] = {
        "key": str, "title": str, "items": int, "dimension": int, "created": str, "labels": (str, type(None)),
        "vectors": dict, "notes": list, "skipped": dict,
    }  # fmt: skip
    wrong = [name for name, kind in kinds.items() if name not in about or not isinstance(about[name], kind)]
    if not wrong:
        parts = {"kind": about.get("kind") in KINDS, "vectors": isinstance(about["vectors"].get("source"), str)}
        parts["skipped"] = isinstance(about["skipped"].get("count"), int)
        wrong = [name for name, whole in parts.items() if not whole]
    if wrong:
        raise FormatError(f"{path} must describe a workspace; {wrong[0]!r} is missing or damaged")


def _vectors(path: Path, shape: tuple[int, int]) -> Singles:
    try:
        vectors = read_array(source_of(path))
    except OSError as error:
        raise FormatError(f"{path} must hold the vectors of a workspace: {error}") from error
    if vectors.shape != shape or vectors.dtype != np.float32:
        raise FormatError(
            f"{path} must hold float32 vectors of shape {shape}, got shape {vectors.shape} of {vectors.dtype}"
        )
    return vectors
