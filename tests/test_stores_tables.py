"""Parquet files and tables of DuckDB: what other tools see, what was changed by them, names in SQL."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest

from cghash.exceptions import FormatError, InUseError, InvalidInputError
from cghash.stores import Origin
from cghash.stores.duckdb import DuckDBStore, quoted
from cghash.stores.parquet import ParquetStore

duckdb = pytest.importorskip("duckdb")
pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

NAMES = ["codes", "two words", 'x"; DROP TABLE other; --', "'", "select", "Ünï", "a.b", "?", "$k", "%s"]


@pytest.fixture
def origin():
    return Origin(np.random.default_rng(0).exponential(size=75))


@pytest.fixture
def codes():
    bits = np.random.default_rng(1).integers(0, 2, (100, 75), dtype=np.uint8)
    return np.packbits(bits, axis=1, bitorder="little")


# Parquet


def test_parquet_file_is_a_table_of_ids_and_binary_codes_for_any_reader(tmp_path, origin, codes):
    path = tmp_path / "codes.parquet"
    ParquetStore.write(path, origin, codes, np.arange(100) + 5)
    table = pq.read_table(path)
    assert table.schema.types == [pa.int64(), pa.binary(10)]
    assert table.column("id").to_pylist() == list(range(5, 105))
    assert table.column("code").to_pylist() == [code.tobytes() for code in codes]
    about = json.loads(table.schema.metadata[b"cghash"])
    assert (about["n_bits"], about["weights"], about["n_codes"]) == (75, list(origin.weights), 100)
    assert about["fingerprint"] == origin.fingerprint


def test_parquet_files_of_several_row_groups_are_read_whole(tmp_path, origin, codes, monkeypatch):
    monkeypatch.setattr("cghash.stores.parquet.ROWS_IN_A_GROUP", 17)
    ParquetStore.write(tmp_path / "codes.parquet", origin, codes)
    assert pq.ParquetFile(tmp_path / "codes.parquet").num_row_groups == 6
    np.testing.assert_array_equal(ParquetStore.open(tmp_path / "codes.parquet").codes, codes)


def rewritten(path, change):
    """A Parquet file as another tool might write it again."""
    table = pq.read_table(path)
    pq.write_table(change(table), path)


def with_about(table, **more):
    about = json.loads(table.schema.metadata[b"cghash"]) | more
    return table.replace_schema_metadata({b"cghash": json.dumps(about).encode()})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t.slice(1), "its ids and codes are not those that were written"),
        (lambda t: t.take([1, 0, *range(2, 100)]), "its ids and codes are not those that were written"),
        (lambda t: t.drop(["code"]), "must have a column 'code'"),
        (lambda t: t.set_column(0, "id", pa.array(["x"] * 100)), "must have a column 'id' of type int64"),
        (lambda t: t.replace_schema_metadata({}), "holds no description of cghash codes"),
        (lambda t: with_about(t, weights=[1.0] * 75), "its weights and its fingerprint do not agree"),
        (lambda t: with_about(t, weights=[-1.0] * 75), "parts do not fit together"),
        (lambda t: with_about(t, version=2), "format version 2"),
        (lambda t: with_about(t, format="other"), "must hold cghash-codes, got 'other'"),
    ],
)
def test_parquet_file_that_another_tool_changed_says_what_is_wrong(tmp_path, origin, codes, change, message):
    path = tmp_path / "codes.parquet"
    ParquetStore.write(path, origin, codes)
    rewritten(path, change)
    with pytest.raises(FormatError, match=message):
        ParquetStore.open(path)


def test_parquet_file_that_another_tool_only_compressed_otherwise_is_read(tmp_path, origin, codes):
    path = tmp_path / "codes.parquet"
    ParquetStore.write(path, origin, codes)
    pq.write_table(pq.read_table(path), path, compression="gzip", row_group_size=9)
    np.testing.assert_array_equal(ParquetStore.open(path, origin).codes, codes)


# DuckDB


@pytest.fixture
def database(tmp_path):
    """A file that holds a table of someone else."""
    path = tmp_path / "shop.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE other AS SELECT 42 AS answer")
    return path


def in_sql(path, sql):
    with duckdb.connect(str(path)) as connection:
        return connection.execute(sql).fetchall()


@pytest.mark.parametrize("table", NAMES)
def test_any_name_is_a_name_and_never_sql(database, origin, codes, table):
    with DuckDBStore.write(database, origin, codes, table=table) as store:
        assert store.search(codes[:3], 1).ids.tolist() == [[0], [1], [2]]
        assert store.info()["table"] == table
    assert in_sql(database, "SELECT answer FROM other") == [(42,)]
    assert {name for (name,) in in_sql(database, "SELECT table_name FROM duckdb_tables()")} == {
        "other",
        "cghash_codes",
        table,
    }


def test_table_may_have_a_name_that_looks_like_one_of_ours(database, origin, codes):
    for n in (100, 7):  # new, then replaced
        with DuckDBStore.write(database, origin, codes[:n], table="cghash_given") as store:
            assert len(store) == n
            assert store.search(codes[:3], 1).ids.tolist() == [[0], [1], [2]]


@pytest.mark.parametrize("table", ["", None, "a\0b"])
def test_what_is_no_name_is_refused(tmp_path, origin, codes, table):
    with pytest.raises(InvalidInputError, match="table must be a name"):
        DuckDBStore.write(tmp_path / "x.duckdb", origin, codes, table=table)
    assert quoted('"') == '""""'


