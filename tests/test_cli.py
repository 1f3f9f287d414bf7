"""The command line, as its users meet it: files in, files and tables out, one line for an error."""

from __future__ import annotations

import functools
import importlib
import inspect
import io
import json
import operator
import os
import signal
import subprocess
import sys
import warnings
from types import SimpleNamespace

import click
import numpy as np
import pytest
from click.testing import CliRunner
from sklearn.datasets import load_digits

from cghash import CGHash
from cghash.cli import COMMANDS, main
from cghash.cli._options import estimator_options
from cghash.cli._running import describe
from cghash.codes import pack
from cghash.exceptions import CGHashWarning, FormatError
from cghash.hasher import METHODS
from cghash.learning.families import FAMILIES
from cghash.learning.losses import LOSSES
from cghash.learning.regularizers import REGULARIZERS
from cghash.learning.supervision import SAMPLINGS
from cghash.peers import LSH

from .command_line import refused, run

X, y = load_digits(return_X_y=True)
X, y = X[:300], y[:300]
QUICK = ("-b", "6", "--seed", "0", "-k", "4", "-j", "1")


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """A folder of files that the commands read, and a model."""
    folder = tmp_path_factory.mktemp("data")
    np.save(folder / "x.npy", X)
    np.save(folder / "y.npy", y)
    np.savez(folder / "xy.npz", X=X, y=y)
    names = [f"p{j}" for j in range(X.shape[1])]
    rows = [f"i{n},{','.join(map(str, x))},c{label}" for n, (x, label) in enumerate(zip(X.tolist(), y, strict=True))]
    (folder / "x.csv").write_text("\n".join(["name," + ",".join(names) + ",kind", *rows]))
    rng = np.random.default_rng(0)
    triplets = [t for t in (rng.permutation(300)[:3] for _ in range(600)) if y[t[0]] == y[t[1]] != y[t[2]]]
    np.save(folder / "t.npy", np.array(triplets))
    (folder / "t.csv").write_text("anchor,near,far\n" + "\n".join(f"i{a},i{b},i{c}" for a, b, c in triplets))
    fit(folder / "x.npy", "--labels", folder / "y.npy", "-o", folder / "model")
    return folder


def fit(*args, **options):
    return run("fit", *args, *QUICK, "-q", **options)


def bash(*args, **options):
    """Run a command in a process of its own."""
    command = [sys.executable, "-c", "from cghash.cli import main; main()", *map(str, args)]
    return subprocess.run(command, capture_output=True, timeout=60, **options)


# Help


def all_commands():
    """The words of each command, groups among them."""
    for name in COMMANDS:
        yield [name]
        found = main.get_command(None, name)
        yield from ([name, inner] for inner in getattr(found, "commands", ()))


def test_help_lists_every_command():
    listed = run("--help").output
    assert run().output == listed
    for name, (_, summary) in COMMANDS.items():
        assert f"{name} " in listed
        assert summary.split()[0] in listed


@pytest.mark.parametrize("words", [*all_commands()], ids=" ".join)
def test_help_of_a_command_shows_examples_and_every_option(words):
    shown = run(*words, "--help").output
    if words != ["demo"]:
        assert f"cghash {' '.join(words)} " in " ".join(shown.split("Examples:")[1].split())
    command = functools.reduce(lambda group, name: group.get_command(None, name), words, main)
    for option in command.params:
        assert isinstance(option, click.Argument) or option.opts[-1] in shown
    assert "--debug" in shown
    if isinstance(command, click.Group):
        assert run(*words).output == shown


