"""Parquet files and tables of DuckDB: what other tools see, what was changed by them, names in SQL."""

from __future__ import annotations

import errno
import json
import signal
import struct
import subprocess
import sys
import threading

import numpy as np
import pytest

from cghash.exceptions import FormatError, InUseError, InvalidInputError
from cghash.stores import Origin
from cghash.stores import duckdb as module
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
        (lambda t: with_about(t, weights=[[1], [1, 2]]), "parts do not fit together"),
        (lambda t: with_about(t, functions="\ud800"), "parts do not fit together"),
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


def test_parquet_file_of_zeros_without_end_is_refused_before_it_is_read(tmp_path, origin):
    ids = pa.array(np.zeros((1 << 25) + 1, dtype=np.int64))
    table = pa.table({"id": ids, "code": pa.array([b""] * 0, pa.binary(10)).take(pa.nulls(len(ids), pa.int64()))})
    pq.write_table(table, tmp_path / "codes.parquet", compression="zstd")
    with pytest.raises(FormatError, match="must not hold much more than its size"):
        ParquetStore.open(tmp_path / "codes.parquet")


def test_other_columns_of_a_parquet_file_are_not_read(tmp_path, origin, codes):
    path = tmp_path / "codes.parquet"
    ParquetStore.write(path, origin, codes)
    rewritten(path, lambda table: table.append_column("more", pa.array(["x"] * 100)))
    np.testing.assert_array_equal(ParquetStore.open(path, origin).codes, codes)


# DuckDB


@pytest.fixture(autouse=True)
def not_tried(request, monkeypatch):
    """No other process opens a file first, which takes most of the time, but where a test asks for `tried`."""
    if "tried" not in request.fixturenames:
        monkeypatch.setattr(module, "_check_can_be_opened", lambda path: None)


@pytest.fixture
def tried():
    """Files are tried out first, as always."""


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


