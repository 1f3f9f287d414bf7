"""Fits that are killed, resumed, extended, or handed a checkpoint that is not theirs."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression

from cghash import CGHash, storage
from cghash.checkpoints import KIND, VERSION, Checkpoint, read_checkpoint
from cghash.exceptions import FewerBitsWarning, FormatError, InvalidInputError
from cghash.learning import column_generation, master
from cghash.learning.column_generation import ColumnGeneration

pytestmark = [pytest.mark.core, pytest.mark.native]

DIGITS, LABELS = load_digits(return_X_y=True)
X, Y = DIGITS[:120], LABELS[:120]
DETERMINED = ("objective", "bound", "gap", "gain", "violation", "satisfied", "live_triplets", "evaluations_master")


class Killed(BaseException):
    """Ends a fit where the power would have failed: nothing of the library catches it."""


def hasher(n_bits=5, **changes):
    return CGHash(n_bits, **({"C": 1e-3, "n_neighbors": 3, "random_state": 0, "n_jobs": 1} | changes))


def killed_fit(model, columns, *fit_args):
    """Fit until this many columns are written."""
    write = Checkpoint.write

    def deadly(self, state):
        write(self, state)
        if len(state.records) == columns:
            raise Killed

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Checkpoint, "write", deadly)
        with pytest.raises(Killed):
            model.fit(*fit_args)


def assert_same_fit(model, other, items=DIGITS):
    assert model.n_bits_ == other.n_bits_
    np.testing.assert_array_equal(model.encode(items), other.encode(items))
    for w, v in zip(model.weights_path_, other.weights_path_, strict=True):
        np.testing.assert_array_equal(w, v)
    for name in DETERMINED:
        np.testing.assert_array_equal(model.result_.history[name], other.result_.history[name], err_msg=name)
    assert model.result_.status == other.result_.status


@pytest.mark.lengthy
@pytest.mark.parametrize("regularizer", ["l1", "linf"])
@pytest.mark.parametrize("loss", ["squared_hinge", "hinge", "hinge by cutting planes", "logistic", "exponential"])
@pytest.mark.parametrize("family", ["linear", "stump", "tree", "rbf"])
def test_killed_fit_goes_on_to_the_same_model(family, loss, regularizer, tmp_path, monkeypatch):
    if loss == "hinge by cutting planes":
        monkeypatch.setattr(master, "LP_TRIPLETS", 0)
    changes = {"hash_function": family, "loss": loss.split()[0], "regularizer": regularizer}
    few, labels = X[:60], Y[:60]
    model = hasher(4, checkpoint=tmp_path / "fit", **changes)
    killed_fit(model, 2, few, labels)
    assert not hasattr(model, "functions_")
    assert_same_fit(model.fit(few, labels), hasher(4, **changes).fit(few, labels))


@pytest.mark.parametrize("columns", [1, 2, 4, 5])
def test_killed_fit_goes_on_from_any_column(columns, tmp_path):
    model = hasher(checkpoint=tmp_path / "fit")
    killed_fit(model, columns, X, Y)
    assert_same_fit(model.fit(X, Y), hasher().fit(X, Y))


def test_master_problems_that_had_to_be_solved_closer_are_so_after_a_kill(tmp_path, monkeypatch):
    """A search that returns to a known function shows that weights are too rough: here they are so on purpose."""

    def rough(columns, upper):
        solver = master.SmoothMaster(columns, upper)
        solver.tol = 3.0
        return solver

    monkeypatch.setattr(column_generation, "master_for", rough)
    few = X[:40, 2:12]
    changes = {"hash_function": "stump", "loss": "squared_hinge", "C": 1e-2, "tol": 1e-8}
    with pytest.warns(FewerBitsWarning):
        whole = hasher(40, **changes).fit(few, Y[:40])
    assert np.any(np.diff(whole.result_.history["tolerance_master"][:-1]) < 0)
    assert whole.result_.objective == pytest.approx(objective_of(whole, few), rel=1e-9)  # the closer weights are kept
    for columns in range(6, whole.n_bits_, 2):
        model = hasher(40, checkpoint=tmp_path / f"fit{columns}", **changes)
        killed_fit(model, columns, few, Y[:40])
        with pytest.warns(FewerBitsWarning):
            assert_same_fit(model.fit(few, Y[:40]), whole, few)


def objective_of(model, items):
    """Mean squared hinge and C·Σw by hand, over triplets drawn as the fit drew them."""
    seed = int(np.random.RandomState(0).randint(2**31 - 1))
    triplets = model._triplets(items, Y[: len(items)], None, None, seed)
    bits = model.transform(items).astype(float)
    a, near, far = triplets.to_rows().T
    margin = (np.abs(bits[a] - bits[far]) - np.abs(bits[a] - bits[near])) @ model.weights_
    return triplets.triplet_slots()[2] @ np.maximum(1 - margin, 0) ** 2 + model.C * model.weights_.sum()


class Smooth:
    """A loss of one's own: exp(−sharpness·ρ)."""

    def __init__(self, sharpness):
        self.sharpness = sharpness

    def value(self, margin):
        return np.exp(-self.sharpness * margin)

    def derivative(self, margin):
        return -self.sharpness * self.value(margin)

    def conjugate(self, slope):
        u = -np.asarray(slope) / self.sharpness
        return np.where(u > 0, u * np.log(np.where(u > 0, u, 1)) - u, np.where(u == 0, 0, np.inf))


