"""The vectors of a new workspace: given, or computed from pictures or texts."""

from __future__ import annotations

import os
from array import array
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain, islice
from pathlib import Path

import numpy as np

from .._arrays import Array, Ints
from .._unfinished import naming
from ..exceptions import InvalidInputError
from ..reading import read_items
from ..reading.binary_files import read_arrays
from ..reading.sources import source_of
from ..reading.text_files import read_rows, shortened
from .embedders import Embedder, Gist, Given, Sentences, Tfidf
from .import_plan import IDS, ImportPlan, key_of, listed
from .item_sources import open_table
from .item_table import ItemTable
from .workspace import EMBEDDER, PICTURES, VECTORS

__all__ = ["Progress", "VectorSource"]

Progress = Callable[[str, int, int], None]  # what is done, how many are, of how many

EMBEDS = {"gist": "images", "tfidf": "texts", "sentences": "texts"}
_PICTURES, _ROWS = 256, 4096  # at a time
_TEXTS = 100_000  # whose words are counted, spread over the collection


@dataclass
class VectorSource:
    """Where vectors come from: `vectors` of the user, or `embed`; `embedder` is what embeds queries of given ones."""

    vectors: str | os.PathLike[str] | Array | None = None
    embed: str | None = None
    sentence_model: str | os.PathLike[str] | None = None
    embedder: Embedder = field(default_factory=Given)
    notes: list[str] = field(default_factory=list)
    X: Array | None = None  # of a file or an array, once it is read
    ids: Array | None = None  # that lie beside it

    def check(self, plan: ImportPlan) -> None:
        """Refuse before the work what would fail after it."""
        if self.vectors is not None and self.embed is not None:
            raise InvalidInputError("vectors and embed must not both be given")
        if self.sentence_model is not None and self.embed != "sentences":
            raise InvalidInputError(f"sentence_model must come with embed='sentences', got embed={self.embed!r}")
        if self.embed is not None:
            self._check_embed(plan)
        elif self.vectors is not None and self.column(plan) is None:
            self._read(plan)

    def _check_embed(self, plan: ImportPlan) -> None:
        if self.embed not in EMBEDS:
            raise InvalidInputError(f"embed must be one of {list(EMBEDS)}, got {self.embed!r}")
        if not (plan.image if EMBEDS[self.embed] == "images" else plan.text):
            raise InvalidInputError(f"embed={self.embed!r} needs {EMBEDS[self.embed]}, got items without")
        if self.embed == "sentences":
            _ = self.sentences.transformer

    @cached_property
    def sentences(self) -> Sentences:
        return Sentences() if self.sentence_model is None else Sentences(self.sentence_model)

    def _read(self, plan: ImportPlan) -> None:
        """Read an array or a file, with a vector for each row of the items' table or with ids."""
        assert self.vectors is not None
        if isinstance(self.vectors, np.ndarray):
            name, self.X = "vectors", self.vectors
        elif not os.path.isfile(self.vectors):
            known = f"; columns of vectors are {listed(plan.table.vector_columns)}" if plan.table.vector_columns else ""
            raise InvalidInputError(f"vectors must be a file or a column, got {os.fspath(self.vectors)!r}{known}")
        else:
            name = os.fspath(self.vectors)
            self.X, self.ids = _read(self.vectors)
        if self.X.ndim != 2 or self.X.dtype.kind not in "buif" or not self.X.shape[1]:
            shape = f"shape {self.X.shape}, dtype {self.X.dtype}"
            raise InvalidInputError(f"{name} must hold numbers of shape (n, d), got {shape}")
        if self.ids is None and len(self.X) != plan.n:
            wanted = f"a vector for each of the {plan.n} rows of {plan.table.name}, in their order"
            raise InvalidInputError(f"{name} must hold {wanted}, got {len(self.X)}")

    def column(self, plan: ImportPlan) -> str | None:
        """The column of the items' table that holds the vectors."""
        known = plan.table.vector_columns
        if isinstance(self.vectors, str) and self.vectors in known:
            return self.vectors
        if self.vectors is None and self.embed is None and known:
            if len(known) > 1:
                raise InvalidInputError(f"vectors must name one of the columns {listed(known)} of {plan.table.name}")
            return known[0]
        return None

    def write(
        self, folder: Path, items: ItemTable, plan: ImportPlan, kept: array[int], tell: Progress
    ) -> tuple[Embedder, int]:
        """Write DIR/vectors.npy, and what embeds queries; the embedder and d.

        Parameters
        ----------
        folder : of the new workspace
        items : its items
        plan : where they came from
        kept : the row in the source of each item
        tell : is told how far it is
        """
        embedder, blocks = self._blocks(folder, items, plan, np.frombuffer(kept, dtype=np.int64))
        if isinstance(embedder, Tfidf):
            embedder.save(folder / EMBEDDER)
        return embedder, _write(folder, blocks, len(items), tell)

    def _blocks(self, folder: Path, items: ItemTable, plan: ImportPlan, kept: Ints) -> tuple[Embedder, Iterable[Array]]:
        """What embeds queries, and the vectors of the items, some rows at a time."""
        column = self.column(plan)
        if column is not None:
            return self.embedder, _selected(plan.table.vectors(column), kept)
        if self.X is not None:
            order = kept if self.ids is None else _by_id(self.ids, items)
            return self.embedder, (self.X[order[first : first + _ROWS]] for first in range(0, len(order), _ROWS))
        way = self.embed or {"images": "gist", "texts": "tfidf", "vectors": "numbers"}[plan.kind]
        if way == "numbers":
            return self.embedder, _numbers(plan, self.notes)
        if way == "gist":
            return (gist := Gist()), _pictures(folder, items, gist)
        by_words = self.sentences if way == "sentences" else _counted(items)
        return by_words, map(by_words.texts, items.texts())


