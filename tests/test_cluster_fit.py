"""A fit on a cluster: the sums, and so the codes, of one machine, however items and workers are divided."""

from __future__ import annotations

import importlib
import os
import signal
import threading
import warnings
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_digits

from cghash import CGHash, load
from cghash.cli import main
from cghash.exceptions import CGHashWarning, ClusterError, InvalidInputError, NothingToLearnError
from cghash.learning.column_generation import Problem
from cghash.learning.cpu import features
from cghash.learning.cpu.backend import CpuBackend
from cghash.learning.cpu.item_sums import CpuItemSums
from cghash.learning.losses import loss_of
from cghash.learning.regularizers import regularizer_of

pytest.importorskip("distributed")
from cghash.cluster import Dataset, connected, fit
from cghash.cluster.fitting import _feature_map, _sources
from cghash.cluster.learning import actors
from cghash.cluster.learning.actors import ActorPool
from cghash.cluster.learning.backend import ClusterColumns, ClusterFamily, ClusterPairs
from cghash.cluster.learning.feature_maps import LinearFeatureMap
from cghash.cluster.learning.fit_partitions import FitPartition, History, Plan, Source
from cghash.cluster.learning.tree_sums import added_up, leaves, total

SEED = 0


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(X))[:600]
    return X[order], y[order]


@pytest.fixture(scope="module")
def client():
    with connected(n_workers=2) as opened:
        yield opened


class Here:
    """A pool whose partitions are all in this process."""

    def __init__(self, data, model, in_memory=True):
        seed = int(np.random.RandomState(SEED).randint(2**31 - 1))
        self.plan = Plan(model, seed, in_memory)
        self.sources = _sources(data, None, None)
        self.partitions = [FitPartition(source, self.plan, 1) for source in self.sources]
        self.history = History()

    def total(self, method, *arguments):
        return total(leaves(dict(enumerate(self.each(method, *arguments)))), len(self.partitions))

    def each(self, method, *arguments):
        return [getattr(partition, method)(*arguments) for partition in self.partitions]

    def change(self, history, method, *arguments):
        self.history = history
        return self.total(method, *arguments)

    def rebalance(self):
        pass


@pytest.fixture
def joined(monkeypatch):
    """The triplets of all partitions as one set over all items."""
    monkeypatch.syspath_prepend(Path(__file__).parents[1] / "benchmarks" / "speed")
    return importlib.import_module("one_set").joined


# sums


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=40), st.data())
def test_a_total_is_the_same_to_the_last_bit_whoever_holds_which_leaf(values, data):
    n = len(values)
    whole = total(leaves({i: (value, 1) for i, value in enumerate(values)}), n)
    assert whole == (pytest.approx(np.sum(values), rel=1e-9, abs=1e-6), n)
    holder = data.draw(st.lists(st.integers(0, 4), min_size=n, max_size=n))
    parts = {}
    for worker in set(holder):
        parts |= added_up(leaves({i: (values[i], 1) for i in range(n) if holder[i] == worker}), n)
    assert total(parts, n) == whole


def test_a_worker_that_holds_a_run_of_leaves_sends_few_sums():
    known = added_up(leaves(dict.fromkeys(range(100, 612), (1,))), 1024)
    assert sum(value[0] for value in known.values()) == 512
    assert len(known) <= 2 * 10