def test_help_imports_nothing_heavy():
    code = (
        "import sys\n"
        "from cghash.cli import main\n"
        f"for words in ([], {str(list(all_commands()))[1:-1]}):\n"
        "    try: main([*words, '--help'])\n"
        "    except SystemExit: pass\n"
        "    heavy = {'numpy', 'scipy', 'sklearn', 'rich', 'sqlite3', 'PIL'} & set(sys.modules)\n"
        "    assert not heavy, (words, heavy)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_defaults_are_those_of_the_estimator():
    shown = " ".join(run("fit", "--help").output.split())
    for name, parameter in inspect.signature(CGHash).parameters.items():
        if parameter.default is not None and name != "verbose":
            assert f"default: {parameter.default}" in shown, name


@pytest.mark.parametrize(
    ("command", "home", "renamed"),
    [
        ("evaluate", "cghash.criteria:evaluate", {"neighbors": "k"}),
        ("export faiss", "cghash.stores.faiss:FaissStore.write", {"expanded_bits": "n_bits"}),
        ("export duckdb", "cghash.stores.duckdb:DuckDBStore.write", {}),
        ("export postgres", "cghash.stores.postgres:PostgresStore.write", {"expanded_bits": "n_bits"}),
        ("export onnx", "cghash.stores.onnx:to_onnx", {}),
        ("cluster shuffle", "cghash.cluster:shuffle", {}),
        ("workspace new", "cghash.workspace:create_workspace", {}),
    ],
)
def test_defaults_are_those_of_the_function_that_does_the_work(command, home, renamed):
    module, _, name = home.partition(":")
    expected = inspect.signature(operator.attrgetter(name)(importlib.import_module(module))).parameters
    found = functools.reduce(lambda group, word: group.get_command(None, word), command.split(), main)
    shown = [option for option in found.params if getattr(option, "show_default", False)]
    compared = [option for option in shown if renamed.get(option.name, option.name) in expected]
    assert compared
    for option in compared:
        assert option.default == expected[renamed.get(option.name, option.name)].default, option.name


def test_every_parameter_of_the_estimator_has_an_option():
    def command() -> None: ...

    options = {option.name: option for option in estimator_options()(command).__click_params__}
    assert {*options, "verbose"} == set(inspect.signature(CGHash).parameters)
    choices = {"loss": LOSSES, "regularizer": REGULARIZERS, "hash_function": FAMILIES, "sampling": SAMPLINGS}
    for name, values in (choices | {"method": METHODS}).items():
        assert set(options[name].type.choices) == set(values)


# Fit


def test_fit_writes_the_model_that_the_estimator_learns(data):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CGHashWarning)
        expected = CGHash(6, n_neighbors=4, random_state=0, n_jobs=1).fit(X, y)
    np.testing.assert_array_equal(CGHash.load(data / "model").encode(X), expected.encode(X))


def test_fit_passes_its_options_on(data, tmp_path):
    options = "--loss hinge --regularizer linf -C 0.5 --hash-function stump --sampling classes --method paper"
    limits = ["--tol", "1e-3", "--time-limit", "60", "--checkpoint", tmp_path / "c"]
    fit(data / "xy.npz", *options.split(), *limits, "-o", tmp_path / "m")
    found = CGHash.load(tmp_path / "m").get_params()
    expected = {"n_bits": 6, "loss": "hinge", "regularizer": "linf", "C": 0.5, "hash_function": "stump"}
    expected |= {"sampling": "classes", "n_neighbors": 4, "method": "paper", "tol": 1e-3, "time_limit": 60.0}
    expected |= {"checkpoint": str(tmp_path / "c"), "n_jobs": 1, "random_state": 0, "verbose": 0}
    assert found == expected


@pytest.mark.parametrize(
    "supervision",
    [
        ("xy.npz",),
        ("x.csv", "--label-column", "kind"),
        ("x.csv", "--label-column", "kind", "--id-column", "name", "--triplets", "t.csv"),
        ("x.npy", "--triplets", "t.npy", "--duplets", "d.csv"),
        ("x.npy",),
    ],
)
def test_fit_from_each_kind_of_supervision(data, tmp_path, monkeypatch, supervision):
    monkeypatch.chdir(data)
    (data / "d.csv").write_text("0,10\n1,11\n")
    fit(*supervision, "-o", tmp_path / "m")
    model = CGHash.load(tmp_path / "m")
    assert 2 <= model.n_bits_ <= 6  # few triplets are soon satisfied
    assert model.n_features_in_ == 64


@pytest.mark.parametrize(
    ("before", "words"),
    [((100.0, 4.2), "130.0 s (104.2 s of them before the first bit), wrote m"), ((0.1, 0.1), "130.0 s, wrote m")],
)
def test_fit_says_what_of_a_time_limit_went_before_the_first_bit(capsys, before, words):
    from cghash.cli.fit import summarize

    about = {"status": "time_limit", "message": "1 bits; the time limit was reached", "seconds": 130.0}
    result = SimpleNamespace(**about, seconds_triplets=before[0], seconds_family=before[1])
    summarize(SimpleNamespace(result_=result), "m", quiet=False)
    told = capsys.readouterr().err
    assert "the time limit was reached" in told
    assert words in told