def test_fit_under_a_loss_of_ones_own_goes_on(tmp_path):
    killed_fit(hasher(checkpoint=tmp_path / "fit", loss=Smooth(1.0)), 2, X, Y)
    with pytest.raises(InvalidInputError, match="belongs to another fit"):
        hasher(checkpoint=tmp_path / "fit", loss=Smooth(2.0)).fit(X, Y)
    resumed = hasher(checkpoint=tmp_path / "fit", loss=Smooth(1.0)).fit(X, Y)
    assert_same_fit(resumed, hasher(loss=Smooth(1.0)).fit(X, Y))


SCRIPT = """
import sys, time
from sklearn.datasets import load_digits
from cghash import CGHash
from cghash import checkpoints

write = checkpoints.Checkpoint.write
def slow(self, state):
    write(self, state)
    time.sleep(0.2)
checkpoints.Checkpoint.write = slow
X, y = load_digits(return_X_y=True)
CGHash(200, C=1e-3, n_neighbors=3, random_state=0, n_jobs=1, checkpoint=sys.argv[1]).fit(X[:120], y[:120])
"""


@pytest.mark.slow
def test_process_killed_by_the_system_goes_on_to_the_same_model(tmp_path):
    path = tmp_path / "fit"
    process = subprocess.Popen([sys.executable, "-c", SCRIPT, str(path)])
    try:
        deadline = time.monotonic() + 120
        while not path.exists() and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.05)
        time.sleep(0.5)
        assert process.poll() is None
    finally:
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    done = len(read_checkpoint(path)[0].records)
    assert 1 <= done < 200
    n_bits = done + 3
    assert_same_fit(hasher(n_bits, checkpoint=path).fit(X, Y), hasher(n_bits).fit(X, Y))


def test_fit_without_a_fixed_seed_goes_on_with_the_one_it_drew(tmp_path):
    model = hasher(checkpoint=tmp_path / "fit", random_state=None)
    killed_fit(model, 2, X, Y)
    stored = Checkpoint(tmp_path / "fit")._stored[0]
    model.fit(X, Y)
    np.testing.assert_array_equal(model.weights_path_[1], stored["weights"][1:3])
    again = hasher(checkpoint=tmp_path / "fit", random_state=None).fit(X, Y)
    assert_same_fit(again, model)


OTHERS = {
    "items": lambda model: model.fit(X + 1, Y),
    "fewer items": lambda model: model.fit(X[:-1], Y[:-1]),
    "labels": lambda model: model.fit(X, Y[::-1]),
    "triplets": lambda model: model.fit(X, triplets=[[0, 1, 2]]),
    "duplets": lambda model: model.fit(X, Y, duplets=[[0, 1]]),
    "C": lambda model: model.set_params(C=2e-3).fit(X, Y),
    "loss": lambda model: model.set_params(loss="hinge").fit(X, Y),
    "regularizer": lambda model: model.set_params(regularizer="linf").fit(X, Y),
    "hash_function": lambda model: model.set_params(hash_function="stump").fit(X, Y),
    "method": lambda model: model.set_params(method="paper").fit(X, Y),
    "n_neighbors": lambda model: model.set_params(n_neighbors=2).fit(X, Y),
    "random_state": lambda model: model.set_params(random_state=1).fit(X, Y),
}


@pytest.mark.parametrize("other", OTHERS)
def test_checkpoint_of_another_fit_is_refused_and_kept(other, tmp_path):
    path = tmp_path / "fit"
    hasher(2, checkpoint=path, sampling="neighbors").fit(X, Y)
    before = path.read_bytes()
    with pytest.raises(InvalidInputError, match=r"checkpoint .* belongs to another fit .*name another path"):
        OTHERS[other](hasher(3, checkpoint=path, sampling="neighbors"))
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    "change", [{"n_bits": 2}, {"n_bits": 7}, {"n_jobs": 2}, {"verbose": 1}, {"time_limit": 100.0}], ids=str
)
def test_finished_fit_is_shortened_extended_or_goes_on_with_what_decides_no_code(change, tmp_path):
    path = tmp_path / "fit"
    hasher(4, checkpoint=path).fit(X, Y)
    expected = hasher(change.get("n_bits", 5)).fit(X, Y)
    assert_same_fit(hasher(**{"n_bits": 5, "checkpoint": path} | change).fit(X, Y), expected)