@pytest.mark.parametrize("family", ["linear", "linear, in bytes", "rbf"])
@pytest.mark.parametrize("loss", ["squared_hinge", "logistic", "exponential"])
def test_one_evaluation_is_that_of_one_machine(digits, family, loss, joined, monkeypatch):
    X, y = digits
    family, _, in_bytes = family.partition(", ")
    if in_bytes:
        monkeypatch.setattr(features, "LEAST_BYTES", X.size)
    model = CGHash(8, hash_function=family, loss=loss)
    pool = Here(Dataset.from_arrays(X, y, rows=175), model)  # 175, 175, 175, 75
    triplets = joined(pool.partitions)
    feature_map = _feature_map(pool, model, pool.each("about"), len(X))
    pool.change(History(feature_map, triplets.n_triplets), "begin", feature_map, triplets.n_triplets)
    parted = ClusterColumns(pool, loss_of(loss), triplets.n_triplets, triplets.n_slots)
    pairs = ClusterPairs(pool, parted, len(X), feature_map.n_features)
    one = model._family()
    one.prepare(X, np.random.default_rng([pool.plan.seed, 2**31]), 1)
    assert (one.features.matrix.dtype == np.uint8) == bool(in_bytes)
    problem = Problem(loss_of(loss), regularizer_of("l1", 0.1, None), one)
    columns, signed = CpuBackend().sums(triplets, problem, 8)
    remote = ClusterFamily(pool, feature_map, refined=True)

    close = {"rtol": 1e-10, "atol": 1e-12}
    rng = np.random.default_rng(1)
    for w in ([], [0.3], [0.2, 0.5]):  # before the first column, and after one and two
        w = np.array(w, dtype=np.float64)
        value, gradient = columns.evaluate(w)
        np.testing.assert_allclose(parted.evaluate(w)[0], value, **close)
        np.testing.assert_allclose(parted.evaluate(w)[1], gradient, **close)
        np.testing.assert_allclose(parted.counts(w), columns.counts(w), **close)
        np.testing.assert_allclose(parted.dual_value(w, 0.7), columns.dual_value(w, 0.7), **close)
        slopes, there = columns.slopes(w)[1], parted.slopes(w)[1]
        np.testing.assert_allclose(parted.adjoint(there), columns.adjoint(slopes), **close)
        signed.set_slopes(slopes, 0.0)
        pairs.set_slopes(there, 0.0)
        passes = CpuItemSums(one.features, signed)
        direction = (rng.standard_normal(feature_map.n_features), 0.1)
        V = rng.standard_normal((feature_map.n_features, 3)).astype(np.float32)
        for name, arguments in [
            ("relaxed", (rng.standard_normal((2, feature_map.n_features + 1)),)),
            ("pull", (direction, 0.3, True)),
            ("pull", (direction, 1.0, False)),
            ("sign_gain", (direction,)),
            ("moments", (V,)),
            ("draw_gains", (V, np.array([0.1, 0.0, -0.2], np.float32))),
            ("cut_gains", (V, np.sort(rng.standard_normal((3, 20)), axis=1))),
            ("ridge", (0.5,)),
        ]:
            mine, theirs = (getattr(p, name)(*arguments) for p in (pairs, passes))
            if name == "ridge":
                mine, theirs = mine(direction[0]), theirs(direction[0])
            mine, theirs = (np.hstack([np.ravel(x) for x in _listed(answer)]) for answer in (mine, theirs))
            # several directions at once go through BLAS, which rounds the floats of a row by how many rows there are
            near = 1e-6 if name in ("moments", "draw_gains") else 1e-10
            np.testing.assert_allclose(mine, theirs, rtol=near, atol=near * np.abs(theirs).max())
        found = remote.price(pairs, np.random.default_rng(5), None)
        known = one.price(signed, np.random.default_rng(5), None)
        np.testing.assert_allclose(found.gains, known.gains, **close)
        parted.append(found.bits[0])
        columns.append(known.bits[0])


def _listed(answer):
    return list(answer) if isinstance(answer, tuple) else [answer]


@pytest.mark.parametrize(
    "parameters",
    [{}, {"method": "paper", "regularizer": "linf"}, {"hash_function": "rbf", "loss": "logistic"}],
    ids=["default", "paper, linf", "rbf, logistic"],
)
def test_codes_are_those_of_one_machine_over_the_same_triplets(digits, client, parameters, joined):
    X, y = digits
    data = Dataset.from_arrays(X, y, rows=200)
    model = CGHash(5, random_state=SEED, **parameters)
    here = Here(data, model)
    alone = CGHash(5, random_state=SEED, **parameters).fit(X, triplets=joined(here.partitions))
    together = fit(data, model, client)
    np.testing.assert_array_equal(together.encode(X), alone.encode(X))
    np.testing.assert_allclose(together.weights_, alone.weights_, rtol=1e-9)
    np.testing.assert_allclose(together.mean_margins_, alone.mean_margins_, rtol=1e-6)
    assert together.result_.columns[-1].objective == pytest.approx(alone.result_.columns[-1].objective, rel=1e-9)
    assert together.result_.n_triplets == alone.result_.n_triplets
    assert not hasattr(model, "weights_")  # the model that was given stays as it was


