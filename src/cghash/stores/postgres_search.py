"""The nearest codes of a table in PostgreSQL: some by a graph or a scan, all that could be nearer by a bound."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._arrays import Codes
from .base import require
from .postgres_copy import as_text, from_text
from .postgres_layout import Layout, beside_values
from .postgres_tables import Graph
from .ranking import NONE, Ranked, rank

sql = require("psycopg.sql", "postgres")

_FEWEST = 40  # items that a graph keeps in view, pgvector's default
_MOST = 1000  # and its most; beyond, it goes on in turns


class Searcher:
    """The statements of a table."""

    def __init__(self, layout: Layout, graph: Graph | None) -> None:
        self.layout, self.origin, self.graph = layout, layout.origin, graph
        table, distance = beside_values(layout.relation), beside_values(layout.named("distance"))
        query = sql.SQL(f"%(query)s::bit({layout.expanded_bits})")
        far = sql.SQL("bit_count(expanded # {})").format(query)
        operator = sql.SQL("#") if graph is None else beside_values(graph.operator)
        near = sql.SQL(  # only what is left is turned into text
            "SELECT id, code::text, far FROM (SELECT id, code, {} AS far FROM {} ORDER BY {} LIMIT %(wanted)s) AS near"
        )
        self._by_scan = near.format(far, table, sql.SQL("3"))
        self._by_graph = near.format(far, table, sql.SQL("expanded {} {}").format(operator, query))
        self._within = sql.SQL(
            f"SELECT id, {{}}(code, %(code)s::bit({self.origin.n_bits})) FROM {{}} "
            "WHERE {} <= %(reach)s ORDER BY 2, 1 LIMIT %(k)s"
        ).format(distance, table, far)
        self._some = sql.SQL("SELECT count(*) FROM (SELECT FROM {} LIMIT %s) AS few").format(table)

    def nearest(self, cursor: Any, queries: Codes, k: int, wanted: int, exact: bool) -> list[Ranked]:
        """The k nearest of each query, of `wanted` that are ranked by the weights; proven where `exact`, or scanned."""
        graph = self.graph is not None and cursor.execute(self._some, [wanted + 1]).fetchone()[0] > wanted
        if graph:
            self._use_graph(cursor, wanted)
        ranked = [self._near(cursor, query, k, wanted, graph) for query in queries]
        if graph:
            _set(cursor, {"enable_seqscan": "on", "enable_sort": "on"})
        for row, one in enumerate(ranked):  # a graph may reach fewer than k, where there are more
            if not one.exact and (exact or not graph or len(one.ids) < k):
                ranked[row] = self._proven(cursor, queries[row], k, one)
        return ranked

    def _near(self, cursor: Any, query: Codes, k: int, wanted: int, graph: bool) -> Ranked:
        """The nearest by expanded codes, ranked by the weights."""
        values = {"query": self._expanded(query), "wanted": wanted}
        rows = cursor.execute(self._by_graph if graph else self._by_scan, values).fetchall()
        codes = from_text([row[1] for row in rows], self.origin.n_bits)
        beyond = 0 if graph else NONE if len(rows) < wanted else int(self.layout.least[max(row[2] for row in rows)])
        return rank(self.origin, query, codes, np.array([row[0] for row in rows], dtype=np.int64), k, beyond)

    def _proven(self, cursor: Any, query: Codes, k: int, ranked: Ranked) -> Ranked:
        """The nearest of all, by a scan that passes over what is further away, by the bound, than the k-th so far."""
        reach = self.layout.expanded_bits
        if len(ranked.ids) == k:
            reach = int(np.searchsorted(self.layout.least, ranked.distances[-1], side="right")) - 1
        code = as_text(query[None], self.origin.n_bits)[0]
        values = {"query": self._expanded(query), "code": code, "reach": reach, "k": k}
        rows = cursor.execute(self._within, values).fetchall()
        distances = np.rint(np.array([row[1] for row in rows]) / self.origin.whole[1]).astype(np.int64)
        return Ranked(distances, np.array([row[0] for row in rows], dtype=np.int64), True)

    def _expanded(self, query: Codes) -> str:
        bits = np.unpackbits(query, bitorder="little", count=self.origin.n_bits)
        return "".join(map(str, np.repeat(bits, self.layout.counts))).ljust(self.layout.expanded_bits, "0")

    def _use_graph(self, cursor: Any, wanted: int) -> None:
        """Only the graph gives rows in order; it keeps enough in view, and goes on where these are too few."""
        assert self.graph is not None
        settings = {"enable_seqscan": "off", "enable_sort": "off"}
        settings["hnsw.ef_search"] = str(min(max(2 * wanted, _FEWEST), _MOST))
        if self.graph.goes_on:
            settings["hnsw.iterative_scan"] = "strict_order"
        _set(cursor, settings)


def _set(cursor: Any, settings: dict[str, str]) -> None:
    """For this transaction."""
    calls = ", ".join(["set_config(%s, %s, true)"] * len(settings))
    cursor.execute(f"SELECT {calls}", [word for pair in settings.items() for word in pair])