def test_table_of_someone_else_is_never_replaced(database, origin, codes):
    for table in ("other", "OTHER"):
        with pytest.raises(InvalidInputError, match="holds something else"):
            DuckDBStore.write(database, origin, codes, table=table)
    with pytest.raises(InvalidInputError, match="table must not be 'cghash_codes'"):
        DuckDBStore.write(database, origin, codes, table="cghash_codes")
    assert in_sql(database, "SELECT answer FROM other") == [(42,)]


def test_names_that_differ_in_case_are_one_table_as_in_sql(database, origin, codes):
    DuckDBStore.write(database, origin, codes, table="Codes").close()
    DuckDBStore.write(database, origin, codes[:7], table="codes").close()
    with DuckDBStore.open(database, table="CODES") as store:
        assert len(store) == 7


def test_load_that_fails_in_its_middle_leaves_the_old_codes(database, origin, codes, monkeypatch):
    DuckDBStore.write(database, origin, codes).close()
    monkeypatch.setattr(Origin, "header", lambda self: 1 / 0)  # the last step before the commit
    with pytest.raises(ZeroDivisionError):
        DuckDBStore.write(database, Origin(np.ones(75)), codes[:3])
    with DuckDBStore.open(database, origin) as store:
        assert len(store) == 100


def test_ctrl_c_inside_duckdb_is_ctrl_c_and_leaves_the_old_codes(database, origin, codes, monkeypatch):
    DuckDBStore.write(database, origin, codes).close()

    def much_work(connection, *rest):  # long enough to be interrupted, which DuckDB does itself
        threading.Timer(0.1, signal.raise_signal, (signal.SIGINT,)).start()
        connection.execute(
            "SELECT count(*) FROM range(10000000) AS a, range(10000000) AS b WHERE a.range * b.range = 7"
        )

    with monkeypatch.context() as patch:
        patch.setattr("cghash.stores.duckdb._types", much_work)
        with pytest.raises(KeyboardInterrupt):
            DuckDBStore.write(database, origin, codes[:3])
    with DuckDBStore.open(database, origin) as store:
        assert len(store) == 100


@pytest.mark.parametrize(
    "change",
    [
        "ALTER TABLE codes DROP COLUMN word1",
        "ALTER TABLE codes ALTER word1 TYPE VARCHAR",
        "ALTER TABLE codes ADD COLUMN more INTEGER",
        "DROP TABLE codes",
        "DELETE FROM cghash_codes",
        "UPDATE cghash_codes SET about = '{}'",
        "DROP TABLE cghash_codes",
    ],
)
def test_table_whose_columns_or_description_were_changed_is_a_format_error(database, origin, codes, change):
    DuckDBStore.write(database, origin, codes).close()
    in_sql(database, change)
    with pytest.raises(FormatError, match=r"table 'codes' of .*shop\.duckdb"):
        DuckDBStore.open(database)


def test_a_table_that_does_not_fit_on_the_disk_names_its_file(database, origin, codes, monkeypatch):
    def full(*_):
        raise duckdb.IOException('IO Error: Could not write file "shop.duckdb": No space left on device')

    monkeypatch.setattr("cghash.stores.duckdb._write", full)
    with pytest.raises(OSError, match="No space left on device") as caught:
        DuckDBStore.write(database, origin, codes)
    assert caught.value.filename == str(database)


def test_a_view_of_a_stranger_reads_no_other_file(database, origin, codes, tmp_path):
    DuckDBStore.write(database, origin, codes).close()
    own = tmp_path / "own.csv"
    columns = "id::BIGINT AS id, word0::UBIGINT AS word0, word1::UBIGINT AS word1"
    view = f"CREATE VIEW codes AS SELECT {columns} FROM read_csv_auto('{own}')"
    in_sql(database, f"COPY codes TO '{own}'; DROP TABLE codes; {view}")
    assert in_sql(database, "SELECT count(*) FROM codes") == [(100,)]
    with DuckDBStore.open(database) as store, pytest.raises(FormatError, match="file system operations are disabled"):
        store.search(codes[:1], 1)


def test_rows_that_sql_removed_are_not_found(database, origin, codes):
    DuckDBStore.write(database, origin, codes).close()
    in_sql(database, "DELETE FROM codes WHERE id = 0")
    with DuckDBStore.open(database) as store:
        assert len(store) == 99
        assert 0 not in store.search(codes[:1], 99).ids


def test_file_that_another_process_writes_is_in_use(database, origin, codes):
    DuckDBStore.write(database, origin, codes).close()
    code = f"import duckdb; c = duckdb.connect({str(database)!r}); print('open', flush=True); input()"
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout.readline() == b"open\n"
        with pytest.raises(InUseError, match="in use"):
            DuckDBStore.open(database)
        other.communicate(b"\n")
    with DuckDBStore.open(database) as store:
        assert len(store) == 100
    with pytest.raises(InUseError, match="closed"):
        store.search(codes[:1], 1)