def test_fit_says_how_it_went_on_stderr(data, tmp_path):
    result = run("fit", data / "x.npy", "--labels", data / "y.npy", *QUICK, "-o", tmp_path / "m")
    assert result.stdout == ""
    for words in ("bit 6/6", "6 bits", "objective", "bound", "% of", f"wrote {tmp_path / 'm'}"):
        assert words in result.stderr
    assert fit(data / "x.npy", "--labels", data / "y.npy", "-o", tmp_path / "m").output == ""


def test_fit_says_what_it_takes_from_the_files(data, tmp_path):
    result = run("fit", data / "x.csv", "--label-column", "kind", *QUICK, "-o", tmp_path / "m")
    assert "cghash: features: 64 columns (p0 … p63)\n" in result.stderr
    assert "cghash: " + str(data / "x.csv") + ": not features: name\n" in result.stderr
    (tmp_path / "few.csv").write_text("a,kind\n0,0\n0.1,0\n1,1\n1.1,1\n")
    few = run("fit", tmp_path / "few.csv", "-b", "1", "-k", "1", "-o", tmp_path / "m")
    assert "features: 2 columns (a and kind)\n" in few.stderr
    replaced = run("fit", data / "xy.npz", "--triplets", data / "t.npy", *QUICK, "-o", tmp_path / "m")
    assert "labels in array 'y' are not used: the triplets decide" in replaced.stderr


def test_fit_from_standard_input(data, tmp_path):
    fit("-", "--label-column", "kind", "--id-column", "name", "-o", tmp_path / "m", input=(data / "x.csv").read_bytes())
    assert CGHash.load(tmp_path / "m").feature_names_in_[0] == "p0"
    fit("-", "--labels", data / "y.npy", "-o", tmp_path / "n", input=(data / "x.npy").read_bytes())
    np.testing.assert_array_equal(CGHash.load(tmp_path / "n").transform(X), CGHash.load(data / "model").transform(X))


def test_fit_warns_in_one_line(tmp_path):
    np.savez(tmp_path / "xy.npz", X=[[0.0], [0.1], [1.0], [1.1]], y=[0, 0, 1, 1])
    result = run("fit", tmp_path / "xy.npz", "-b", "9", "--hash-function", "stump", "-q", "-o", tmp_path / "m")
    assert result.stderr.startswith("cghash: warning: learned 1 of the 9 bits asked for")
    assert len(result.stderr.splitlines()) == 1


def test_interrupt_keeps_what_was_learned(data, tmp_path):
    args = ["fit", data / "xy.npz", "-b", "2000", "--hash-function", "rbf", "-v", "-o", tmp_path / "m"]
    heeded = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"  # background jobs ignore it
    command = [sys.executable, "-c", f"{heeded}; from cghash.cli import main; main()", *map(str, args)]
    env = os.environ | {"OPENBLAS_NUM_THREADS": "1"}
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=env) as process:
        said = ""
        while "bit 3/" not in said and process.poll() is None:
            said += process.stderr.readline()
        process.send_signal(signal.SIGINT)
        said += process.stderr.read()
    assert process.returncode == 130
    assert "Traceback" not in said
    model = CGHash.load(tmp_path / "m")
    assert model.n_bits_ >= 3
    assert f"holds the {model.n_bits_} bits learned so far" in said


# Encode


def test_encode_packs_bits(data, tmp_path):
    model = CGHash.load(data / "model")
    run("encode", data / "model", data / "x.npy", "-o", tmp_path / "c.npy")
    np.testing.assert_array_equal(np.load(tmp_path / "c.npy"), model.encode(X))
    run("encode", data / "model", data / "x.npy", "--bits", "-b", "3", "-o", tmp_path / "b.npy")
    np.testing.assert_array_equal(np.load(tmp_path / "b.npy"), model.transform(X)[:, :3])


def test_encode_to_standard_output(data):
    model = CGHash.load(data / "model")
    as_hex = run("encode", data / "model", data / "x.npy", "-q").stdout
    assert as_hex.split() == [code.tobytes().hex() for code in model.encode(X)]
    as_npy = run("encode", data / "model", data / "x.npy", "--format", "npy").stdout_bytes
    np.testing.assert_array_equal(np.load(io.BytesIO(as_npy)), model.encode(X))
    as_csv = run("encode", data / "model", data / "x.npy", "--bits", "--format", "csv").stdout
    np.testing.assert_array_equal(np.loadtxt(as_csv.splitlines(), delimiter=",", skiprows=1), model.transform(X))


