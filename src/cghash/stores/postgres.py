"""Codes as a table of PostgreSQL, searched by pgvector's HNSW graph or by a scan, exactly under the learned weights.

A table has the columns `id` (bigint, its key), `code` (`bit(n)`), `expanded` (bits repeated by weight, which PostgreSQL
itself makes of the code), and the user's own. Three functions belong to it: `<table>_nearest(query, k)`, an exact scan;
`<table>_distance(code, code)`; `<table>_expand(code)`. What codes it holds is said in the comment on `code`.

A search takes some of the nearest by plain Hamming distance of expanded codes and ranks them by the weights. With
`exact=True` it then proves the answer: how far an expanded code is away bounds its distance from below, so one scan
over expanded codes leaves the few that could be nearer, and these are ranked too.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from .._arrays import Codes
from .._validation import check_whole
from ..codes import repeat_bits
from ..exceptions import CGHashWarning, FormatError, InvalidInputError
from ..index.checks import check_codes, check_ids
from .base import Found, Path, Store, check_asked, checked, require
from .postgres_copy import as_text, from_text, payload_columns
from .postgres_layout import Layout, beside_values, check_name, layout_from, layout_of
from .postgres_session import Session, place
from .postgres_tables import (
    Given,
    Graph,
    check_table,
    columns_of,
    graph_of,
    merge_rows,
    read_about,
    replace_table,
    schema_of,
)
from .ranking import NONE, Ranked, joined, rank

sql = require("psycopg.sql", "postgres")

_MORE = 10  # times k items are ranked by the weights, as the order of expanded codes is not theirs
_ROOM = len("_distance")  # the longest ending of a name
_LEAST_IN_VIEW = 40  # items that a graph keeps in view, pgvector's default
_MOST_IN_VIEW = 1000  # and its most; beyond, it goes on in turns


class PostgresStore(Store):
    """Codes in a table of a PostgreSQL database, which is connected to until `close`.

    Where there is a server, as in the guide::

        with PostgresStore.write("postgresql://ann@db/shop", model, codes, table="photos") as store:
            likely = store.search(model.encode(queries), k=10)
            proven = store.search(model.encode(queries), k=10, exact=True)
    """

    def __init__(self, session: Session, layout: Layout, graph: Graph | None) -> None:
        self.session, self.layout, self.where = session, layout, session.where
        self.origin, self.table = layout.origin, layout.table
        self.hnsw = graph is not None  # whether there is a graph
        self._searched_by = _Search(layout, graph)

    @classmethod
    def write(
        cls,
        path: Path,
        model: Any,
        codes: ArrayLike,
        ids: ArrayLike | None = None,
        *,
        table: str = "codes",
        payload: Mapping[str, Any] | None = None,
        n_bits: int = 256,
        hnsw: bool = True,
        memory: int | None = None,
    ) -> Self:
        """Write codes into a new table, in one transaction: whole or not at all, also where the connection is lost.

        A table of codes of the same name is replaced, with its functions, indexes and grants; any other is an error.

        Parameters
        ----------
        path : URL of the database, postgresql://…
        model : the fitted estimator whose codes these are, or an `Origin`
        codes : (n, n_bytes) uint8, packed, of at most 1024 bits
        ids : (n,) int64, 0 or more, different, optional; default: row numbers
        table : its name, in the first schema of the search path
        payload : further columns by name, each with n values: bool, int, float, str, bytes or dict, None is NULL
        n_bits : bits of the expanded codes
        hnsw : whether to build a graph of pgvector; the extension is made in the schema public where it is not there
        memory : MB that building the graph may take, in place of the server's `maintenance_work_mem`
        """
        origin, packed, numbers = checked(model, codes, ids)
        given = Given(numbers, packed, payload_columns(payload, len(packed)))
        if hnsw and memory is not None:
            memory = check_whole(memory, 1, "memory")
        session = _session(path, table)
        layout = layout_of(origin, "", table, n_bits)

        def replaced(cursor: Any) -> None:
            here = replace(layout, schema=schema_of(cursor))
            replace_table(cursor, here, given, session.where, hnsw=hnsw, memory=memory)

        try:
            session.change(replaced)
            for notice in session.notices:
                if "maintenance_work_mem" in notice:
                    warnings.warn(f"{notice}: slow; memory= gives more", CGHashWarning, stacklevel=2)
        finally:
            session.close()
        return cls.open(path, table=table)

    @classmethod
    def open(cls, path: Path, model: Any = None, *, table: str = "codes") -> Self:
        """Open a table that `write` wrote; FormatError where its columns or functions were changed since."""
        session = _session(path, table)

        def found(cursor: Any) -> tuple[Layout, Graph | None]:
            schema = schema_of(cursor)
            relation = sql.Identifier(schema, table)
            layout = layout_from(read_about(cursor, relation), schema, table, session.where)
            check_table(cursor, layout, session.where)
            return layout, graph_of(cursor, relation)

        try:
            layout, graph = session.read(found)
            if model is not None:
                layout.origin.check(model, session.where)
        except BaseException:
            session.close()
            raise
        return cls(session, layout, graph)

    def close(self) -> None:
        """Give the connection back."""
        self.session.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __len__(self) -> int:
        count = sql.SQL("SELECT count(*) FROM {}").format(self.layout.relation)
        return int(self.session.read(lambda cursor: cursor.execute(count).fetchone()[0]))

    def upsert(self, model: Any, codes: ArrayLike, ids: ArrayLike, *, payload: Mapping[str, Any] | None = None) -> int:
        """Add codes, and replace those of ids that are there, in one transaction; doing it twice changes nothing more.

        Parameters
        ----------
        model : the one that made the codes, which is checked
        codes : (n, n_bytes) uint8, packed
        ids : (n,) int64, 0 or more, different
        payload : columns of the table by name; those that are not named stay as they are

        Returns
        -------
        changed : how many rows are new, or not what they were
        """
        self.origin.check(model, self.where)
        _, packed, numbers = checked(model, codes, ids)
        given = Given(numbers, packed, payload_columns(payload, len(packed)))

        def merged(cursor: Any) -> int:
            self._same(cursor, "ROW EXCLUSIVE")
            known = columns_of(cursor, self.layout.relation)
            for column in given.payload:
                if column.name not in known:
                    raise InvalidInputError(f"payload must be columns of {self.where}, got {column.name!r}")
            return merge_rows(cursor, self.layout, given)

        return self.session.change(merged)

    def remove(self, ids: ArrayLike) -> int:
        """Remove codes and their payload, in one transaction; how many there were. Others' ids are no error."""
        numbers = check_ids(ids).tolist()
        delete = sql.SQL("DELETE FROM {} WHERE id = ANY(%s)").format(beside_values(self.layout.relation))
        return int(self.session.change(lambda cursor: cursor.execute(delete, [numbers]).rowcount))

    def info(self) -> dict[str, Any]:
        """What is stored; also `table`, `payload` (types by name), `bytes`, `hnsw`, `expanded_bits`, and how many bits
        of positive weight the expansion has `lost`."""
        layout = self.layout

        def told(cursor: Any) -> dict[str, Any]:
            columns = columns_of(cursor, layout.relation)
            payload = {name: kind for name, (kind, _, _) in columns.items() if name not in layout.columns()}
            size = "SELECT pg_total_relation_size(to_regclass(%s))"
            (size,) = cursor.execute(size, [layout.relation.as_string()]).fetchone()
            return {"table": self.table, "payload": payload, "bytes": size}

        about = super().info() | self.session.read(told)
        return about | {"hnsw": self.hnsw, "expanded_bits": layout.expanded_bits, "lost": layout.lost}

    def search(self, queries: ArrayLike, k: int, *, candidates: int | None = None, exact: bool = False) -> Found:
        """The k nearest codes of each query, order (distance, id).

        Parameters
        ----------
        queries : (q, n_bytes) uint8, packed codes of the same model
        k : int
        candidates : how many of the nearest expanded codes are ranked by the weights; None is 10 times k
        exact : whether to scan the table for what could be nearer, so that every answer is proven. Without a graph
            the table is scanned in any case.
        """
        packed = check_codes(queries, self.origin.n_bits, "queries")
        return self._search(packed, check_asked(packed, k, candidates), candidates, exact)

    def search_items(self, model: Any, X: Any, k: int, *, candidates: int | None = None, exact: bool = False) -> Found:
        """The k nearest codes of each item; the model is checked to be the one that made the codes."""
        self.origin.check(model, self.where)
        return self.search(model.encode(X), k, candidates=candidates, exact=exact)

    def _search(self, queries: Codes, k: int, candidates: int | None = None, exact: bool = False) -> Found:
        def found(cursor: Any) -> list[Ranked]:
            self._same(cursor, "ACCESS SHARE")
            return self._searched_by.nearest(cursor, queries, k, candidates or _MORE * k, exact)

        return Found(*joined(self.origin, self.session.read(found), k))

    def _same(self, cursor: Any, mode: str) -> None:
        """Hold the table, so that none can be put in its place, and see that none was since it was opened."""
        cursor.execute(sql.SQL(f"LOCK TABLE {{}} IN {mode} MODE").format(self.layout.relation))
        about = read_about(cursor, self.layout.relation)
        if about != self.layout.header:
            now = layout_from(about, self.layout.schema, self.table, self.where)
            raise FormatError(
                f"{self.where} was replaced since it was opened: it held codes of fingerprint "
                f"{self.origin.fingerprint[:12]}…, now of {now.origin.fingerprint[:12]}…"
            )


def _session(url: Any, table: Any) -> Session:
    name = check_name(table, "table", _ROOM)
    return Session(url, f"table {name!r} of {place(url)}")


class _Search:
    """The statements that search a table: some by a graph or a scan, all that could be nearer by a bound."""

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
        n_bits = self.layout.expanded_bits
        return as_text(repeat_bits(query[None], self.layout.counts, n_bits), n_bits)[0]

    def _use_graph(self, cursor: Any, wanted: int) -> None:
        """Only the graph gives rows in order; it keeps enough in view, and goes on where these are too few."""
        assert self.graph is not None
        settings = {"enable_seqscan": "off", "enable_sort": "off"}
        settings["hnsw.ef_search"] = str(min(max(2 * wanted, _LEAST_IN_VIEW), _MOST_IN_VIEW))
        if self.graph.goes_on:
            settings["hnsw.iterative_scan"] = "strict_order"
        _set(cursor, settings)


def _set(cursor: Any, settings: dict[str, str]) -> None:
    """For this transaction."""
    calls = ", ".join(["set_config(%s, %s, true)"] * len(settings))
    cursor.execute(f"SELECT {calls}", [word for pair in settings.items() for word in pair])
