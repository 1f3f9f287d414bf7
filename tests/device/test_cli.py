"""`cghash fit` and `cghash encode` with --device."""

from __future__ import annotations

import numpy as np
import pytest
from click.testing import CliRunner
from sklearn.datasets import load_digits

from cghash import CGHash
from cghash.cli import main

torch = pytest.importorskip("torch")
torch.set_num_threads(1)
X, Y = (values[:150] for values in load_digits(return_X_y=True))


@pytest.fixture
def folder(tmp_path):
    np.save(tmp_path / "x.npy", X)
    np.save(tmp_path / "y.npy", Y)
    return tmp_path


def run(*args):
    return CliRunner().invoke(main, [str(arg) for arg in args])


def fit(folder, *more):
    labels = "--labels", folder / "y.npy"
    return run("fit", folder / "x.npy", *labels, "-b", "4", "--seed", "0", "-q", "-o", folder / "model", *more)


def test_a_model_is_learned_and_encodes_on_a_device(folder):
    assert fit(folder, "--device", "cpu").exit_code == 0
    model = CGHash.load(folder / "model")
    expected = CGHash(4, random_state=0).fit(X, Y, device="cpu")
    np.testing.assert_allclose(model.functions_.coef, expected.functions_.coef)
    out = folder / "codes.npy"
    assert run("encode", folder / "model", folder / "x.npy", "--device", "cpu", "-o", out).exit_code == 0
    np.testing.assert_array_equal(np.load(out), model.encode(X))
    assert run("encode", folder / "model", folder / "x.npy", "--bits", "--device", "cpu", "-o", out).exit_code == 0
    np.testing.assert_array_equal(np.load(out), model.transform(X))


@pytest.mark.parametrize(
    ("device", "words"),
    [
        ("quantum", "device must be"),
        pytest.param(
            "cuda", "leave device out", marks=pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
        ),
    ],
)
def test_a_device_that_is_not_there_is_one_line(folder, device, words):
    CGHash(2, random_state=0).fit(X, Y).save(folder / "old")
    for answer in (
        fit(folder, "--device", device),
        run("encode", folder / "old", folder / "x.npy", "--device", device, "-o", folder / "codes.npy"),
    ):
        assert answer.exit_code not in (0, None)
        assert answer.stderr.splitlines()[-1].startswith("cghash: error: ")
        assert words in answer.stderr
        assert "Traceback" not in answer.output
    assert not (folder / "model").exists()
    assert not (folder / "codes.npy").exists()


def test_functions_without_products_are_refused_on_a_device(folder):
    answer = fit(folder, "--hash-function", "stump", "--device", "cpu")
    assert answer.exit_code == 2
    assert "leave device out" in answer.stderr