def test_encode_in_blocks_is_the_same(data, tmp_path, monkeypatch):
    run("encode", data / "model", data / "x.npy", "-o", tmp_path / "whole.csv")
    monkeypatch.setattr(sys.modules["cghash.cli._codes"], "_ITEMS", 7)
    run("encode", data / "model", data / "x.npy", "-o", tmp_path / "blocks.csv")
    assert (tmp_path / "whole.csv").read_text() == (tmp_path / "blocks.csv").read_text()


def test_encode_finds_columns_by_name_and_keeps_ids(data, tmp_path):
    fit(data / "x.csv", "--label-column", "kind", "--id-column", "name", "-o", tmp_path / "m")
    lines = (data / "x.csv").read_text().splitlines()
    turned = "\n".join(",".join(reversed(line.split(","))) for line in lines)
    result = run("encode", tmp_path / "m", "-", "--id-column", "name", "--format", "csv", input=turned)
    rows = [line.split(",") for line in result.stdout.splitlines()]
    assert rows[0] == ["name", "byte0"]
    assert [row[0] for row in rows[1:]] == [f"i{n}" for n in range(300)]
    codes = [[int(row[1])] for row in rows[1:]]
    with pytest.warns(UserWarning, match="feature names"):  # scikit-learn's, of columns without names
        np.testing.assert_array_equal(codes, CGHash.load(tmp_path / "m").encode(X))


def test_encode_ends_quietly_when_the_reader_leaves(data):
    command = f"{sys.executable} -c 'from cghash.cli import main; main()' encode {data}/model {data}/x.npy --format csv"
    done = subprocess.run(["bash", "-c", f"{command} -q | head -1"], capture_output=True, text=True)
    assert done.stdout == "byte0\n"
    assert done.stderr == ""


# Info


def test_info_for_people_and_for_programs(data):
    shown = run("info", data / "model").stdout
    for words in ("linear", "6 (1 bytes a code)", "64", "zero weights", "triplets", "status", "certificate"):
        assert words in shown
    facts = json.loads(run("info", data / "model", "--json").stdout)
    model = CGHash.load(data / "model")
    assert facts["n_bits"] == 6
    assert facts["n_features"] == 64
    assert facts["weights"]["values"] == model.weights_.tolist()
    assert facts["result"]["objective"] == model.result_.objective
    assert facts["parameters"]["n_neighbors"] == 4


def test_info_of_a_checkpoint(data, tmp_path):
    fit(data / "xy.npz", "--checkpoint", tmp_path / "c", "-o", tmp_path / "m")
    assert "checkpoint of a fit under way" in run("info", tmp_path / "c").stdout
    facts = json.loads(run("info", tmp_path / "c", "--json").stdout)
    assert facts["kind"] == "checkpoint"
    assert facts["weights"]["values"] == CGHash.load(tmp_path / "m").weights_.tolist()


# Evaluate


def test_evaluate_agrees_with_the_criteria(data, tmp_path):
    from cghash.criteria import evaluate

    for name, part in (("q", slice(0, 100)), ("d", slice(100, 300))):
        np.savez(tmp_path / f"{name}.npz", X=X[part], y=y[part])
    asked = ("evaluate", data / "model", tmp_path / "q.npz", "--database", tmp_path / "d.npz", "-b", "3,6")
    found = json.loads(run(*asked, "--json").stdout)
    assert (found["n_queries"], found["n_database"]) == (100, 200)
    model = CGHash.load(data / "model")
    for short, row in zip((model.truncate(3), model), found["results"], strict=True):
        bits = short.transform(X)
        expected = evaluate(bits[:100], bits[100:], short.weights_, y[:100], y[100:])
        assert row == {"n_bits": short.n_bits_} | expected


def test_evaluate_splits_class_by_class_without_a_database(data):
    args = ("evaluate", data / "model", data / "x.npy", "--labels", data / "y.npy")
    found = json.loads(run(*args, "--split", "0.5", "--json").stdout)
    assert found["n_queries"] == sum(round(0.5 * size) for size in np.bincount(y))
    assert found["n_queries"] + found["n_database"] == 300
    again, other = (run(*args, "--json", "--seed", seed).stdout for seed in (0, 1))
    assert again != other
    assert again == run(*args, "--json").stdout
    shown = run(*args, "-b", "2,4,6").stdout
    assert all(words in shown for words in ("bits", "mAP", "top-50", "3-NN error"))
    assert len([line for line in shown.splitlines() if "0." in line]) == 3


