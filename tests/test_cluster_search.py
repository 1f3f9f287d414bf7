"""ShardedIndex on a real cluster of processes: answers are those of one index over everything."""

from __future__ import annotations

import json
import os
import shutil
import signal
import threading
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cghash import WeightedHammingIndex
from cghash.cluster import Dataset, Encoded, ShardedIndex, connected, encode
from cghash.cluster.shards import merged_nearest, merged_within
from cghash.exceptions import ClusterError, FormatError, InvalidInputError
from cghash.peers import LSH
from cghash.stores import Origin

pytest.importorskip("distributed")
pytest.importorskip("pyarrow")


@pytest.fixture(scope="module")
def client():
    with connected(n_workers=2) as opened:
        yield opened


def some_codes(n, n_bits, seed=0, centres=20):
    """Codes around a few centres, so that distances are often equal; and weights."""
    rng = np.random.default_rng(seed)
    bits = rng.integers(0, 2, (centres, n_bits))[rng.integers(0, centres, n)] ^ (rng.random((n, n_bits)) < 0.1)
    return np.packbits(bits, axis=1, bitorder="little"), np.round(rng.random(n_bits), 1)


def one_index(codes, weights, ids=None):
    index = WeightedHammingIndex(len(weights), weights, n_jobs=1)
    index.add(codes, ids)
    return index


def sharded(folder, codes, weights, client, ids=None, rows=300, per_shard=700):
    encoded = Encoded.write(folder / "codes", Origin(weights), codes, ids, rows=rows)
    return ShardedIndex.build(encoded, folder / "index", client, codes=per_shard)


def assert_same(answer, expected):
    for got, right in zip(answer, expected, strict=True):
        np.testing.assert_array_equal(got, right)
        assert got.dtype == right.dtype


@pytest.fixture(scope="module")
def pair(tmp_path_factory, client):
    """A sharded index, and one over everything, with ids that are interleaved over the shards."""
    codes, weights = some_codes(3000, 21)
    ids = np.random.default_rng(1).permutation(10_000)[:3000]
    folder = tmp_path_factory.mktemp("pair")
    return sharded(folder, codes, weights, client, ids), one_index(codes, weights, ids), codes


@settings(max_examples=12)
@given(data=st.data())
def test_answers_are_those_of_one_index(pair, data):
    index, whole, codes = pair
    assert len(index.shards) == 4
    n = data.draw(st.integers(0, 30))
    queries = np.concatenate([codes[:n], some_codes(3, 21, n)[0]])
    k = data.draw(st.sampled_from([1, 10, 800, 4000]))
    chosen = data.draw(st.sampled_from([None, 0, 1, 50, 2500]))
    ids = None if chosen is None else np.random.default_rng(n).permutation(whole.ids)[:chosen]
    assert_same(index.search(queries, k, filter=ids), whole.search(queries, k, filter=ids))
    radius = data.draw(st.sampled_from([0.0, 0.7, 2.5, np.inf]))
    assert_same(index.range_search(queries, radius, filter=ids), whole.range_search(queries, radius, filter=ids))


def test_one_code_and_no_code_are_answered_as_by_one_index(pair):
    index, whole, codes = pair
    assert_same(index.search(codes[5], 7), whole.search(codes[5], 7))
    assert_same(index.search(codes[:0], 7), whole.search(codes[:0], 7))
    assert_same(index.range_search(codes[:0], 1.0), whole.range_search(codes[:0], 1.0))


def test_many_queries_go_in_blocks(pair, monkeypatch):
    monkeypatch.setattr("cghash.cluster.sharded_index._QUERIES", 7)
    index, whole, codes = pair
    assert_same(index.search(codes[:40], 5), whole.search(codes[:40], 5))
    assert_same(index.range_search(codes[:40], 1.0), whole.range_search(codes[:40], 1.0))
    assert_same(index.search(codes[:40], 5, filter=whole.ids[:9]), whole.search(codes[:40], 5, filter=whole.ids[:9]))


