"""encode on a real cluster of processes: the codes are the model's, whoever dies on the way."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import warnings

import numpy as np
import psutil
import pytest

from cghash import CGHash
from cghash.cluster import Dataset, Encoded, connected, encode
from cghash.cluster.encoded_parts import encode_part
from cghash.cluster.work_folders import MANIFEST, MODEL
from cghash.exceptions import CGHashWarning, ClusterError, FormatError, InvalidInputError
from cghash.peers import LSH, PQ
from cghash.stores.parquet import ParquetStore, read_codes

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
da = pytest.importorskip("dask.array")


@pytest.fixture(scope="module")
def client():
    with connected(n_workers=2) as opened:
        yield opened


@pytest.fixture(scope="module", name="X")
def some_items():
    return np.random.default_rng(0).normal(size=(2000, 6)).astype(np.float32)


@pytest.fixture(scope="module")
def model(X):
    return LSH(20, random_state=0).fit(X)


@pytest.fixture
def items(tmp_path, X):
    """A folder of two files, in eleven row groups, with ids of their own."""
    for name, rows in (("a.parquet", slice(0, 900)), ("b.parquet", slice(900, 2000))):
        vectors = pa.FixedSizeListArray.from_arrays(pa.array(X[rows].ravel()), X.shape[1])
        table = pa.table({"vector": vectors, "key": np.arange(*rows.indices(2000)) * 3})
        (tmp_path / "items").mkdir(exist_ok=True)
        pq.write_table(table, tmp_path / "items" / name, row_group_size=200)
    return Dataset.from_parquet(tmp_path / "items", ids="key")


def codes_of(encoded):
    """All ids and codes, in the order of the parts."""
    found = [read_codes(encoded.folder / part.file) for part in encoded.parts]
    return np.concatenate([ids for _, _, ids in found]), np.concatenate([codes for _, codes, _ in found])


def assert_whole(encoded, model, X):
    ids, codes = codes_of(encoded)
    np.testing.assert_array_equal(ids, np.arange(2000) * 3)
    np.testing.assert_array_equal(codes, model.encode(X))
    assert not list(encoded.folder.glob(".*"))


def wait_until_gone(processes, seconds=60):
    """Until none of them runs; what nobody has asked for the exit code of is a zombie."""
    last = time.monotonic() + seconds
    while any(runs(one) for one in processes):
        assert time.monotonic() < last, processes
        time.sleep(0.02)


def runs(process):
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def states(folder):
    return {path.name: (path.stat().st_ino, path.stat().st_mtime_ns) for path in folder.glob("part-*")}


def test_parts_are_read_by_our_store_and_by_any_other_reader(items, model, X, tmp_path, client):
    encoded = encode(items, model, tmp_path / "codes", client, rows=70)
    assert_whole(encoded, model, X)
    assert (len(encoded), len(encoded.parts), encoded.n_kept) == (2000, 11, 0)
    store = ParquetStore.open(tmp_path / "codes" / "part-000005.parquet", model)
    assert store.info()["n_codes"] == len(store) == 200
    table = pq.read_table(tmp_path / "codes")
    assert table.schema.names == ["id", "code"]
    assert (table.schema.field("id").type, table.schema.field("code").type) == (pa.int64(), pa.binary(3))
    assert table.num_rows == 2000
    again = Encoded.open(tmp_path / "codes")
    assert (again.parts, again.origin.fingerprint) == (encoded.parts, encoded.origin.fingerprint)


@pytest.mark.parametrize("family", ["linear", "rbf", "stump"])
def test_learned_codes_are_byte_for_byte_those_of_the_model(family, X, tmp_path, client):
    hasher = CGHash(12, hash_function=family, random_state=0, n_jobs=1).fit(X[:300])
    encoded = encode(Dataset.from_arrays(X, rows=700), hasher, tmp_path / "codes", client, rows=33)
    np.testing.assert_array_equal(codes_of(encoded)[1], hasher.encode(X))


def test_blocks_of_dask_arrays_and_empty_partitions(X, model, tmp_path, client):
    blocks = da.from_array(X, chunks=((500, 200, 1300), (3, 3)))
    array = da.Array(blocks.dask, blocks.name, blocks.chunks, blocks.dtype).rechunk(((500, 0, 200, 1300), (6,)))
    encoded = encode(Dataset.from_dask(array), model, tmp_path / "codes", client)
    ids, codes = codes_of(encoded)
    np.testing.assert_array_equal(ids, np.arange(2000))
    np.testing.assert_array_equal(codes, model.encode(X))
    assert [part.n_codes for part in encoded.parts] == [500, 0, 200, 1300]


def test_a_second_run_writes_nothing_and_missing_or_damaged_parts_are_made_again(items, model, X, tmp_path, client):
    folder = tmp_path / "codes"
    encode(items, model, folder, client)
    before = states(folder)
    assert encode(items, model, folder, client).n_kept == 11
    assert states(folder) == before
    (folder / "part-000002.parquet").unlink()
    whole = (folder / "part-000004.parquet").read_bytes()
    (folder / "part-000004.parquet").write_bytes(whole[: len(whole) // 2])
    (folder / "part-000006.parquet").write_bytes((folder / "part-000007.parquet").read_bytes())
    for left in (".part-000002.parquet.0123abcd.tmp", ".part-000003.parquet.0123abcd.tmp"):
        (folder / left).write_bytes(b"killed while it was written")
    encoded = encode(items, model, folder, client)
    assert encoded.n_kept == 8
    assert_whole(encoded, model, X)
    kept = {name: state for name, state in states(folder).items() if before[name] == state}
    assert len(kept) == 8


def test_a_folder_whose_first_file_was_never_finished_is_new(items, model, X, tmp_path, client):
    folder = tmp_path / "codes"
    folder.mkdir()
    (folder / "._begun.json.0123abcd.tmp").write_bytes(b"killed while it was written")
    assert_whole(encode(items, model, folder, client), model, X)


def test_what_others_left_unfinished_in_a_folder_stays(items, model, tmp_path, client):
    """In a folder of theirs, and in one of ours, where only our own names go."""
    folder = tmp_path / "home"
    (folder / ".proj.deadbeef.tmp").mkdir(parents=True)
    (folder / ".proj.deadbeef.tmp" / "work.py").write_text("print()")
    (folder / ".notes.0badcafe.tmp").write_text("milk")
    with pytest.raises(FormatError, match="out must be a new or empty folder"):
        encode(items, model, folder, client)
    assert sorted(path.name for path in folder.rglob("*")) == [".notes.0badcafe.tmp", ".proj.deadbeef.tmp", "work.py"]
    ours = tmp_path / "codes"
    encode(items, model, ours, client)
    (ours / ".notes.0badcafe.tmp").write_text("milk")
    (ours / ".part-000002.parquet.0123abcd.tmp").write_bytes(b"killed while it was written")
    encode(items, model, ours, client)
    assert [path.name for path in ours.glob(".*")] == [".notes.0badcafe.tmp"]


def test_other_work_in_the_same_folder_is_refused(items, model, X, tmp_path, client):
    folder = tmp_path / "codes"
    encode(items, model, folder, client)
    before = states(folder)
    other = LSH(20, random_state=1).fit(X)
    with pytest.raises(InvalidInputError, match="which holds codes of another model"):
        encode(items, other, folder, client)
    with pytest.raises(InvalidInputError, match="which holds codes of another data set"):
        encode(Dataset.from_arrays(X), model, folder, client)
    with pytest.raises(FormatError, match="out must be a new or empty folder"):
        encode(items, model, tmp_path / "items", client)  # nothing of the user's is ever written over
    assert states(folder) == before
    assert sorted(path.name for path in (tmp_path / "items").iterdir()) == ["a.parquet", "b.parquet"]


def test_a_folder_that_is_not_whole_does_not_open(items, model, tmp_path, client):
    folder = tmp_path / "codes"
    with pytest.raises(FormatError, match=r"`encode` has not finished: _manifest\.json is missing"):
        Encoded.open(folder)
    encode(items, model, folder, client)
    (folder / "part-000003.parquet").unlink()
    with pytest.raises(FormatError, match=r"is not whole: part-000003\.parquet is missing"):
        Encoded.open(folder)
    for content in ("{", "[]", json.dumps({"format": "cghash-parts", "version": 2}), '{"format": 1, "version": 1}'):
        (folder / MANIFEST).write_text(content)
        with pytest.raises(FormatError, match=r"_manifest\.json"):
            Encoded.open(folder)


def test_a_part_that_was_exchanged_is_noticed(items, model, tmp_path, client):
    encoded = encode(items, model, tmp_path / "codes", client)
    first, second = (encoded.folder / encoded.parts[i].file for i in (0, 1))
    first.write_bytes(second.read_bytes())
    with pytest.raises(FormatError, match=r"is not the part that _manifest\.json tells of"):
        encoded.parts[0].read(encoded.folder, encoded.origin)


def test_wrong_work_is_refused_before_it_begins(items, model, X, tmp_path):
    unfitted, no_hamming = LSH(8), PQ(16, random_state=0)
    with pytest.raises(InvalidInputError, match="model must be fitted"):
        encode(items, unfitted, tmp_path / "codes")
    with pytest.raises(InvalidInputError, match="model must rank by Hamming distance"):
        encode(items, no_hamming, tmp_path / "codes")
    with pytest.raises(InvalidInputError, match="the model's 6 features, got 5"):
        encode(Dataset.from_arrays(X[:, :5]), model, tmp_path / "codes")
    with pytest.raises(InvalidInputError, match="rows must be a whole number"):
        encode(items, model, tmp_path / "codes", rows=0)
    assert not (tmp_path / "codes").exists()


def test_an_error_of_a_partition_reaches_the_caller_and_the_rest_can_go_on(items, model, X, tmp_path, client):
    wrong = X.copy()
    wrong[1700, 2] = np.nan
    folder = tmp_path / "codes"
    with pytest.raises(InvalidInputError, match="row 100: must hold finite numbers, got nan in place 2"):
        encode(Dataset.from_arrays(wrong, rows=400), model, folder, client)
    with pytest.raises(InvalidInputError, match=r"ids of X, rows .* must be different, got 7 twice"):
        encode(Dataset.from_arrays(X, ids=np.full(2000, 7), rows=400), model, tmp_path / "others", client)
    path = tmp_path / "items" / "b.parquet"
    later = path.stat().st_mtime_ns + 10**9
    os.utime(path, ns=(later, later))
    with pytest.raises(FormatError, match=r"b\.parquet, row group \d has changed since the data set was listed"):
        encode(items, model, tmp_path / "third", client)


def test_progress_is_told_in_lines(items, model, tmp_path, client, capsys):
    encode(items, model, tmp_path / "codes", client, verbose=True)
    lines = capsys.readouterr().err.splitlines()
    assert lines[-1] == "cghash: encoding: 11/11"
    assert 2 <= len(lines) <= 11


def test_parameters_that_a_model_file_cannot_hold_are_no_matter(X, tmp_path, client):
    hasher = CGHash(8, random_state=np.random.RandomState(0), n_jobs=1).fit(X[:200])
    with warnings.catch_warnings():
        warnings.simplefilter("error", CGHashWarning)
        encoded = encode(Dataset.from_arrays(X), hasher, tmp_path / "codes", client)
    np.testing.assert_array_equal(codes_of(encoded)[1], hasher.encode(X))


def test_a_model_that_was_exchanged_is_noticed(items, model, X, tmp_path, client):
    (tmp_path / "codes").mkdir()
    LSH(20, random_state=1).fit(X).save(tmp_path / "codes" / MODEL)
    with pytest.raises(FormatError, match="is not the model that the work was begun with"):
        encode_part(items.partitions[0], str(tmp_path / "codes"), 0, "0" * 64, 100)


# Faults


def slow_items(X, seconds, rows=100):
    """A data set whose blocks take a while to be made, so that there is a middle."""

    def made(block):
        time.sleep(seconds)
        return block

    array = da.from_array(X, chunks=(rows, -1), name="items").map_blocks(made, dtype=X.dtype, name="slow items")
    return Dataset.from_dask(array)


def pids(client):
    return list(client.run(os.getpid).values())


@pytest.mark.slow
def test_killed_workers_delay_the_codes_but_do_not_change_them(X, model, tmp_path, when):
    folder = tmp_path / "codes"
    with connected(n_workers=2) as client:
        victims = pids(client)

        def kill(pid):
            return lambda: os.kill(pid, signal.SIGKILL)

        one = when(lambda: len(list(folder.glob("part-*"))) >= 3, kill(victims[0]))
        two = when(lambda: len(list(folder.glob("part-*"))) >= 9, kill(victims[1]))
        encoded = encode(slow_items(X, 0.1), model, folder, client)
        one.join()
        two.join()
        assert one.done
        assert two.done
        assert not set(victims) & set(pids(client))
    ids, codes = codes_of(encoded)
    np.testing.assert_array_equal(ids, np.arange(2000))
    np.testing.assert_array_equal(codes, model.encode(X))
    assert not list(folder.glob(".*"))


@pytest.mark.slow
def test_a_killed_scheduler_is_an_error_in_words_and_the_next_run_goes_on(X, model, tmp_path, start_cluster, when):
    folder, data = tmp_path / "codes", slow_items(X, 0.05)
    address, scheduler = start_cluster(1)
    killed = when(lambda: len(list(folder.glob("part-*"))) >= 5, scheduler.kill)
    with pytest.raises(ClusterError, match=f"the scheduler at {address} was lost"):
        encode(data, model, folder, address)
    killed.join()
    assert killed.done
    with pytest.raises(FormatError, match="has not finished"):
        Encoded.open(folder)
    finished = len(list(folder.glob("part-*")))
    assert 5 <= finished < 20
    encoded = encode(data, model, folder, start_cluster(2)[0])
    assert encoded.n_kept >= 5
    np.testing.assert_array_equal(codes_of(encoded)[1], model.encode(X))


PROGRAM = """
import sys, numpy as np
from cghash import load
from cghash.cluster import Dataset, encode, connected
if __name__ == "__main__":
    with connected(n_workers=1) as client:
        encode(Dataset.from_parquet(sys.argv[1], ids="key"), load(sys.argv[2]), sys.argv[3], client, rows=1)