# data


def test_one_partition_in_memory_at_a_time_gives_the_same_codes(digits, client):
    X, y = digits
    data = Dataset.from_arrays(X, y, rows=200)
    kept, reread = (fit(data, CGHash(3, random_state=1), client, in_memory=way) for way in (True, False))
    np.testing.assert_array_equal(kept.encode(X), reread.encode(X))


def test_the_number_of_workers_does_not_matter(digits, client):
    X, y = digits
    data = Dataset.from_arrays(X, y, rows=200)
    with connected(n_workers=1) as single:
        one = fit(data, CGHash(3, random_state=1), single)
    two = fit(data, CGHash(3, random_state=1), client)
    np.testing.assert_array_equal(one.encode(X), two.encode(X))
    np.testing.assert_array_equal(one.weights_, two.weights_)


def test_partitions_that_hold_nothing_to_compare_are_no_obstacle(digits, client):
    X, y = digits
    same = np.flatnonzero(y == 3)[:20]
    order = np.concatenate([same, np.setdiff1d(np.arange(400), same)])
    data = Dataset.from_arrays(X[order], y[order], rows=20)  # the first has one class
    with pytest.warns(CGHashWarning, match=r"1 of 20 partitions hold nothing to compare.*shuffle"):
        model = fit(data, CGHash(6, random_state=0), client)
    assert model.score(X[400:], y[400:]) > 0.8
    with pytest.raises(NothingToLearnError, match="no partition has"):
        fit(Dataset.from_arrays(X[:30], np.zeros(30), rows=10), CGHash(4), client)


@pytest.mark.parametrize("y", [np.zeros(20), np.arange(20) % 2], ids=["nothing to compare", "two classes"])
def test_out_of_core_partitions_keep_no_items_and_read_only_what_is_live(digits, y):
    X = digits[0][:20]
    partition = Dataset.from_arrays(X, y, rows=20).partitions[0]
    part = FitPartition(Source(0, partition), Plan(CGHash(4), 0, in_memory=False), 1)
    part.begin(LinearFeatureMap(features.scaler_of(X.mean(0), X.var(0), X.min(0), X.max(0), True)), 100)
    n_live = part.slopes(np.zeros(0))[-1]
    part.source = None if n_live == 0 else part.source  # nothing to read from
    assert (n_live == 0) == (len(set(y)) == 1)
    gains = part.draw_gains(np.ones((X.shape[1], 3), np.float32), np.zeros(3, np.float32))[0]
    assert np.array_equal(gains, np.zeros(3)) == (n_live == 0)
    assert part._items is None
    assert part._prepared is None
    assert part._item_sums is None


def test_rows_of_three_data_sets_are_triplets(client):
    rng = np.random.default_rng(0)
    anchor = rng.normal(size=(300, 5))
    near, far = anchor + 0.01 * rng.normal(size=(300, 5)), rng.normal(size=(300, 5))
    near[:, 1:], far[:, 0] = rng.normal(size=(300, 4)), -anchor[:, 0]  # only the first feature tells
    data = [Dataset.from_arrays(X, rows=100) for X in (anchor, near, far)]
    model = fit(data[0], CGHash(1, random_state=0, C=0.2), client, near=data[1], far=data[2])
    assert np.argmax(np.abs(model.functions_.coef[0])) == 0
    triplets = np.arange(900).reshape(3, 300).T
    assert model.score(np.concatenate([anchor, near, far]), triplets=triplets) > 0.9


def test_without_labels_the_neighbours_are_near_at_the_default_of_such_fits(digits, client, joined):
    X, _ = digits
    data = Dataset.from_arrays(X, rows=300)
    model = fit(data, CGHash(5, random_state=SEED), client)
    here = Here(data, CGHash(5, random_state=SEED))
    alone = CGHash(5, random_state=SEED, C=0.1).fit(X, triplets=joined(here.partitions))
    np.testing.assert_array_equal(model.encode(X), alone.encode(X))


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"hash_function": "stump"}, "hash_function must be one of"),
        ({"loss": "hinge"}, "loss must be smooth"),
        ({"n_bits": 0}, "n_bits must be"),
    ],
)
def test_what_a_cluster_cannot_learn_is_refused_before_the_work(digits, parameters, message):
    data = Dataset.from_arrays(*digits)
    with pytest.raises(InvalidInputError, match=message):
        fit(data, CGHash(**parameters), "tcp://127.0.0.1:1")  # nobody is there


