"""Tables of codes in a database: made, replaced, and checked for what others changed. All inside a transaction."""

from __future__ import annotations

import secrets
from dataclasses import replace
from typing import Any, NamedTuple

from .._arrays import Codes, Ints
from ..exceptions import FormatError, InvalidInputError, MissingDependencyError
from .base import require
from .postgres_copy import Column, copy_rows
from .postgres_layout import Layout, layout_from

psycopg = require("psycopg", "postgres")
sql = require("psycopg.sql", "postgres")

_EXTENSION = "vector"  # as pgvector calls itself
_LOCKS = 0x63676861  # the class of our locks among those of the database's other users


class Given(NamedTuple):
    """What is to be written."""

    ids: Ints
    codes: Codes
    payload: list[Column]


class Graph(NamedTuple):
    """An HNSW graph of pgvector."""

    operator: Any  # `<~>`, quoted
    goes_on: bool  # whether it can look further where it found too few, as pgvector 0.8 does


def schema_of(cursor: Any) -> str:
    """The schema in which tables are made and looked for: the first of the search path."""
    (name,) = cursor.execute("SELECT current_schema()").fetchone()
    if name is None:
        raise InvalidInputError("url must lead to a database with a schema, got one whose search path has none")
    return str(name)


def read_about(cursor: Any, relation: Any) -> str | None:
    """What a table says of itself: the comment on its column `code`. None without one, or without such a table."""
    row = cursor.execute(
        "SELECT col_description(attrelid, attnum) FROM pg_attribute "
        "WHERE attrelid = to_regclass(%s) AND attname = 'code' AND NOT attisdropped",
        [relation.as_string()],
    ).fetchone()
    return None if row is None else row[0]


def replace_table(cursor: Any, layout: Layout, given: Given, where: str, *, hnsw: bool, memory: int | None) -> None:
    """Make a table under another name, fill it, index it, and put it in the place of the old one.

    Who reads the old one waits only for the last step. A graph is built with so many MB of memory; None is what the
    server is set to.
    """
    cursor.execute("SELECT pg_advisory_xact_lock(%s, hashtext(%s))", [_LOCKS, layout.relation.as_string()])
    _is_ours(cursor, layout, where)  # before the work, and again after it
    new = replace(layout, table=f"cghash_{secrets.token_hex(8)}")
    _create_function(cursor, new, "expand")
    _create_table(cursor, new, given.payload)
    copy_rows(cursor, new.relation, given.ids, given.codes, layout.origin.n_bits, given.payload, "FREEZE")
    if hnsw:
        _create_graph(cursor, new, memory)
    _drop(cursor, layout, where)
    _rename(cursor, new, layout, hnsw)
    for suffix in ("distance", "nearest"):
        _create_function(cursor, layout, suffix)
    comment = sql.SQL("COMMENT ON COLUMN {}.code IS {}")
    cursor.execute(comment.format(layout.relation, sql.Literal(layout.header)))
    for suffix, (arguments, _, _) in layout.functions().items():
        comment = sql.SQL(f"COMMENT ON FUNCTION {{}}({arguments}) IS {{}}")
        cursor.execute(comment.format(layout.named(suffix), sql.Literal(_mark(layout))))


def merge_rows(cursor: Any, layout: Layout, given: Given) -> int:
    """Insert rows, change those whose ids are there already; how many of them are new or not what they were."""
    names = ["id", "code", *(column.name for column in given.payload)]
    columns = sql.SQL(", ").join(map(sql.Identifier, names))
    parts = {"table": layout.relation, "columns": columns, "given": sql.Identifier("pg_temp", "cghash_given")}
    parts["set"] = sql.SQL(", ").join(sql.SQL("{0} = excluded.{0}").format(sql.Identifier(n)) for n in names[1:])
    for side in ("old", "excluded"):
        parts[side] = sql.SQL(", ").join(sql.Identifier(side, name) for name in names[1:])
    cursor.execute(
        sql.SQL(
            "CREATE TEMPORARY TABLE cghash_given ON COMMIT DROP AS SELECT {columns} FROM {table} WITH NO DATA"
        ).format(**parts)
    )
    copy_rows(cursor, parts["given"], given.ids, given.codes, layout.origin.n_bits, given.payload, "")
    cursor.execute(
        sql.SQL(  # by id, so that two who write at once wait for each other in the same order
            "INSERT INTO {table} AS old ({columns}) SELECT {columns} FROM {given} ORDER BY id "
            "ON CONFLICT (id) DO UPDATE SET {set} WHERE ROW({old}) IS DISTINCT FROM ROW({excluded})"
        ).format(**parts)
    )
    return int(cursor.rowcount)