@settings(max_examples=60)
@given(
    rows=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 4)), max_size=40),
    n_shards=st.integers(1, 5),
    k=st.integers(1, 50),
)
def test_merging_is_sorting_everything(rows, n_shards, k):
    """Items are (distance, shard); their ids are their places. One query."""
    shards = [[(float(d), i) for i, (d, s) in enumerate(rows) if s % n_shards == number] for number in range(n_shards)]
    best = [(sorted(shard) + [(np.inf, -1)] * k)[:k] for shard in shards]
    found = [(np.array([[d for d, _ in b]]), np.array([[i for _, i in b]])) for b in best]
    expected = (sorted((float(d), i) for i, (d, _) in enumerate(rows)) + [(np.inf, -1)] * k)[:k]
    distances, ids = merged_nearest(found, k)
    assert list(zip(distances[0].tolist(), ids[0].tolist(), strict=True)) == expected
    within = [
        (np.array([0, len(s)]), np.array([d for d, _ in sorted(s)]), np.array([i for _, i in sorted(s)], int))
        for s in shards
    ]
    offsets, distances, ids = merged_within(within)
    assert offsets.tolist() == [0, len(rows)]
    assert list(zip(distances.tolist(), ids.tolist(), strict=True)) == expected[: len(rows)] or len(rows) > k


def test_a_data_set_through_a_model_is_found_again(tmp_path, client):
    X = np.random.default_rng(0).normal(size=(500, 5))
    model = LSH(24, random_state=0).fit(X)
    encode(Dataset.from_arrays(X, rows=120), model, tmp_path / "codes", client)
    with ShardedIndex.build(tmp_path / "codes", tmp_path / "index", client, codes=200) as index:
        assert repr(index) == "<ShardedIndex: 500 codes of 24 bits, in 3 shards>"
        assert_same(index.search_items(model, X[:9], 4), model.build_index(X).search(model.encode(X[:9]), 4))
        with pytest.raises(InvalidInputError, match="other hash functions"):
            index.search_items(LSH(24, random_state=1).fit(X), X[:9], 4)
        shard = WeightedHammingIndex.load(tmp_path / "index" / index.shards[0].file)
        assert shard.functions == model.build_index(X).functions == index.origin.functions
    assert client.status == "running"  # it was handed in, so it stays


def test_it_opens_again_and_a_second_build_makes_nothing_new(tmp_path, client):
    codes, weights = some_codes(900, 16)
    index = sharded(tmp_path, codes, weights, client, per_shard=500)
    before = {shard.file: (tmp_path / "index" / shard.file).stat().st_ino for shard in index.shards}
    again = ShardedIndex.build(tmp_path / "codes", tmp_path / "index", client, codes=500)
    assert {s.file: (tmp_path / "index" / s.file).stat().st_ino for s in again.shards} == before
    assert_same(ShardedIndex.open(tmp_path / "index", client).search(codes[:3], 5), index.search(codes[:3], 5))
    (tmp_path / "index" / "shard-000001.index").unlink()
    again = ShardedIndex.build(tmp_path / "codes", tmp_path / "index", client, codes=500)
    assert_same(again.search(codes[:3], 5), one_index(codes, weights).search(codes[:3], 5))
    with pytest.raises(InvalidInputError, match="an index of other codes, or in other shards"):
        ShardedIndex.build(tmp_path / "codes", tmp_path / "index", client, codes=100)


@pytest.mark.parametrize("per_bucket", [1 << 25, 100])
def test_an_id_in_two_parts_is_an_error_wherever_it_is(tmp_path, client, monkeypatch, per_bucket):
    monkeypatch.setattr("cghash.cluster.sharded_index._IDS", per_bucket)
    codes, weights = some_codes(600, 8)
    origin = Origin(weights)
    ids = np.random.default_rng(0).permutation(10**6)[:600]
    parts = []
    for number, rows in enumerate((slice(0, 300), slice(300, 600))):
        part = Encoded.write(tmp_path / str(number), origin, codes[rows], ids[rows])
        shutil.copy(part.folder / "part-000000.parquet", tmp_path / f"{number}.parquet")
        parts += [(f"{number}.parquet", part.parts[0])]
    different = _joined(tmp_path, origin, parts)
    assert len(ShardedIndex.build(different, tmp_path / "good", client, codes=1)) == 600
    again = ids.copy()
    again[599] = ids[3]
    one = Encoded.write(tmp_path / "twice", origin, codes[300:], again[300:])
    shutil.copy(one.folder / "part-000000.parquet", tmp_path / "twice.parquet")
    twice = _joined(tmp_path, origin, [parts[0], ("twice.parquet", one.parts[0])])
    for per_shard in (1, 600):
        with pytest.raises(InvalidInputError, match=rf"got {ids[3]}"):
            ShardedIndex.build(twice, tmp_path / f"bad{per_shard}", client, codes=per_shard)
        with pytest.raises(FormatError, match="has not finished"):
            ShardedIndex.open(tmp_path / f"bad{per_shard}", client)