def test_evaluate_counts_satisfied_triplets(data):
    found = json.loads(run("evaluate", data / "model", data / "x.npy", "--triplets", data / "t.npy", "--json").stdout)
    expected = CGHash.load(data / "model").score(X, triplets=np.load(data / "t.npy"))
    assert found["results"] == [{"n_bits": 6, "satisfied": expected}]
    by_id = ("--id-column", "name", "--label-column", "kind", "--triplets", data / "t.csv")
    again = json.loads(run("evaluate", data / "model", data / "x.csv", *by_id, "--json").stdout)
    assert again["results"][0]["satisfied"] == expected


def test_evaluate_compares_labels_as_they_are_written(data, tmp_path):
    """Zero-padded labels are numbers in one file and, beside a word, strings in the other."""
    (tmp_path / "q.csv").write_text("\n".join(f"{label:02d}" for label in y[:100]))
    (tmp_path / "d.csv").write_text("\n".join(f"{label:02d}" if label else "none" for label in y[100:]))
    np.save(tmp_path / "q.npy", X[:100])
    np.save(tmp_path / "d.npy", X[100:])
    asked = ("evaluate", data / "model", tmp_path / "q.npy", "--database", tmp_path / "d.npy", "--json")
    found = json.loads(run(*asked, "--labels", tmp_path / "q.csv", "--database-labels", tmp_path / "d.csv").stdout)
    assert found["results"][0]["map"] > 0.3
    np.save(tmp_path / "other.npy", y[100:] + 50)
    line = refused(*asked, "--labels", tmp_path / "q.csv", "--database-labels", tmp_path / "other.npy")
    assert line.startswith("no query has a relevant item in the database")
    assert line.endswith(f"(such as {y[0]} and {y[100] + 50})")


def test_evaluate_reads_the_database_as_the_queries(data, tmp_path):
    names = [f"p{j}" for j in range(64)]
    rows = [f"{n},{','.join(map(str, x))},c{k},w" for n, (x, k) in enumerate(zip(X.tolist(), y, strict=True))]
    (tmp_path / "x.csv").write_text("\n".join([f"number,{','.join(names)},kind,word", *rows]))
    asked = ("--database", tmp_path / "x.csv", "--label-column", "kind", "--id-column", "number")
    result = run("evaluate", data / "model", tmp_path / "x.csv", *asked, "--json")
    assert json.loads(result.stdout)["n_database"] == 300
    assert result.stderr.count("not features: word") == 2


def test_evaluate_help_tells_how_ties_count():
    assert "a tie is not satisfied" in " ".join(run("evaluate", "--help").output.split())


def test_evaluate_with_few_items_counts_what_there_is(data, tmp_path):
    np.savez(tmp_path / "few.npz", X=X[:20], y=y[:20] % 2)
    found = json.loads(run("evaluate", data / "model", tmp_path / "few.npz", "--json").stdout)
    assert found["top"] == found["n_database"] == 14


# Errors


def test_errors_are_one_line_with_a_code(data, tmp_path, monkeypatch):
    monkeypatch.chdir(data)
    out = ("-o", tmp_path / "m")
    np.save(data / "same.npy", np.zeros((9, 2)))
    cases = {
        ("fit",): "Missing argument 'ITEMS'. (see 'cghash fit --help')",
        ("fit", "x.npy"): "Missing option '-o' / '--output'.",
        ("fit", "none.npy", *out): "no such file or directory: 'none.npy'",
        ("fit", "x.npy", "-o", "no/model"): "folder 'no' does not exist",
        ("fit", "x.npy", "-o", "."): "'.' is a folder",
        ("fit", "x.npy", "-b", "0", *out): "n_bits must be a whole number of at least 1, got 0",
        ("fit", "x.npy", "-b", "many", *out): "'many' is not a valid integer",
        ("fit", "x.npy", "--loss", "none", *out): "'none' is not one of 'squared_hinge'",
        ("fit", "x.npy", "--labels", "y.npy", "--triplets", "t.npy", *out): "cannot go together",
        ("fit", "x.csv", "--labels", "y.npy", "--label-column", "kind", *out): "cannot go together",
        ("fit", "same.npy", *out): "are all items alike?",
        ("fit", "x.csv", "--label-column", "nope", *out): "x.csv must have a column 'nope'",
        ("info", "x.npy"): "x.npy is not a cghash file",
        ("info", "none"): "no such file or directory",
        ("info", "."): "is a folder",
        ("encode", "model", "y.npy"): "y.npy must hold a 2-D array of numbers, got shape (300,)",
        ("encode", "model", "x.npy", "-b", "7"): "--n-bits must be from 1 to 6, the bits of the model, got 7",
        ("encode", "model", "x.npy", "--bits"): "--bits needs --format npy or csv",
        ("evaluate", "model", "xy.npz", "-b", "3,0"): "--n-bits must be from 1 to 6, the bits of the model, got 0",
        ("fit", "x.npy", "-o", "-"): "a model is not written to standard output",
        ("fit", "-", "--labels", "-", *out): "standard input can be read only once, got '-' for ITEMS and --labels",
        ("fit", "-", "--triplets", "-", *out): "only once, got '-' for ITEMS and --triplets",
        ("fit", "x.npy", "--triplets", "-", "--duplets", "-", *out): "'-' for --triplets and --duplets",
        ("evaluate", "model", "-", "--database", "-"): "only once, got '-' for ITEMS and --database",
        ("evaluate", "model", "x.npy"): "there is nothing to measure with",
        ("evaluate", "model", "x.npy", "--labels", "y.npy", "-b", "a"): "such as 16,32,64, got 'a'",
        ("evaluate", "model", "xy.npz", "--database", "x.npy"): "the database needs labels",
        ("evaluate", "model", "x.npy", "--labels", "t.npy"): "one label for each of 300 items",
    }
    for args, words in cases.items():
        assert words in refused(*args, after_talk=True), args
    assert not (tmp_path / "m").exists()


