"""Runs of experiments: results of each cell, resumed, parallel, and failures that do not stop the rest."""

import contextlib
import json
import os
import pickle
import signal
import subprocess
import sys
import time
import urllib.request
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import psutil
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from cghash import CGHash
from cghash.cli import main
from cghash.criteria import evaluate, evaluate_vectors
from cghash.exceptions import FormatError, InvalidInputError
from cghash.lab.datasets import load
from cghash.lab.experiments.cells import run_task
from cghash.lab.experiments.machine import code_digest
from cghash.lab.experiments.methods import NAMES, Choice, estimator_of
from cghash.lab.experiments.plan import DataSpec, Experiment, MethodSpec, Validation
from cghash.lab.experiments.plan_files import part_of, read_experiment
from cghash.lab.experiments.protocol import split_items
from cghash.lab.experiments.results import Store, collect, fingerprint, read_results
from cghash.lab.experiments.runner import _ended, run
from cghash.lab.experiments.scaled_items import items_of, prepared, scaled
from cghash.lab.reporting import write_report
from cghash.peers import LSH

DIGITS = DataSpec("digits", train=200, test=100)


def experiment(*methods, **changes):
    told = {"datasets": (DIGITS,), "bits": (8, 16), "splits": 1, "validation": Validation(2, 100)} | changes
    return Experiment("tried", "tried", methods=tuple(methods), **told)


def cells_of(plan, number=0):
    """The results of a task, in this process."""
    found = {}
    run_task(plan, list(plan.tasks())[number], list(plan.bits), found.__setitem__, None, 1)
    return found


