"""`cghash search`: the nearest codes of an index file, or vectors of a folder."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import click

from ._codes import code_blocks, looks_packed, model_of_bits
from ._inputs import Labelled, feature_names, load_model, say_ignored
from ._options import options, output_path, quiet_option
from ._output import opened, refuse_npy_on_terminal, say, show_table, write_csv, write_npy

if TYPE_CHECKING:
    from ..cluster import ShardedIndex
    from ..estimator import CodeEstimator
    from ..index import WeightedHammingIndex
    from ..reading import Items

    Index = WeightedHammingIndex | ShardedIndex
    Answer = tuple[Any, Any, Any]  # names of queries (q,), distances (q, k), ids (q, k)
    Search = Callable[[Any, int], tuple[Any, Any]]

_ROWS = 1 << 12  # queries at a time
_ANSWERS = 1 << 25  # at a time
_SHOWN = 20  # queries, to people
_FORMATS = {".npy": "npy", ".csv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl"}


search_options = options(  # what a search asks for and where its answers go, whatever is searched
    click.option("--queries", required=True, metavar="FILE", help="Packed codes, or items with --model."),
    click.option(
        "-k", "--neighbors", type=click.IntRange(1), default=10, show_default=True, help="Codes to find for each."
    ),
    click.option("--model", metavar="FILE", help="Model that turns items into codes."),
    click.option("--id-column", metavar="NAME", help="Column of the queries that names them in the answer."),
    click.option(
        "-o", "--output", default="-", metavar="FILE", callback=output_path, help="Where to; '-' is standard output."
    ),
    click.option(
        "--format",
        "kind",
        type=click.Choice(["table", "csv", "jsonl", "npy"]),
        help="table: for people; csv: query, rank, id, distance; jsonl: an object a query; npy: array (q, k) "
        "of id and distance.  [default: as FILE ends, else table]",
    ),
)


@click.command()
@click.argument("index")
@search_options
@click.option(
    "--candidates",
    type=click.IntRange(1),
    help="Of a folder of vectors: codes that the vectors rank.  [default: its own]",
)
@click.option("-j", "--n-jobs", type=int, help="Threads.  [default: all cores]")
@quiet_option
def search(index: str, candidates: int | None, n_jobs: int | None, **asked: Any) -> None:
    """Find the codes of INDEX that are nearest to each query, exactly, by (distance, id).

    INDEX may also be a folder that 'cghash vectors' made: then queries are vectors, and so is what is found.

    Queries are packed codes, as 'cghash encode' writes them, or items with --model: rows that have as many numbers as
    the model has features. '-' is standard input. Where INDEX holds fewer codes than asked for, csv and jsonl are
    shorter, and npy is padded with id -1 at an infinite distance.

    \b
    Examples:
      cghash search items.index --queries new.npy --model model.cghash
      cghash search items.index --queries codes.npy -k 100 -o found.csv
      cghash encode model.cghash new.csv --format npy | cghash search items.index --queries - --format jsonl
    """
    question = Question(**asked)
    if Path(index).is_dir():
        question.put_to_vectors(index, candidates, n_jobs)
        return
    if candidates is not None:
        raise click.UsageError("--candidates is for a folder that 'cghash vectors build' made, not for codes alone")
    from ..estimator import functions_of
    from ..index import WeightedHammingIndex

    held = WeightedHammingIndex.load(index, n_jobs=n_jobs)
    question.put_to(held, lambda model: held.check_model(functions_of(model)))


@dataclass
class Question:
    """What the command line asks, of any index."""

    queries: str
    neighbors: int
    model: str | None
    id_column: str | None
    output: str
    kind: str | None
    quiet: bool

    def __post_init__(self) -> None:
        self.kind = self.kind or _FORMATS.get(Path(self.output).suffix.lower(), "table")
        refuse_npy_on_terminal(self.output, self.kind)
        if self.output != "-" and self.kind == "table":
            raise click.UsageError(
                f"a table is for people: end {self.output!r} in .csv, .jsonl or .npy, or give --format"
            )

    def put_to(self, index: Index, check: Callable[[CodeEstimator], None]) -> None:
        """Search, and write the answers; `check` refuses a model that did not make the codes."""
        hasher = None if self.model is None else model_of_bits(self.model, index.n_bits)
        if hasher is not None:
            check(hasher)
        read, blocks = _codes(index, self.queries, hasher, self.id_column, self.quiet)
        self._answer(index.search, len(index), read, blocks, "codes")

    def put_to_vectors(self, folder: str, candidates: int | None, n_jobs: int | None) -> None:
        """Search a folder of vectors, and write the answers."""
        from ..index import VectorIndex
        from .vectors import vectors_for

        model = None if self.model is None else load_model(self.model)
        index = VectorIndex.load(folder, model=model, n_jobs=n_jobs)
        read = vectors_for(index, self.queries, self.id_column, self.quiet)
        blocks = (read.X[first : first + _ROWS] for first in range(0, len(read.X), _ROWS))
        self._answer(partial(index.search, candidates=candidates), len(index), read, blocks, "vectors")

    def _answer(self, search: Search, n_held: int, read: Items, blocks: Iterable[Any], what: str) -> None:
        wanted = self.neighbors if self.kind == "npy" else min(self.neighbors, max(1, n_held))
        answers = _answers(search, blocks, wanted, read.ids)
        assert self.kind is not None
        if self.kind == "table":
            _show(answers, len(read.X), self.quiet)
        else:
            _write(self.output, self.kind, answers, (len(read.X), self.neighbors))
        to = "" if self.output == "-" else f", wrote {self.output}"
        found = min(self.neighbors, n_held)
        say(f"{len(read.X)} queries, {found} of {n_held} {what} each{to}", self.quiet)


def _codes(
    index: Index, queries: str, hasher: CodeEstimator | None, id_column: str | None, quiet: bool
) -> tuple[Items, Iterable[Any]]:
    """Queries as they are when they are codes, else through the model."""
    import numpy as np

    names = None if hasher is None else feature_names(hasher)
    read = Labelled(queries, id_column=id_column).read(names)
    say_ignored(read, quiet)
    if hasher is not None and read.X.shape[1] == hasher.n_features_in_:
        return read, code_blocks(hasher, read.X, quiet=quiet)
    if looks_packed(read, index.n_bits):
        packed = np.asarray(read.X, dtype=np.uint8)
        return read, (packed[first : first + _ROWS] for first in range(0, len(packed), _ROWS))
    raise click.UsageError(_neither(index, read, None if hasher is None else hasher.n_features_in_))


def _neither(index: Index, read: Items, n_features: int | None) -> str:
    items = "items with --model" if n_features is None else f"items of the model's {n_features} features"
    bits = "; bits? cghash.codes.pack packs them" if read.X.shape[1] == index.n_bits else ""
    return (
        f"queries must be packed codes, uint8 of shape (q, {index.n_bytes}), or {items}, "
        f"got shape {read.X.shape}, dtype {read.X.dtype}{bits}"
    )


def _answers(search: Search, blocks: Iterable[Any], k: int, names: Any) -> Iterator[Answer]:
    import numpy as np

    first, most = 0, max(1, _ANSWERS // k)
    for block in blocks:
        for part in (block[at : at + most] for at in range(0, len(block), most)):
            rows = np.arange(first, first + len(part))
            yield rows if names is None else names[rows], *search(part, k)
            first += len(part)


def _rows(answers: Iterable[Answer]) -> Iterator[tuple[Any, list[int], list[float]]]:
    """Query, ids and distances, without padding."""
    for names, distances, ids in answers:
        for name, d, i in zip(names.tolist(), distances.tolist(), ids.tolist(), strict=True):
            n = i.index(-1) if -1 in i else len(i)
            yield name, i[:n], d[:n]


def _show(answers: Iterable[Answer], n_queries: int, quiet: bool) -> None:
    rows = []
    for number, (name, ids, distances) in enumerate(_rows(answers)):
        if number == _SHOWN:
            break
        found = enumerate(zip(ids, distances, strict=True), 1)
        rows += [[str(name) if rank == 1 else "", str(rank), str(i), f"{d:.6g}"] for rank, (i, d) in found]
    show_table(["query", "rank", "id", "distance"], rows)
    if n_queries > _SHOWN:
        say(f"shown: {_SHOWN} of {n_queries} queries; --format csv, jsonl or npy gives all", quiet)


def _write(output: str, kind: str, answers: Iterable[Answer], shape: tuple[int, int]) -> None:
    with opened(output) as file:
        if kind == "npy":
            import numpy as np

            dtype = np.dtype([("id", "<i8"), ("distance", "<f8")])
            write_npy(file, dtype, shape, _records(answers, dtype))
        elif kind == "csv":
            write_csv(file, ["query", "rank", "id", "distance"], _ranks(answers))
        else:
            _write_jsonl(file, answers)


def _records(answers: Iterable[Answer], dtype: Any) -> Iterator[Any]:
    import numpy as np

    for _, distances, ids in answers:
        block = np.empty(ids.shape, dtype=dtype)
        block["id"], block["distance"] = ids, distances
        yield block


def _ranks(answers: Iterable[Answer]) -> Iterator[list[Any]]:
    for name, ids, distances in _rows(answers):
        yield from ([name, rank, i, d] for rank, (i, d) in enumerate(zip(ids, distances, strict=True), 1))


def _write_jsonl(file: BinaryIO, answers: Iterable[Answer]) -> None:
    import json

    for name, ids, distances in _rows(answers):
        line = json.dumps({"query": name, "ids": ids, "distances": distances}, ensure_ascii=False)
        file.write(line.encode() + b"\n")
