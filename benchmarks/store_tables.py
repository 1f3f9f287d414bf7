"""Tables of the stores' measurements."""

from __future__ import annotations

from typing import Any

from markdown_tables import shown, table

Row = dict[str, Any]


def expansion(rows: list[Row]) -> str:
    """How well expanded codes rank as the weighted distance does."""
    header = "set,functions,bits,expanded to,bits lost,rank correlation,top 10,top 10 in 100,top 100,top 100 in 1000"
    figures = ("correlation", "top_10", "top_10_in_100", "top_100", "top_100_in_1000")
    return table(header.split(","), (
        [r["set"], r["family"], str(r["positive"]), str(r["expansion"]), shown(r.get("lost")),
         *(shown(r[name], 3) for name in figures)]
        for r in rows
    ), words=2)  # fmt: skip


def stores(rows: list[Row]) -> str:
    """Our index and each store on the same codes."""
    header = "store,codes,build (s),bytes a code,ms a query,recall,proven"
    names = ("n", "build_seconds", "bytes_a_code", "ms", "recall", "proven")
    return table(header.split(","), ([r["store"], *(shown(r[name]) for name in names)] for r in rows))
