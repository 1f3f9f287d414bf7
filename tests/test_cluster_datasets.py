"""Data sets in partitions: what workers would read is what was written, and what is wrong is said before."""

from __future__ import annotations

import gc
import os
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cghash.cluster import Dataset, connected
from cghash.exceptions import ClusterError, FormatError, InvalidInputError, MissingDataError, MissingDependencyError
from cghash.reading.sources import ALWAYS

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
da = pytest.importorskip("dask.array")


def vectors(n, d, dtype=np.float32, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d)).astype(dtype)


def list_column(X, kind="list"):
    flat = pa.array(X.ravel())
    if kind == "fixed_size_list":
        return pa.FixedSizeListArray.from_arrays(flat, X.shape[1])
    arrays = {"list": (pa.ListArray, np.int32), "large_list": (pa.LargeListArray, np.int64)}[kind]
    return arrays[0].from_arrays(pa.array(np.arange(len(X) + 1, dtype=arrays[1]) * X.shape[1]), flat)


def write(path, X, rows=1000, kind="list", **columns):
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table({"vector": list_column(X, kind), **columns}), path, row_group_size=rows)
    return path


def assert_holds(dataset, ids, X, y=None):
    got = dataset.read()
    np.testing.assert_array_equal(got.ids, ids)
    np.testing.assert_array_equal(got.X, X)
    if y is None:
        assert got.y is None
    else:
        np.testing.assert_array_equal(got.y, y)