"""


@pytest.mark.slow
def test_a_killed_program_goes_on_where_it_was(items, model, X, tmp_path, client, when):
    (tmp_path / "program.py").write_text(PROGRAM)
    model.save(tmp_path / "lsh.cghash")
    names = [str(tmp_path / name) for name in ("program.py", "items", "lsh.cghash", "codes")]
    program = subprocess.Popen([sys.executable, *names], stderr=subprocess.DEVNULL)
    workers = []

    def kill():
        workers.extend(psutil.Process(program.pid).children(recursive=True))
        program.kill()

    killed = when(lambda: len(list((tmp_path / "codes").glob("part-*"))) >= 2, kill)
    program.wait()
    killed.join()
    assert killed.done
    assert workers
    wait_until_gone(workers)  # which write on until they find that the program is dead
    finished = states(tmp_path / "codes")
    assert 2 <= len(finished) < 11
    encoded = encode(items, model, tmp_path / "codes", client)
    assert encoded.n_kept >= 2
    assert_whole(encoded, model, X)
    assert finished.items() <= states(tmp_path / "codes").items()


@pytest.mark.slow
def test_a_script_without_its_main_guard_is_told_so(tmp_path):
    (tmp_path / "script.py").write_text(
        "from cghash.cluster import connected\nwith connected(n_workers=1):\n    pass\n"
    )
    done = subprocess.run([sys.executable, tmp_path / "script.py"], capture_output=True, text=True, timeout=120)
    assert "a script must do its work under `if __name__" in done.stderr


def test_columns_in_another_order_than_the_model_knows_them_are_refused(tmp_path, client):
    X = np.random.default_rng(0).normal(size=(50, 2)).astype(np.float32)
    pq.write_table(pa.table({"h": X[:, 0], "w": X[:, 1]}), tmp_path / "items.parquet")
    model = LSH(8, random_state=0).fit(X)
    model.feature_names_in_ = np.array(["h", "w"], dtype=object)
    turned, same = (Dataset.from_parquet(tmp_path / "items.parquet", vector=list(names)) for names in ("wh", "hw"))
    with pytest.raises(InvalidInputError, match=r"\['h', 'w'\], got \['w', 'h'\]"):
        encode(turned, model, tmp_path / "codes", client)
    assert len(encode(same, model, tmp_path / "codes", client)) == 50
