"""`cghash index COMMAND`: index files."""

from __future__ import annotations

import time
from typing import Any

import click

from ._codes import Source, source_options
from ._options import json_option, output_file, quiet_option
from ._output import say, show_facts, show_json
from ._running import group


@group()
def index() -> None:
    """Make index files, which 'cghash search' searches, and change them.

    What is added goes into a log beside the file, FILE.log, and is on the disk when the command ends. One process
    writes at a time; any number read meanwhile.

    \b
    Examples:
      cghash index build codes.npy --model model.cghash -o items.index
      cghash index build --items items.npy --model model.cghash -o items.index
      cghash index add items.index more.npy
      cghash index verify items.index
    """


@index.command(short_help="Put codes, or items through a model, into a new index file.")
@source_options
@output_file("FILE", "The index file to write.", "an index")
@click.option(
    "-b", "--n-bits", type=int, help="Take only the first bits of the model; without a model, bits of a code."
)
@click.option("--no-prune", is_flag=True, help="No tables to prune by: a fifth of the memory, and searches scan.")
@quiet_option
def build(
    codes: str | None,
    items: str | None,
    model: str | None,
    ids: str | None,
    id_column: str | None,
    output: str,
    n_bits: int | None,
    no_prune: bool,
    quiet: bool,
) -> None:
    """Put packed CODES, or items through a model, into a new index file.

    CODES is what 'cghash encode' writes as .npy or .csv; '-' is standard input. With --model the index has the model's
    weights; without, every bit counts as 1. Ids are row numbers unless they are given.

    \b
    Examples:
      cghash index build codes.npy --model model.cghash -o items.index
      cghash index build --items items.npy --model model.cghash --ids ids.npy -o items.index
      cghash index build codes.csv --id-column number --model model.cghash --no-prune -o items.index
    """
    source = Source(codes, items, model, ids, id_column)
    from ..estimator import functions_of
    from ..index import WeightedHammingIndex

    began = time.perf_counter()
    found = source.read(n_bits, quiet)
    functions = None if found.model is None else functions_of(found.model)
    index = WeightedHammingIndex(found.n_bits, found.weights, prune=not no_prune, functions=functions)
    for piece, its_ids in found.pieces():
        index.add(piece, its_ids)
    index.prepare()
    index.save(output)
    kind = "unweighted" if found.weights is None else "weighted"
    say(
        f"{len(index)} codes of {index.n_bits} bits, {kind}, in {time.perf_counter() - began:.1f} s, wrote {output}",
        quiet,
    )


@index.command(short_help="Add codes or items to an index file.")
@click.argument("index")
@source_options
@quiet_option
def add(
    index: str,
    codes: str | None,
    items: str | None,
    model: str | None,
    ids: str | None,
    id_column: str | None,
    quiet: bool,
) -> None:
    """Add packed CODES, or items through a model, to INDEX: all of them, or on an error none.

    They are in the log beside INDEX, on the disk, when the command ends. Ids are new ones unless they are given; an id
    that INDEX has already is an error.

    \b
    Examples:
      cghash index add items.index codes.npy
      cghash index add items.index --items more.npy --model model.cghash --ids ids.txt
      cghash encode model.cghash more.npy --format npy | cghash index add items.index -
    """
    source = Source(codes, items, model, ids, id_column)
    import numpy as np

    from ..estimator import functions_of
    from ..index import WeightedHammingIndex

    with WeightedHammingIndex.load(index, writable=True) as held:
        found = source.read(held.n_bits, quiet)
        if found.model is not None:
            held.check_model(functions_of(found.model))
        held.add(np.concatenate(list(found.blocks)), found.ids)
        say(f"{found.n} codes added, {len(held)} in {index}", quiet)


@index.command(short_help="Show what an index file holds.")
@click.argument("index")
@json_option
def info(index: str, as_json: bool) -> None:
    """Show what INDEX holds: codes, weights, ids, and its size on disk and in memory.

    \b
    Examples:
      cghash index info items.index
      cghash index info items.index --json | jq .n_codes
    """
    show_index(index, as_json)


def show_index(path: str, as_json: bool) -> None:
    """Facts of an index file, for people or programs."""
    facts = _facts(path)
    if as_json:
        show_json(facts)
    else:
        show_facts(path, _for_people(facts))


def _facts(path: str) -> dict[str, Any]:
    from ..index import WeightedHammingIndex

    index = WeightedHammingIndex.load(path)
    weights = index.weights
    about = {"kind": "index", **index.info(), "next_id": index.next_id, "prune": index.prune}
    about |= {"max_memory": index.max_memory, "weights": None if weights is None else weights.tolist()}
    about |= {"file_bytes": index.file["bytes"], "log_records": index.file["log_records"]}
    return about


def _for_people(facts: dict[str, Any]) -> list[tuple[str, str]]:
    weights = facts["weights"]
    ids = f"of their own, {_bytes(facts['id_bytes'])}" if facts["id_bytes"] else "row numbers"
    tables = f"{_bytes(facts['prune_bytes'])}, for {facts['n_prepared']} codes" if facts["prune_bytes"] else "none"
    removed = f" and {facts['n_removed']} removed" if facts["n_removed"] else ""
    return [
        ("kind", "index"),
        ("codes", f"{facts['n_codes']}{removed}"),
        ("bits", f"{facts['n_bits']} ({-(-facts['n_bits'] // 8)} bytes a code)"),
        ("weights", "none: every bit counts as 1" if weights is None else f"{min(weights):.4g} to {max(weights):.4g}"),
        ("ids", f"{ids}; next {facts['next_id']}"),
        ("tables", tables if facts["prune"] else "not wanted"),
        ("memory", _bytes(facts["memory"])),
        ("file", _bytes(facts["file_bytes"])),
        ("log", f"{facts['log_records']} records" if facts["log_records"] else "empty"),
    ]


def _bytes(n: int) -> str:
    """A size for people.

    >>> _bytes(300), _bytes(20480), _bytes(800_000_000)
    ('300 bytes', '20 KiB', '763 MiB')
    """
    for unit, size in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if n >= size:
            return f"{n / size:.3g} {unit}"
    return f"{n} bytes"


@index.command(short_help="Check every byte of an index file and its log.")
@click.argument("index")
@quiet_option
def verify(index: str, quiet: bool) -> None:
    """Check every byte of INDEX and of its log: checksums, counts and ids.

    The exit code is 0 when all is well, and 2 when something is wrong, which the message names.

    \b
    Examples:
      cghash index verify items.index
      cghash index verify -q items.index && cp items.index /backup
    """
    from ..index import WeightedHammingIndex

    found = WeightedHammingIndex.verify(index)
    say(
        f"{index}: {found['n_codes']} codes; {found['bytes']} bytes in {found['sections']} sections "
        f"and {found['log_records']} log records are as they were written",
        quiet,
    )


@index.command(short_help="Fold the log of an index file into a new file.")
@click.argument("index")
@quiet_option
def compact(index: str, quiet: bool) -> None:
    """Write INDEX anew with all that its log holds, without what was removed, and with tables to prune by.

    A kill leaves the old file with its log, or the new one.

    \b
    Examples:
      cghash index compact items.index
    """
    from ..index import WeightedHammingIndex

    with WeightedHammingIndex.load(index, writable=True) as held:
        before, records = len(held) + held.info()["n_removed"], held.file["log_records"]
        held.compact()
        if held.prune and not held.info()["n_prepared"]:
            held.prepare()
            if held.info()["n_prepared"]:
                held.save(index)
        say(
            f"{records} log records folded in, {before - len(held)} removed codes dropped, {len(held)} in {index}",
            quiet,
        )