def columns_of(cursor: Any, relation: Any) -> dict[str, tuple[str, bool, str]]:
    """Type, NOT NULL and 's' for generated, of all columns of a table."""
    rows = cursor.execute(
        "SELECT attname, format_type(atttypid, atttypmod), attnotnull, attgenerated::text FROM pg_attribute "
        "WHERE attrelid = to_regclass(%s) AND attnum > 0 AND NOT attisdropped ORDER BY attnum",
        [relation.as_string()],
    ).fetchall()
    return {name: (kind, required, made) for name, kind, required, made in rows}


def check_table(cursor: Any, layout: Layout, where: str) -> None:
    """FormatError where columns, key or functions are no longer those of the description."""
    found = columns_of(cursor, layout.relation)
    for name, expected in layout.columns().items():
        if found.get(name) != expected:
            raise FormatError(f"{where} must have a column {name!r}: {_told(expected)}, got {_told(found.get(name))}")
    if not cursor.execute(_KEY, [layout.relation.as_string()]).fetchone()[0]:
        raise FormatError(f"{where} must have unique ids, got no primary key on 'id'")
    for suffix, (arguments, _, body) in layout.functions().items():
        name = f"{layout.table}_{suffix}"
        types = ", ".join(argument.split()[1] for argument in arguments.split(", "))
        if cursor.execute(_BODY, [layout.schema, name, types]).fetchone() != (body,):
            raise FormatError(f"{where} must have the function {name}({types}), got none, or another than was written")
    if not cursor.execute(_MADE_BY, [layout.relation.as_string(), layout.schema, f"{layout.table}_expand"]).fetchone():
        raise FormatError(f"{where} must have a column 'expanded' made by {layout.table}_expand, got another")


def graph_of(cursor: Any, relation: Any) -> Graph | None:
    """The HNSW graph of the table's expanded codes, where there is one."""
    row = cursor.execute(_GRAPH, [relation.as_string()]).fetchone()
    if row is None:
        return None
    schema, version = row
    operator = sql.SQL("OPERATOR({}.<~>)").format(sql.Identifier(schema))
    return Graph(operator, tuple(map(int, version.split(".")[:2])) >= (0, 8))


def _is_ours(cursor: Any, layout: Layout, where: str) -> bool:
    """Whether there is such a table already; one of someone else's is never replaced."""
    (there,) = cursor.execute("SELECT to_regclass(%s)", [layout.relation.as_string()]).fetchone()
    if there is None:
        return False
    try:
        layout_from(read_about(cursor, layout.relation), layout.schema, layout.table, where)
    except FormatError as error:
        raise InvalidInputError(f"table must be new or hold codes, got {layout.table!r}, and {error}") from error
    return True


def _create_function(cursor: Any, layout: Layout, suffix: str) -> None:
    arguments, result, body = layout.functions()[suffix]
    create = sql.SQL(f"CREATE FUNCTION {{}}({arguments}) RETURNS {result} LANGUAGE sql PARALLEL SAFE AS {{}}")
    cursor.execute(create.format(layout.named(suffix), sql.Literal(body)))


def _create_table(cursor: Any, layout: Layout, payload: list[Column]) -> None:
    own = sql.SQL(
        "id bigint CONSTRAINT cghash_id NOT NULL CONSTRAINT {} PRIMARY KEY CONSTRAINT cghash_least CHECK (id >= 0), "
        f"code bit({layout.origin.n_bits}) CONSTRAINT cghash_code NOT NULL, expanded bit({layout.expanded_bits}) "
        "CONSTRAINT cghash_expanded NOT NULL GENERATED ALWAYS AS ({}(code)) STORED"
    ).format(sql.Identifier(f"{layout.table}_pkey"), layout.named("expand"))
    more = [sql.SQL(f"{{}} {column.kind}").format(sql.Identifier(column.name)) for column in payload]
    cursor.execute(sql.SQL("CREATE TABLE {} ({})").format(layout.relation, sql.SQL(", ").join([own, *more])))


def _create_graph(cursor: Any, layout: Layout, memory: int | None) -> None:
    schema = _schema_of_pgvector(cursor)
    if memory is not None:
        cursor.execute("SELECT set_config('maintenance_work_mem', %s, true)", [f"{memory}MB"])
    create = sql.SQL("CREATE INDEX {} ON {} USING hnsw (expanded {})")
    name = sql.Identifier(f"{layout.table}_hnsw")
    cursor.execute(create.format(name, layout.relation, sql.Identifier(schema, "bit_hamming_ops")))