def test_near_and_far_must_fit(digits):
    X, _ = digits
    data, other = Dataset.from_arrays(X, rows=300), Dataset.from_arrays(X[:500], rows=300)
    with pytest.raises(InvalidInputError, match="near and far must be given together"):
        fit(data, CGHash(), near=data)
    with pytest.raises(InvalidInputError, match="far must have partitions of the same sizes"):
        fit(data, CGHash(), near=data, far=other)
    with pytest.raises(InvalidInputError, match="model must be a CGHash"):
        fit(data, "CGHash")


def test_from_parquet_by_the_command_line(digits, client, tmp_path):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    X, y = digits
    table = pa.table({"pixels": list(X[:400].astype(np.float32)), "kind": y[:400]})
    items, out = tmp_path / "items.parquet", tmp_path / "m.cghash"
    pq.write_table(table, items, row_group_size=200)
    columns = ["--vector-column", "pixels", "--label-column", "kind"]
    command = ["cluster", "fit", str(items), *columns, "-b", "4", "--seed", "0", "-o", str(out)]
    result = CliRunner().invoke(main, [*command, "--workers", "1"])
    assert result.exit_code == 0, result.output
    assert f"wrote {out}" in result.output
    known = fit(Dataset.from_parquet(items, vector="pixels", labels="kind"), CGHash(4, random_state=0), client)
    model = load(out)
    assert model.feature_names_in_[1] == "pixels[1]"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of X without names
        np.testing.assert_array_equal(model.encode(X), known.encode(X))
    encode = ["cluster", "encode", str(out), str(items), "-o", str(tmp_path / "codes")]
    assert CliRunner().invoke(main, [*encode, "--scheduler", client.scheduler.address]).exit_code == 0
    wrong = CliRunner().invoke(main, [*command, "--near-column", "x"])
    assert wrong.exit_code == 2
    assert "--near-column and --far-column go together" in wrong.output


# faults


@pytest.mark.slow
def test_killed_workers_delay_the_codes_but_do_not_change_them(digits, client, tmp_path, when):
    X, y = digits
    data = Dataset.from_arrays(X, y, rows=150)
    calm = fit(data, CGHash(4, random_state=0), client)
    path = tmp_path / "fit.ckpt"
    with connected(n_workers=2) as shaky:
        victims = list(shaky.run(os.getpid).values())
        thread = when(path.exists, lambda: os.kill(victims[0], signal.SIGKILL))
        model = fit(data, CGHash(4, random_state=0, checkpoint=path), shaky)
        thread.join()
        assert thread.done
        assert victims[0] not in shaky.run(os.getpid).values()
    np.testing.assert_array_equal(model.encode(X), calm.encode(X))
    np.testing.assert_array_equal(model.weights_, calm.weights_)


@pytest.mark.slow
def test_the_only_worker_may_die_too_at_the_start_or_later(digits, client, tmp_path, when):
    X, y = digits
    data = Dataset.from_arrays(X, y, rows=300)
    calm = fit(data, CGHash(4, random_state=0), client)
    with connected(n_workers=1) as shaky:
        (pid,) = shaky.run(os.getpid).values()
        os.kill(pid, signal.SIGKILL)  # perhaps before its end is noticed
        first = fit(data, CGHash(4, random_state=0), shaky)
        (pid,) = shaky.run(os.getpid).values()
        path = tmp_path / "fit.ckpt"
        thread = when(path.exists, lambda: os.kill(pid, signal.SIGKILL))
        second = fit(data, CGHash(4, random_state=0, checkpoint=path), shaky)
        thread.join()
        assert thread.done
    np.testing.assert_array_equal(first.encode(X), calm.encode(X))
    np.testing.assert_array_equal(second.encode(X), calm.encode(X))