def test_finished_fit_learns_nothing_anew(tmp_path, monkeypatch):
    model = hasher(checkpoint=tmp_path / "fit").fit(X, Y)
    before = (tmp_path / "fit").read_bytes()
    monkeypatch.setattr(ColumnGeneration, "_add", lambda *a: pytest.fail("a column was learned again"))
    assert_same_fit(hasher(checkpoint=tmp_path / "fit").fit(X, Y), model)
    assert (tmp_path / "fit").read_bytes() == before


@pytest.mark.parametrize("damage", ["empty", "truncated", "flipped", "foreign", "model file"])
def test_damaged_checkpoint_is_refused_and_kept(damage, tmp_path):
    path = tmp_path / "fit"
    model = hasher(2, checkpoint=path).fit(X, Y)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    broken = {"empty": b"", "truncated": content[:-1], "flipped": content, "foreign": b"hello, world"}
    if damage == "model file":
        model.save(path)
    else:
        path.write_bytes(broken[damage])
    before = path.read_bytes()
    with pytest.raises(FormatError, match="fit"):
        hasher(2, checkpoint=path).fit(X, Y)
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    "forge",
    [
        lambda about, arrays: about.update(records=about["records"][:-1]),
        lambda about, arrays: about["records"][0].update(tolerance_master=[]),
        lambda about, arrays: about["records"][0].update(seconds_master="long"),
        lambda about, arrays: about.update(family="forest"),
        lambda about, arrays: arrays.update(weights=arrays["weights"][:-1]),
        lambda about, arrays: arrays.update(weights=arrays["weights"] + 1e300),
        lambda about, arrays: arrays.update({"functions.coef": arrays["functions.coef"][:, :-1]}),
    ],
    ids=["records", "tolerance", "seconds", "family", "weights", "large weights", "features"],
)
def test_forged_checkpoint_of_this_fit_is_refused(forge, tmp_path):
    """Fingerprint and checksum are right: another program wrote it."""
    path = forged(tmp_path / "fit", forge)
    with pytest.raises(FormatError):
        hasher(3, checkpoint=path).fit(X, Y)


def forged(path, forge, **changes):
    hasher(2, checkpoint=path, **changes).fit(X, Y)
    arrays, about = storage.load(path, KIND, VERSION)
    del about["format"], about["version"]
    forge(about, arrays)
    storage.save(path, KIND, VERSION, arrays, about)
    return path


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_checkpoint_that_asks_for_no_error_at_all_ends(loss, tmp_path):
    path = forged(tmp_path / "fit", lambda about, _: about["records"][1].update(tolerance_master=-1.0), loss=loss)
    assert hasher(3, checkpoint=path, loss=loss).fit(X, Y).n_bits_ == 3


@pytest.mark.parametrize(
    ("place", "changes", "message"),
    [
        ("nowhere/fit", {}, "checkpoint must lie in a folder that exists"),
        (".", {}, "checkpoint must be a file"),
        ("fit", {"hash_function": LogisticRegression()}, "checkpoint cannot hold arbitrary classifiers"),
    ],
)
def test_checkpoint_that_cannot_be_is_refused(place, changes, message, tmp_path):
    with pytest.raises(InvalidInputError, match=message):
        hasher(checkpoint=tmp_path / place, **changes).fit(X, Y)


@pytest.mark.parametrize("step", ["_price", "_add", "_record"])
def test_interrupt_keeps_what_was_learned(step, monkeypatch):
    whole = hasher().fit(X, Y)
    usual = getattr(ColumnGeneration, step)
    calls = []

    def interrupted(self, *args):
        calls.append(1)
        if len(calls) == 4:
            raise KeyboardInterrupt
        return usual(self, *args)

    monkeypatch.setattr(ColumnGeneration, step, interrupted)
    model = hasher().fit(X, Y)
    assert model.result_.status == "interrupted"
    assert "stopped by hand" in model.result_.message
    assert model.n_bits_ == len(model.result_.columns) == len(model.weights_) == 3
    np.testing.assert_array_equal(model.encode(DIGITS), whole.truncate(3).encode(DIGITS))
    np.testing.assert_array_equal(model.weights_, whole.truncate(3).weights_)


def test_interrupt_while_a_checkpoint_is_written_leaves_a_whole_one(tmp_path, monkeypatch):
    path = tmp_path / "fit"
    replace = os.replace
    calls = []

    def interrupted(*args):
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        replace(*args)

    monkeypatch.setattr(os, "replace", interrupted)
    model = hasher(checkpoint=path).fit(X, Y)
    assert (model.result_.status, model.n_bits_) == ("interrupted", 3)
    monkeypatch.undo()
    assert list(tmp_path.iterdir()) == [path]
    assert_same_fit(hasher(checkpoint=path).fit(X, Y), hasher().fit(X, Y))


def test_interrupt_before_the_first_bit_ends_the_fit(monkeypatch):
    def interrupted(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr(ColumnGeneration, "_price", interrupted)
    model = hasher()
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, Y)
    assert not hasattr(model, "functions_")