def _counted(items: ItemTable) -> Tfidf:
    step = -(-len(items) // _TEXTS)
    return Tfidf.fit(list(islice(chain.from_iterable(items.texts()), 0, None, step)))


def _pictures(folder: Path, items: ItemTable, embedder: Gist) -> Iterator[Array]:
    names = items.files()
    for first in range(0, len(names), _PICTURES):
        paths = [folder / PICTURES / name for name in names[first : first + _PICTURES] if name is not None]
        yield embedder.images(paths, n_jobs=-1)


def _read(path: str | os.PathLike[str]) -> tuple[Array, Array | None]:
    """The vectors of a file, and the items' ids where it holds some."""
    source = source_of(path)
    names: list[str] = []
    if source.kind == "csv":
        names = read_rows(source, IDS).header or []
    elif source.kind == "npz":
        names = list(read_arrays(source))
    elif source.kind == "parquet":
        names = open_table(path).columns
    found = read_items(path, id_column=next((name for name in names if name.lower() in IDS), None))
    return found.X, found.ids


def _by_id(ids: Array, items: ItemTable) -> Ints:
    """The row of each item's vector."""
    rows = {key_of(value): row for row, value in enumerate(ids.tolist())}
    keys = items.ids()
    missing = next((key for key in keys if key_of(key) not in rows), None)
    if missing is not None:
        raise InvalidInputError(f"vectors must hold one for each item, got none for {shortened(missing)!r}")
    return np.array([rows[key_of(key)] for key in keys], dtype=np.int64)


def _numbers(plan: ImportPlan, notes: list[str]) -> Iterator[Array]:
    if not plan.numbers:
        raise InvalidInputError(
            f"{plan.table.name} holds neither texts nor pictures nor columns of numbers: texts are in a column "
            "'text' or --text-column, pictures in a column 'image', vectors in a file of --vectors"
        )
    notes.append(f"the vectors are {len(plan.numbers)} columns of numbers: {listed(plan.numbers)}")
    rows = (numbers for _, numbers in plan.number_rows())
    while block := list(islice(rows, _ROWS)):
        yield np.array(block)


def _selected(blocks: Iterable[Array], kept: Ints) -> Iterator[Array]:
    """The rows of the source that became items."""
    first = 0
    for block in blocks:
        low, high = np.searchsorted(kept, [first, first + len(block)])
        yield block[kept[low:high] - first]
        first += len(block)


def _write(folder: Path, blocks: Iterable[Array], n: int, tell: Progress) -> int:
    """Write vectors as they come; d."""
    waiting = iter(blocks)
    start = next(waiting)
    d = int(start.shape[1])
    row = 0
    with naming(folder / VECTORS), open(folder / VECTORS, "wb") as file:  # not a map, which a full disk kills
        about = {"descr": np.dtype(np.float32).str, "fortran_order": False, "shape": (n, d)}
        np.lib.format.write_array_header_1_0(file, about)
        for block in chain([start], waiting):
            if block.shape[1] != d:
                raise InvalidInputError(f"vectors must all have {d} numbers, got {block.shape[1]} after item {row}")
            file.write(np.ascontiguousarray(_checked(block, row)).data)
            row += len(block)
            tell("vectors", row, n)
    return d


def _checked(block: Array, first: int) -> Array:
    """Numbers that float32 holds."""
    with np.errstate(over="ignore"):
        single = block.astype(np.float32)
    good = np.isfinite(single).all(axis=1)
    if not good.all():
        row = int(np.argmin(good))
        wrong = block[row][~np.isfinite(single[row])][0]
        raise InvalidInputError(f"vectors must be finite, in single precision, got {wrong} for item {first + row}")
    return single