@settings(max_examples=25)
@given(
    n=st.integers(1, 60),
    d=st.integers(1, 5),
    rows=st.integers(1, 70),
    batch=st.integers(1, 70),
    kind=st.sampled_from(["list", "large_list", "fixed_size_list"]),
    dtype=st.sampled_from([np.float32, np.float64, np.float16, np.int16, np.int64]),
    by=st.sampled_from(["row group", "file"]),
)
def test_pieces_of_any_size_join_to_what_was_written(tmp_path_factory, n, d, rows, batch, kind, dtype, by):
    X = (10 * vectors(n, d)).astype(dtype)
    path = write(tmp_path_factory.mktemp("data") / "a.parquet", X, rows, kind)
    data = Dataset.from_parquet(path, partition=by)
    assert (len(data), data.n_features) == (n, d)
    assert data.dtype == ("float32" if dtype in (np.float32, np.float16, np.int16) else "float64")
    assert len(data.partitions) == (1 if by == "file" else -(-n // rows))
    assert_holds(data, np.arange(n), X)
    for part in data.partitions:
        blocks = list(part.read_batches(batch))
        assert all(len(block.X) <= min(batch, rows) for block in blocks)
        np.testing.assert_array_equal(np.concatenate([b.X for b in blocks]), part.read().X)


def test_files_of_a_folder_come_in_the_order_of_their_names_with_ids_and_labels(tmp_path):
    X = vectors(50, 3)
    ids, labels = np.arange(50) * 7 + 5, np.array(["cat", "dog", "emu", "fox", "gnu"])[np.arange(50) % 5]
    for name, rows in (("b/1.parquet", slice(20, 50)), ("a.parquet", slice(0, 20))):
        write(tmp_path / name, X[rows], 8, key=pa.array(ids[rows]), label=pa.array(labels[rows]))
    write(tmp_path / "_old.parquet", X)
    (tmp_path / "notes.txt").write_text("not data")
    data = Dataset.from_parquet(tmp_path, ids="key", labels="label")
    assert_holds(data, ids, X, labels)
    assert [part.name for part in data.partitions][:3] == [f"a.parquet, row group {i}" for i in range(3)]
    assert_holds(Dataset.from_parquet(tmp_path), np.arange(50), X)
    assert repr(data).endswith("50 items of 3 features, float32, with labels, in 7 partitions>")


def test_columns_of_numbers_are_features_in_the_order_asked_for(tmp_path):
    table = pa.table({"a": [1, 2], "b": pa.array([0.5, 1.5], pa.float32()), "c": pa.array([7, 8], pa.int8())})
    pq.write_table(table, tmp_path / "t.parquet")
    data = Dataset.from_parquet(tmp_path / "t.parquet", vector=["c", "a"])
    assert_holds(data, [0, 1], [[7.0, 1.0], [8.0, 2.0]])
    assert data.dtype == "float64"
    assert_holds(Dataset.from_parquet(tmp_path / "t.parquet", vector="b"), [0, 1], [[0.5], [1.5]])


def test_columns_that_are_not_read_and_nulls_count_for_nothing(tmp_path):
    """One group after another is read: what others hold, and what is null, takes no memory."""
    n = ALWAYS // 8 + 1
    zeros = {"x": np.zeros(n), "n": pa.nulls(n, pa.float64()), "v": np.arange(n, dtype=np.int8)}
    pq.write_table(pa.table(zeros), tmp_path / "t.parquet", row_group_size=n // 2 + 1, compression="zstd")
    assert Dataset.from_parquet(tmp_path / "t.parquet", vector="v").n_features == 1
    assert Dataset.from_parquet(tmp_path / "t.parquet", vector=["x", "v"]).n_features == 2
    pq.write_table(pa.table({"x": zeros["x"]}), tmp_path / "t.parquet", row_group_size=n, compression="zstd")
    with pytest.raises(FormatError, match="must not hold much more than its size"):
        Dataset.from_parquet(tmp_path / "t.parquet", vector="x")


def test_categories_are_read_as_their_words(tmp_path):
    words = pa.array(["x", "y", "x"]).dictionary_encode()
    data = Dataset.from_parquet(write(tmp_path / "t.parquet", vectors(3, 2), label=words), labels="label")
    assert data.read().y.tolist() == ["x", "y", "x"]


def test_empty_files_are_allowed_beside_others(tmp_path):
    X = vectors(4, 2)
    write(tmp_path / "a.parquet", X[:0])
    write(tmp_path / "b.parquet", X)
    assert_holds(Dataset.from_parquet(tmp_path), np.arange(4), X)
    assert_holds(Dataset.from_parquet(tmp_path, partition="file"), np.arange(4), X)


def test_a_partition_is_small_on_its_way_and_reads_elsewhere(tmp_path):
    X = vectors(5000, 8)
    data = Dataset.from_parquet(write(tmp_path / "t.parquet", X, 1000))
    for part, first in zip(data.partitions, range(0, 5000, 1000), strict=True):
        sent = pickle.dumps(part)
        assert len(sent) < 2000
        there = pickle.loads(sent)  # noqa: S301
        np.testing.assert_array_equal(there.read().X, X[first : first + 1000])


def test_a_mapped_file_stays_where_it_is(tmp_path):
    X = vectors(300, 4)
    np.save(tmp_path / "X.npy", X)
    data = Dataset.from_arrays(np.load(tmp_path / "X.npy", mmap_mode="r"), y=np.arange(300) % 3, rows=128)
    assert len(pickle.dumps(data.partitions[0])) < 4000
    assert_holds(data, np.arange(300), X, np.arange(300) % 3)
    later = os.stat(tmp_path / "X.npy").st_mtime_ns + 10**9
    os.utime(tmp_path / "X.npy", ns=(later, later))
    with pytest.raises(FormatError, match="has changed since"):
        data.partitions[0].read()


@settings(max_examples=25)
@given(n=st.integers(1, 40), d=st.integers(1, 4), rows=st.integers(1, 50), cut=st.integers(1, 4))
def test_dask_arrays_and_arrays_hold_the_same(n, d, rows, cut):
    X, y, ids = vectors(n, d, np.float64), np.arange(n) % 3, np.arange(n)[::-1] + 10
    arrays = Dataset.from_arrays(X, y, ids, rows=rows)
    assert_holds(arrays, ids, X, y)
    blocks = Dataset.from_dask(
        da.from_array(X, chunks=(rows, cut)) * 1.0, da.from_array(y, chunks=3), da.from_array(ids, chunks=7)
    )
    assert_holds(blocks, ids, X, y)
    assert [p.n_rows for p in blocks.partitions] == [p.n_rows for p in arrays.partitions]


def test_a_block_travels_without_the_tasks_of_the_others():
    X = da.random.default_rng(0).normal(size=(64_000, 4), chunks=(1000, 4)).astype(np.float32)
    parts = Dataset.from_dask(X).partitions
    assert max(len(pickle.dumps(part)) for part in parts) < 10_000


def test_fingerprints_tell_data_apart(tmp_path):
    X = vectors(20, 2)
    path = write(tmp_path / "t.parquet", X, 10)
    data = Dataset.from_parquet(path)
    assert Dataset.from_parquet(path).fingerprint == data.fingerprint
    assert Dataset.from_parquet(path, partition="file").fingerprint != data.fingerprint
    assert Dataset.from_arrays(X).fingerprint == Dataset.from_arrays(X.copy()).fingerprint
    assert Dataset.from_arrays(X).fingerprint != Dataset.from_arrays(X + 1).fingerprint
    write(path, X + 1, 10)
    assert Dataset.from_parquet(path).fingerprint != data.fingerprint
    with pytest.raises(FormatError, match=r"t\.parquet, row group 0 has changed since the data set was listed"):
        data.partitions[0].read()


def ragged(lengths):
    return pa.array([[0.0] * length for length in lengths])


@pytest.mark.parametrize(
    ("column", "words"),
    [
        (ragged([2, 3]), "lists of one length, got 5 numbers in 2 rows"),
        (ragged([1, 3]), "row 0: column 'vector' must hold lists of one length, 2 here, got 1"),
        (pa.array([[1.0, 2.0], None, [1.0, 2.0]]), "must hold lists of one length"),
        (pa.array([[1.0, None], [1.0, 2.0]]), "row 0: column 'vector' must not hold nulls"),
        (pa.array([[1.0, 2.0], [1.0, float("nan")]]), "row 1: must hold finite numbers, got nan in place 1"),
        (pa.array([[1.0, float("inf")]]), "row 0: must hold finite numbers, got inf in place 1"),
        (pa.array([["a"]]), "must hold numbers or lists of numbers, got list<"),
        (pa.array(["a"]), "must hold numbers or lists of numbers, got string"),
        (pa.array([], pa.list_(pa.float32())), "must hold at least one item"),
        (pa.array([1.0, None]), "row 1: column 'vector' must not hold nulls"),
    ],
)
def test_what_is_no_vector_is_named(tmp_path, column, words):
    pq.write_table(pa.table({"vector": column}), tmp_path / "t.parquet")
    with pytest.raises(InvalidInputError) as caught:
        Dataset.from_parquet(tmp_path / "t.parquet").read()
    assert words in str(caught.value)


def test_a_null_list_among_others_is_refused_where_its_count_goes_unnoticed(tmp_path):
    column = pa.array([[1.0], None, [2.0]])  # a missing list counts as one number in the footer
    pq.write_table(pa.table({"vector": column}), tmp_path / "t.parquet")
    with pytest.raises(InvalidInputError, match=r"t\.parquet, row group 0, row 1: column 'vector' must not hold nulls"):
        Dataset.from_parquet(tmp_path / "t.parquet").read()


def test_wrong_columns_are_named(tmp_path):
    columns = {"name": pa.array(["a", "b", None]), "key": pa.array([1, -1, 2]), "many": ragged([1, 1, 1])}
    path = write(tmp_path / "t.parquet", vectors(3, 2), **columns)
    wrong = [
        ({"vector": "vec"}, "must have one column 'vec', got 'vector', 'name'"),
        ({"vector": []}, "vector must name at least one column"),
        ({"vector": ["vector"]}, "must hold one number a row"),
        ({"ids": "name"}, "'name' must hold whole numbers as ids, got string"),
        ({"labels": "many"}, "'many' must hold one label a row"),
        ({"labels": "name"}, "row 2: column 'name' must not hold nulls"),
        ({"ids": "key"}, "ids of t.parquet, row group 0 must be 0 or more, got -1"),
        ({"partition": "day"}, "partition must be one of"),
    ]
    for given_, words in wrong:
        with pytest.raises(InvalidInputError) as caught:
            Dataset.from_parquet(path, **given_).read()
        assert words in str(caught.value)


def test_files_of_different_schemas_are_refused_when_listed(tmp_path):
    write(tmp_path / "a.parquet", vectors(3, 2))
    write(tmp_path / "b.parquet", vectors(3, 2, np.float64))
    with pytest.raises(
        InvalidInputError, match=r"'vector' is list<.*float> in a\.parquet, list<.*double> in b\.parquet"
    ):
        Dataset.from_parquet(tmp_path)
    write(tmp_path / "b.parquet", vectors(3, 4))
    with pytest.raises(InvalidInputError, match=r"one length: 2 in a\.parquet, row group 0, 4 in b\.parquet"):
        Dataset.from_parquet(tmp_path)
    pq.write_table(pa.table({"other": [1]}), tmp_path / "b.parquet")
    with pytest.raises(InvalidInputError, match=r"b\.parquet must have one column 'vector', got 'other'"):
        Dataset.from_parquet(tmp_path)


def test_what_is_no_parquet_file_is_refused(tmp_path):
    with pytest.raises(MissingDataError, match="no such file or folder"):
        Dataset.from_parquet(tmp_path / "nothing")
    with pytest.raises(MissingDataError, match=r"end in \.parquet, \.arrow, \.feather, got none"):
        Dataset.from_parquet(tmp_path)
    whole = write(tmp_path / "t.parquet", vectors(200, 4)).read_bytes()
    for content in (b"", b"PAR1", whole[:100], whole[: len(whole) // 2], b"x" * 1000):
        (tmp_path / "t.parquet").write_bytes(content)
        with pytest.raises(FormatError, match="is not a Parquet or Arrow file, or it is damaged"):
            Dataset.from_parquet(tmp_path)


@settings(max_examples=40)
@given(place=st.floats(0, 1), value=st.integers(0, 255))
def test_a_changed_byte_is_an_error_or_harmless(tmp_path_factory, place, value):
    """Any byte may change before the data set is listed: reading raises one of our errors, or gives numbers."""
    path = write(tmp_path_factory.mktemp("data") / "t.parquet", vectors(50, 4), 20, key=pa.array(np.arange(50)))
    content = bytearray(path.read_bytes())
    content[int(place * (len(content) - 1))] = value
    path.write_bytes(content)
    try:
        got = Dataset.from_parquet(path, ids="key").read()
    except (InvalidInputError, FormatError):
        return
    assert got.X.shape == (len(got.ids), 4)


def test_wrong_arrays_are_refused():
    X = vectors(4, 2)
    wrong = [
        (lambda: Dataset.from_arrays(X[0]), "X must have shape"),
        (lambda: Dataset.from_arrays(X[:0]), "X must have shape"),
        (lambda: Dataset.from_arrays(X, np.arange(3)), r"y must have shape \(4,\)"),
        (lambda: Dataset.from_arrays(X, ids=np.arange(3)), r"ids must have shape \(4,\)"),
        (lambda: Dataset.from_arrays(X.astype(str)), "X must hold numbers"),
        (lambda: Dataset.from_arrays(X, rows=0), "rows must be a whole number"),
        (lambda: Dataset.from_arrays(X / 0).read(), "must hold finite numbers"),
        (lambda: Dataset.from_arrays(X).partitions[0].read_batches(0).__next__(), "rows must be a whole number"),
        (lambda: Dataset.from_dask(da.from_array(X)[da.from_array(X)[:, 0] > 0]), "compute_chunk_sizes"),
        (lambda: Dataset.from_dask(da.from_array(X), da.zeros(3)), r"y must have shape \(4,\)"),
    ]
    with np.errstate(divide="ignore"):
        for call, words in wrong:
            with pytest.raises(InvalidInputError, match=words):
                call()


def read_part(part):
    return part.read()


@pytest.mark.slow
def test_workers_make_the_blocks_that_they_read():
    X = vectors(400, 3)
    with connected(n_workers=1) as client:
        lazy = da.from_array(X, chunks=(150, 3))
        blocks = client.gather(
            [client.submit(read_part, part, pure=False) for part in Dataset.from_dask(lazy).partitions]
        )
        np.testing.assert_array_equal(np.concatenate([block.X for block in blocks]), X)
        held = client.persist(lazy)
        with pytest.raises(InvalidInputError, match="X must not be persisted"):
            Dataset.from_dask(held)


@pytest.mark.slow
def test_a_cluster_of_this_machine_listens_on_loopback_only():
    psutil = pytest.importorskip("psutil")
    with connected(n_workers=2):
        processes = [psutil.Process(), *psutil.Process().children(recursive=True)]
        found = [c.laddr.ip for p in processes for c in p.net_connections("inet") if c.status == psutil.CONN_LISTEN]
    assert found
    assert set(found) == {"127.0.0.1"}


def test_a_scheduler_that_is_not_there_is_an_error_in_words(monkeypatch):
    monkeypatch.setattr("cghash.cluster.clients._SECONDS", 0.5)
    for address in ("tcp://127.0.0.1:1", "no address"):
        with pytest.raises(ClusterError, match=f"the scheduler at {address} cannot be reached"), connected(address):
            pass


def test_nothing_is_collected_while_a_client_starts(monkeypatch):
    """Else a client that nobody closed may be closed in the loop that starts, and both wait for each other."""
    distributed = pytest.importorskip("distributed")
    seen = []

    def client(*_, **__):
        seen.append(gc.isenabled())
        raise OSError("no scheduler")

    monkeypatch.setattr(distributed.Client, "__init__", client)
    monkeypatch.setattr(distributed.Client, "__del__", lambda _: None)
    with pytest.raises(ClusterError, match="no scheduler"), connected("tcp://127.0.0.1:1"):
        pass
    assert seen == [False]
    assert gc.isenabled()


@pytest.mark.slow
def test_a_scheduler_without_workers_is_an_error_in_words(monkeypatch):
    distributed = pytest.importorskip("distributed")
    monkeypatch.setattr("cghash.cluster.clients._FOR_WORKERS", 0.5)
    here = {"host": "127.0.0.1", "dashboard_address": "127.0.0.1:0"}
    with distributed.LocalCluster(n_workers=0, **here) as cluster:
        for client in (cluster.scheduler_address, distributed.Client(cluster, set_as_default=False)):
            with pytest.raises(ClusterError, match="has no workers"), connected(client):
                pass


def test_wrong_clients_are_refused(monkeypatch):
    for given_, words in (({"client": 5}, "client must be"), ({"client": "a", "n_workers": 1}, "n_workers is for")):
        with pytest.raises(InvalidInputError, match=words), connected(**given_):
            pass
    with pytest.raises(InvalidInputError, match="n_workers must be"), connected(n_workers=0):
        pass
    monkeypatch.setitem(__import__("sys").modules, "distributed", None)
    with pytest.raises(MissingDependencyError, match=r"cghash\[dask\]"), connected():
        pass


@pytest.mark.parametrize("fixed", [True, False], ids=["fixed lists", "lists"])
def test_arrow_files_are_read_as_parquet_files_are(tmp_path, fixed):
    X = np.random.default_rng(0).normal(size=(100, 3)).astype(np.float32)
    kind = pa.list_(pa.float32(), 3) if fixed else pa.list_(pa.float32())
    table = pa.table(
        {"vector": pa.array(list(X), kind), "key": np.arange(100) + 7, "kind": [f"k{i % 3}" for i in range(100)]}
    )
    for name, write in (("a.arrow", pa.ipc.new_file), ("b.feather", pa.ipc.new_file)):
        with write(str(tmp_path / name), table.schema) as file:
            file.write_table(table, max_chunksize=40)
    whole = Dataset.from_parquet(tmp_path / "a.arrow", ids="key", labels="kind")
    assert [part.n_rows for part in whole.partitions] == [40, 40, 20]
    block = whole.read()
    np.testing.assert_array_equal(block.X, X)
    np.testing.assert_array_equal(block.ids, np.arange(100) + 7)
    assert block.y[:4].tolist() == ["k0", "k1", "k2", "k0"]
    assert [len(b.ids) for b in whole.partitions[0].read_batches(16)] == [16, 16, 8]
    assert len(Dataset.from_parquet(tmp_path, partition="file").partitions) == 2
    assert whole.partitions[0].fingerprint != Dataset.from_parquet(tmp_path / "b.feather").partitions[0].fingerprint
    (tmp_path / "a.arrow").write_bytes((tmp_path / "a.arrow").read_bytes()[:-30])
    with pytest.raises(FormatError, match=r"not a Parquet or Arrow file, or it is damaged|has changed"):
        whole.partitions[0].read()
    with pytest.raises(FormatError, match="not a Parquet or Arrow file, or it is damaged"):
        Dataset.from_parquet(tmp_path / "a.arrow")