def _joined(folder, origin, parts):
    return Encoded(folder, origin, tuple(type(part)(name, part.n_codes, part.content) for name, part in parts))


def test_no_codes_and_fewer_than_asked_for(tmp_path, client):
    codes, weights = some_codes(3, 8)
    for n in (0, 3):
        index = sharded(tmp_path / str(n), codes[:n], weights, client, rows=2, per_shard=1)
        whole = one_index(codes[:n], weights)
        assert_same(index.search(codes, 5), whole.search(codes, 5))
        assert_same(index.range_search(codes, 9.0), whole.range_search(codes, 9.0))


def test_wrong_questions_are_refused(pair):
    index, _, codes = pair
    missing = next(i for i in range(10_000) if i not in pair[1])
    wrong = [
        (lambda: index.search(codes[:, :2], 5), r"codes must be packed uint8 of shape \(n, 3\)"),
        (lambda: index.search(codes[:2], 0), "k must be a whole number"),
        (lambda: index.range_search(codes[:2], -1), "radius must be"),
        (lambda: index.search(codes[:2], 5, filter=[missing]), f"filter must be in the index, got {missing}"),
        (lambda: index.search(codes[:2], 5, filter=[0.5]), "filter must be a 1-D array of int64"),
        (lambda: index.search(codes[:2], 5, filter=np.ones(3000, bool)), "filter must be a 1-D array of int64"),
    ]
    for call, words in wrong:
        with pytest.raises(InvalidInputError, match=words):
            call()


def test_an_index_that_is_not_whole_is_an_error(tmp_path, client):
    codes, weights = some_codes(900, 16)
    with pytest.raises(FormatError, match="holds no sharded index"):
        ShardedIndex.open(tmp_path, client)
    index = sharded(tmp_path, codes, weights, client, per_shard=500)
    path = tmp_path / "index" / index.shards[1].file
    content = path.read_bytes()
    path.write_bytes(content[:-10])
    with pytest.raises(FormatError, match="is not the shard that was built"):
        index.search(codes[:2], 3)
    path.write_bytes(bytes(len(content)))
    with pytest.raises(FormatError, match="shard-000001"):
        index.search(codes[:2], 3)
    path.unlink()
    with pytest.raises(FormatError, match=r"is not whole: shard-000001\.index is missing"):
        ShardedIndex.open(tmp_path / "index", client)
    about = json.loads((tmp_path / "index" / "_manifest.json").read_text())
    for broken in ({"shards": [{}]}, {"origin": None}, {"version": 7}, {"shards": None}):
        (tmp_path / "index" / "_manifest.json").write_text(json.dumps(about | broken))
        with pytest.raises(FormatError, match=r"_manifest\.json"):
            ShardedIndex.open(tmp_path / "index", client)


def test_a_shard_of_another_index_is_refused_though_it_has_as_many_bytes(tmp_path, client):
    indexes = {}
    for name in ("one", "other"):
        codes, weights = some_codes(900, 16, seed=len(name))
        (tmp_path / name).mkdir()
        indexes[name] = sharded(tmp_path / name, codes, weights, client, per_shard=500)
        indexes[name].search(codes[:2], 3)
    paths = [tmp_path / name / "index" / indexes["one"].shards[1].file for name in indexes]
    assert paths[0].stat().st_size == paths[1].stat().st_size
    times = paths[0].stat()
    shutil.copy(paths[1], tmp_path / "copy")
    os.utime(tmp_path / "copy", ns=(times.st_atime_ns, times.st_mtime_ns))
    os.replace(tmp_path / "copy", paths[0])
    for index in (indexes["one"], ShardedIndex.open(tmp_path / "one" / "index", client)):
        with pytest.raises(FormatError, match=r"shard-000001\.index is not the shard that was built: it holds other"):
            index.search(codes[:2], 3)


def test_a_manifest_without_digests_is_opened(tmp_path, client):
    codes, weights = some_codes(900, 16)
    expected = sharded(tmp_path, codes, weights, client, per_shard=500).search(codes[:3], 5)
    path = tmp_path / "index" / "_manifest.json"
    about = json.loads(path.read_text())
    assert all(len(shard.pop("digest")) == 64 for shard in about["shards"])
    path.write_text(json.dumps(about))
    assert_same(ShardedIndex.open(tmp_path / "index", client).search(codes[:3], 5), expected)