def _schema_of_pgvector(cursor: Any) -> str:
    """Where the extension is; it is made where it is not."""
    find = "SELECT extnamespace::regnamespace::text, extversion FROM pg_extension WHERE extname = %s"
    if cursor.execute(find, [_EXTENSION]).fetchone() is None:
        cursor.execute("SELECT pg_advisory_xact_lock(%s, hashtext('extension'))", [_LOCKS])
        try:
            with cursor.connection.transaction():
                create = sql.SQL("CREATE EXTENSION IF NOT EXISTS {} SCHEMA public")  # where others look for it
                cursor.execute(create.format(sql.Identifier(_EXTENSION)))
        except (psycopg.NotSupportedError, psycopg.ProgrammingError, psycopg.errors.UndefinedFile) as error:
            raise MissingDependencyError(
                "an HNSW graph needs the extension pgvector in the database (CREATE EXTENSION vector, by who may); "
                f"without one, hnsw=False. PostgreSQL says: {error.diag.message_primary}"
            ) from error
    row = cursor.execute(_CLASS).fetchone()
    if row is None:
        (_, version) = cursor.execute(find, [_EXTENSION]).fetchone()
        raise MissingDependencyError(f"an HNSW graph of bits needs pgvector 0.7 or later, the database has {version}")
    return str(row[0])


def _drop(cursor: Any, layout: Layout, where: str) -> None:
    """The table and the functions that were made for it."""
    if _is_ours(cursor, layout, where):
        cursor.execute(sql.SQL("LOCK TABLE {} IN ACCESS EXCLUSIVE MODE").format(layout.relation))
        _is_ours(cursor, layout, where)  # the one that is held, and no other
        cursor.execute(sql.SQL("DROP TABLE {}").format(layout.relation))
    names = [f"{layout.table}_{suffix}" for suffix in layout.functions()]
    for (function,) in cursor.execute(_MARKED, [layout.schema, names, _mark(layout)]).fetchall():
        cursor.execute(sql.SQL("DROP FUNCTION " + function))  # quoted by PostgreSQL


def _rename(cursor: Any, old: Layout, new: Layout, graph: bool) -> None:
    renamed = [("TABLE", old.relation, new.table), ("INDEX", old.named("pkey"), f"{new.table}_pkey")]
    renamed.append(("FUNCTION", sql.SQL("{}(bit)").format(old.named("expand")), f"{new.table}_expand"))
    if graph:
        renamed.append(("INDEX", old.named("hnsw"), f"{new.table}_hnsw"))
    for kind, name, to in renamed:
        cursor.execute(sql.SQL(f"ALTER {kind} {{}} RENAME TO {{}}").format(name, sql.Identifier(to)))


def _mark(layout: Layout) -> str:
    return f"made by cghash for the table {layout.table}"


def _told(column: tuple[str, bool, str] | None) -> str:
    if column is None:
        return "none"
    kind, required, made = column
    return kind + (" NOT NULL" if required else "") + (" GENERATED" if made else "")


_KEY = """
SELECT EXISTS (
    SELECT FROM pg_index JOIN pg_attribute ON attrelid = indrelid AND attname = 'id'
    WHERE indrelid = to_regclass(%s) AND indisunique AND indisvalid AND indpred IS NULL AND indkey::text = attnum::text
)"""
_BODY = """
SELECT prosrc FROM pg_proc JOIN pg_namespace n ON n.oid = pronamespace
WHERE nspname = %s AND proname = %s AND oidvectortypes(proargtypes) = %s"""
_MADE_BY = """
SELECT 1 FROM pg_attrdef d
JOIN pg_attribute a ON a.attrelid = d.adrelid AND a.attnum = d.adnum AND a.attname = 'expanded'
JOIN pg_depend p ON p.classid = 'pg_attrdef'::regclass AND p.objid = d.oid AND p.refclassid = 'pg_proc'::regclass
JOIN pg_proc f ON f.oid = p.refobjid JOIN pg_namespace n ON n.oid = f.pronamespace
WHERE d.adrelid = to_regclass(%s) AND n.nspname = %s AND f.proname = %s"""
_GRAPH = """
SELECT nspname, extversion FROM pg_extension e, pg_index i
JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_am m ON m.oid = c.relam AND m.amname = 'hnsw'
JOIN pg_opclass o ON o.oid = i.indclass[0] AND o.opcname = 'bit_hamming_ops'
JOIN pg_namespace n ON n.oid = o.opcnamespace
JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attname = 'expanded'
WHERE i.indrelid = to_regclass(%s) AND i.indisvalid AND i.indpred IS NULL AND i.indkey::text = a.attnum::text
AND e.extname = 'vector' LIMIT 1"""
_CLASS = """
SELECT nspname FROM pg_opclass JOIN pg_am m ON m.oid = opcmethod AND amname = 'hnsw'
JOIN pg_namespace n ON n.oid = opcnamespace WHERE opcname = 'bit_hamming_ops' LIMIT 1"""
_MARKED = """
SELECT f.oid::regprocedure::text FROM pg_proc f JOIN pg_namespace n ON n.oid = f.pronamespace
WHERE n.nspname = %s AND f.proname = ANY(%s) AND obj_description(f.oid, 'pg_proc') = %s"""
