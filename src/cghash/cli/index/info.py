"""`cghash index info`: what an index file holds."""

from __future__ import annotations

import json
from typing import Any

import click

from .._options import json_option
from .._tables import finite, show_facts


@click.command()
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
        click.echo(json.dumps(finite(facts), indent=2, allow_nan=False))
    else:
        show_facts(path, _for_people(facts))


def _facts(path: str) -> dict[str, Any]:
    from ...index import WeightedHammingIndex

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