def test_cells_hold_what_the_criteria_say_of_the_same_split():
    method = MethodSpec("mine", "CGHash", {"n_neighbors": 5})
    found = cells_of(experiment(method, top=20))
    data, split = load("digits"), split_items(load("digits").y, "seen", 0, 200, 100)
    model = CGHash(16, n_neighbors=5, random_state=0, n_jobs=1).fit(data.X[split.train], data.y[split.train])
    for bits in (8, 16):
        short = model.truncate(bits)
        sides = short.transform(data.X[split.queries]), short.transform(data.X[split.train])
        expected = evaluate(*sides, short.weights_, data.y[split.queries], data.y[split.train], top=20)
        for name, value in expected.items():
            assert found[bits]["criteria"][name] == pytest.approx(value, abs=1e-6)
        assert (found[bits]["bytes"], found[bits]["n_queries"], found[bits]["n_train"]) == (bits // 8, 100, 200)
        assert found[bits]["trained_once"]
        assert found[bits]["peak_mb"] > 10
    assert "curve" in found[16]
    assert "curve" not in found[8]


def test_methods_without_prefixes_are_fitted_for_each_length():
    found = cells_of(experiment(MethodSpec("ITQ", "ITQ", {"projection": "pca"})))
    assert not found[8]["trained_once"]
    assert found[8]["seconds_fit"] != found[16]["seconds_fit"]


def test_euclidean_reference_is_the_same_beside_every_length():
    found = cells_of(experiment(MethodSpec("Euclidean", "Euclidean"), true_neighbors=5))
    data, split = load("digits"), split_items(load("digits").y, "seen", 0, 200, 100)
    expected = evaluate_vectors(
        *(data.X[s] for s in (split.queries, split.train)), data.y[split.queries], data.y[split.train]
    )
    assert found[8]["criteria"] == found[16]["criteria"]
    assert found[8]["criteria"]["map"] == pytest.approx(expected["map"], abs=1e-6)
    assert found[8]["criteria"]["recall"] == 1.0
    assert found[8]["bytes"] == 4 * 64


def test_true_neighbours_are_found_among_the_nearest_hundred():
    found = cells_of(experiment(MethodSpec("LSH", "LSH"), true_neighbors=5))
    assert 0.5 < found[8]["criteria"]["recall"] < found[16]["criteria"]["recall"] <= 1.0


def test_own_distances_serve_where_codes_have_no_hamming_distance():
    found = cells_of(experiment(MethodSpec("PQ", "PQ"), bits=(32,), true_neighbors=5))
    assert found[32]["criteria"]["map"] > 0.5
    assert found[32]["criteria"]["recall"] > 0.9


def test_a_method_may_be_told_no_labels():
    plan = experiment(MethodSpec("with", "CGHash"), MethodSpec("without", "CGHash", labels=False), bits=(16,))
    told, untold = cells_of(plan, 0), cells_of(plan, 1)
    assert told[16]["criteria"]["map"] > untold[16]["criteria"]["map"] + 0.05


MINE = """
import numpy as np
from cghash.peers.base import Peer

class Cut(Peer):
    def __init__(self, n_bits=64, feature=0):
        self.n_bits, self.feature = n_bits, feature

    def _learn(self, X, labels, rng):
        self.medians_ = np.median(X, axis=0)
        return self.n_bits

    def _bits(self, X):
        return (X > self.medians_)[:, self.feature + 20 : self.feature + 20 + self.n_bits_]
"""


def test_a_method_of_ones_own_stands_beside_the_others(tmp_path, monkeypatch):
    (tmp_path / "own_methods.py").write_text(MINE)
    (tmp_path / "plan.toml").write_text(
        'bits = [8, 16]\nsplits = 1\n[[datasets]]\nname = "digits"\ntrain = 200\ntest = 100\n'
        '[[methods]]\nname = "mine"\nestimator = "own_methods:Cut"\nparameters = { feature = 3 }\n'
        '[[methods]]\nname = "LSH"\n'
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    asked = ["lab", "run", "plan.toml", "--import", "own_methods:Cut", "-o", "out", "-q", "-j", "1"]
    told = CliRunner().invoke(main, asked, catch_exceptions=False)
    assert told.exit_code == 0, told.output
    by_name = CliRunner().invoke(main, ["lab", "run", "plan.toml", "--method", "own_methods:Cut", "-o", "again", "-q"])
    assert by_name.exit_code == 0, by_name.output
    found = {(r["method"], r["bits"]): r for r in read_results(tmp_path / "out")}
    assert set(found) == {("mine", 8), ("mine", 16), ("LSH", 8), ("LSH", 16)}
    assert {r["method"] for r in read_results(tmp_path / "again")} == {"Cut"}
    data, split = load("digits"), split_items(load("digits").y, "seen", 0, 200, 100)
    medians = np.median(data.X[split.train], axis=0)
    bits = (medians < data.X)[:, 23:31]
    expected = evaluate(bits[split.queries], bits[split.train], np.ones(8), data.y[split.queries], data.y[split.train])
    assert found["mine", 8]["criteria"]["map"] == pytest.approx(expected["map"], abs=1e-6)


def test_processes_import_nothing_from_the_folder_in_which_they_are_begun(tmp_path):
    (tmp_path / "multiprocessing.py").write_text("open('marker', 'w').close()\n")
    asked = ["lab", "run", "digits", "--method", "LSH", "--bits", "8", "--splits", "1", "-o", "out", "-q"]
    program = f"import sys; sys.path.pop(0); from cghash.cli import main; main({asked!r})"
    subprocess.run([sys.executable, "-c", program], cwd=tmp_path, check=True, timeout=120)
    assert not (tmp_path / "marker").exists()


def test_a_plan_alone_has_no_class_imported(tmp_path, monkeypatch):
    (tmp_path / "theirs.py").write_text("open('marker', 'w').close()\n" + MINE)
    (tmp_path / "plan.toml").write_text(
        'like = "digits"\n[[methods]]\nname = "harmless"\nestimator = "theirs:Cut"\n[[methods]]\nname = "LSH"\n'
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    with pytest.raises(InvalidInputError, match=r"theirs:Cut would be imported, .* imports=\['theirs:Cut'\]"):
        read_experiment("plan.toml")
    told = CliRunner().invoke(main, ["lab", "run", "plan.toml", "--method", "LSH"])
    assert told.exit_code == 2
    assert "name it, by --import theirs:Cut" in told.stderr
    assert not (tmp_path / "marker").exists()
    assert read_experiment("plan.toml", imports=["theirs:Cut"]).methods[0].name == "harmless"
    assert (tmp_path / "marker").exists()


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("no_such_module:Cut", "cannot be imported: No module named"),
        ("own_methods:Cat", "cannot be imported: module 'own_methods' has no attribute 'Cat'"),
        ("collections:OrderedDict", r"must be a class derived from cghash\.peers\.base\.Peer"),
        ("Cut", "must be one of CGHash, .*or module:Class, got 'Cut'"),
    ],
)
def test_methods_that_cannot_be_had_are_refused(tmp_path, monkeypatch, name, message):
    (tmp_path / "own_methods.py").write_text(MINE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    with pytest.raises(InvalidInputError, match=message):
        estimator_of(name, {}, 8, 0, 1)
    with pytest.raises(InvalidInputError, match=message if ":" in name else "method must be one of"):
        part_of(read_experiment("digits"), methods=[name])  # before a task is begun


def test_pictures_are_kept_of_the_first_split_and_the_longest_codes():
    plan = experiment(MethodSpec("LSH", "LSH", pictures=True), splits=2)
    found = cells_of(plan)
    assert "pictures" not in found[8]
    pictures = found[16]["pictures"]
    assert len(pictures["query"]) == len(pictures["nearest"]) == 5
    assert {len(row) for row in pictures["nearest"]} == {10}
    first = pictures["nearest"][0][0]
    assert first["right"] == (first["label"] == pictures["query"][0]["label"])
    assert "pictures" not in cells_of(plan, 1)[16]
    every = cells_of(experiment(MethodSpec("Euclidean", "Euclidean", pictures="all"), first_split=4))[16]["pictures"]
    assert len(every["query"]) == len(every["nearest"]) == 100


def test_choice_takes_the_parameter_that_validates_best_on_training_items_alone():
    """Where one value makes the codes useless, the other is chosen."""
    X, y = load("digits").X[:200], load("digits").y[:200]
    away = X + 1000.0  # hyperplanes through the origin say nothing of items so far from it
    method = MethodSpec("LSH", "LSH", search={"center": [False, True]})
    plan = experiment(method, bits=(16,), validation=Validation(2, 200))
    values, tried = Choice(method, {}, "seen", plan, 0, 1).best(away, y)
    assert values == {"center": True}
    assert tried[1]["score"] == pytest.approx((tried[1]["map"] + tried[1]["top"] + 1 - tried[1]["knn_error"]) / 3)
    assert tried[1]["map"] > tried[0]["map"] + 0.1
    found = cells_of(experiment(MethodSpec("LSH", "LSH", search={"center": [True, False]})))
    assert found[8]["parameters"]["center"] == found[8]["chosen"]["center"]
    assert len(found[8]["tried"]) == 2


def test_choice_tells_labels_only_to_who_is_told_them(monkeypatch):
    told, fit = [], CGHash.fit
    monkeypatch.setattr(CGHash, "fit", lambda self, X, y=None: told.append(y is not None) or fit(self, X, y))
    X, y = load("digits").X[:100], load("digits").y[:100]
    for labels in (False, True):
        method = MethodSpec("one", "CGHash", search={"C": [1e-2]}, labels=labels)
        Choice(method, {}, "seen", experiment(method, bits=(4,)), 0, 1).best(X, y)
    assert told == [False, False, True, True]  # two folds each


def test_scaling_is_by_rows():
    X = np.array([[1.0, 3.0], [0.0, 0.0]])
    assert np.allclose(scaled(X, "unit"), [[0.1**0.5, 0.9**0.5], [0, 0]])
    assert np.allclose(scaled(X, "hellinger") ** 2, [[0.25, 0.75], [0, 0]])
    assert scaled(X, "none") is X


# Runs in processes of their own


def test_run_keeps_every_cell_and_a_second_run_measures_nothing_again(tmp_path):
    plan = experiment(MethodSpec("LSH", "LSH"), MethodSpec("PCAH", "PCAH"), splits=2)
    events = []
    assert run(plan, Store(tmp_path), n_jobs=2, told=events.append) == []
    assert len(events) == 4
    assert events[-1].done == events[-1].total == 4
    results = read_results(tmp_path)
    assert len(results) == 8
    assert {result["status"] for result in results} == {"ok"}
    assert all(result["versions"]["cghash"] and result["cpu"] for result in results)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*.json")}
    assert run(plan, Store(tmp_path), told=events.append) == []
    assert len(events) == 4
    assert {path: path.read_bytes() for path in tmp_path.rglob("*.json")} == before


def test_results_do_not_depend_on_how_many_processes_there_are(tmp_path):
    plan = experiment(MethodSpec("CGHash", "CGHash"), MethodSpec("LSH", "LSH"))
    for jobs in (1, 2):
        run(plan, Store(tmp_path / str(jobs)), n_jobs=jobs)
    one, two = (read_results(tmp_path / name) for name in "12")
    assert [r["criteria"] for r in one] == [r["criteria"] for r in two]


def test_cells_asked_for_in_another_way_are_measured_anew(tmp_path):
    plan = prepared(experiment(MethodSpec("LSH", "LSH")), None)
    run(plan, Store(tmp_path))
    other = replace(plan, methods=(MethodSpec("LSH", "LSH", {"center": False}),))
    task, changed = next(plan.tasks()), next(other.tasks())
    assert fingerprint(plan, task) != fingerprint(other, changed)
    assert Store(tmp_path).missing(other, changed) == [8, 16]
    run(other, Store(tmp_path))
    assert {result["parameters"]["center"] for result in read_results(tmp_path)} == {False}
    longer = replace(other, bits=(8, 16, 24))
    assert Store(tmp_path).missing(longer, changed) == [24]


def test_a_failed_task_is_recorded_the_rest_go_on_and_it_is_tried_again(tmp_path):
    plan = experiment(MethodSpec("wrong", "KLSH", {"kernel": "none"}), MethodSpec("LSH", "LSH"))
    failed = run(plan, Store(tmp_path), n_jobs=1)
    assert [event.task.method.name for event in failed] == ["wrong"]
    assert "kernel must be one of" in failed[0].error
    results = {result["method"]: result for result in read_results(tmp_path)}
    assert results["LSH"]["status"] == "ok"
    assert results["wrong"]["status"] == "failed"
    assert "InvalidInputError" in results["wrong"]["error"]
    mended = replace(plan, methods=(MethodSpec("wrong", "LSH"), plan.methods[1]))
    assert run(mended, Store(tmp_path)) == []


def test_a_task_that_takes_too_long_is_given_up(tmp_path):
    plan = experiment(MethodSpec("slow", "FastHash", {"n_trees": 10000}), MethodSpec("LSH", "LSH"), bits=(2048,))
    failed = run(plan, Store(tmp_path), n_jobs=1, limit=4)
    assert [(event.task.method.name, event.error) for event in failed] == [("slow", "took more than 4 s")]
    assert {result["status"] for result in read_results(tmp_path)} == {"ok", "failed"}


unix = pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are found and killed in the way of Unix")


@pytest.fixture
def runner(tmp_path):
    """A run in a process of its own, into `out`: a slow task, then a quick one. Whatever a test does, it ends."""
    process = _started(tmp_path)
    yield process
    process.kill()  # its own processes end with it
    process.wait()
    process.stdout.close()


def _started(folder):
    plan = experiment(MethodSpec("slow", "FastHash", {"n_trees": 10000}), MethodSpec("LSH", "LSH"), bits=(2048,))
    (folder / "plan").write_bytes(pickle.dumps(plan))
    script = (
        "import pickle, sys; from cghash.lab.experiments.runner import run; "
        "from cghash.lab.experiments.results import Store; plan = pickle.load(open(sys.argv[1], 'rb')); "
        "failed = run(plan, Store(sys.argv[2]), n_jobs=1); print(failed[0].error)"
    )
    command = [sys.executable, "-c", script, str(folder / "plan"), str(folder / "out")]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def busy_worker(runner):
    """The process of the slow task, a child of the server of processes, once it is at work."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        time.sleep(0.05)
        for process in psutil.Process(runner.pid).children(recursive=True):
            with contextlib.suppress(psutil.NoSuchProcess):  # some come and go
                if process.ppid() != runner.pid and process.cpu_times().user > 0.3:
                    return process
    raise AssertionError("no process was at work")


@unix
def test_a_killed_process_fails_its_task_alone(tmp_path, runner):
    """Too little memory looks like this: the process is gone in an instant."""
    busy_worker(runner).send_signal(signal.SIGKILL)
    said, _ = runner.communicate(timeout=120)
    assert "its process died (exit code -9" in said
    statuses = {result["method"]: result["status"] for result in read_results(tmp_path / "out")}
    assert statuses == {"slow": "failed", "LSH": "ok"}


@unix
def test_a_killed_run_leaves_no_process_behind(runner):
    worker = busy_worker(runner)
    runner.kill()
    runner.communicate(timeout=60)
    worker.wait(timeout=60)
    assert not worker.is_running()


def test_miniature_of_everything(tmp_path):
    """Every method on classes seen and unseen, its report with it."""
    few = {"RaBitQ": (80,), "FastHash": (16,), "PQ": (16,)}
    methods = [MethodSpec(name, name, bits=few.get(name, (16,)), pictures=name == "CGHash") for name in NAMES]
    plan = experiment(*methods, bits=(16, 80), protocols=("seen", "unseen"), true_neighbors=5)
    assert run(plan, Store(tmp_path / "out"), n_jobs=2) == []
    results = read_results(tmp_path / "out")
    assert {(r["method"], r["protocol"]) for r in results} == {(n, p) for n in NAMES for p in ("seen", "unseen")}
    quality = {(r["method"], r["protocol"]): r["criteria"]["map"] for r in results}
    assert min(quality[n, "seen"] for n in ("CGHash", "SDH", "FastHash", "KSH")) > quality["LSH", "seen"] + 0.1
    page = write_report(results, tmp_path / "report").read_text()
    assert all(name in page for name in NAMES)
    assert "never seen" in page.lower() or "unseen" in page.lower()


def test_other_items_under_the_same_name_are_measured_anew(tmp_path):
    data = load("digits")
    path = tmp_path / "mine.npz"
    plan = experiment(MethodSpec("LSH", "LSH"), datasets=(DataSpec("mine", str(path)),))
    for n in (90, 150):
        np.savez(path, X=data.X[:n], y=data.y[:n])
        run(plan, Store(tmp_path / "out"))
        assert {result["n_train"] for result in read_results(tmp_path / "out")} == {2 * n // 3}


def test_other_defaults_of_an_estimator_are_measured_anew(monkeypatch):
    plan = experiment(MethodSpec("LSH", "LSH"))
    before = fingerprint(plan, next(plan.tasks()))
    monkeypatch.setattr(LSH.__init__, "__kwdefaults__", {"center": False, "random_state": None})
    assert fingerprint(plan, next(plan.tasks())) != before


def test_how_splits_are_drawn_decides_a_result_where_it_is_said():
    usual, drawn = (replace(DIGITS, drawn_by=name) for name in ("cghash", "scikit-learn"))
    asked = []
    for spec in DIGITS, usual, drawn:
        plan = experiment(MethodSpec("LSH", "LSH"), datasets=(spec,))
        asked.append(fingerprint(plan, next(plan.tasks())))
    assert asked[0] == asked[1] != asked[2]


def test_results_of_other_sources_are_counted(tmp_path):
    plan = prepared(experiment(MethodSpec("LSH", "LSH")), None)
    run(plan, Store(tmp_path))
    task = next(plan.tasks())
    assert Store(tmp_path).of_other_code(plan, task, code_digest()) == 0
    assert Store(tmp_path).of_other_code(plan, task, "another") == 2


@pytest.mark.parametrize(
    ("X", "y", "scaling", "says"),
    [
        ([[1.0], [2.0]], None, "none", "mine must have labels"),
        ([[1.0], [np.nan]], [0, 1], "none", "finite|nan"),
        ([[1.0], [-2.0]], [0, 1], "hellinger", "'hellinger' is for counts; mine has the number -2"),
    ],
)
def test_items_that_cannot_be_compared_are_said(tmp_path, X, y, scaling, says):
    np.savez(tmp_path / "mine.npz", X=np.array(X), **({} if y is None else {"y": np.array(y)}))
    with pytest.raises(InvalidInputError, match=says):
        items_of(DataSpec("mine", str(tmp_path / "mine.npz"), scaling=scaling), None)


# Results as files


def test_collected_results_are_the_same_without_traces(tmp_path):
    plan = experiment(MethodSpec("wrong", "KLSH", {"kernel": "none"}), MethodSpec("LSH", "LSH"))
    run(plan, Store(tmp_path / "cells"))
    assert collect(tmp_path / "cells", tmp_path / "all.jsonl") == 4
    apart, together = read_results(tmp_path / "cells"), read_results(tmp_path / "all.jsonl")
    for result in apart:
        result.pop("trace", None)
    assert apart == together


@given(st.binary(max_size=60))
def test_files_that_are_no_results_are_refused(tmp_path_factory, content):
    folder = tmp_path_factory.mktemp("results")
    (folder / "x.json").write_bytes(content)
    with pytest.raises((FormatError, InvalidInputError)):
        read_results(folder)


def test_names_that_look_alike_as_files_are_kept_apart(tmp_path):
    names = ("α=1", "β=1", "my data", "my-data", "my_data")
    tasks = experiment(*(MethodSpec(name, "LSH") for name in names)).tasks()
    assert len({Store(tmp_path).path_of(task, 8) for task in tasks}) == len(names)


def test_hostile_names_stay_in_the_folder(tmp_path):
    plan = experiment(MethodSpec("../../up", "LSH"), datasets=(replace(DIGITS, name="../x"),))
    path = Store(tmp_path).path_of(next(plan.tasks()), 8)
    assert path.resolve().is_relative_to(tmp_path.resolve())


def test_missing_values_survive_the_file(tmp_path):
    plan = experiment(MethodSpec("LSH", "LSH"))
    Store(tmp_path).write(
        plan, next(plan.tasks()), 8, {"status": "ok", "criteria": {"map": 0.5, "knn_error": float("nan")}}
    )
    (result,) = read_results(tmp_path)
    assert np.isnan(result["criteria"]["knn_error"])
    assert "NaN" not in next(tmp_path.rglob("*.json")).read_text()


# The command


def invoke(*args, code=0):
    result = CliRunner().invoke(main, [str(arg) for arg in args])
    assert result.exit_code == code, result.output
    return result


def test_command_runs_reports_and_collects(tmp_path):
    X, y = load("digits").X[:150], load("digits").y[:150]
    np.savez(tmp_path / "mine.npz", X=X, y=y)
    out = tmp_path / "out"
    said = invoke(
        "lab", "run", "digits", "--dataset", tmp_path / "mine.npz", "--method", "LSH,Euclidean", "--bits", "8,16",
        "--splits", "1", "-o", out, "-j", "1",
    ).output  # fmt: skip
    assert "2/2 Euclidean on mine (seen), split 0" in said or "2/2 LSH on mine (seen), split 0" in said
    assert len(read_results(out)) == 4
    page = invoke("lab", "report", out, "-q").output.strip()
    assert page == str(out / "report" / "index.html")
    assert "mine" in (out / "report" / "index.html").read_text()
    invoke("lab", "collect", out, "-o", tmp_path / "all.jsonl")
    assert len((tmp_path / "all.jsonl").read_text().splitlines()) == 4


def test_command_takes_tables_with_their_label_column(tmp_path):
    X, y = load("digits").X[:120], load("digits").y[:120]
    rows = [",".join([*map(str, x), f"c{label}"]) for x, label in zip(X.tolist(), y, strict=True)]
    head = ",".join([*(f"p{j}" for j in range(64)), "kind"])
    path = tmp_path / "my items, v2.csv"
    path.write_text("\n".join([head, *rows]))
    options = ("--method", "LSH", "--bits", "8", "--splits", "1", "-o", tmp_path / "out", "-q")
    invoke("lab", "run", "digits", "--dataset", path, "--label-column", "kind", *options)
    assert {result["dataset"] for result in read_results(tmp_path / "out")} == {"my items, v2"}
    said = invoke("lab", "run", "digits", "--dataset", path, *options, code=2).output
    assert "must have labels" in said or "kind" in said
    said = invoke("lab", "run", "digits", "--label-column", "kind", *options, code=2).output
    assert "are for items given by their path" in said


def test_command_leaves_out_data_sets_that_cannot_be_had_and_says_where_to_get_them(tmp_path, monkeypatch):
    monkeypatch.setenv("CGHASH_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    monkeypatch.setenv("https_proxy", "http://127.0.0.1:9")
    monkeypatch.setattr(urllib.request, "_opener", None)  # one that is made now knows them, and must not stay
    options = ("--method", "LSH", "--bits", "8", "--splits", "1", "-o", tmp_path / "out", "--data", tmp_path)
    (tmp_path / "some.toml").write_text(
        '[[datasets]]\nname = "digits"\ntrain = 100\n[[datasets]]\nname = "pascal07"\n[[methods]]\nname = "LSH"\n'
    )
    said = invoke("lab", "run", tmp_path / "some.toml", *options).output
    assert "left out: data set 'pascal07'" in said
    assert len(read_results(tmp_path / "out")) == 1
    said = invoke("lab", "run", "paper", "--dataset", "pascal07", *options, code=2).output
    assert "none of the data sets can be had: pascal07" in said


def test_command_shows_what_there_is():
    listed = invoke("lab", "list").output
    assert all(name in listed for name in ("paper", "isolet", "CGHash", "ITQ"))
    shown = invoke("lab", "show", "paper").output
    assert "[[methods]]" in shown


def test_failed_tasks_make_the_command_fail_after_the_rest(tmp_path):
    (tmp_path / "some.toml").write_text(
        'bits = [8]\nsplits = 1\n[[datasets]]\nname = "digits"\n[[methods]]\nname = "LSH"\n'
        '[[methods]]\nname = "off"\nestimator = "KLSH"\nparameters = { kernel = "none" }\n'
    )
    said = invoke("lab", "run", tmp_path / "some.toml", "-o", tmp_path / "out", code=1).output
    assert "1 task failed; the first: off on digits (seen), split 0" in said
    statuses = {json.loads(path.read_text())["status"] for path in (tmp_path / "out").rglob("*.json")}
    assert statuses == {"ok", "failed"}


def test_index_of_a_peer_answers_as_its_distances_do():
    X = load("digits").X[:100]
    model = LSH(16, random_state=0).fit(X)
    distances, ids = model.build_index(X).search(model.encode(X[:5]), 3)
    expected = model.distances(X[:5], model.encode(X))
    assert np.allclose(distances, np.sort(expected, axis=1)[:, :3])
    assert ids[0, 0] == 0 or expected[0, ids[0, 0]] == 0


@pytest.mark.parametrize(
    "change",
    [
        {"split": "0"},
        {"bits": 10**40},
        {"bits": True},
        {"method": None},
        {"status": "done"},
        {"criteria": [0.5]},
        {"criteria": {"map": "high"}},
        {"criteria": {"map": 1e300}},
        {"curve": {"recall": [0.5], "precision": []}},
        {"tried": [{"C": "small", "map": 0.5}]},
        {"fit": {"message": 3}},
        {"fit": {"objective": ["low"]}},
        {"versions": ["1"]},
        {"n_database": -1},
        {"dataset": "\ud800"},
        {"more": json.loads("[" * 100 + "]" * 100)},
    ],
    ids=repr,
)
def test_results_with_a_part_of_another_kind_are_refused(change, tmp_path):
    cell = {"dataset": "digits", "protocol": "seen", "split": 0, "method": "LSH", "bits": 8, "status": "ok"}
    path = tmp_path / "results.jsonl"
    path.write_text(json.dumps(cell | {"criteria": {"map": 0.5}}) + "\n")
    assert len(read_results(path)) == 1
    path.write_text(json.dumps(cell | change) + "\n")
    with pytest.raises(FormatError, match="is not a result"):
        read_results(path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "cannot be read"),
        (b"{", "cannot be read"),
        (b'{"error": 1}', "cannot be read"),
        ("whole", "of something else"),
    ],
)
def test_a_result_that_others_altered_while_the_task_ended_is_named(tmp_path, content, message):
    experiment = part_of(read_experiment("digits"), methods=["LSH"], bits=[8], splits=1)
    store, task = Store(tmp_path), next(experiment.tasks())
    path = store.path_of(task, 8)
    if content is not None:
        store.write(experiment, task, 8, {"status": "ok", "asked": "other"})
        path.write_bytes(path.read_bytes() if content == "whole" else content)
    ended = SimpleNamespace(process=SimpleNamespace(exitcode=0), task=task, bits=[8])
    assert message in _ended(experiment, store, ended, None)