# Faults


@pytest.mark.slow
def test_shards_of_killed_workers_are_opened_elsewhere(tmp_path):
    """Searches go on while one worker after another is killed; every answer is that of one index."""
    codes, weights = some_codes(20_000, 64)
    expected = one_index(codes, weights).search(codes[:300], 50)
    with connected(n_workers=2) as client:
        index = sharded(tmp_path, codes, weights, client, rows=4000, per_shard=4000)
        assert_same(index.search(codes[:300], 50), expected)
        for _ in range(2):
            victim = next(iter(client.run(os.getpid).values()))
            killed = threading.Timer(0.02, os.kill, (victim, signal.SIGKILL))  # while some search goes on
            killed.start()
            while killed.is_alive() or _runs(victim):
                assert_same(index.search(codes[:300], 50), expected)
            assert_same(index.search(codes[:300], 50), expected)


@pytest.mark.slow
def test_a_worker_killed_in_the_middle_of_its_search(tmp_path, monkeypatch, when):
    codes, weights = some_codes(4000, 32)
    expected = one_index(codes, weights).search(codes[:20], 10)
    with connected(n_workers=2) as client:
        index = sharded(tmp_path, codes, weights, client, rows=500, per_shard=500)
        mark = tmp_path / "mark"
        monkeypatch.setattr("cghash.cluster.sharded_index.search_shards", _SlowOnce(str(mark)))
        waits_inside = when(
            lambda: mark.exists() and mark.read_text(), lambda: os.kill(int(mark.read_text()), signal.SIGKILL)
        )
        assert_same(index.search(codes[:20], 10), expected)
        assert waits_inside.done


class _SlowOnce:
    """search_shards, where the first worker that is asked never answers."""

    def __init__(self, mark):
        self.mark = mark

    def __call__(self, *arguments):
        from cghash.cluster.shards import search_shards

        try:
            with open(self.mark, "x") as file:
                file.write(str(os.getpid()))
        except FileExistsError:
            return search_shards(*arguments)
        time.sleep(600)
        raise AssertionError("it was to be killed")


def _runs(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.slow
def test_a_lost_scheduler_is_an_error_in_words(tmp_path):
    codes, weights = some_codes(900, 16)
    with connected(n_workers=1) as client:
        index = sharded(tmp_path, codes, weights, client)
        client.cluster.close()
        for _ in range(2):
            with pytest.raises(ClusterError, match=r"the scheduler at .* was lost"):
                index.search(codes[:2], 3)


def test_a_client_that_fails_as_it_is_closed_hides_no_outcome(client, monkeypatch):
    """As Dask's may, where the scheduler is lost meanwhile."""
    from distributed import Client

    close = Client.close

    def failing(self, *how, **more):
        close(self, *how, **more)
        raise RuntimeError("Cannot change state of expiring Timeout")

    address = client.scheduler.address
    monkeypatch.setattr(Client, "close", failing)
    with connected(address) as other:
        assert other.submit(sum, [1, 2]).result() == 3
    assert other.status == "closed"
    with pytest.raises(ClusterError, match="lost"), connected(address):
        raise ClusterError("the scheduler was lost")


def test_a_client_whose_closing_failed_needs_no_lock_when_it_is_collected(client, monkeypatch):
    """Dask holds that lock while a loop starts, in whose thread garbage may be collected: neither would go on."""
    from distributed import Client
    from distributed.utils import LoopRunner

    async def failing(self, fast=False):
        raise RuntimeError("Cannot change state of expiring Timeout")

    with monkeypatch.context() as patch:
        patch.setattr(Client, "_close", failing)
        with connected(client.scheduler.address) as other:
            assert other.submit(sum, [1, 2]).result() == 3
    collected = threading.Thread(target=other.__del__, daemon=True)
    with LoopRunner._lock:
        collected.start()
        collected.join(5)
        assert not collected.is_alive()


def test_answers_of_more_than_8_gb_are_refused_before_the_search(monkeypatch):
    index = ShardedIndex(None, Origin(np.ones(8)), [], None, None)
    monkeypatch.setattr(index, "_asked", lambda *_: pytest.fail("it was searched"))
    for k in (10**7, 2**62):
        with pytest.raises(InvalidInputError, match=f"300 times {k} answers take more than 8 GB"):
            index.search(np.zeros((300, 1), np.uint8), k)