@pytest.fixture
def heeded():
    """Ctrl-C as Python handles it; jobs in the background are started with it ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_ctrl_c_inside_duckdb_is_ctrl_c_and_leaves_the_old_codes(database, origin, codes, monkeypatch, heeded):
    DuckDBStore.write(database, origin, codes).close()

    def much_work(connection, *rest):  # it ends: Ctrl-C waits for the threads of DuckDB that have a part of it
        threading.Timer(0.05, signal.raise_signal, (signal.SIGINT,)).start()
        connection.execute("SELECT max(range) FROM range(2000000000)")

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


@pytest.mark.parametrize("kind", [signal.SIGINT, None])
def test_what_ends_a_commit_is_told_and_not_that_there_is_nothing_to_roll_back(database, origin, codes, kind, heeded):
    """Ctrl-C when it is whole, or a disk that is full."""

    class Ending:
        def __init__(self, connection):
            self.connection = connection

        def __getattr__(self, name):
            return getattr(self.connection, name)

        def execute(self, sql, *values):
            if sql == "COMMIT":
                self.connection.execute(sql)
                if kind is None:
                    raise duckdb.IOException("IO Error: Could not write file: File too large")
                signal.raise_signal(kind)
            return self.connection.execute(sql, *values)

    about = (Ending(duckdb.connect(str(database))), "codes", origin, codes, np.arange(100))
    ends = pytest.raises(KeyboardInterrupt if kind else OSError, match=None if kind else "File too large")
    with ends as caught, module._errors(database):
        module._write(*about)
    assert kind or (caught.value.errno, caught.value.filename) == (errno.EFBIG, str(database))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("ALTER TABLE codes RENAME TO t; CREATE VIEW codes AS SELECT t.* FROM t, range(10000000000000)", "got a view"),
        ("ALTER TABLE cghash_codes RENAME TO t; CREATE VIEW cghash_codes AS SELECT t.* FROM t, range(10000000000000)",
         "not a table of codes"),
        ("DROP TABLE codes; CREATE TABLE codes (id BIGINT, word0 UBIGINT, word1 UBIGINT AS (len(range(id))::UBIGINT))",
         "computed columns"),
        ("CREATE MACRO LIST_extract(a, b) AS 0", "function 'LIST_extract' hides DuckDB's own"),
        ("CREATE MACRO \"+\"(a, b) AS 0", "hides DuckDB's own"),
    ],
)  # fmt: skip
def test_a_file_of_a_stranger_brings_no_work_and_no_functions(tried, database, origin, codes, change, message):
    DuckDBStore.write(database, origin, codes).close()
    in_sql(database, change)
    with pytest.raises(FormatError, match=message):
        DuckDBStore.open(database)


def test_functions_of_ones_own_do_not_matter(database, origin, codes):
    in_sql(database, "CREATE MACRO of_mine(a) AS a + 1")
    with DuckDBStore.write(database, origin, codes) as store:
        assert len(store) == 100


def test_a_name_in_a_file_that_is_no_utf8_is_a_format_error(database, origin, codes, monkeypatch):
    DuckDBStore.write(database, origin, codes).close()
    monkeypatch.setattr("cghash.stores.duckdb._types", lambda *_: b"\xff".decode())
    with pytest.raises(FormatError, match="damaged"):
        DuckDBStore.open(database)


def test_ones_own_connection_with_other_settings_is_named(database, origin, codes):
    DuckDBStore.write(database, origin, codes).close()
    with duckdb.connect(str(database), read_only=True), pytest.raises(InUseError, match="by other settings"):
        DuckDBStore.open(database)


def test_a_file_with_which_duckdb_never_comes_back_is_refused_in_time(tried, tmp_path, origin, codes, monkeypatch):
    path = tmp_path / "forged.duckdb"
    DuckDBStore.write(path, origin, codes).close()
    content, header, block = bytearray(path.read_bytes()), 4096, 262144
    assert struct.unpack_from("<Q", content, header + 24)[0] == 2 << 56, "the list of free blocks is elsewhere now"
    first = 3 * header
    content[first + 8 : first + block] = bytes(block - 8)  # each part of block 0 is followed by part 0 of block 0
    struct.pack_into("<Q", content, first + 8 + 2 * 4088 + 8, 1 << 62)  # so many blocks are free
    words = np.frombuffer(content, "<u8", block // 8 - 1, first + 8)
    total = 5381 ^ int(np.bitwise_xor.reduce(words * np.uint64(0xBF58476D1CE4E5B9)))
    struct.pack_into("<Q", content, first, total)
    path.write_bytes(content)
    monkeypatch.setattr("cghash.stores.duckdb._PATIENCE", 1.0)
    for use in (lambda: DuckDBStore.open(path), lambda: DuckDBStore.write(path, origin, codes)):
        with pytest.raises(FormatError, match=r"forged\.duckdb is damaged: DuckDB did not open it in 1 s"):
            use()


def test_a_file_that_crashes_duckdb_is_refused(tried, database, origin, codes, monkeypatch):
    DuckDBStore.write(database, origin, codes).close()
    monkeypatch.setattr("cghash.stores.duckdb._OPEN", "import os; os.abort()")
    with pytest.raises(FormatError, match=r"crashes when it opens it \(signal 6\)"):
        DuckDBStore.open(database)


def test_a_view_of_a_stranger_reads_no_other_file(tried, database, origin, codes, tmp_path, monkeypatch):
    DuckDBStore.write(database, origin, codes).close()
    own = tmp_path / "own.csv"
    columns = "id::BIGINT AS id, word0::UBIGINT AS word0, word1::UBIGINT AS word1"
    view = f"CREATE VIEW codes AS SELECT {columns} FROM read_csv_auto('{own}')"
    in_sql(database, f"COPY codes TO '{own}'; DROP TABLE codes; {view}")
    assert in_sql(database, "SELECT count(*) FROM codes") == [(100,)]
    with pytest.raises(FormatError, match="got a view"):
        DuckDBStore.open(database)
    monkeypatch.setattr("cghash.stores.duckdb._is_stored", lambda *_: True)
    with DuckDBStore.open(database) as store, pytest.raises(FormatError, match="file system operations are disabled"):
        store.search(codes[:1], 1)


def test_rows_that_sql_removed_are_not_found(database, origin, codes):
    DuckDBStore.write(database, origin, codes).close()
    in_sql(database, "DELETE FROM codes WHERE id = 0")
    with DuckDBStore.open(database) as store:
        assert len(store) == 99
        assert 0 not in store.search(codes[:1], 99).ids


def test_file_that_another_process_writes_is_in_use(tried, database, origin, codes):
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