def test_other_errors_exit_with_1(data, tmp_path, monkeypatch):
    from cghash import reading

    def full(*_, **__):
        raise OSError(28, "No space left on device", "m")

    monkeypatch.setattr(CGHash, "save", full)
    line = refused("fit", data / "xy.npz", *QUICK, "-q", "-o", tmp_path / "m", code=1)
    assert line == "no space left on device: 'm'"
    monkeypatch.setattr(reading, "read_items", lambda *_, **__: 1 / 0)
    line = refused("encode", data / "model", data / "x.npy", code=1)
    assert line == "ZeroDivisionError: division by zero (unexpected; --debug shows where)"


def test_missing_packages_exit_with_1(data, tmp_path, monkeypatch):
    (tmp_path / "x.parquet").write_bytes(b"PAR1")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert 'pip install "cghash[parquet]"' in refused("encode", data / "model", tmp_path / "x.parquet", code=1)


@pytest.mark.parametrize("args", [["--debug", "info"], ["info", "--debug"]], ids=" ".join)
def test_debug_shows_the_trace(data, args):
    result = CliRunner().invoke(main, [*args, str(data / "x.npy")])
    assert isinstance(result.exception, FormatError)


def test_a_process_of_its_own_ends_as_it_should(data):
    done = bash("info", data / "x.npy", text=True)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("cghash: error: ")
    assert done.stderr.count("\n") == 1
    traced = bash("info", data / "x.npy", "--debug", text=True)
    assert traced.returncode == 1
    assert "Traceback" in traced.stderr
    assert "FormatError" in traced.stderr


def test_an_interrupt_before_the_first_bit_says_so():
    assert describe(click.Abort()) == ("interrupted", 130)


def test_devices_are_written_and_not_replaced(data):
    run("encode", data / "model", data / "x.npy", "-o", "/dev/null")
    assert not os.path.isfile("/dev/null")


def test_links_are_followed(data, tmp_path):
    (tmp_path / "link.npy").symlink_to(tmp_path / "target.npy")
    run("encode", data / "model", data / "x.npy", "-o", tmp_path / "link.npy")
    assert (tmp_path / "link.npy").is_symlink()
    np.testing.assert_array_equal(np.load(tmp_path / "target.npy"), pack(CGHash.load(data / "model").transform(X)))
    assert sorted(p.name for p in tmp_path.iterdir()) == ["link.npy", "target.npy"]


def test_commands_take_the_model_of_a_peer(data, tmp_path):
    """encode, evaluate and info ask the file whose model it is."""
    path, model = tmp_path / "lsh.cghash", LSH(16, random_state=0).fit(X)
    model.save(path)
    assert run("info", path).stdout.count("model of LSH") == 1
    assert json.loads(run("info", path, "--json").stdout)["method"] == "LSH"
    run("encode", path, data / "x.npy", "-o", tmp_path / "codes.npy")
    np.testing.assert_array_equal(np.load(tmp_path / "codes.npy"), model.encode(X))
    measured = json.loads(run("evaluate", path, data / "xy.npz", "--n-bits", "8,16", "--json").stdout)
    assert [row["n_bits"] for row in measured["results"]] == [8, 16]