@pytest.mark.slow
def test_a_worker_that_vanished_without_a_word_is_waited_for_only_as_long_as_the_scheduler_knows_it(
    digits, monkeypatch
):
    sources = _sources(Dataset.from_arrays(*digits, rows=300), None, None)
    monkeypatch.setattr(actors, "_STEP", 0.2)

    async def leave(dask_scheduler, address):
        await dask_scheduler.remove_worker(address, stimulus_id="test", close=False)

    with connected(n_workers=2) as shaky:
        pool = ActorPool(shaky, Plan(CGHash(2, random_state=SEED), SEED, True), sources)
        (before,) = pool.total("item_sum")
        address, pid = next(iter(shaky.run(os.getpid).items()))
        os.kill(pid, signal.SIGSTOP)  # it has the call, and does not answer
        told, waiting, result = [], threading.Event(), pool._result
        monkeypatch.setattr(pool, "_result", lambda *call: (waiting.set(), result(*call))[1])
        thread = threading.Thread(target=lambda: told.append(pool.total("item_sum")), daemon=True)
        thread.start()
        assert waiting.wait(60)
        shaky.run_on_scheduler(leave, address=address)
        thread.join(60)
        os.kill(pid, signal.SIGKILL)
        assert told
        np.testing.assert_array_equal(told[0][0], before)


def test_workers_hold_nothing_after_a_fit(digits, client):
    X, y = digits

    def held(dask_worker):
        return sum(len(actor.partitions) for actor in dask_worker.state.actors.values() if hasattr(actor, "partitions"))

    fit(Dataset.from_arrays(X, y, rows=300), CGHash(2, random_state=0), client)
    assert sum(client.run(held).values()) == 0


@pytest.mark.slow
def test_a_killed_scheduler_is_an_error_in_words_and_the_checkpoint_goes_on(
    digits, client, tmp_path, start_cluster, when
):
    X, y = digits
    data, path = Dataset.from_arrays(X, y, rows=300), tmp_path / "fit.ckpt"
    calm = fit(data, CGHash(4, random_state=0), client)
    address, scheduler = start_cluster(1)
    thread = when(path.exists, scheduler.kill)
    with pytest.raises(ClusterError, match=address):
        fit(data, CGHash(4, random_state=0, checkpoint=path), address)
    thread.join()
    assert thread.done
    model = fit(data, CGHash(4, random_state=0, checkpoint=path), start_cluster(2)[0])
    np.testing.assert_array_equal(model.encode(X), calm.encode(X))
    np.testing.assert_allclose(model.weights_, calm.weights_, rtol=1e-9)
    with pytest.raises(InvalidInputError, match="belongs to another fit"):
        fit(Dataset.from_arrays(X[:500], y[:500]), CGHash(4, random_state=0, checkpoint=path), client)


def test_errors_of_a_partition_reach_the_caller(client, tmp_path):
    X = np.random.default_rng(0).normal(size=(50, 3))
    (tmp_path / "Unable to contact Actor's worker").mkdir()
    path = tmp_path / "Unable to contact Actor's worker" / "items.npy"  # a name that a lost worker is told by
    np.save(path, X)
    data = Dataset.from_arrays(np.load(path, mmap_mode="r"), rows=25)
    X[40, 1] = np.nan
    np.save(path, X)
    os.utime(path, ns=(1, 1))
    with pytest.raises(Exception, match="has changed since"):
        fit(data, CGHash(4), client)
    assert fit(Dataset.from_arrays(X[:30], rows=15), CGHash(2, random_state=0), client).n_bits_ == 2  # they live on


@settings(max_examples=5, deadline=None)
@given(rows=st.integers(60, 400))
def test_triplets_of_a_partition_are_among_its_own_items(digits, rows):
    X, y = digits
    here = Here(Dataset.from_arrays(X[:400], y[:400], rows=rows), CGHash(4))
    for partition in here.partitions:
        if partition.triplets.n_triplets:
            assert partition.triplets.n_items == partition.n_items
            assert partition.triplets.near.max() < partition.n_items
    assert sum(partition.n_items for partition in here.partitions) == 400
